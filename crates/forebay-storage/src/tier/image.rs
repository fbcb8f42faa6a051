//! The image file of a kernel tier. All of its space is reserved up front, so the tier really has the space it shows.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::error::Attempt;
use super::{Error, FileSystem, Result, mounts};

/// Creates a file of this size that is not sparse.
pub(super) fn reserve(path: &Path, size: u64) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let free = mounts::space(folder)?.free;
    if free < size {
        return Err(Error::NoSpace { path: folder.to_owned(), wanted: size, free });
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let file = file.attempt("creating", path)?;
    match allocate(&file, size) {
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(Error::NoSpace { path: folder.to_owned(), wanted: size, free })
        }
        outcome => outcome.attempt("reserving space for", path),
    }
}

fn allocate(file: &File, size: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(size).map_err(io::Error::other)?;
    // SAFETY: plain integers and a descriptor that is open.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } == 0 {
        return Ok(());
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EOPNOTSUPP) => write_zeros(file, size),
        error => Err(error),
    }
}

/// Fallback for file systems without `fallocate`.
fn write_zeros(mut file: &File, size: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = size;
    while left > 0 {
        let n = left.min(zeros.len() as u64);
        file.write_all(&zeros[..n as usize])?;
        left -= n;
    }
    file.sync_all()
}

/// Creates the file system on the image, without lazy initialisation that would disturb measurements, and without
/// discarding the reserved space.
pub(super) fn format(path: &Path, fs: FileSystem) -> Result<()> {
    let (program, package, arguments): (_, _, &[&str]) = match fs {
        FileSystem::Ext4 => (
            "mkfs.ext4",
            "e2fsprogs",
            &["-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"],
        ),
        FileSystem::Xfs => ("mkfs.xfs", "xfsprogs", &["-q", "-f", "-K"]),
    };
    // These folders are often missing from the PATH of a non-root shell.
    for place in ["", "/usr/sbin/", "/sbin/"] {
        let mut command = Command::new(format!("{place}{program}"));
        match command.args(arguments).arg(path).stdin(Stdio::null()).output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).attempt("creating a file system on", path),
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
                return Err(Error::Mkfs { program, path: path.to_owned(), said });
            }
        }
    }
    Err(Error::MkfsMissing { program, package })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::tier::tests::folder;

    #[test]
    fn an_image_has_all_its_blocks() {
        let folder = folder();
        let path = folder.path().join("disk.img");
        reserve(&path, 3 << 20).unwrap();
        let found = path.metadata().unwrap();
        assert_eq!(found.len(), 3 << 20);
        assert!(found.blocks() * 512 >= 3 << 20, "{} blocks", found.blocks());
    }

    #[test]
    fn zeros_are_written_where_space_cannot_be_reserved() {
        let folder = folder();
        let path = folder.path().join("disk.img");
        write_zeros(&File::create(&path).unwrap(), (2 << 20) + 5).unwrap();
        let found = path.metadata().unwrap();
        assert_eq!(found.len(), (2 << 20) + 5);
        assert!(found.blocks() * 512 >= 2 << 20, "{} blocks", found.blocks());
    }

    #[test]
    fn more_than_the_disk_has_is_refused_before_anything_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.img");
        let error = reserve(&path, 1 << 60).unwrap_err();
        assert!(matches!(error, Error::NoSpace { wanted, .. } if wanted == 1 << 60), "{error}");
        assert!(!path.exists());
    }
}
