//! What the kernel reports about the file system under a path: type, free space, id.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    /// Type, as in `linux/magic.h`.
    pub magic: u64,
    /// Available to an unprivileged user; `None` if the file system has no fixed limit.
    pub free_bytes: Option<u64>,
    /// Files and folders that an unprivileged user may still create; `None` if the file system has no fixed limit.
    pub free_files: Option<u64>,
    pub read_only: bool,
    /// `f_fsid`; 0 if it has none.
    pub id: u64,
}

/// File systems backed by a server with its own cache, which evicting local pages does not empty. The numbers are from
/// `linux/magic.h` and the sources of out-of-tree file systems.
const NETWORK: [(u64, &str); 13] = [
    (0x6969, "nfs"),
    (0x517B, "smb"),
    (0xFF53_4D42, "cifs"),
    (0xFE53_4D42, "smb2"),
    (0x0BD0_0BD0, "lustre"),
    (0x00C3_6400, "ceph"),
    (0x4750_4653, "gpfs"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse"),
    (0x5346_414F, "afs"),
    (0x6B41_4653, "kafs"),
    (0x1983_0326, "beegfs"),
    (0x7461_636F, "ocfs2"),
];

const IN_MEMORY: [(u64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58F6, "ramfs")];

impl FileSystem {
    pub fn of(path: &Path) -> io::Result<Self> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut kind = MaybeUninit::<libc::statfs>::uninit();
        let mut room = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the name ends in a zero and the structures have room for the answers.
        let codes = unsafe {
            (libc::statfs(name.as_ptr(), kind.as_mut_ptr()), libc::statvfs(name.as_ptr(), room.as_mut_ptr()))
        };
        if codes != (0, 0) {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the calls succeeded, so the structures are filled.
        let (kind, room) = unsafe { (kind.assume_init(), room.assume_init()) };
        Ok(Self {
            // `f_type` is signed on some architectures, and magic numbers have 32 bits.
            magic: kind.f_type as u64 & 0xFFFF_FFFF,
            free_bytes: (room.f_blocks > 0).then(|| room.f_bavail * room.f_frsize),
            free_files: (room.f_files > 0).then_some(room.f_favail),
            read_only: room.f_flag & libc::ST_RDONLY != 0,
            id: room.f_fsid,
        })
    }

    pub fn network(&self) -> Option<&'static str> {
        NETWORK.into_iter().find(|(magic, _)| *magic == self.magic).map(|(_, name)| name)
    }

    pub fn in_memory(&self) -> Option<&'static str> {
        IN_MEMORY.into_iter().find(|(magic, _)| *magic == self.magic).map(|(_, name)| name)
    }
}

/// The file system's id in hexadecimal; `None` if it has none.
pub(crate) fn id_of(path: &Path) -> Option<String> {
    let id = FileSystem::of(path).ok()?.id;
    (id != 0).then(|| format!("{id:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_recognised_by_their_numbers() {
        let of = |magic| FileSystem { magic, free_bytes: None, free_files: None, read_only: false, id: 1 };
        assert_eq!((of(0x6969).network(), of(0x6969).in_memory()), (Some("nfs"), None));
        assert_eq!((of(0x0102_1994).network(), of(0x0102_1994).in_memory()), (None, Some("tmpfs")));
        assert_eq!((of(0xEF53).network(), of(0xEF53).in_memory()), (None, None), "ext4 is on a disk");
    }

    #[test]
    fn the_file_system_of_the_sources_has_room_and_a_stable_number() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert!(FileSystem::of(here).unwrap().free_bytes.unwrap() > 0);
        assert_eq!(id_of(here), id_of(&here.join("src")));
        assert_eq!(FileSystem::of(&here.join("gone")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
