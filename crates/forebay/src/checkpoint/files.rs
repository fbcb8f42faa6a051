//! Files of a checkpoint format: reads them piece by piece, and writes them under a given name.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use forebay_checkpoint::format::{Catalog, Format, Source, Sums};
use forebay_checkpoint::{Name, Piece, Region, Snapshot, Tensor};
use forebay_units::{PathText, unescape};

use super::placing::{Placing, STATE};
use crate::output::{Outputs, parent, place};

/// The files of a folder by name. Formats have names as text, folders as bytes.
pub(super) struct Folder(pub(super) PathBuf);

impl Source for Folder {
    fn size(&self, file: &str) -> io::Result<u64> {
        fs::metadata(in_folder(&self.0, file)).map(|found| found.len())
    }

    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        File::open(in_folder(&self.0, file))?.read_exact_at(into, offset)
    }
}

/// The path of a file in a folder, from the text of its name. Text that is not an escaped path is used as it is, since an
/// index may contain any name.
pub(super) fn in_folder(dir: &Path, name: &str) -> PathBuf {
    dir.join(unescape(name).unwrap_or_else(|_| name.into()))
}

pub(super) struct Target<'a> {
    pub(super) dir: PathBuf,
    /// The name as text.
    pub(super) stem: String,
    pub(super) format: &'static dyn Format,
    pub(super) force: bool,
    pub(super) moved: &'a dyn Fn(u64),
    pub(super) cancel: &'a AtomicBool,
    /// Called when everything is written, before any file gets its name.
    pub(super) is_good: &'a dyn Fn() -> Result<()>,
}

pub(super) struct Written {
    pub(super) files: Vec<PathBuf>,
    pub(super) remarks: Vec<String>,
}

pub(super) fn n_bytes(catalog: &Catalog) -> u64 {
    catalog.tensors.iter().map(|entry| entry.n_bytes).sum()
}

/// Writes the tensors of a catalog piece by piece, and renames the files once all of them are complete and durable.
pub(super) fn write(catalog: &Catalog, source: &dyn Source, target: &Target<'_>) -> Result<Written> {
    // Planning needs lengths only: untouched memory takes no space.
    let longest = catalog.tensors.iter().map(|entry| entry.n_bytes).max().unwrap_or(0);
    let blank = Region::new(usize::try_from(longest)?)?;
    let tensor = |entry: &'_ forebay_checkpoint::format::Entry| entry.n_bytes as usize;
    let tensors = catalog.tensors.iter().map(|entry| Tensor::new(&entry.header, &blank[..tensor(entry)]));
    let snapshot = Snapshot { tensors: tensors.collect(), notes: catalog.notes.clone() };
    let layout = target.format.plan(&target.stem, &snapshot)?;
    let mut placing = Placing::new(target, &layout, snapshot.tensors.len())?;
    let mut sums = Sums::new(&snapshot);
    let fill = |piece: &Piece, from, into: &mut [u8]| fill(catalog, source, piece, from, into);
    for plan in &layout.files {
        placing.write(plan, fill, &mut sums)?;
    }
    let found = sums.finish()?;
    check(catalog, &found)?;
    for plan in layout.close(&found) {
        placing.write(&plan, fill, &mut Sums::new(&snapshot))?;
    }
    (target.is_good)()?;
    placing.commit()
}

fn fill(catalog: &Catalog, source: &dyn Source, piece: &Piece, from: u64, into: &mut [u8]) -> Result<()> {
    match piece {
        Piece::Bytes(bytes) => into.copy_from_slice(&bytes[from as usize..from as usize + into.len()]),
        Piece::Tensor { index, range } => {
            let entry = &catalog.tensors[*index];
            let file = &catalog.files[entry.file];
            let read = source.read_at(file, entry.offset + range.start + from, into);
            read.with_context(|| format!("reading {:?} of {file}", entry.header.name))?;
        }
    }
    Ok(())
}

