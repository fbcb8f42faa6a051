//! `forebay report`: records as tables again, or as a page, JSON and CSV.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use forebay_record::AnyRecord;
use forebay_report::NamedRun;

use crate::output::{JsonTarget, Outcome, print};
use crate::study::samples;

/// The flags of `forebay report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Records written with --json, or folders of `study run`; two or more are compared with the first
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,

    /// Write the report as one self-contained page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write the page's numbers as JSON to a file, or to stdout with "-"
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,

    /// Write every cell as a CSV table, a line a cell and quantity, to a file, or to stdout with "-"
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
    for target in [&html, &json, &csv].into_iter().flatten() {
        target.check()?;
    }
    let runs: Vec<NamedRun> = args.runs.iter().map(|path| read(path)).collect::<Result<_>>()?;
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
    if html.is_none() && !stdout_is_taken {
        print(&forebay_report::text(&runs))?;
    }
    if let Some(path) = args.html.as_deref().filter(|_| args.open) {
        open(path)?;
    }
    Ok(Outcome::Met)
}

/// A run's record: the file, or the one in the folder, with the series beside it.
pub(crate) fn read(path: &Path) -> Result<NamedRun> {
    let cannot = || format!("cannot show {}", path.display());
    let is_folder = path.is_dir();
    let file = if is_folder { path.join("record.jsonl") } else { path.to_owned() };
    let text = match std::fs::read(&file) {
        Err(error) if is_folder && error.kind() == ErrorKind::NotFound => {
            bail!("{}: there is no record.jsonl in this folder", cannot())
        }
        read => String::from_utf8(read.with_context(cannot)?).with_context(cannot)?,
    };
    let mut record = AnyRecord::from_text(&text).with_context(cannot)?;
    if let AnyRecord::Study(study) = &mut record {
        // One that was cut short may have none.
        study.series = samples::read(file.parent().unwrap_or(Path::new("")))?;
    }
    Ok(NamedRun { name: path.display().to_string(), record })
}

/// Shows the page with what the desktop opens pages with.
fn open(page: &Path) -> Result<()> {
    let opener = OsStr::new("xdg-open");
    let started =
        Command::new(opener).arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("xdg-open could not open {} ({status}); the page is there", page.display()),
        Err(error) => Err(error).with_context(|| format!("cannot start xdg-open; the page is in {}", page.display())),
    }
}
