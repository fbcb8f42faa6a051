//! A disk in memory with a real file system on it, whose power can be cut.
//!
//! The bytes lie in an unnamed file in memory behind a loop device that goes with its last user, and are mounted in a
//! name space of this process alone: however the process ends, nothing of it stays on the machine.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Error;

/// `FS_IOC_SHUTDOWN`, and its flag for writing neither data nor journal.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
const WITHOUT_FLUSHING: u32 = 2;
const LOOP_CONFIGURE: libc::c_ulong = 0x4c0a;
const LOOP_GET_FREE: libc::c_ulong = 0x4c82;
/// The device is free again when nobody uses it.
const AUTOCLEAR: u32 = 4;
const PAGE: usize = 4096;
/// How often something is tried that another process can be in the way of for a moment.
const TIMES: usize = 1000;

/// Puts this process into a name space of its own, so that its mounts are nobody else's.
pub(crate) fn leave_mounts_of_others() -> io::Result<()> {
    // SAFETY: plain flags.
    check(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    // SAFETY: a valid path; this request reads no other string.
    check(unsafe { libc::mount(c"none".as_ptr(), c"/".as_ptr(), std::ptr::null(), flags, std::ptr::null()) })
}

/// What a disk holds, without its zeros.
#[derive(Clone)]
pub(crate) struct Image {
    kind: &'static str,
    len: u64,
    pages: Vec<(u64, Vec<u8>)>,
}

impl Image {
    /// An empty file system, `ext4` or `xfs`.
    pub(crate) fn made(kind: &'static str) -> Result<Self, Error> {
        // The least that xfs is made with, and plenty for the other.
        let len = if kind == "xfs" { 320 << 20 } else { 64 << 20 };
        let disk = Disk { kind, bytes: memory()? };
        disk.bytes.set_len(len)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), disk.bytes.as_raw_fd());
        let force = if kind == "xfs" { "-f" } else { "-F" };
        let output = Command::new(format!("mkfs.{kind}")).args(["-q", force, &path]).output();
        let output = output.map_err(|error| format!("mkfs.{kind}: {error}"))?;
        if !output.status.success() {
            return Err(format!("mkfs.{kind}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
        }
        disk.image()
    }

    pub(crate) fn disk(&self) -> Result<Disk, Error> {
        let bytes = memory()?;
        bytes.set_len(self.len)?;
        for (offset, page) in &self.pages {
            bytes.write_all_at(page, *offset)?;
        }
        Ok(Disk { kind: self.kind, bytes })
    }
}

pub(crate) struct Disk {
    kind: &'static str,
    bytes: File,
}

impl Disk {
    pub(crate) fn image(&self) -> Result<Image, Error> {
        let len = self.bytes.metadata()?.len();
        let (mut pages, mut offset) = (Vec::new(), 0);
        while let Some(start) = self.seek(offset, libc::SEEK_DATA)? {
            let end = self.seek(start, libc::SEEK_HOLE)?.unwrap_or(len);
            for at in (start..end).step_by(PAGE) {
                let mut page = vec![0; PAGE.min((end - at) as usize)];
                self.bytes.read_exact_at(&mut page, at)?;
                if page.iter().any(|byte| *byte != 0) {
                    pages.push((at, page));
                }
            }
            offset = end;
        }
        Ok(Image { kind: self.kind, len, pages })
    }

    fn seek(&self, offset: u64, whence: libc::c_int) -> Result<Option<u64>, Error> {
        // SAFETY: a valid descriptor and plain integers.
        let found = unsafe { libc::lseek(self.bytes.as_raw_fd(), offset as libc::off_t, whence) };
        if found >= 0 {
            return Ok(Some(found as u64));
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::ENXIO) { Ok(None) } else { Err(error.into()) }
    }

    pub(crate) fn mount(&self, at: &Path) -> Result<Mounted, Error> {
        let (device, _held) = attach(&self.bytes)?;
        let device = CString::new(device)?;
        let (kind, path) = (CString::new(self.kind)?, CString::new(at.as_os_str().as_bytes())?);
        // Copies of an image have one name, which xfs minds.
        let options = if self.kind == "xfs" { c"nouuid" } else { c"" };
        let data = options.as_ptr().cast();
        // SAFETY: five valid strings.
        check(unsafe { libc::mount(device.as_ptr(), path.as_ptr(), kind.as_ptr(), 0, data) })
            .map_err(|error| format!("mounting {}: {error}", self.kind))?;
        Ok(Mounted { path: at.to_owned() })
    }
}

pub(crate) struct Mounted {
    path: PathBuf,
}

impl Mounted {
    /// The power goes: nothing more is written.
    pub(crate) fn cut(&self) -> Result<(), Error> {
        let folder = File::open(&self.path)?;
        // SAFETY: a valid descriptor, and a valid place that holds the flag which this request reads.
        Ok(check(unsafe { libc::ioctl(folder.as_raw_fd(), SHUTDOWN, &WITHOUT_FLUSHING) })?)
    }

    pub(crate) fn unmount(self) -> Result<(), Error> {
        let outcome = unmount(&self.path);
        std::mem::forget(self);
        Ok(outcome?)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.path);
    }
}

fn unmount(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut outcome = Ok(());
    for _ in 0..TIMES {
        // SAFETY: a valid string.
        outcome = check(unsafe { libc::umount2(path.as_ptr(), 0) });
        match &outcome {
            // A process that is just being started holds our files until it has begun.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(Duration::from_millis(1)),
            _ => break,
        }
    }
    outcome
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_bytes: u32,
    places: [u64; 5],
    number: u32,
    encryption: [u32; 2],
    flags: u32,
    names_and_key: [u8; 160],
    reserved: [u64; 10],
}

/// A loop device over the bytes, and its descriptor, which keeps it.
fn attach(bytes: &File) -> Result<(String, File), Error> {
    let open = |path: &str| File::options().read(true).write(true).open(path).map_err(|e| format!("{path}: {e}"));
    let control = open("/dev/loop-control")?;
    let config = LoopConfig {
        fd: bytes.as_raw_fd() as u32,
        block_bytes: 512,
        places: [0; 5],
        number: 0,
        encryption: [0; 2],
        flags: AUTOCLEAR,
        names_and_key: [0; 160],
        reserved: [0; 10],
    };
    for _ in 0..TIMES {
        // SAFETY: a valid descriptor; the request takes nothing.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_GET_FREE) };
        if number < 0 {
            return Err(io::Error::last_os_error().into());
        }
        let path = format!("/dev/loop{number}");
        let device = open(&path)?;
        // SAFETY: a valid descriptor, and a valid structure as the kernel lays it out, which this request reads.
        match check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &config) }) {
            Ok(()) => return Ok((path, device)),
            // Another process was faster.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(format!("{path}: {error}").into()),
        }
    }
    Err("no loop device is free".into())
}

fn memory() -> io::Result<File> {
    // SAFETY: a valid string and a plain flag.
    let fd = unsafe { libc::memfd_create(c"disk".as_ptr(), libc::MFD_CLOEXEC) };
    check(fd.min(0))?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn check(rc: libc::c_int) -> io::Result<()> {
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
