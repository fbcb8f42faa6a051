//! Loop devices through the kernel's own interface: a file becomes a block device.
//!
//! The numbers and structures are those of `linux/loop.h`, which are part of the kernel's stable interface.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::Attempt;
use super::{Device, Error, Result};

const CONTROL: &str = "/dev/loop-control";
const LOOP_SET_FD: libc::c_ulong = 0x4C00;
const LOOP_CLR_FD: libc::c_ulong = 0x4C01;
const LOOP_SET_DIRECT_IO: libc::c_ulong = 0x4C08;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// Retries if another process takes the device after it was found free.
const ATTEMPTS: usize = 64;

/// How long to wait for a device to be released: udev opens every device that changes.
const PATIENCE: Duration = Duration::from_secs(5);

#[repr(C)]
struct LoopInfo {
    numbers: [u64; 5],
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Whether the system has loop devices at all.
pub(super) fn control_exists() -> bool {
    Path::new(CONTROL).exists()
}

/// The loop devices with this backing file, as the kernel knows them.
pub(super) fn attached(image: &Path) -> Result<Vec<Device>> {
    let blocks = Path::new("/sys/block");
    let mut found = Vec::new();
    for entry in fs::read_dir(blocks).attempt("listing", blocks)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("loop") && backing_file(&entry.path()).is_some_and(|path| path == image) {
            found.extend(device(&name));
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The backing file of a loop device, from its folder in `/sys/block`, even if the file was removed.
fn backing_file(block: &Path) -> Option<PathBuf> {
    let text = fs::read(block.join("loop/backing_file")).ok()?;
    let path = text.strip_suffix(b"\n").unwrap_or(&text);
    Some(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b" (deleted)").unwrap_or(path))))
}

/// Whether a file is attached to the loop device of this number.
pub(super) fn is_bound(number: &str) -> bool {
    Path::new("/sys/dev/block").join(number).join("loop/backing_file").exists()
}

/// Whether the device bypasses the page cache of the file system under it.
pub(super) fn is_direct(device: &Device) -> bool {
    let name = device.path.file_name().unwrap_or_default();
    fs::read_to_string(Path::new("/sys/block").join(name).join("loop/dio")).is_ok_and(|text| text.trim() == "1")
}

fn device(name: &str) -> Option<Device> {
    let number = fs::read_to_string(format!("/sys/block/{name}/dev")).ok()?;
    Some(Device { path: Path::new("/dev").join(name), number: number.trim().to_owned() })
}

/// Attaches a file to a free loop device, with direct I/O if the file system under it supports it.
pub(super) fn attach(image: &Path) -> Result<Device> {
    attach_by(image, configure)
}

fn attach_by(image: &Path, configure: fn(&File, &File) -> io::Result<()>) -> Result<Device> {
    let control_path = Path::new(CONTROL);
    let control = open(control_path).map_err(|source| Error::NoLoop { path: control_path.to_owned(), source })?;
    let backing = open(image).attempt("opening", image)?;
    for _ in 0..ATTEMPTS {
        // SAFETY: this request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(Error::NoLoop { path: control_path.to_owned(), source: io::Error::last_os_error() });
        }
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let file = open(&path).map_err(|source| Error::NoLoop { path: path.clone(), source })?;
        match configure(&file, &backing) {
            // Another process was faster.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            outcome => {
                outcome.attempt("attaching the image to", &path)?;
                let found = device(&format!("loop{number}"));
                return found
                    .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
                    .attempt("finding in /sys/block", &path);
            }
        }
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY)).attempt("attaching to a loop device", image)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

fn configure(device: &File, backing: &File) -> io::Result<()> {
    let info = LoopInfo {
        numbers: [0; 5],
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_DIRECT_IO,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    };
    let config = LoopConfig { fd: backing.as_raw_fd() as u32, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: the structure is laid out as the kernel's and is only read by the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // Linux before 5.8 does not have this request.
            error if [Some(libc::EINVAL), Some(libc::ENOTTY)].contains(&error.raw_os_error()) => {
                configure_in_steps(device, backing)
            }
            error => Err(error),
        },
    }
}

fn configure_in_steps(device: &File, backing: &File) -> io::Result<()> {
    // SAFETY: the argument is a file descriptor, open through the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_FD, backing.as_raw_fd()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // It works without direct I/O too; the result is checked afterwards.
    // SAFETY: the argument is an integer.
    unsafe { libc::ioctl(device.as_raw_fd(), LOOP_SET_DIRECT_IO, 1 as libc::c_ulong) };
    Ok(())
}

/// Detaches the file, and waits until the kernel has released it.
pub(super) fn detach(device: &Device) -> Result<()> {
    let file = open(&device.path).map_err(|source| Error::NoLoop { path: device.path.clone(), source })?;
    // SAFETY: this request takes no argument.
    if unsafe { libc::ioctl(file.as_raw_fd(), LOOP_CLR_FD) } != 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::ENXIO) {
            return Err(error).attempt("detaching", &device.path);
        }
    }
    // The kernel detaches when the last user closes the device, so we must close it too.
    drop(file);
    let start = Instant::now();
    while is_bound(&device.number) {
        if start.elapsed() > PATIENCE {
            return Err(Error::StillHeld { device: device.path.clone() });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use forebay_testing::{Reason, not_run};

    use super::*;
    use crate::tier::tests::folder;
    use crate::tier::{image, kernel_support};

    #[test]
    fn structures_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<LoopInfo>(), size_of::<LoopConfig>()), (232, 304));
    }

    #[test]
    fn a_file_is_attached_found_and_detached_by_either_request() {
        if let Err(obstacle) = kernel_support() {
            return not_run(Reason::NoKernelTier, obstacle);
        }
        let folder = folder();
        let path = folder.path().canonicalize().unwrap().join("disk.img");
        image::reserve(&path, 4 << 20).unwrap();
        for way in [configure as fn(&File, &File) -> io::Result<()>, configure_in_steps] {
            assert_eq!(attached(&path).unwrap(), []);
            let device = attach_by(&path, way).unwrap();
            let (found, direct) = (attached(&path), is_direct(&device));
            detach(&device).unwrap();
            assert_eq!(found.unwrap(), [device]);
            assert!(direct, "the target folder is on a file system with direct I/O");
            assert_eq!(attached(&path).unwrap(), []);
        }
    }
}
