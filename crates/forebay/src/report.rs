//! `forebay report`: records as tables again, or as a page, JSON and CSV.

mod dlio;

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use forebay_record::AnyRecord;
use forebay_report::NamedRun;
use forebay_units::PathText;

use crate::output::{JsonTarget, Outcome, print, remark};
use crate::study::samples;

/// The flags of `forebay report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Records written with --json, or folders of `study run`; two or more are compared with the first
    #[arg(required_unless_present = "from_dlio", value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Show an output folder of DLIO itself: its AU, and that of whole epochs from the same per-step times; may be repeated
    #[arg(long, value_name = "DIR")]
    from_dlio: Vec<PathBuf>,

    /// Write the report as one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the page's numbers as JSON to a file, or to stdout with "-"
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// Write every cell as a CSV table, one line per cell and quantity, to a file, or to stdout with "-"; text that a
    /// spreadsheet would take for a formula gets a leading apostrophe
    #[arg(long, value_name = "FILE|-")]
    csv: Option<PathBuf>,

    /// Open the page in the browser
    #[arg(long, requires = "html")]
    open: bool,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let target = |path: &Option<PathBuf>| path.as_deref().map(JsonTarget::from);
    let (html, json, csv) = (target(&args.html), target(&args.json), target(&args.csv));
    if html.as_ref().is_some_and(JsonTarget::is_stdout) {
        bail!("--html: give a file; a page is not for a terminal");
    }
    if [&json, &csv].into_iter().flatten().filter(|target| target.is_stdout()).count() > 1 {
        bail!("--json - and --csv - cannot both have stdout");
    }
    check_outputs(args)?;
    for target in [&html, &json, &csv].into_iter().flatten() {
        target.check()?;
    }
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
    let stdout_is_taken = [&json, &csv].into_iter().flatten().any(|target| target.is_stdout());
    match &args.html {
        _ if stdout_is_taken => {}
        Some(page) => print(&format!("{}\n{}\n", page.escaped(), forebay_report::headline(&runs)))?,
        None => print(&forebay_report::text(&runs))?,
    }
    if let Some(path) = args.html.as_deref().filter(|_| args.open) {
        open(path)?;
    }
    Ok(Outcome::Met)
}

/// Refuses to write over what is read, or two outputs to one file.
fn check_outputs(args: &Args) -> Result<()> {
    let mut taken: Vec<(&str, PathBuf)> = Vec::new();
    for (flag, path) in [("--html", &args.html), ("--json", &args.json), ("--csv", &args.csv)] {
        let Some(path) = path.as_deref().filter(|path| *path != Path::new("-")) else { continue };
        // A device or a pipe is not written over.
        if path.exists() && !path.is_file() {
            continue;
        }
        let place = place(path);
        if let Some(run) = args.runs.iter().find(|run| belongs_to(&place, run)) {
            bail!("{flag} {}: this is a file of the run {}, which a report only reads", path.escaped(), run.escaped());
        }
        let theirs = |dir: &&PathBuf| path.exists() && dir.canonicalize().is_ok_and(|dir| place.starts_with(dir));
        if let Some(dir) = args.from_dlio.iter().find(theirs) {
            bail!(
                "{flag} {}: this is a file of DLIO's in {}, which a report only reads",
                path.escaped(),
                dir.escaped()
            );
        }
        if let Some((other, _)) = taken.iter().find(|(_, known)| *known == place) {
            bail!("{other} and {flag} cannot both be written to {}", path.escaped());
        }
        taken.push((flag, place));
    }
    Ok(())
}

/// Where a file is or would be, without links.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = || Some(folder.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(new).unwrap_or_else(|| path.to_owned())
}

/// Whether a file is what a run was read from, or what its folder keeps beside the page.
fn belongs_to(file: &Path, run: &Path) -> bool {
    let Ok(run) = run.canonicalize() else { return false };
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_kept = ["record.jsonl", "record.json", "plan.toml", "environment.json"].contains(&name)
        || (name.starts_with("samples") && name.ends_with(".csv"));
    let folder = match run.file_name() {
        _ if run.is_dir() => Some(run.as_path()),
        Some(name) if name == "record.jsonl" => run.parent(),
        _ => None,
    };
    run == file || (is_kept && file.parent() == folder)
}

/// A run's record: the file, or the one in the folder, with the series beside it.
pub(crate) fn read(path: &Path) -> Result<NamedRun> {
    let cannot = || format!("cannot show {}", path.escaped());
    let is_folder = path.is_dir();
    // A study keeps lines, the run of a workload one record.
    let kept = || ["record.jsonl", "record.json"].map(|name| path.join(name)).into_iter().find(|file| file.is_file());
    let file = if is_folder { kept().unwrap_or(path.join("record.jsonl")) } else { path.to_owned() };
    let bytes = match std::fs::read(&file) {
        Err(error) if is_folder && error.kind() == ErrorKind::NotFound => {
            bail!("{}: there is neither a record.jsonl nor a record.json in this folder", cannot())
        }
        read => read.with_context(cannot)?,
    };
    let text = String::from_utf8(bytes).ok();
    // What names no schema of ours was never a record; where one is damaged, the reader's words help.
    let Some(text) = text.filter(|text| text.contains("\"forebay-record/")) else {
        bail!("{}: not a record: give a run's folder, its record.jsonl, or a file written with --json", cannot())
    };
    let mut record = AnyRecord::from_text(&text).with_context(cannot)?;
    record.check().with_context(cannot)?;
    if let AnyRecord::Study(study) = &mut record {
        // One that was cut short may have none.
        match samples::read(file.parent().unwrap_or(Path::new(""))) {
            Ok(series) => study.series = series,
            Err(error) => {
                remark(&format!("forebay: {error:#}; the report is without it"));
                study.head.notes.push(format!("The per-second series is not shown: {error:#}."));
            }
        }
    }
    Ok(NamedRun { name: path.escaped().into_owned(), record })
}

/// Shows the page with what the desktop opens pages with.
fn open(page: &Path) -> Result<()> {
    let opener = OsStr::new("xdg-open");
    let started =
        Command::new(opener).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("xdg-open could not open {} ({status}); the page is there", page.escaped()),
        Err(error) => Err(error).with_context(|| format!("cannot start xdg-open; the page is in {}", page.escaped())),
    }
}
