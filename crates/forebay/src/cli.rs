//! The command line.

use std::io::Write;

use anyhow::Result;
use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::output::Outcome;
use crate::terminal::Stream;
use crate::{
    checkpoint, data, doctor, ingest, manual, probe, report, study, tier, trace, train, tune, version, watch, workload,
};

/// Measures, explains and removes the I/O stalls of deep-learning training.
///
/// Exit status: 0 for success; 1 if the command ran but missed its goal (`data verify` found bad files, `data pack` left some
/// out, a threshold was missed, the run was interrupted); 2 if it could not run. A measurement names failed samples and
/// continues; if a whole repeat delivers nothing, the status is 1.
#[derive(Debug, Parser)]
#[command(name = "forebay", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Parses the command line and runs the command.
pub(crate) fn run() -> Result<Outcome> {
    // `--version` examines the machine, which takes time that other commands do not need.
    if std::env::args_os().nth(1).is_some_and(|word| word == "--version") {
        return version::print_long();
    }
    let command = match parse() {
        Ok(cli) => cli.command,
        Err(error) => return Ok(show(&error)),
    };
    match command {
        Command::Checkpoint(command) => checkpoint::run(command),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Data(command) => data::run(command),
        Command::Doctor(args) => doctor::run(&args),
        Command::Ingest(args) => ingest::run(args),
        Command::Man(args) => manual::man(&args, Cli::command()),
        Command::Probe(args) => probe::run(args),
        Command::Trace(args) => trace::run(&args),
        Command::Train(args) => train::run(*args),
        Command::Tune(args) => tune::run(*args),
        Command::Watch(args) => watch::run(args),
        Command::Study(command) => study::run(command),
        Command::Report(args) => report::run(&args),
        Command::Tier(command) => tier::run(command),
        Command::Workload(command) => workload::run(command),
    }
}

fn parse() -> Result<Cli, clap::Error> {
    let matches = Cli::command().term_width(Stream::Stdout.width()).try_get_matches()?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut Cli::command()))
}

