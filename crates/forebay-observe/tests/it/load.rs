//! A known load on a known disk.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_testing::{Reason, not_run};

/// One test at a time: each counts the I/O of this process.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const BLOCK: usize = 1 << 20;

/// A file whose blocks are already allocated, to be overwritten past the page cache.
pub(crate) struct Load {
    file: File,
    /// The whole disk under the file's partition.
    pub(crate) disk: String,
    n_blocks: usize,
    _dir: tempfile::TempDir,
}

impl Load {
    /// A file of `n_blocks` MiB in the target folder; reports the test as not run and returns `None` if no disk is
    /// under it.
    pub(crate) fn new(n_blocks: usize) -> Option<Self> {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let Some(disk) = disk_of(dir.path()) else {
            not_run(Reason::NoDisk, "no block device");
            return None;
        };
        let path = dir.path().join("load");
        let mut direct = OpenOptions::new();
        let file = direct.create(true).write(true).read(true).truncate(true).custom_flags(libc::O_DIRECT).open(path);
        let load = match file {
            Ok(file) => Self { file, disk, n_blocks, _dir: dir },
            Err(error) => {
                not_run(Reason::NoDirectIo, error);
                return None;
            }
        };
        load.write();
        Some(load)
    }

    pub(crate) fn bytes(&self) -> f64 {
        (self.n_blocks * BLOCK) as f64
    }

    /// Writes the whole file and waits for the disk.
    pub(crate) fn write(&self) {
        // Direct I/O needs memory aligned to blocks of the device.
        let memory = vec![1_u8; BLOCK + 4096];
        let block = &memory[memory.as_ptr().align_offset(4096)..][..BLOCK];
        for index in 0..self.n_blocks {
            self.file.write_all_at(block, (index * BLOCK) as u64).unwrap();
        }
        self.file.sync_all().unwrap();
    }

    pub(crate) fn read(&self) {
        let mut memory = vec![0_u8; BLOCK + 4096];
        let aligned = memory.as_ptr().align_offset(4096);
        for index in 0..self.n_blocks {
            self.file.read_exact_at(&mut memory[aligned..aligned + BLOCK], (index * BLOCK) as u64).unwrap();
        }
    }
}

/// The name of the whole disk under a folder.
fn disk_of(dir: &Path) -> Option<String> {
    let device = dir.metadata().unwrap().dev();
    let link = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let device: PathBuf = std::fs::canonicalize(link).ok()?;
    let whole = if device.join("partition").exists() { device.parent()? } else { &device };
    Some(whole.file_name()?.to_str()?.replace('!', "/"))
}
