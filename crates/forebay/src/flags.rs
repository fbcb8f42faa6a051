//! The flags of an experiment, made from the table of its settings.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};
use forebay_measure::{Setting, Settings, Takes, spelled};
use forebay_record::Level;

/// Settings as the command line has them; `P` says which of them the command has.
#[derive(Debug)]
pub(crate) struct Flags<S, P = All>(pub(crate) S, PhantomData<P>);

/// Which of an experiment's settings are flags of a command.
pub(crate) trait Pick {
    fn has(name: &str) -> bool;
}

/// Every one: the command runs the experiment.
#[derive(Debug)]
pub(crate) struct All;

impl Pick for All {
    fn has(_: &str) -> bool {
        true
    }
}

fn table<S: Settings, P: Pick>() -> impl Iterator<Item = &'static Setting<S>> {
    S::TABLE.iter().filter(|setting| P::has(setting.name))
}

impl<S: Settings, P: Pick> clap::Args for Flags<S, P> {
    fn augment_args(command: Command) -> Command {
        table::<S, P>().fold(command, |command, setting| command.arg(arg(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Settings, P: Pick> clap::FromArgMatches for Flags<S, P> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut flags = Self(S::default(), PhantomData);
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let refused = |text: &str| Error::raw(ErrorKind::ArgumentConflict, spelled(text, flag));
        for setting in table::<S, P>().filter(|setting| is_given(matches, setting.name)) {
            let level = match setting.takes {
                Takes::Switch => Level::Flag(true),
                _ => together(matches.get_many::<Level>(setting.name).into_iter().flatten()),
            };
            (setting.set)(&mut self.0, &level).map_err(|text| refused(&text))?;
        }
        self.0.check().map_err(|text| refused(&text))
    }
}

/// Whether a flag stands on the command line.
fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// One value as it is; several, of a flag that was given more than once, as a list.
fn together<'a>(levels: impl Iterator<Item = &'a Level>) -> Level {
    let levels: Vec<&Level> = levels.collect();
    match levels.as_slice() {
        [one] => (*one).clone(),
        all => Level::Text(all.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")),
    }
}

/// The flag of a setting: `--device-prefetch` for `device_prefetch`.
pub(crate) fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn arg<S: Settings>(setting: &'static Setting<S>) -> Arg {
    let help = setting.help.trim();
    let (short, _) = help.split_once("\n\n").unwrap_or((help, ""));
    let lines = |text: &str| text.split("\n\n").map(joined).collect::<Vec<_>>().join("\n\n");
    let arg = Arg::new(setting.name).long(setting.name.replace('_', "-")).help(joined(short));
    let arg = if short == help { arg } else { arg.long_help(lines(help)) };
    if setting.takes == Takes::Switch {
        return arg.action(ArgAction::SetTrue);
    }
    let action = if setting.takes == Takes::One { ArgAction::Set } else { ArgAction::Append };
    arg.action(action).value_name(setting.value).default_value(setting.default).value_parser(Reader(setting))
}

/// A comment's lines as one.
fn joined(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Reads a setting's values as a study does.
struct Reader<S: 'static>(&'static Setting<S>);

impl<S> Clone for Reader<S> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<S: Settings> TypedValueParser for Reader<S> {
    type Value = Level;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Level, Error> {
        let setting = self.0;
        let read = move |text: &str| {
            let level = Level::of_text(text);
            (setting.set)(&mut S::default(), &level).map(|()| level)
        };
        read.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = (self.0.choices)();
        (!words.is_empty()).then(|| Box::new(words.into_iter().map(PossibleValue::new)) as Box<_>)
    }
}