/// Prints a usage error, or the requested help, wrapped to the terminal.
fn show(error: &clap::Error) -> Outcome {
    if error.use_stderr() {
        let (text, stream) = (error.render(), Stream::Stderr);
        let text = if stream.has_colours() { text.ansi().to_string() } else { text.to_string() };
        let text = text + &hint(error).unwrap_or_default();
        let _ = std::io::stderr().write_all(forebay_report::fold(&text, stream.width()).as_bytes());
    } else {
        // Nothing to report if the reader has closed the pipe.
        let _ = error.print();
    }
    Outcome::Status(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// For a command to trace or to watch that was given without its separator.
fn hint(error: &clap::Error) -> Option<String> {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let what = words.first()?.to_str().filter(|what| ["trace", "watch"].contains(what))?;
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    if !is_unknown || words.iter().any(|word| word == "--") {
        return None;
    }
    let contexts = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand];
    let word = contexts.into_iter().find_map(|kind| error.get(kind))?.to_string();
    (!word.starts_with('-')).then(|| format!("hint: put `--` before the command: forebay {what} -- {word} …\n"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make, inspect, pack, verify and decode datasets
    #[command(subcommand)]
    Data(crate::data::Command),
    /// Measure how many images per second this machine and its storage can deliver
    ///
    /// The pipeline is list → shuffle → map (read, decode, resize) → ignore errors → batch. Batches are consumed at once.
    Ingest(crate::ingest::Args),
    /// Measure storage without a pipeline: sequential, random and small-file rates, latencies
    Probe(crate::probe::Args),
    /// Train a network, or emulate one, and report how long the accelerator waited and why
    ///
    /// Compute, wait for data, copies, validation and other time add up to the wall clock.
    Train(Box<crate::train::Args>),
    /// Find the settings with which training runs fastest
    ///
    /// Runs the training, applies the change that its advice names, measures, and keeps the change if the run became faster beyond
    /// noise; then the next, until the accelerator is the limit, nothing that was named helps, or the budget is spent. Ctrl-C keeps what
    /// was found. Your data is only read.
    Tune(Box<crate::tune::Args>),
    /// Measure what checkpoints cost; list, verify, drain, prune, restore and convert them
    #[command(subcommand)]
    Checkpoint(crate::checkpoint::Command),
    /// Watch the machine, or a command and its descendants
    ///
    /// Prints one row per interval: processors, the busiest disk, memory, time lost to I/O, network. With a command, follows the
    /// command and its descendants until all have ended, then prints totals. The exit status is the command's: 128 plus the
    /// signal that ended it, 127 if the command was not found, 126 if it cannot be run. Ctrl-C ends the command, a second one
    /// the wait for its descendants; without a command it ends the watch. Signals sent to forebay alone are passed on to the
    /// command and all its descendants.
    Watch(crate::watch::Args),
    /// Trace a training job of any framework: its I/O, its steps, what it waited for and what to change
    ///
    /// Needs no change to the job and no root. A library that is loaded into every process of the job (`LD_PRELOAD`) sees its calls on
    /// files, and a hook in Python processes marks steps, waits for batches and checkpoints of PyTorch, tf.data and Keras. The folder
    /// gets a trace file, a record and a page; `forebay report DIR` shows them again. The exit status is the command's, as for watch.
    /// Ctrl-C goes to the command, and the trace is kept. Programs that cannot be seen, for example statically linked ones, are named.
    Trace(crate::trace::Args),
    /// Run studies: many measurements from one file, resumable, with a report
    #[command(subcommand)]
    Study(crate::study::Command),
    /// Show and compare earlier runs as tables, a page with figures, JSON or CSV
    Report(crate::report::Args),
    /// Bring up, take down and list emulated devices
    #[command(subcommand)]
    Tier(crate::tier::Command),
    /// Run DLIO's and MLPerf Storage's workloads: list, show, check, size, make, run
    #[command(subcommand)]
    Workload(crate::workload::Command),
    /// Check what this machine and the storage at PATH support, what is missing, and how to get it
    ///
    /// Each check is ok, limited or missing, with what is affected and a hint. Changes nothing and leaves nothing behind; a PATH
    /// that is not writable is only read. The exit status is 0 even if something is missing.
    Doctor(crate::doctor::Args),
    /// Print the completion script of a shell
    ///
    /// For example: forebay completions bash > ~/.local/share/bash-completion/completions/forebay
    Completions(crate::manual::CompletionsArgs),
    /// Print a manual page, or write the pages of all commands to a folder
    ///
    /// For example: forebay man --out ~/.local/share/man/man1; then man forebay-ingest
    Man(crate::manual::ManArgs),
}

#[cfg(test)]
#[path = "../tests/it/outputs_table.rs"]
mod outputs_table;

#[cfg(test)]
mod tests {
    use std::any::TypeId;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::{Cli, CommandFactory, outputs_table};

    /// The arguments of a command and those below it that are paths.
    fn paths(command: &clap::Command, name: &str, found: &mut BTreeSet<(String, String)>) {
        for argument in command.get_arguments() {
            if argument.get_value_parser().type_id() == TypeId::of::<PathBuf>() {
                found.insert((name.to_owned(), argument.get_id().to_string()));
            }
        }
        for below in command.get_subcommands() {
            paths(below, format!("{name} {}", below.get_name()).trim_start(), found);
        }
    }

    #[test]
    fn every_path_is_declared_as_an_input_or_an_output() {
        let mut found = BTreeSet::new();
        paths(&Cli::command(), "", &mut found);
        let declared = outputs_table::ARGUMENTS.iter();
        let declared: BTreeSet<_> = declared.map(|known| (known.command.to_owned(), known.id.to_owned())).collect();
        assert_eq!(found, declared, "left: the command line; right: tests/it/outputs_table.rs");
        assert!(outputs_table::ARGUMENTS.iter().all(|known| {
            let is_output = !matches!(known.role, outputs_table::Role::Read | outputs_table::Role::Work);
            is_output == known.line.contains("OUT")
        }));
    }
}
