//! `forebay report`: shows records as tables, a page, JSON or CSV.

mod dlio;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use forebay_record::AnyRecord;
use forebay_report::NamedRun;
use forebay_units::PathText;

use crate::output::{Kind, Outcome, Output, Outputs, is_kept_by_runs, place, print, remark};
use crate::study::samples;
use crate::terminal::Stream;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("outputs").multiple(true))]
pub(crate) struct Args {
    /// Records (`--json`) or run folders; the others are compared with the first
    #[arg(required_unless_present = "from_dlio", value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Show an output folder of DLIO: its AU and the AU of whole epochs; may be repeated
    ///
    /// A folder of several runs becomes one page: utilisation and throughput by number of processes and settings.
    #[arg(long, value_name = "DIR")]
    from_dlio: Vec<PathBuf>,

    /// Write the report as a self-contained page; replaces an earlier page
    #[arg(long, value_name = "FILE", group = "outputs")]
    html: Option<PathBuf>,

    /// Write the page's numbers as JSON to FILE, or to stdout with "-"
    #[arg(long, value_name = "FILE|-", group = "outputs")]
    json: Option<PathBuf>,

    /// Write one CSV line per cell and quantity to FILE, or to stdout with "-"
    ///
    /// Text that a spreadsheet would take for a formula gets a leading apostrophe.
    #[arg(long, value_name = "FILE|-", group = "outputs")]
    csv: Option<PathBuf>,

    /// Replace existing files even if forebay did not write them
    #[arg(long, requires = "outputs")]
    force: bool,

    /// Open the page in the browser
    #[arg(long, requires = "html")]
    open: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let [html, json, csv] = args.outputs()?;
    let runs = args.runs.iter().map(|path| read(path));
    let runs: Vec<NamedRun> = runs.chain(args.from_dlio.iter().map(|dir| dlio::read(dir))).collect::<Result<_>>()?;
    if let Some(target) = &json {
        target.write(&forebay_report::json(&runs))?;
    }
    if let Some(target) = &csv {
        target.write(forebay_report::csv(&runs).trim_end())?;
    }
    if let Some(target) = &html {
        target.write(forebay_report::html(&runs).trim_end())?;
    }
    let stdout_is_taken = [&json, &csv].into_iter().flatten().any(Output::is_stdout);
    match &args.html {
        _ if stdout_is_taken => {}
        Some(page) => print(&format!("{}\n{}\n", page.escaped(), forebay_report::headline(&runs)))?,
        None => print(&forebay_report::text_within(&runs, Stream::Stdout.width()))?,
    }
    if let Some(path) = args.html.as_deref().filter(|_| args.open) {
        open(path)?;
    }
    Ok(Outcome::Met)
}

impl Args {
    fn outputs(&self) -> Result<[Option<Output>; 3]> {
        let files = self.runs.iter().filter(|run| !run.is_dir());
        let mut outputs = Outputs::for_inputs(files.chain(&self.from_dlio).map(PathBuf::as_path), self.force);
        let mut output = |flag, path: &Option<PathBuf>, kind| {
            let Some(path) = path.as_deref() else { return Ok(None) };
            self.check_runs(path)?;
            outputs.file(flag, path, kind).map(Some)
        };
        let html = output("--html", &self.html, Kind::Page)?;
        if html.as_ref().is_some_and(Output::is_stdout) {
            bail!("--html needs a file; a page cannot go to stdout");
        }
        Ok([html, output("--json", &self.json, Kind::Json)?, output("--csv", &self.csv, Kind::Table)?])
    }

    /// Refuses files that a run keeps. The page itself may go to the run's folder.
    fn check_runs(&self, path: &Path) -> Result<()> {
        let place = place(path);
        let folder_of = |run: &PathBuf| match run.file_name() {
            _ if run.is_dir() => run.canonicalize().ok(),
            Some(name) if name == "record.jsonl" => Some(run.canonicalize().ok()?.parent()?.to_owned()),
            _ => None,
        };
        let is_of = |run: &&PathBuf| place.parent().is_some() && place.parent() == folder_of(run).as_deref();
        match self.runs.iter().find(is_of).filter(|_| is_kept_by_runs(&place)) {
            None => Ok(()),
            Some(run) => bail!(
                "cannot write {}: it belongs to the run {}\nhint: choose another path",
                path.escaped(),
                run.escaped()
            ),
        }
    }
}

/// Reads a run's record from a file or from the run's folder, with its series.
pub(crate) fn read(path: &Path) -> Result<NamedRun> {
    let cannot = || format!("cannot show {}", path.escaped());
    let is_folder = path.is_dir();
    // A study has a record of lines, a workload run a single record.
    let kept = || ["record.jsonl", "record.json"].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
    if is_folder
        && kept().is_none()
        && let Some(rebuilt) = crate::trace::rebuilt(path)
    {
        let record = AnyRecord::Trace(rebuilt.with_context(cannot)?);
        return Ok(NamedRun { name: path.escaped().into_owned(), record });
    }
    let file = if is_folder { kept().unwrap_or(path.join("record.jsonl")) } else { path.to_owned() };
    let bytes = match std::fs::read(&file) {
        Err(error) if is_folder && error.kind() == ErrorKind::NotFound => {
            bail!("{}: no record.jsonl or record.json in this folder", cannot())
        }
        read => read.with_context(cannot)?,
    };
    let text = String::from_utf8(bytes).ok();
    // A file without a schema of forebay is not a record. For a damaged record, the parser's message helps more.
    let Some(text) = text.filter(|text| text.contains("\"forebay-record/")) else {
        bail!("{}: not a record\nhint: give a run's folder, its record.jsonl, or a file written with --json", cannot())
    };
    let mut record = AnyRecord::from_text(&text).with_context(cannot)?;
    record.check().with_context(cannot)?;
    if let AnyRecord::Study(study) = &mut record {
        // An interrupted run may have none.
        match samples::read(file.parent().unwrap_or(Path::new(""))) {
            Ok(series) => study.series = series,
            Err(error) => {
                remark(&format!("forebay: {error:#}; the report omits it"));
                study.head.notes.push(format!("The per-second series is not shown: {error:#}."));
            }
        }
    }
    Ok(NamedRun { name: path.escaped().into_owned(), record })
}

fn open(page: &Path) -> Result<()> {
    let opener = OsStr::new("xdg-open");
    let started =
        Command::new(opener).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("xdg-open could not open {} ({status}); the page was written", page.escaped()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot start xdg-open; the page was written to {}", page.escaped()))
        }
    }
}
