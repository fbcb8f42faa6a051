//! The data of workloads: seeded, incompressible files of records in every format, made in parallel and resumable.
//!
//! A file's bytes follow from the dataset's description, the file's number and the offset, so ranks, threads and
//! interrupted runs do not depend on one another. Each file is written under a hidden name and renamed when complete;
//! an existing complete file is kept. If the format allows it, all threads make the ranges of a big file together. Files
//! of 1 MiB and more bypass the page cache and are durable before they get their name, with one wait for many files.
//! Smaller files go through the cache; they and all names are synced together at the end.

mod claim;
mod draft;
mod format;
mod noise;
mod pending;
mod ranges;
mod room;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use forebay_format::npz::write::Sum;
use forebay_storage::{Buffer, Error as StorageError, Operation};
use forebay_workload::{Dataset, Part, Workload};

pub use claim::{RECORDS_MARKER, made_otherwise};
use claim::{Room, is_whole};
use draft::{Draft, SMALL, Target};
use format::{DataFormat, Piece, Proof};
pub use format::{Files, NO_HDF5, ReadError, Reader, Step, Tools, Traffic, Unit, is_built_in};
use pending::Pending;
use ranges::{Cut, Item, Ranges, is_alike, piece};
pub use room::{records_beside, records_room};

use crate::{Control, Error, Result, write};

/// Default number of threads on machines with fewer cores.
const LEAST_WORKERS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct MadeRecords {
    pub n_written: u64,
    pub n_kept: u64,
    /// Written in this run, without kept files.
    pub bytes: u64,
}

/// Makes the files of rank `rank` of `ranks` (every `ranks`-th) in `train` and `valid` below `dir`. Existing complete
/// files are kept, so an interrupted run resumes.
///
/// Rank 0 marks the folder with its parameters; the others wait up to a minute for the marker. Progress counts files, and
/// ranges of files of 256 MiB and more.
///
/// # Errors
/// When the folder contains data of another workload or data without a marker, cannot be written to, or has too little
/// space for the missing files, which is checked before the first byte.
pub fn make_records(
    workload: &Workload,
    dir: &Path,
    rank: u64,
    ranks: u64,
    control: &Control<'_>,
) -> Result<MadeRecords> {
    make_cut(&workload.dataset, dir, (rank, ranks), control, Cut::default())
}

/// Checks whether the files can be made, without making any: no other data in the folder, and enough space for the missing
/// files.
///
/// # Errors
/// As `make_records`.
pub fn foresee_records(workload: &Workload, dir: &Path) -> Result<()> {
    let dataset = &workload.dataset;
    let form = format::made(dataset)?;
    let resumed = claim::is_marked(dataset, dir)?;
    let never = Control::default().cancel;
    let ranges = Ranges::new(dataset, &*form, (0, 1), Cut::default(), never)?;
    Maker::new(dataset, &*form, dir, resumed, ranges, never).check_room(true)
}

fn make_cut(
    dataset: &Dataset,
    dir: &Path,
    (rank, ranks): (u64, u64),
    control: &Control<'_>,
    cut: Cut,
) -> Result<MadeRecords> {
    let form = format::made(dataset)?;
    let resumed = claim::is_marked(dataset, dir)?;
    let ranges = Ranges::new(dataset, &*form, (rank, ranks), cut, control.cancel)?;
    let maker = Maker::new(dataset, &*form, dir, resumed, ranges, control.cancel);
    maker.check_room(rank == 0)?;
    let _home = claim::claim(dataset, dir, rank, control)?;
    let folders = maker.make_folders()?;
    let control = Control { threads: workers(control.threads), ..*control };
    let made = control.for_each("make", maker.ranges.len(), Buffer::default, |buffer, at| maker.make(at, buffer));
    // Complete files stay, whatever happened to the rest.
    made.and(maker.pending.settle())?;
    maker.sync_names(&folders)?;
    Ok(MadeRecords {
        n_written: maker.n_written.into_inner(),
        n_kept: maker.n_kept.into_inner(),
        bytes: maker.bytes.into_inner(),
    })
}

/// More threads than cores on small machines: while some wait for the disk, others generate data.
fn workers(wanted: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if wanted == 0 { cores().max(LEAST_WORKERS) } else { wanted }
}

struct Maker<'a> {
    dataset: &'a Dataset,
    form: &'a dyn DataFormat,
    dir: &'a Path,
    resumed: bool,
    ranges: Ranges<'a>,
    /// Files that several threads write to; `None` for an existing one.
    shared: Mutex<HashMap<u64, Option<Arc<Shared>>>>,
    n_written: AtomicU64,
    n_kept: AtomicU64,
    bytes: AtomicU64,
    pending: Pending,
    /// Whether anything was written through the page cache.
    is_unsynced: AtomicBool,
    cancel: &'a AtomicBool,
}

