//! The folder of a run's results: the record, the page and DLIO's files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forebay_record::{AnyRecord, Record, WorkloadCell};
use forebay_report::NamedRun;
use forebay_units::PathText;

use crate::output::replace;

/// Creates the folder; refuses one that is not empty, since results of two runs must not mix.
pub(super) fn begin(out: &Path, named_by: &str) -> Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("cannot create the folder {}", out.escaped()))?;
    check(out, named_by)?;
    // Checks before the run that the folder is writable.
    let probe = out.join(".forebay");
    std::fs::write(&probe, []).with_context(|| format!("cannot write to {}", out.escaped()))?;
    std::fs::remove_file(&probe).with_context(|| format!("cannot write to {}", out.escaped()))
}

/// Refuses a folder that is not empty; it may be missing.
pub(super) fn check(out: &Path, named_by: &str) -> Result<()> {
    let mut entries = match std::fs::read_dir(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.with_context(|| format!("cannot use {named_by} {} for results", out.escaped()))?,
    };
    if entries.next().is_some() {
        bail!("{named_by} {}: the folder is not empty\nhint: give a new one, or empty it", out.escaped());
    }
    Ok(())
}

/// Writes the record and its page, and returns the page's path.
pub(super) fn finish(out: &Path, record: &Record<WorkloadCell>) -> Result<PathBuf> {
    let (file, page) = (out.join("record.json"), out.join("report.html"));
    replace(&file, format!("{}\n", record.to_json()).as_bytes())?;
    let named = NamedRun { name: file.escaped().into_owned(), record: AnyRecord::Workload(record.clone()) };
    replace(&page, forebay_report::html(&[named]).as_bytes())?;
    Ok(page)
}
