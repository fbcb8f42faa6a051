//! Shared by the examples: a small folder of photographs.

use anyhow::Result;
use forebay_dataset::{Control, MakePlan, MakeSpec, Profile, make};
use tempfile::TempDir;

/// Creates a temporary folder with `n` synthetic photographs of about 12 KB, in class folders.
///
/// # Errors
/// When they cannot be written.
pub fn photographs(n: u64) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    let spec = MakeSpec { count: Some(n), ..MakeSpec::new(Profile::Caltech101) };
    make(&MakePlan::new(&spec)?, folder.path(), &Control::default())?;
    Ok(folder)
}
