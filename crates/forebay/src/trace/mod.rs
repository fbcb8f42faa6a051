//! `forebay trace`: runs a job, sees its I/O from outside, and says what it waited for.

mod columns;
mod export;
mod folder;
mod rebuilt;
mod result;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use forebay_interpose::LIBRARY;
use forebay_measure::{Disturbance, Watch};
use forebay_observe::{Error, Processes};
use forebay_record::Disturbed;
use forebay_trace::{Collector, Head, Options, blind, find_program};
use forebay_units::{Bytes, PathText, escaped_words};

use crate::live::is_watched;
use crate::output::{Outcome, Outputs, complain, remark};
use crate::watch::{say_waiting, status};
use folder::Folder;
pub(crate) use folder::TRACE;
pub(crate) use rebuilt::rebuilt;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = "forebay trace [OPTIONS] -- COMMAND...\n       forebay trace export [OPTIONS] <DIR> <FILE>")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,

    /// Folder of the trace, new or empty; trace-TIME by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Largest size of the trace file; nearer to it, fewer calls are stored, and totals stay exact
    #[arg(long, default_value = "1GiB", value_name = "SIZE", value_parser = size)]
    max_trace: Bytes,

    /// Do not load the hook into Python processes; steps and waits are then not known
    #[arg(long)]
    no_python: bool,

    /// Command to trace; it keeps stdin, stdout and stderr
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Write the events of a trace for Perfetto, Chrome, DFTracer, Parquet or CSV
    Export(export::Args),
}

/// Below this there is no room for a few chunks.
const LEAST: Bytes = Bytes(1 << 20);

fn size(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        Ok(size) if size < LEAST => Err("give at least 1MiB".to_owned()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    if let Some(What::Export(args)) = &args.what {
        return export::run(args);
    }
    let Some(library) = LIBRARY else {
        bail!("forebay trace needs Linux with glibc on x86-64 or arm64; this build is for another system");
    };
    let (program, words) = args.command.split_first().context("no command")?;
    let Some(file) = find_program(Path::new(program)) else {
        // The same words as those of `watch`.
        let source = std::io::Error::from_raw_os_error(libc::ENOENT);
        return not_started(Error::Command { program: program.escaped().into_owned(), source });
    };
    let mut unseen = Vec::new();
    if let Some(blind) = blind(&file) {
        let said = format!("{}: it is {}", file.escaped(), blind.reason());
        remark(&format!("forebay: the I/O of {said} will not be seen"));
        unseen.push(said);
    }
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(format!("trace-{}", folder::time())));
    Outputs::for_inputs([], false).folder("--out", &out)?;
    let folder = Folder::begin(&out, library, !args.no_python)?;
    let mut command = Command::new(program);
    command.args(words);
    folder.prepare(&mut command);
    let head = Head {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: forebay_measure::utc_now(),
        started_ns: now_ns(),
        command_line: escaped_words(std::env::args_os()),
    };
    let options = Options { rings: folder.rings().to_owned(), head: head.clone(), max_bytes: args.max_trace.0 };
    let collector = Collector::start(options, folder.trace_file()?)
        .with_context(|| format!("cannot trace into {}", out.escaped()))?;
    let observing = forebay_observe::Options {
        interval: Duration::from_secs(1),
        processes: Processes::Children,
        on_wait: Some(Box::new(say_waiting)),
        ..forebay_observe::Options::default()
    };
    let watch = is_watched().then(|| Watch::start(None));
    let ended = forebay_observe::follow(&mut command, observing);
    let disturbed = watch.and_then(disturbed);
    let collected = collector.finish().context("the thread that reads the trace is gone")?;
    match ended {
        Ok(followed) => {
            let code = status(followed.status);
            // The job has done its work, whether or not there is room for what was seen of it.
            if let Err(error) = result::finish(&folder, &args.command, &head, followed, collected, (unseen, disturbed))
            {
                complain(&error);
            }
            Ok(Outcome::Status(code))
        }
        Err(error @ Error::Command { .. }) => {
            folder.remove();
            not_started(error)
        }
        Err(error) => Err(error.into()),
    }
}

/// What other processes took of the machine meanwhile. Tasks that waited for I/O may have been the job's.
fn disturbed(watch: Watch) -> Option<Disturbed> {
    Disturbance { other_io_pressure: None, ..watch.finish() }.judge()
}

/// Reports a command that is missing or no program as a shell does. A lack of processes or memory is not the command's fault.
fn not_started(error: Error) -> Result<Outcome> {
    let code = match &error {
        Error::Command { source, .. } if source.kind() == ErrorKind::NotFound => 127,
        Error::Command { source, .. } if source.kind() == ErrorKind::PermissionDenied => 126,
        Error::Command { source, .. } if source.raw_os_error() == Some(libc::ENOEXEC) => 126,
        _ => return Err(error.into()),
    };
    complain(&error.into());
    Ok(Outcome::Status(code))
}

/// Nanoseconds of the monotonic clock, which the job's events use.
fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid, and the clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
