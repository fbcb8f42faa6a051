//! Files of a format: read in pieces wherever they lie, and written so that a crash leaves the former ones or the new ones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use forebay_checkpoint::format::{Catalog, Format, Layout, Source, Sums};
use forebay_checkpoint::{FilePlan, Fs, LocalFs, Piece, Region, Snapshot, Tensor};

/// Bytes that are moved at once.
const CHUNK: usize = 4 << 20;
/// The name of TensorFlow's file about a folder.
const STATE: &str = "checkpoint";

/// The files of a folder.
pub(super) struct Folder(pub(super) PathBuf);

impl Source for Folder {
    fn size(&self, file: &str) -> io::Result<u64> {
        fs::metadata(self.0.join(file)).map(|found| found.len())
    }

    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        File::open(self.0.join(file))?.read_exact_at(into, offset)
    }
}

/// Where a checkpoint is to be written.
pub(super) struct Target<'a> {
    pub(super) dir: PathBuf,
    pub(super) stem: String,
    pub(super) format: &'static dyn Format,
    /// Whether files that are there are replaced.
    pub(super) force: bool,
    /// Hears of bytes written.
    pub(super) moved: &'a dyn Fn(u64),
    pub(super) cancel: &'a AtomicBool,
    /// Asked once all is written, before anything gets its name.
    pub(super) is_good: &'a dyn Fn() -> Result<()>,
}

/// What was written.
pub(super) struct Written {
    pub(super) files: Vec<PathBuf>,
    /// What the reader should know.
    pub(super) remarks: Vec<String>,
}

/// Bytes of all tensors.
pub(super) fn n_bytes(catalog: &Catalog) -> u64 {
    catalog.tensors.iter().map(|entry| entry.n_bytes).sum()
}

/// Writes what a catalog names, a piece at a time, and puts the files in place once all are whole and durable.
pub(super) fn write(catalog: &Catalog, source: &dyn Source, target: &Target<'_>) -> Result<Written> {
    // Planning looks at lengths only: memory that is never touched takes no room.
    let longest = catalog.tensors.iter().map(|entry| entry.n_bytes).max().unwrap_or(0);
    let blank = Region::new(usize::try_from(longest)?)?;
    let tensor = |entry: &'_ forebay_checkpoint::format::Entry| entry.n_bytes as usize;
    let tensors = catalog.tensors.iter().map(|entry| Tensor::new(&entry.header, &blank[..tensor(entry)]));
    let snapshot = Snapshot { tensors: tensors.collect(), notes: catalog.notes.clone() };
    let layout = target.format.plan(&target.stem, &snapshot)?;
    let mut placing = Placing::new(target, &layout, snapshot.tensors.len())?;
    let mut sums = Sums::new(&snapshot);
    for plan in &layout.files {
        placing.write(plan, |piece, from, into| fill(catalog, source, piece, from, into), &mut sums)?;
    }
    let found = sums.finish()?;
    check(catalog, &found)?;
    for plan in layout.close(&found) {
        placing.write(
            &plan,
            |piece, from, into| fill(catalog, source, piece, from, into),
            &mut Sums::new(&snapshot),
        )?;
    }
    (target.is_good)()?;
    placing.commit()
}

/// Bytes of a piece from `from` on.
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

/// Whether the values are those that were written, where the format they came in says so.
fn check(catalog: &Catalog, found: &[u32]) -> Result<()> {
    for (entry, found) in catalog.tensors.iter().zip(found) {
        if let Some(expected) = entry.crc32c.filter(|expected| expected != found) {
            let (file, name) = (&catalog.files[entry.file], &entry.header.name);
            bail!("{file}: tensor {name:?}: checksum: expected {expected:#010x}, found {found:#010x}: it is damaged");
        }
    }
    Ok(())
}

/// Files on their way to their names.
struct Placing<'a> {
    target: &'a Target<'a>,
    /// The aside name, the name, and whether it is still aside.
    files: Vec<(PathBuf, PathBuf, bool)>,
    remarks: Vec<String>,
}

