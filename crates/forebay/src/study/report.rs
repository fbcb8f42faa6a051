//! The page of a run, made from its record alone.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// Writes the report of the run in a folder; says where it is, and what the run comes to.
pub(super) fn write(out: &Path) -> Result<(PathBuf, String)> {
    let page = out.join("report.html");
    let run = crate::report::read(out)?;
    let summary = forebay_report::summary(&run);
    let text = forebay_report::html(&[run]);
    crate::output::replace(&page, text.as_bytes())?;
    Ok((page, summary))
}
