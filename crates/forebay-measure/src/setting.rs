//! What an experiment can be told, declared once.
//!
//! [`settings!`](crate::settings) makes a struct, its defaults and its [table](Settings::TABLE) from one line per setting. The flags
//! of the command and the settings and factors of a study are both read from that table, so that they cannot differ.

use forebay_record::{Level, Step};

/// Why a value is refused: "give a whole number from 1 to 8". Who prints it puts the value in front.
pub type Refused = String;

/// How many values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// True when it is named.
    Switch,
    /// One value.
    One,
    /// Several, which one cell of a study may have.
    List,
    /// Several in a command, which sweeps them. In a study they are the levels of a factor, because a cell has one.
    Sweep,
}

/// One thing that an experiment with the settings `S` can be told.
pub struct Setting<S> {
    /// As a study has it; the flag has hyphens for its underscores.
    pub name: &'static str,
    /// What it means, in a line; then more, after an empty one.
    pub help: &'static str,
    /// What stands for a value in the help, such as `N`.
    pub value: &'static str,
    /// What it is where nothing is said, as one would write it.
    pub default: Option<&'static str>,
    /// How many values it takes.
    pub takes: Takes,
    /// The words it may be, where there is a list of them.
    pub choices: fn() -> Vec<&'static str>,
    /// Reads a value into the settings.
    pub set: fn(&mut S, &Level) -> Result<(), Refused>,
}

impl<S> Clone for Setting<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Setting<S> {}

/// The settings of an experiment.
pub trait Settings: Default + Clone + std::fmt::Debug + Send + Sync + 'static {
    /// The experiment.
    const STEP: Step;

    /// All settings, in the order of the help.
    const TABLE: &'static [Setting<Self>];

    /// What contradicts itself or lacks something, with settings named in backquotes (see [`spelled`]).
    ///
    /// # Errors
    /// The contradiction.
    fn check(&self) -> Result<(), Refused>;

    /// Sets one of the table by its name.
    ///
    /// # Errors
    /// What the value may be, or that there is no such setting.
    fn set(&mut self, name: &str, level: &Level) -> Result<(), Refused> {
        match Self::TABLE.iter().find(|setting| setting.name == name) {
            Some(setting) => (setting.set)(self, level),
            None => Err(format!("{} has no setting \"{name}\"", Self::STEP.name())),
        }
    }
}

/// A text with its settings as its reader writes them: `steps` becomes `--steps` for a command, and stays for a study.
pub fn spelled(text: &str, spell: impl Fn(&str) -> String) -> String {
    let pieces = text.split('`').enumerate();
    pieces.map(|(i, piece)| if i % 2 == 1 { spell(piece) } else { piece.to_owned() }).collect()
}

/// Declares the settings of an experiment: a struct, its defaults, its table.
///
/// A line is `name: Type = "default", reader, "VALUE" [takes: choices];`. Its comment is the help. Without a default the type's own
/// is taken (`None`, `false`); without a value it is a switch; `takes` is `one` (the default), `list` or `sweep`, and `choices` the
/// words it may be. The struct has a method `check`, which [`Settings::check`] calls.
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
        ($reader)(&$crate::Level::of_text($default)).expect("a default can be read: a test does it")
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
