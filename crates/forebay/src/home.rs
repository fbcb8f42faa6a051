//! The folder for data that outlives a run: named ceilings and tiers.

use std::path::PathBuf;

use anyhow::{Context, Result};

/// The folder: `$FOREBAY_HOME`, or `forebay` in the user's data folder. It need not exist yet.
pub(crate) fn dir() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let by_default = || Some(set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?.join("forebay"));
    set("FOREBAY_HOME").or_else(by_default).context("neither FOREBAY_HOME nor HOME is set")
}