/// A file being written range by range.
struct Shared {
    target: Arc<Target>,
    n_left: AtomicU64,
    /// Checksums of the ranges' values, by offset.
    sums: Mutex<BTreeMap<u64, Sum>>,
}

impl Shared {
    /// Writes the parts that are known only when all ranges are made.
    fn patch(&self, form: &dyn DataFormat, piece: &Piece) -> io::Result<()> {
        let mut values = Sum::default();
        self.sums.lock().expect("nobody panics while noting a sum").values().for_each(|sum| values.join(sum));
        form.patches(piece, &values).iter().try_for_each(|(offset, bytes)| self.target.patch(*offset, bytes))
    }
}

impl<'a> Maker<'a> {
    fn new(
        dataset: &'a Dataset,
        form: &'a dyn DataFormat,
        dir: &'a Path,
        resumed: bool,
        ranges: Ranges<'a>,
        cancel: &'a AtomicBool,
    ) -> Self {
        Self {
            dataset,
            form,
            dir,
            resumed,
            ranges,
            shared: Mutex::default(),
            n_written: AtomicU64::new(0),
            n_kept: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            pending: Pending::default(),
            is_unsynced: AtomicBool::new(false),
            cancel,
        }
    }

    /// Refuses files that do not fit: rank 0, which comes first, checks the files of all ranks, the others their own.
    fn check_room(&self, all: bool) -> Result<()> {
        let (n_train, n_files) = match all {
            true => (
                self.dataset.n_files(Part::Train),
                self.dataset.n_files(Part::Train) + self.dataset.n_files(Part::Eval),
            ),
            false => (self.ranges.n_train(), self.ranges.n_files()),
        };
        let piece_of = |file: u64| if all { piece(self.dataset, file) } else { self.ranges.piece(file) };
        let of = |file: u64| room::of_piece(self.form, &piece_of(file));
        let most = match is_alike(self.dataset) {
            true => room::of_alike((n_train, n_files - n_train), of),
            false => self.sum(n_files, of)?,
        };
        match most.check(self.dir) {
            // Existing files need no more space. Looking for them costs a system call per file, so it is done only if it matters.
            Err(_) if self.resumed => {
                let missing = |file: u64| {
                    let piece = piece_of(file);
                    if self.is_there(&piece) { Room::default() } else { room::of_piece(self.form, &piece) }
                };
                self.sum(n_files, missing)?.check(self.dir)
            }
            checked => checked,
        }
    }