/// The values differ from those that were written.
#[derive(Debug)]
pub(super) struct Unverified(String);

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unverified {}

/// Checks the values against the checksums of the source format, if it has any.
fn check(catalog: &Catalog, found: &[u32]) -> Result<()> {
    for (entry, found) in catalog.tensors.iter().zip(found) {
        if let Some(expected) = entry.crc32c.filter(|expected| expected != found) {
            let (file, name) = (&catalog.files[entry.file], &entry.header.name);
            let what = format!("tensor {name:?}: checksum: expected {expected:#010x}, found {found:#010x}");
            return Err(Unverified(format!("{file}: {what}: damaged")).into());
        }
    }
    Ok(())
}

/// The folder and the stem of the path to which a checkpoint of this format is written.
pub(super) fn split(path: &Path, format: &dyn Format) -> Result<(PathBuf, String)> {
    let shown = path.escaped();
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("{shown} is a folder\nhint: name a file in it");
    }
    if path.exists() && !path.is_file() {
        bail!("{shown} is not a regular file");
    }
    let Some(name) = path.file_name().map(PathText::escaped) else {
        bail!("{shown}: not a file name");
    };
    let stem = match format.stem(&name) {
        Some(stem) => stem,
        None if format.name() == "safetensors" => bail!("{shown}: a safetensors file needs the extension .safetensors"),
        None => &name,
    };
    Ok((parent(path).to_owned(), stem.to_owned()))
}

pub(super) fn is_checkpoint(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| Name::parse(name.to_str()?));
    name.is_some() && dir.join("manifest.forebay").exists()
}

/// Refuses a path inside a checkpoint, which holds only the files of its manifest and is removed as a whole.
pub(super) fn check_outside(path: &Path) -> Result<()> {
    match place(parent(path)).ancestors().find(|dir| is_checkpoint(dir)) {
        Some(inside) => {
            bail!("{} is inside the checkpoint {}\nhint: choose a path outside it", path.escaped(), inside.escaped())
        }
        None => Ok(()),
    }
}

/// The files of a checkpoint of this format, by its stem.
pub(super) fn names(dir: &Path, stem: &str, format: &dyn Format) -> Vec<PathBuf> {
    let endings: &[&str] = match format.name() {
        "safetensors" => &[".safetensors"],
        _ => &[".index", ".data-00000-of-00001", ".meta"],
    };
    endings.iter().map(|ending| in_folder(dir, &format!("{stem}{ending}"))).collect()
}

/// Claims the files to which a checkpoint is written; existing files are checked once their names are known.
pub(super) fn claim(
    outputs: &mut Outputs,
    flag: &'static str,
    dir: &Path,
    stem: &str,
    format: &dyn Format,
) -> Result<()> {
    names(dir, stem, format).iter().try_for_each(|path| outputs.claim(flag, path).map(drop))
}

/// Refuses a JSON path that is a file of the checkpoint.
pub(super) fn check_apart(json: Option<&Path>, dir: &Path, stem: &str, format: &dyn Format) -> Result<()> {
    let Some(json) = json.filter(|json| *json != Path::new("-")) else { return Ok(()) };
    check_outside(json)?;
    let json_at = json.canonicalize().unwrap_or_else(|_| json.to_owned());
    let name = json_at.file_name().unwrap_or_default().escaped();
    let is_state = format.name() == "tensorflow" && name == STATE;
    let is_ours = name.strip_prefix(stem).is_some_and(|rest| {
        let is_data = rest.starts_with(".data-");
        is_data || [".safetensors", ".index", ".meta"].contains(&rest)
    });
    let is_there = dir.canonicalize().ok() == parent(&json_at).canonicalize().ok();
    if is_there && (is_state || is_ours) {
        bail!("--json {}: part of the checkpoint itself\nhint: choose another path", json.escaped());
    }
    Ok(())
}
