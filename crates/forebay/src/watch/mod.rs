//! `forebay watch`: shows the activity of the machine, or of a command, in one row per interval.

mod rows;
mod table;
mod totals;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use forebay_observe::{Error, Options, Processes, Sampler};

use crate::output::{Kind, Outcome, Output, Outputs, cannot_write, complain, remark};
use crate::stop;
use crate::values::time;
use rows::{Ended, Rows};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Time between rows, from 10ms to 1h
    ///
    /// The kernel counts processor time and disk busy time in clock ticks of up to 10 ms. In rows shorter than 100 ms, processor
    /// percentages are coarse and a disk's util is not shown. CSV has the kernel's value, which may be above 100.
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = time("from 10ms to 1h", is_sensible), allow_hyphen_values = true)]
    interval: Duration,

    /// Stop after N rows; cannot be used with a command, which is followed to its end
    #[arg(long, value_name = "N", conflicts_with = "command", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Write every quantity as CSV to FILE; "-" writes to stdout instead of the table
    ///
    /// "-" cannot be used with a command. Replaces an earlier table of forebay; other files only with --force.
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,

    /// Replace FILE even if forebay did not write it
    #[arg(long, requires = "csv")]
    force: bool,

    /// Command to follow; it keeps stdin and stdout, and the table goes to stderr
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    match args.command.split_first() {
        None => watch(&args),
        Some((program, rest)) => follow(&args, Command::new(program).args(rest)),
    }
}

impl Args {
    fn output(&self) -> Result<Option<Output>> {
        let mut outputs = Outputs::for_inputs([], self.force);
        self.csv.as_deref().map(|path| outputs.file("--csv", path, Kind::Table)).transpose()
    }
}

/// Watches the machine until a signal, or until all rows are shown.
fn watch(args: &Args) -> Result<Outcome> {
    let (tell, ended) = channel();
    let on_signal = tell.clone();
    stop::on_stop(move || drop(on_signal.send(Ended::Stopped)));
    let rows = match args.output()? {
        Some(csv) if csv.is_stdout() => Rows::csv_on_stdout(tell, args.count),
        csv => Rows::table(csv.as_ref(), args.interval, Some(tell), args.count)?,
    };
    let sampler = Sampler::start(options(args, Processes::None, rows)).map_err(|error| naming(args, error))?;
    let end = ended.recv().context("the sampler is gone")?;
    drop(sampler);
    match end {
        Ended::Enough => Ok(Outcome::Met),
        // Without --count, there is no other end.
        Ended::Stopped if args.count.is_none() => Ok(Outcome::Met),
        Ended::Stopped => Ok(Outcome::Missed),
        Ended::Failed(error) => Err(error),
    }
}

fn follow(args: &Args, command: &mut Command) -> Result<Outcome> {
    let csv = args.output()?;
    if csv.as_ref().is_some_and(Output::is_stdout) {
        bail!("--csv - would mix rows with the command's output\nhint: give a file");
    }
    let rows = Rows::table(csv.as_ref(), args.interval, None, None)?;
    let options = Options { on_wait: Some(Box::new(say_waiting)), ..options(args, Processes::Children, rows) };
    match forebay_observe::follow(command, options) {
        Ok(followed) => {
            remark(&totals::text(command, &followed));
            Ok(Outcome::Status(status(followed.status)))
        }
        Err(Error::Command { program, source }) => {
            let code = if source.kind() == ErrorKind::NotFound { 127 } else { 126 };
            complain(&Error::Command { program, source }.into());
            Ok(Outcome::Status(code))
        }
        Err(error) => Err(naming(args, error)),
    }
}

pub(crate) fn say_waiting(n_processes: u64) {
    let whom = if n_processes == 1 { "a process".to_owned() } else { format!("{n_processes} processes") };
    remark(&format!("forebay: the command has ended; waiting for {whom} that it left running (Ctrl-C stops waiting)"));
}

fn options(args: &Args, processes: Processes, rows: Rows) -> Options {
    // The series is only used for the totals of a command, which need no short interval.
    Options { interval: args.interval, processes, sink: Some(Box::new(rows)), ..Options::default() }
}

fn naming(args: &Args, error: Error) -> anyhow::Error {
    match (error, args.csv.as_deref()) {
        (Error::Sink(source), Some(path)) => anyhow::Error::new(source).context(cannot_write(path)),
        (error, _) => error.into(),
    }
}

/// A command's exit status as a shell reports it.
pub(crate) fn status(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(255)).unwrap_or(255)
}

fn is_sensible(interval: Duration) -> bool {
    (Duration::from_millis(10)..=Duration::from_secs(3_600)).contains(&interval)
}
