//! The settings of an experiment, declared once.
//!
//! [`settings!`](crate::settings) makes a struct, its defaults and its [table](Settings::TABLE) from one line per
//! setting. The flags of a command and the settings and factors of a study are both read from that table, so they
//! cannot differ.

use forebay_record::{Level, Step};

/// A description of valid values: "give a whole number from 1 to 8". The caller prints it after the value.
pub type Refused = String;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// No value: true if named.
    Switch,
    One,
    /// Several values, all in one cell of a study.
    List,
    /// Several values that a command sweeps; in a study they are the levels of a factor, one per cell.
    Sweep,
}

pub struct Setting<S> {
    /// As in a study file; in the flag, hyphens replace underscores.
    pub name: &'static str,
    /// One line; details follow after an empty line.
    pub help: &'static str,
    /// Placeholder for the value in the help, such as `N`.
    pub value: &'static str,
    /// As the user would write it.
    pub default: Option<&'static str>,
    pub takes: Takes,
    /// The allowed words, if the values are a fixed list.
    pub choices: fn() -> Vec<&'static str>,
    pub set: fn(&mut S, &Level) -> Result<(), Refused>,
}

impl<S> Clone for Setting<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Setting<S> {}

pub trait Settings: Default + Clone + std::fmt::Debug + Send + Sync + 'static {
    const STEP: Step;

    /// In the order of the help.
    const TABLE: &'static [Setting<Self>];

    /// Finds contradictions between settings; the text has settings in backquotes (see [`spelled`]).
    ///
    /// # Errors
    /// The contradiction.
    fn check(&self) -> Result<(), Refused>;

    /// # Errors
    /// If there is no such setting, or with a description of valid values.
    fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match Self::TABLE.iter().find(|setting| setting.name == name) {
            Some(setting) => (setting.set)(self, level),
            None => Err(format!("{} has no setting \"{name}\"", Self::STEP.name())),
        }
    }
}

/// Spells settings in backquotes for the reader: `steps` becomes `--steps` in a command and stays in a study.
pub fn spelled(text: &str, spell: impl Fn(&str) -> String) -> String {
    let pieces = text.split('`').enumerate();
    pieces.map(|(i, piece)| if i % 2 == 1 { spell(piece) } else { piece.to_owned() }).collect()
}

/// Declares the settings of an experiment: a struct, its defaults, its table.
///
/// A line is `name: Type = "default", reader, "VALUE" [takes: choices];`. Its comment is the help. Without a default,
/// the type's own applies (`None`, `false`); without a value, it is a switch. `takes` is `one` (the default), `list` or
/// `sweep`; `choices` are the allowed words. The struct must have a method `check`, which [`Settings::check`] calls.
#[macro_export]
macro_rules! settings {
    (
        $(#[doc = $about:literal])*
        pub struct $settings:ident for $step:ident {
            $(
                $(#[doc = $help:literal])+
                $name:ident: $type:ty $(= $default:literal)?, $reader:expr $(, $value:literal $([$takes:ident $(: $choices:expr)?])?)?;
            )+
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $settings {
            $($(#[doc = $help])+ pub $name: $type,)+
        }

        impl Default for $settings {
            fn default() -> Self {
                Self { $($name: $crate::settings!(@default $reader $(, $default)?),)+ }
            }
        }

        impl $crate::Settings for $settings {
            const STEP: $crate::Step = $crate::Step::$step;
            const TABLE: &'static [$crate::Setting<Self>] = &[$($crate::Setting {
                name: stringify!($name),
                help: concat!($($help, "\n"),+),
                value: concat!("" $(, $value)?),
                default: $crate::settings!(@text $($default)?),
                takes: $crate::settings!(@takes $($value $($takes)?)?),
                choices: || $crate::settings!(@choices $($($($choices)?)?)?),
                set: |settings, level| {
                    settings.$name = ($reader)(level)?;
                    Ok(())
                },
            }),+];

            fn check(&self) -> Result<(), $crate::Refused> {
                Self::check(self)
            }
        }
    };
    (@default $reader:expr) => { Default::default() };
    (@default $reader:expr, $default:literal) => {
        ($reader)(&$crate::Level::of_text($default)).expect("a test reads every default")
    };
    (@text) => { None };
    (@text $default:literal) => { Some($default) };
    (@choices) => { Vec::new() };
    (@choices $choices:expr) => { $choices.into_iter().collect() };
    (@takes) => { $crate::Takes::Switch };
    (@takes $value:literal) => { $crate::Takes::One };
    (@takes $value:literal one) => { $crate::Takes::One };
    (@takes $value:literal list) => { $crate::Takes::List };
    (@takes $value:literal sweep) => { $crate::Takes::Sweep };
}
