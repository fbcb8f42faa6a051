//! A target ready to measure: checked, with its scratch folder created and engines tried.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_measure::{FileSystem, Memory, Scratch, is_at_work, random, remove_left_overs, stamp};
use forebay_record::Engine;
use forebay_storage::cache;
use forebay_units::{Bytes, PathText};

use super::error::{Context, Error};
use super::plan::{FILES_PER_FOLDER, Plan, Tree};
use super::preflight::{self, Target};
use super::settings::Kind;
use super::threads::Leaf;

const PREFIX: &str = ".forebay-probe-";

/// Size of the file on which engines and eviction are tried.
const TRIAL_BYTES: usize = 1 << 20;

pub(super) struct PreparedTarget {
    /// `None` if the target is a file that is only read.
    scratch: Option<Scratch>,
    pub(super) file: PathBuf,
    pub(super) engines: Vec<Engine>,
    /// Direct requests are multiples of this, in bytes.
    pub(super) alignment: u64,
    /// Shown to the user before the run.
    pub(super) remarks: Vec<String>,
}

impl PreparedTarget {
    pub(super) fn open(plan: &Plan) -> Result<Self, Error> {
        let target = Target::of(&plan.target)?;
        let left = if target == Target::Folder { remove_left_overs(&plan.target, PREFIX) } else { Vec::new() };
        let system = FileSystem::of(&plan.target).context("inspecting", &plan.target)?;
        let memory = Memory::now();
        preflight::check(plan, target, &system, memory)?;
        let mut remarks: Vec<String> = Vec::new();
        if !left.is_empty() {
            remarks.push(format!("removed leftovers of a killed probe: {}", left.join(", ")));
        }
        if target == Target::Folder && is_at_work(&plan.target, PREFIX) {
            let path = plan.target.escaped();
            remarks.push(format!(
                "another probe is running in {path}; they disturb each other, so both rates are too low"
            ));
        }
        remarks.extend(preflight::remarks(plan, &system));
        let scratch = match target {
            Target::Folder => Some(Scratch::create(&plan.target, PREFIX)?),
            Target::File(_) => None,
        };
        let (file, trial) = match &scratch {
            Some(scratch) => (scratch.path().join("data"), write_trial(scratch)?),
            None => (plan.target.clone(), plan.target.clone()),
        };
        let (engines, remark) = preflight::engines(plan, &trial)?;
        remarks.extend(remark);
        if system.in_memory().is_none() && !can_be_emptied(&trial)? {
            remarks.extend(preflight::remark_of_cache(plan.settings.file_size().0, &engines, memory));
        }
        let alignment = preflight::direct_alignment(&trial).context("inspecting", &trial)?;
        check_alignment(plan, &engines, alignment)?;
        Ok(Self { scratch, file, engines, alignment, remarks })
    }

    pub(super) fn may_write(&self) -> bool {
        self.scratch.is_some()
    }

    /// Creates an empty file with its space allocated.
    pub(super) fn fresh_file(&self, size: u64) -> Result<(), Error> {
        let scratch = self.scratch.as_ref().expect("only a target with a scratch folder is written to");
        scratch.fresh("data", size)?;
        Ok(())
    }

    /// Writes the file, untimed.
    pub(super) fn lay_out(&self, size: u64, cancel: &AtomicBool, moved: &mut dyn FnMut(u64)) -> Result<(), Error> {
        self.fresh_file(size)?;
        let file = File::options().write(true).open(&self.file).context("opening", &self.file)?;
        let mut block = random_block();
        for offset in (0..size).step_by(block.len()) {
            if cancel.load(Ordering::Relaxed) {
                return Ok(());
            }
            stamp(&mut block, offset, u64::MAX);
            let len = (size - offset).min(block.len() as u64);
            file.write_all_at(&block[..len as usize], offset).context("writing", &self.file)?;
            moved(len);
        }
        file.sync_all().context("syncing", &self.file)
    }