impl<'a> Placing<'a> {
    /// Refuses before a byte is written when a name is taken.
    fn new(target: &'a Target<'a>, layout: &Layout, n_tensors: usize) -> Result<Self> {
        if !target.dir.is_dir() {
            bail!("{}: no such folder; make it first", target.dir.display());
        }
        let closing = layout.close(&vec![0; n_tensors]);
        for plan in layout.files.iter().chain(&closing) {
            let path = target.dir.join(&plan.name);
            if !target.force && plan.name != STATE && path.symlink_metadata().is_ok() {
                bail!("{} is there already; name another, or give --force to replace it", path.display());
            }
        }
        Ok(Self { target, files: Vec::new(), remarks: Vec::new() })
    }

    fn write(
        &mut self,
        plan: &FilePlan,
        fill: impl Fn(&Piece, u64, &mut [u8]) -> Result<()>,
        sums: &mut Sums,
    ) -> Result<()> {
        let path = self.target.dir.join(&plan.name);
        if plan.name == STATE && !self.target.force && path.exists() {
            self.remarks.push(format!("{} is left as it is: it names another checkpoint", path.display()));
            return Ok(());
        }
        let aside = self.target.dir.join(format!(".{}.{}", plan.name, std::process::id()));
        let cannot = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().write(true).create_new(true).open(&aside).with_context(cannot)?;
        self.files.push((aside, path.clone(), true));
        let (mut offset, mut chunk) = (0, vec![0; CHUNK.min(plan.len.max(1) as usize)]);
        for piece in &plan.pieces {
            let mut from = 0;
            while from < piece.n_bytes() {
                if self.target.cancel.load(Ordering::Relaxed) {
                    return Err(forebay_dataset::Error::Cancelled.into());
                }
                let n = (piece.n_bytes() - from).min(chunk.len() as u64) as usize;
                fill(piece, from, &mut chunk[..n])?;
                file.write_all_at(&chunk[..n], offset).with_context(cannot)?;
                sums.add_filled(plan, offset, &chunk[..n]);
                (self.target.moved)(n as u64);
                (from, offset) = (from + n as u64, offset + n as u64);
            }
        }
        file.sync_all().with_context(cannot)
    }

    /// Gives the files their names, the one that opens the checkpoint after those it names, and makes the names durable.
    fn commit(mut self) -> Result<Written> {
        let opens = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(".index"));
        self.files.sort_by_key(|(_, path, _)| (path.ends_with(STATE), opens(path)));
        for k in 0..self.files.len() {
            let (aside, path, _) = &self.files[k];
            let renamed = if self.target.force {
                fs::rename(aside, path).with_context(|| format!("cannot write {}", path.display()))
            } else {
                LocalFs.rename(aside, path).map_err(Into::into)
            };
            if let Err(error) = renamed {
                self.take_back(k);
                return Err(error);
            }
            self.files[k].2 = false;
        }
        LocalFs.sync_dir(&self.target.dir)?;
        let files = self.files.iter().map(|(_, path, _)| path.clone()).collect();
        Ok(Written { files, remarks: std::mem::take(&mut self.remarks) })
    }

    /// Removes the first so many, which have their names already, unless they replaced others.
    fn take_back(&self, n: usize) {
        if !self.target.force {
            for (_, path, _) in &self.files[..n] {
                let _ = fs::remove_file(path);
            }
        }
    }
}

impl Drop for Placing<'_> {
    fn drop(&mut self) {
        for (aside, ..) in self.files.iter().filter(|(.., is_aside)| *is_aside) {
            let _ = fs::remove_file(aside);
        }
    }
}

/// The folder and the stem of a path that a checkpoint of this format is to have.
pub(super) fn split(path: &Path, format: &dyn Format) -> Result<(PathBuf, String)> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        bail!("{}: not the name of a file", path.display());
    };
    let stem = match format.stem(name) {
        Some(stem) => stem,
        None if format.name() == "safetensors" => {
            bail!("{}: the name of a safetensors file ends in .safetensors", path.display())
        }
        None => name,
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok((dir.to_owned(), stem.to_owned()))
}
