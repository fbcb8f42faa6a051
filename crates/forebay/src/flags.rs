//! The flags of an experiment, generated from the table of its settings.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error};
use forebay_measure::{Setting, Settings, Takes, spelled};
use forebay_record::{Level, Levels};

/// Settings as flags; `P` selects those that the command has. With them the values that were given.
#[derive(Debug)]
pub(crate) struct Flags<S, P = All>(pub(crate) S, pub(crate) Levels, PhantomData<P>);

/// Selects the settings of an experiment that are flags of a command.
pub(crate) trait Pick {
    fn has(name: &str) -> bool;
}

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
        let mut flags = Self(S::default(), Levels::new(), PhantomData);
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
            self.1.insert(setting.name.to_owned(), level);
        }
        self.0.check().map_err(|text| refused(&text))
    }
}

fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// One value as it is; the values of a repeated flag as a list.
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

fn joined(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Parses a setting's values as in a study.
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use forebay_bench::checkpoint::CheckpointSettings;
    use forebay_bench::ingest::IngestSettings;
    use forebay_bench::train::TrainSettings;
    use forebay_emulation::WorkloadSettings;
    use forebay_measure::Refused;
    use forebay_probe::ProbeSettings;
    use forebay_record::Scale;

    use super::*;

    #[derive(Debug, Parser)]
    struct Told<S: Settings> {
        #[command(flatten)]
        flags: Flags<S>,
    }

    fn command<S: Settings + PartialEq>(flags: &[String]) -> Result<S, Error> {
        let words = ["forebay".to_owned()].into_iter().chain(flags.iter().cloned());
        Told::try_parse_from(words).map(|told| told.flags.0)
    }

    /// What a study with one cell makes of its settings: why it refuses them, or the cell's task in words.
    fn study(step: &str, settings: &str) -> Result<String, String> {
        let text = format!(
            "name = \"one\"\ntitle = \"one\"\n[[dataset]]\nname = \"set\"\nmake = \"caltech101\"\ncount = 1000000\n\
             [[tier]]\nname = \"hdd\"\nprofile = \"hdd\"\n\
             [[experiment]]\nname = \"e\"\nrun = \"{step}\"\n[experiment.settings]\n{settings}"
        );
        let spec = forebay_study::parse(&text).map_err(|error| error.to_string())?;
        let plan = forebay_study::Plan::new(spec, Scale::Quick).map_err(|error| error.to_string())?;
        Ok(format!("{:?}", plan.cells[0].work.task))
    }

    /// A setting as a flag and as a study has it.
    fn both<S>(setting: &Setting<S>, level: &Level) -> (String, String) {
        let (name, flag) = (setting.name, flag(setting.name));
        match (setting.takes, level) {
            (Takes::Switch, _) => (flag, format!("{name} = true\n")),
            (_, Level::Text(text)) => (format!("{flag}={text}"), format!("{name} = {text:?}\n")),
            (_, number) => (format!("{flag}={number}"), format!("{name} = {number}\n")),
        }
    }

    /// The same values are taken and refused, and come to the same settings, by a command and by a study at these places.
    ///
    /// `check` is what the command looks at once it knows its places.
    fn agree<S: Settings + PartialEq>(places: &str, check: impl Fn(&S) -> Result<(), Refused>) {
        const TRIED: &str = "-1 0 1 2 3 4 8 64 65 100 512 1000 1001 1024 1025 4096 10000 10001 65536 100000 100001 1000000 1000001 \
            1000000000 1000000001 9223372036854775807 0.5 1.5 auto cpu cuda:3 direct 4K 1MiB 9000TB 8MB/s f32 u8 nchw sync x random 0x4";
        let step = S::STEP.name();
        for setting in S::TABLE {
            for text in TRIED.split_whitespace().chain(setting.default).chain((setting.choices)()) {
                // A cell has one value of what a command sweeps.
                let swept = S::TABLE.iter().filter(|other| other.takes == Takes::Sweep && other.name != setting.name);
                let first = |other: &Setting<S>| Some(both(other, &Level::of_text(other.default?.split(',').next()?)));
                let one = both(setting, &Level::of_text(text.split(',').next().unwrap_or(text)));
                let (flags, lines): (Vec<_>, Vec<_>) = swept.filter_map(first).chain([one]).unzip();
                let told = command::<S>(&flags).map_err(|error| error.to_string());
                let told = told.and_then(|settings| check(&settings).map(|()| settings));
                let studied = study(step, &format!("{places}{}", lines.concat()));
                assert_eq!(told.is_ok(), studied.is_ok(), "{step} {flags:?}: {told:?} and {studied:?}");
                if let (Ok(told), Ok(studied)) = (told, studied) {
                    assert!(studied.contains(&format!("{told:?}")), "{step} {flags:?}: {told:?} and {studied}");
                }
            }
        }
    }

    #[test]
    fn a_command_and_a_study_take_the_same_settings() {
        agree::<IngestSettings>("dataset = \"set\"\n", |_| Ok(()));
        agree::<ProbeSettings>("", |settings| settings.check_with(false));
        agree::<TrainSettings>("dataset = \"set\"\n", |settings| settings.check_saves(None));
        agree::<CheckpointSettings>("tier = \"hdd\"\n", |settings| match settings.needs_burst() {
            Some(needs) => Err(format!("{needs} needs a burst buffer")),
            None => Ok(()),
        });
        agree::<WorkloadSettings>("workload = \"default\"\n", |_| Ok(()));
    }
}