    pub(super) fn plant(
        &self,
        tree: &Tree,
        number: usize,
        cancel: &AtomicBool,
        moved: &mut dyn FnMut(u64),
    ) -> Result<Vec<Leaf>, Error> {
        let scratch = self.scratch.as_ref().expect("the files mode needs a folder, which was checked");
        let root = scratch.path().join(format!("files-{number}"));
        let mut block = random_block();
        let mut leaves = Vec::with_capacity(tree.sizes.len());
        for (i, len) in tree.sizes.iter().enumerate() {
            if cancel.load(Ordering::Relaxed) {
                break;
            }
            let folder = root.join(format!("{:04}", i / FILES_PER_FOLDER));
            if i % FILES_PER_FOLDER == 0 {
                fs::create_dir_all(&folder).context("making", &folder)?;
            }
            let path = folder.join(format!("{i:07}"));
            write_leaf(&path, *len, i as u64, &mut block)?;
            moved(*len);
            leaves.push(Leaf { path, len: *len });
        }
        if !cancel.load(Ordering::Relaxed) {
            sync_all(scratch.path())?;
        }
        Ok(leaves)
    }
}

fn write_leaf(path: &Path, len: u64, number: u64, block: &mut [u8]) -> Result<(), Error> {
    let file = File::create_new(path).context("creating", path)?;
    for offset in (0..len).step_by(block.len()) {
        stamp(block, offset, number);
        let part = (len - offset).min(block.len() as u64) as usize;
        file.write_all_at(&block[..part], offset).context("writing", path)?;
    }
    Ok(())
}

/// Syncs the whole file system at once, because syncing thousands of files one by one takes minutes.
fn sync_all(path: &Path) -> Result<(), Error> {
    let folder = File::open(path).context("opening", path)?;
    // SAFETY: a valid descriptor.
    match unsafe { libc::syncfs(folder.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()).context("syncing", path),
    }
}

fn random_block() -> Vec<u8> {
    let mut block = vec![0; TRIAL_BYTES];
    random(1, 0).fill(&mut block);
    block
}

fn write_trial(scratch: &Scratch) -> Result<PathBuf, Error> {
    let path = scratch.path().join("trial");
    // All later code opens files by name, which an unusual umask denies.
    let written = fs::write(&path, random_block()).and_then(|()| File::open(&path));
    written.map_err(|error| forebay_measure::Error::from_own("writing", &path, error))?;
    Ok(path)
}

/// Whether the kernel evicts a file's pages on request.
fn can_be_emptied(file: &Path) -> Result<bool, Error> {
    cache::evict([file])?;
    let share = cache::residency([file]).ok().and_then(|found| found.share());
    Ok(share.is_some_and(|share| share <= 0.05))
}

fn check_alignment(plan: &Plan, engines: &[Engine], alignment: u64) -> Result<(), Error> {
    let direct = engines.iter().any(|engine| *engine != Engine::Sync);
    let mut blocks = plan.settings.blocks().iter().filter(|_| plan.settings.does(Kind::Sequential) && direct);
    match blocks.find(|block| block.0 % alignment != 0) {
        Some(Bytes(block)) => Err(Error::senseless(format!(
            "--block {block}: direct I/O on this device needs multiples of {alignment} bytes"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_has_its_length_and_bytes_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut block = random_block();
        let lens = [0, 1, 4_096, 100_000, TRIAL_BYTES as u64 + 5];
        let mut pages = std::collections::BTreeSet::new();
        for (i, len) in lens.into_iter().enumerate() {
            let path = dir.path().join(i.to_string());
            write_leaf(&path, len, i as u64, &mut block).unwrap();
            let bytes = fs::read(&path).unwrap();
            assert_eq!(bytes.len() as u64, len);
            pages.extend(bytes.chunks(4096).map(<[u8]>::to_vec));
        }
        assert_eq!(
            pages.len(),
            lens.iter().map(|len| len.div_ceil(4096) as usize).sum::<usize>(),
            "no two pages are equal"
        );
    }
}
