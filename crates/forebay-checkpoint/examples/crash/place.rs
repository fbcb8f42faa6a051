//! Where the cases of one job happen: a plain folder, or a disk whose power can be cut; each case on a fresh copy of the
//! same two checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::disk::{Disk, Image, Mounted};
use crate::history::{Ledger, Way, plain_tiers, prepare, tiers};

/// A folder with two checkpoints, and a copy of it.
pub(crate) struct Folder {
    dir: PathBuf,
    pub(crate) ledger: Ledger,
}

impl Folder {
    pub(crate) fn prepared(dir: &Path, way: Way) -> Result<Self, Error> {
        let base = dir.join("base");
        fs::create_dir_all(&base)?;
        let ledger = prepare(plain_tiers(&base), way)?;
        Ok(Self { dir: dir.to_owned(), ledger })
    }

    /// A copy, which the next call throws away.
    pub(crate) fn fresh(&self) -> Result<PathBuf, Error> {
        let case = self.dir.join("case");
        if case.exists() {
            fs::remove_dir_all(&case)?;
        }
        copy(&self.dir.join("base"), &case)?;
        Ok(case)
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, to) = (entry?, to);
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// A disk with two checkpoints on it, both tiers or the slow one alone.
pub(crate) struct Device {
    image: Image,
    mount_point: PathBuf,
    /// The fast tier, when it lies elsewhere.
    fast: Option<Folder>,
    pub(crate) ledger: Ledger,
}

impl Device {
    pub(crate) fn with_both(dir: &Path, empty: &Image, way: Way) -> Result<Self, Error> {
        Self::prepared(dir, empty, way, false)
    }

    /// The slow tier on the disk, and the fast one on another that nothing happens to.
    pub(crate) fn with_slow(dir: &Path, empty: &Image, way: Way) -> Result<Self, Error> {
        Self::prepared(dir, empty, way, true)
    }

    fn prepared(dir: &Path, empty: &Image, way: Way, is_fast_elsewhere: bool) -> Result<Self, Error> {
        let mount_point = dir.join("mount");
        fs::create_dir_all(&mount_point)?;
        let base = dir.join("base");
        let disk = empty.disk()?;
        let mounted = disk.mount(&mount_point)?;
        let local: std::sync::Arc<dyn forebay_checkpoint::Fs> = std::sync::Arc::new(forebay_checkpoint::LocalFs);
        let fast = if is_fast_elsewhere { base.join("fast") } else { mount_point.join("fast") };
        let ledger = prepare(tiers(&local, &fast, &mount_point.join("slow")), way)?;
        mounted.unmount()?;
        let fast = is_fast_elsewhere.then(|| Folder { dir: dir.to_owned(), ledger: ledger.clone() });
        Ok(Self { image: disk.image()?, mount_point, fast, ledger })
    }

    /// A disk as it was prepared, and the fast tier's folder beside it.
    pub(crate) fn fresh(&self) -> Result<Fresh<'_>, Error> {
        let fast = match &self.fast {
            Some(folder) => folder.fresh()?.join("fast"),
            None => self.mount_point.join("fast"),
        };
        Ok(Fresh { disk: self.image.disk()?, device: self, fast })
    }
}

pub(crate) struct Fresh<'a> {
    disk: Disk,
    device: &'a Device,
    pub(crate) fast: PathBuf,
}

impl Fresh<'_> {
    pub(crate) fn mount(&self) -> Result<Mounted, Error> {
        self.disk.mount(&self.device.mount_point)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.device.mount_point
    }

    pub(crate) fn slow(&self) -> PathBuf {
        self.device.mount_point.join("slow")
    }
}
