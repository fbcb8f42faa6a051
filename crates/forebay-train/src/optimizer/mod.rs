//! How gradients change parameters: one file a rule, each as PyTorch defines it.

mod adam;
mod sgd;

pub use adam::Adam;
pub(crate) use adam::AdamRule;
pub use sgd::Sgd;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimizer {
    /// Adam, or AdamW where the decay is decoupled.
    Adam(Adam),
    /// Stochastic gradient descent, with or without momentum.
    Sgd(Sgd),
}

type Make = fn() -> Optimizer;

/// The optimisers by the names a user may give. Adam's rate is below PyTorch's 1e-3.
const OPTIMIZERS: &[(&str, Make)] = &[
    ("adam", || Optimizer::Adam(Adam { learning_rate: 1e-4, ..Adam::default() })),
    ("adamw", || Optimizer::Adam(Adam { learning_rate: 1e-4, ..Adam::decoupled() })),
    ("sgd", || Optimizer::Sgd(Sgd::default())),
];

impl Optimizer {
    /// The name of the one that is used where none is named.
    pub const DEFAULT: &str = "adam";

    /// The optimiser of this name with its usual constants, and this learning rate in place of its own where one is given.
    pub fn named(name: &str, learning_rate: Option<f64>) -> Option<Self> {
        let mut optimizer = OPTIMIZERS.iter().find(|(known, _)| *known == name).map(|(_, make)| make())?;
        if let Some(learning_rate) = learning_rate {
            optimizer.set_learning_rate(learning_rate);
        }
        Some(optimizer)
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        OPTIMIZERS.iter().map(|(name, _)| *name)
    }

    pub fn name(&self) -> &'static str {
        match self {
            Self::Adam(adam) if adam.decoupled => "adamw",
            Self::Adam(_) => "adam",
            Self::Sgd(_) => "sgd",
        }
    }

    pub fn learning_rate(&self) -> f64 {
        match self {
            Self::Adam(adam) => adam.learning_rate,
            Self::Sgd(sgd) => sgd.learning_rate,
        }
    }

    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        match self {
            Self::Adam(adam) => adam.learning_rate = learning_rate,
            Self::Sgd(sgd) => sgd.learning_rate = learning_rate,
        }
    }

    /// What it keeps for each parameter, as saved states call it, with the part of the store it is in.
    pub(crate) fn moments(&self) -> &'static [(&'static str, crate::engine::Part)] {
        use crate::engine::Part;
        match self {
            Self::Adam(_) => &[("exp_avg", Part::FirstMoment), ("exp_avg_sq", Part::SecondMoment)],
            Self::Sgd(sgd) if sgd.momentum != 0.0 => &[("momentum_buffer", Part::FirstMoment)],
            Self::Sgd(_) => &[],
        }
    }

    /// The arithmetic of step number `step`, counted from 1.
    pub(crate) fn rule(&self, step: u64) -> Rule {
        match self {
            Self::Adam(adam) => Rule::Adam(adam.rule(step)),
            Self::Sgd(sgd) => Rule::Sgd(sgd.rule()),
        }
    }
}

/// One step's arithmetic, the same for every value of every parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    Adam(AdamRule),
    Sgd(sgd::SgdRule),
}
