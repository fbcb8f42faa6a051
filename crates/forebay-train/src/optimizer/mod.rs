//! Optimisers: one file per rule, each as PyTorch defines it.
//!
//! A file declares the names, constants, state and arithmetic of its rule for both engines; `optimizers!` lists the
//! files. No other code distinguishes the rules.

mod adam;
mod sgd;

pub use adam::Adam;
pub use sgd::Sgd;

use crate::engine::Part;

/// Maximum number of values that a rule keeps per parameter.
pub(crate) const MOST_MOMENTS: usize = 2;

/// The constants of one step's arithmetic, in the order of the rule's file.
pub(crate) type Constants = [f32; 9];

/// How engines apply a rule.
#[derive(Debug)]
pub(crate) struct Arithmetic {
    /// Of the struct in `cuda`.
    pub(crate) name: &'static str,
    /// Values per parameter that `sweep` and `cuda` use.
    pub(crate) n_moments: usize,
    pub(crate) sweep: Sweep,
    /// A struct of the constants, with the member function `step(value, gradient, first, second)` for one parameter.
    pub(crate) cuda: &'static str,
}

/// Updates values and moments from their gradients; unused moments are empty.
pub(crate) type Sweep = fn(&Constants, &mut [f32], &[f32], &mut [f32], &mut [f32]);

/// One step's arithmetic, the same for every value of every parameter.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub(crate) arithmetic: &'static Arithmetic,
    pub(crate) constants: Constants,
}

/// A rule with its constants. Each also has `USUAL`, the names that a user may give with their constants, and
/// `ARITHMETIC`.
trait Declared {
    fn name(&self) -> &'static str;

    fn learning_rate(&mut self) -> &mut f64;

    /// The names of its moments in a saved state.
    fn moments(&self) -> &'static [&'static str];

    fn constants(&self, step: u64) -> Constants;
}

macro_rules! optimizers {
    ($($(#[$about:meta])* $name:ident)*) => {
        /// A rule with its constants.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Optimizer {
            $($(#[$about])* $name($name),)*
        }

        /// Of every rule.
        pub(crate) const ARITHMETICS: &[&Arithmetic] = &[$(&$name::ARITHMETIC),*];

        impl Optimizer {
            fn usual() -> impl Iterator<Item = (&'static str, Self)> {
                std::iter::empty()$(.chain($name::USUAL.into_iter().map(|(name, rule)| (name, Self::$name(rule)))))*
            }

            fn declared(&mut self) -> &mut dyn Declared {
                match self {
                    $(Self::$name(rule) => rule,)*
                }
            }

            fn arithmetic(&self) -> &'static Arithmetic {
                match self {
                    $(Self::$name(_) => &$name::ARITHMETIC,)*
                }
            }
        }
    };
}

optimizers! {
    /// Adam, or AdamW where the decay is decoupled.
    Adam
    /// Stochastic gradient descent, with or without momentum.
    Sgd
}

impl Optimizer {
    /// The default optimiser.
    pub const DEFAULT: &str = "adam";

    /// The optimiser with this name and its usual constants, optionally with another learning rate.
    pub fn named(name: &str, learning_rate: Option<f64>) -> Option<Self> {
        let mut optimizer = Self::usual().find(|(known, _)| *known == name)?.1;
        if let Some(learning_rate) = learning_rate {
            optimizer.set_learning_rate(learning_rate);
        }
        Some(optimizer)
    }

    /// The names that [`Self::named`] accepts.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::usual().map(|(name, _)| name)
    }

    /// Its name, as [`Self::named`] accepts it.
    pub fn name(mut self) -> &'static str {
        self.declared().name()
    }

    /// The learning rate.
    pub fn learning_rate(mut self) -> f64 {
        *self.declared().learning_rate()
    }

    /// Sets the learning rate.
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        *self.declared().learning_rate() = learning_rate;
    }

    /// What it keeps per parameter: the name in saved states, and the part of the store.
    pub(crate) fn moments(mut self) -> impl Iterator<Item = (&'static str, Part)> {
        self.declared().moments().iter().enumerate().map(|(i, name)| (*name, Part::Moment(i)))
    }

    /// The arithmetic of step number `step`, counted from 1.
    pub(crate) fn rule(mut self, step: u64) -> Rule {
        Rule { arithmetic: self.arithmetic(), constants: self.declared().constants(step) }
    }
}
