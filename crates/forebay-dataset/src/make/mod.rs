//! `forebay data make`: a folder of synthetic photographs in class folders.
//!
//! Pictures do not depend on one another, so any number of threads makes the same files, and a run after a kill makes
//! only the missing ones. A picture is written under a hidden name and renamed; an existing file with a JPEG's first and
//! last bytes is kept. The last file is `list.txt`, with a line `path label` for every picture.

mod mix;
mod plan;
mod profile;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_format::list;
use forebay_storage::{Routed, Storage, is_url};
use forebay_units::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

pub use mix::SizeMix;
pub use plan::{MakePlan, MakeSpec, Parameters, Picture};
pub use profile::Profile;

use crate::home::{self, Home};
use crate::synth::Camera;
use crate::{Control, Result, write};

/// The hidden file with the parameters of a made folder.
pub const MARKER: &str = ".forebay-dataset.json";
/// The list of all pictures and their labels, below the dataset's folder.
pub const LIST: &str = "list.txt";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Made {
    /// Pictures in the folder now, kept ones included.
    pub n_files: u64,
    pub n_kept: u64,
    /// Bytes of all pictures in the folder.
    pub bytes: Bytes,
}

/// Makes the dataset of `plan` in `dir`, or its missing files.
///
/// # Errors
/// When `dir` contains other files or cannot be written to, or the caller stops it; finished files stay.
pub fn make(plan: &MakePlan, dir: &Path, control: &Control<'_>) -> Result<Made> {
    let home = Home::claim(dir, MARKER, &identity(plan))?;
    for folder in plan.folders() {
        let folder = dir.join(folder);
        write::folder(&folder)?;
        if home.resumed {
            write::sweep(&folder)?;
        }
    }
    let (kept, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = |studio: &mut (Camera, Vec<u8>), index: u64| {
        let picture = plan.picture(index);
        let path = dir.join(&picture.path);
        let size = match home.resumed.then(|| whole_jpeg(&path)).flatten() {
            Some(size) => {
                kept.fetch_add(1, Ordering::Relaxed);
                size
            }
            None => {
                studio.0.take(&picture.shot, &mut studio.1);
                write::atomic(&path, &studio.1)?;
                studio.1.len() as u64
            }
        };
        bytes.fetch_add(size, Ordering::Relaxed);
        Ok(size)
    };
    control.for_each("make", plan.count(), Default::default, work)?;
    write_list(plan, home.path())?;
    Ok(Made { n_files: plan.count(), n_kept: kept.into_inner(), bytes: Bytes(bytes.into_inner()) })
}

fn identity(plan: &MakePlan) -> Map<String, Value> {
    let parameters = serde_json::to_value(plan.parameters()).expect("parameters are plain data");
    match parameters {
        Value::Object(map) => map,
        other => Map::from_iter([("parameters".to_owned(), other)]),
    }
}

/// The size of a file that starts and ends like a JPEG. An object is whole if it exists.
fn whole_jpeg(path: &Path) -> Option<u64> {
    if is_url(path) {
        return Routed::default().size(path).ok();
    }
    let file = File::open(path).ok()?;
    let size = file.metadata().ok()?.len();
    let mut ends = [0; 4];
    file.read_exact_at(&mut ends[..2], 0).ok()?;
    file.read_exact_at(&mut ends[2..], size.checked_sub(2)?).ok()?;
    (ends == [0xFF, 0xD8, 0xFF, 0xD9]).then_some(size)
}

fn write_list(plan: &MakePlan, dir: &Path) -> Result<()> {
    let line = |index| {
        let picture = plan.picture(index);
        list::Entry { path: &picture.path, label: Some(picture.label.into()) }.to_line()
    };
    let text: Vec<u8> = (0..plan.count()).flat_map(line).collect();
    home::commit(&dir.join(LIST), &text)
}