    fn sum(&self, n_files: u64, of: impl Fn(u64) -> Room) -> Result<Room> {
        (0..n_files).try_fold(Room::default(), |sum, file| {
            if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(sum.plus(of(file))) }
        })
    }

    /// Whether a file and its companions exist and are complete.
    fn is_there(&self, piece: &Piece) -> bool {
        self.resumed
            && is_whole(&self.dir.join(&piece.path), self.form.proof(piece))
            && self.form.beside(piece).iter().all(|beside| is_whole(&self.dir.join(&beside.path), beside.proof))
    }

    /// All folders for files of this rank, and always DLIO's `train` and `valid`.
    fn make_folders(&self) -> Result<HashSet<String>> {
        let mut folders: HashSet<String> = [Part::Train, Part::Eval].map(|part| part.folder().to_owned()).into();
        let folder_of = |path: &str| path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
        // Files go to the folders of a part in turn, so the first `folders` files cover all folders.
        let n_train = self.ranges.n_train();
        let of = |part, first: u64, end: u64| first..end.min(first + self.dataset.n_subfolders(part).max(1));
        let firsts = of(Part::Train, 0, n_train).chain(of(Part::Eval, n_train, self.ranges.n_files()));
        for piece in firsts.map(|file| self.ranges.piece(file)) {
            if self.cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            folders.extend(self.form.beside(&piece).iter().map(|beside| folder_of(&beside.path)));
            folders.insert(folder_of(&piece.path));
        }
        folders.iter().try_for_each(|folder| write::folder(&self.dir.join(folder)))?;
        Ok(folders)
    }

    /// Waits until cached data and the names of all files are durable.
    fn sync_names(&self, folders: &HashSet<String>) -> Result<()> {
        if self.is_unsynced.load(Ordering::Relaxed) {
            return claim::sync_all(self.dir);
        }
        if self.n_written.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        // Their parent folders hold names too.
        let all: HashSet<&Path> = folders.iter().flat_map(|folder| Path::new(folder).ancestors()).collect();
        all.into_iter().try_for_each(|folder| claim::sync_folder(&self.dir.join(folder)))
    }

    /// Makes one range, or a whole file. A failure after a stop request counts as the stop.
    fn make(&self, at: u64, buffer: &mut Buffer) -> Result<u64> {
        let made = self.try_make(at, buffer);
        made.map_err(|error| if self.cancel.load(Ordering::Relaxed) { Error::Cancelled } else { error })
    }

    fn try_make(&self, at: u64, buffer: &mut Buffer) -> Result<u64> {
        let (piece, item) = self.ranges.item(at);
        let bytes = if item.n_ranges == 1 {
            if self.is_there(&piece) {
                self.n_kept.fetch_add(1, Ordering::Relaxed);
                return Ok(0);
            }
            self.make_whole(&piece, buffer)?
        } else {
            self.make_range(&piece, item, buffer)?
        };
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    fn make_whole(&self, piece: &Piece, buffer: &mut Buffer) -> Result<u64> {
        let beside = self.make_beside(piece, buffer)?;
        let path = self.dir.join(&piece.path);
        let room = self.form.room(piece);
        let bytes =
            self.written(&path, room, self.form.proof(piece), buffer, |draft| self.form.write(piece, 0..room, draft))?;
        self.n_written.fetch_add(1, Ordering::Relaxed);
        Ok(beside + bytes)
    }

    fn make_beside(&self, piece: &Piece, buffer: &mut Buffer) -> Result<u64> {
        let mut bytes = 0;
        for (which, beside) in self.form.beside(piece).iter().enumerate() {
            let write = |draft: &mut Draft<'_>| self.form.write_beside(piece, which, draft);
            bytes += self.written(&self.dir.join(&beside.path), beside.room, beside.proof, buffer, write)?;
        }
        Ok(bytes)
    }

    fn written(
        &self,
        path: &Path,
        room: u64,
        proof: Proof,
        buffer: &mut Buffer,
        write: impl FnOnce(&mut Draft<'_>) -> io::Result<()>,
    ) -> Result<u64> {
        let failed = |operation| move |source| StorageError::from_io(operation, path, source);
        let target = Arc::new(Target::create(path, room).map_err(failed(Operation::Create))?);
        let mut draft = Draft::new(&target, 0, buffer, self.cancel);
        let (bytes, _) = write(&mut draft).and_then(|()| draft.finish()).map_err(failed(Operation::Write))?;
        if room >= SMALL || matches!(proof, Proof::Presence) {
            self.pending.add(target, bytes)?;
        } else {
            target.rename().map_err(failed(Operation::Commit))?;
            self.is_unsynced.store(true, Ordering::Relaxed);
        }
        Ok(bytes)
    }

    fn make_range(&self, piece: &Piece, item: Item, buffer: &mut Buffer) -> Result<u64> {
        let (shared, beside) = self.shared(piece, &item, buffer)?;
        let Some(shared) = shared else { return Ok(0) };
        let (path, file) = (&self.dir.join(&piece.path), item.file);
        let failed = |operation| move |source| StorageError::from_io(operation, path, source);
        let start = item.range.start;
        let mut draft = Draft::new(&shared.target, start, buffer, self.cancel);
        let written = self.form.write(piece, item.range, &mut draft).and_then(|()| draft.finish());
        let (bytes, sum) = written.map_err(failed(Operation::Write))?;
        shared.sums.lock().expect("nobody panics while noting a sum").extend(sum.map(|sum| (start, sum)));
        if shared.n_left.fetch_sub(1, Ordering::AcqRel) == 1 {
            shared.patch(self.form, piece).map_err(failed(Operation::Write))?;
            self.pending.add(Arc::clone(&shared.target), self.form.room(piece))?;
            self.n_written.fetch_add(1, Ordering::Relaxed);
            self.shared.lock().expect("nobody panics while beginning a file").remove(&file);
        }
        Ok(beside + bytes)
    }

    /// The file of a range; the first thread to need it creates it with its companions.
    fn shared(&self, piece: &Piece, item: &Item, buffer: &mut Buffer) -> Result<(Option<Arc<Shared>>, u64)> {
        let mut open = self.shared.lock().expect("nobody panics while beginning a file");
        if let Some(shared) = open.get(&item.file) {
            return Ok((shared.clone(), 0));
        }
        if self.is_there(piece) {
            open.insert(item.file, None);
            self.n_kept.fetch_add(1, Ordering::Relaxed);
            return Ok((None, 0));
        }
        let beside = self.make_beside(piece, buffer)?;
        let (path, len) = (self.dir.join(&piece.path), self.form.room(piece));
        let begun = Target::create(&path, len).and_then(|target| target.set_len(len).map(|()| target));
        let target = begun.map_err(|source| StorageError::from_io(Operation::Create, &path, source))?;
        let shared = Arc::new(Shared {
            target: Arc::new(target),
            n_left: AtomicU64::new(item.n_ranges),
            sums: Mutex::default(),
        });
        open.insert(item.file, Some(shared.clone()));
        Ok((Some(shared), beside))
    }
}
