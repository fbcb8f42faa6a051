//! `forebay trace export`: the events of a trace for other tools.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use forebay_trace::{Chrome, Csv, Dftracer, ExportError, Exported, Window, export, map_trace};
use forebay_units::{Bytes, PathText, parse_duration};

use super::columns::Parquet;
use super::folder::TRACE;
use crate::output::{Draft, Kind, Outcome, Outputs, remark};
use crate::stop;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  forebay trace export traced trace.json --to perfetto --from 10s --until 12s
  forebay trace export traced events.parquet --to parquet")]
pub(crate) struct Args {
    /// Folder that `forebay trace` wrote
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// File to write, or "-" for stdout
    #[arg(value_name = "FILE|-")]
    file: PathBuf,

    /// Format of the file
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,

    /// Leave out what ended before this time after the job's start
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    from: Option<Duration>,

    /// Leave out what began at this time after the job's start, or later
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    until: Option<Duration>,

    /// Only the events of this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// Leave out shorter events, and with any time above 0 also marks of a moment
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    min_duration: Option<Duration>,

    /// Replace FILE
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Trace Event JSON, which ui.perfetto.dev opens
    Perfetto,
    /// The same, for chrome://tracing
    Chrome,
    /// Parquet with one row per event
    Parquet,
    /// Comma-separated values
    Csv,
    /// DFTracer's .pfw.gz
    Dftracer,
}

impl Args {
    fn window(&self) -> Result<Window> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (from_ns, to_ns) = (self.from.map_or(0, ns), self.until.map_or(u64::MAX, ns));
        if from_ns >= to_ns {
            bail!("--until must be later than --from");
        }
        Ok(Window { from_ns, to_ns, pid: self.pid, min_duration_ns: self.min_duration.map_or(0, ns) })
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let window = args.window()?;
    let path = args.dir.join(TRACE);
    if args.dir.is_dir() && !path.exists() {
        bail!("{}: there is no {TRACE}\nhint: `forebay trace --out DIR -- COMMAND` makes one", args.dir.escaped());
    }
    let cannot = || format!("cannot export {}", path.escaped());
    let bytes = map_trace(&path).with_context(cannot)?;
    let out = Outputs::for_inputs([args.dir.as_path()], args.force).file("FILE", &args.file, Kind::Values)?;
    let mut draft = out.begin()?;
    let exported = match write(args.to, &bytes, &window, &mut draft) {
        // Whoever reads stdout has seen enough.
        Err(ExportError::Sink(error)) if out.is_stdout() && error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(Outcome::Met);
        }
        Err(ExportError::Sink(error)) if error.kind() == io::ErrorKind::Interrupted => {
            remark("forebay: interrupted; nothing was written");
            return Ok(Outcome::Missed);
        }
        other => other.with_context(cannot)?,
    };
    draft.commit()?;
    say(&exported);
    Ok(Outcome::Met)
}

fn write(format: Format, bytes: &[u8], window: &Window, draft: &mut Draft) -> Result<Exported, ExportError> {
    let stop = || stop::flag().load(Ordering::Relaxed);
    let mut out = BufWriter::with_capacity(1 << 18, Through(draft));
    let exported = match format {
        Format::Perfetto | Format::Chrome => {
            let mut sink = Chrome::new(&mut out)?;
            let exported = export(bytes, window, &mut sink, &stop)?;
            sink.end()?;
            exported
        }
        Format::Csv => export(bytes, window, &mut Csv::new(&mut out)?, &stop)?,
        Format::Dftracer => {
            let mut sink = Dftracer::new(&mut out)?;
            let exported = export(bytes, window, &mut sink, &stop)?;
            sink.end()?;
            exported
        }
        Format::Parquet => {
            let mut sink = Parquet::new(&mut out)?;
            let exported = export(bytes, window, &mut sink, &stop)?;
            sink.end()?;
            exported
        }
    };
    out.flush()?;
    Ok(exported)
}

/// What the file lacks although it was asked for.
fn say(exported: &Exported) {
    let Exported { kept_every, n_damaged, .. } = *exported;
    if kept_every > 1 {
        remark(&format!("forebay: the trace keeps only every {kept_every}th call in its later part (--max-trace)"));
    }
    if n_damaged > 0 {
        remark(&format!("forebay: the last {} of the trace are incomplete and left out", Bytes(n_damaged)));
    }
}

/// A draft as a writer.
struct Through<'a>(&'a mut Draft);

impl Write for Through<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(|error| {
            let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
            io::Error::new(kind.unwrap_or(io::ErrorKind::Other), error)
        })?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
