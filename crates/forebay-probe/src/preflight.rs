//! Obstacles found before a probe begins.

use std::fs;
use std::io;
use std::path::Path;

use forebay_measure::{FileSystem, Memory};
use forebay_record::Engine;
use forebay_storage::{Capabilities, Support};
use forebay_units::{Bytes, PathText};

use super::error::{Context, Error};
use super::plan::Plan;
use super::settings::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Folder,
    /// Its length; the file is only read.
    File(u64),
}

impl Target {
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let found = fs::metadata(path).context("inspecting", path)?;
        match () {
            () if found.is_dir() => Ok(Self::Folder),
            () if found.is_file() => Ok(Self::File(found.len())),
            () => Err(Error::NotAFolder { path: path.to_owned() }),
        }
    }
}

/// Checks that need no file: whether the plan fits the target, the disk and the memory.
pub(super) fn check(plan: &Plan, target: Target, system: &FileSystem, memory: Option<Memory>) -> Result<(), Error> {
    plan.check(match target {
        Target::File(len) if plan.settings.file_size().0 >= len => "give a smaller --block or --mix, or a larger file",
        _ => "give a larger --size",
    })?;
    check_target(plan, target, system)?;
    let needed = plan.buffer_bytes();
    if let Some(memory) = memory.filter(|memory| memory.available < needed) {
        return Err(Error::TooLittleMemory { needed: Bytes(needed), available: Bytes(memory.available) });
    }
    Ok(())
}

/// Checks that do not depend on request sizes: whether the target is usable and has enough space.
pub(super) fn check_target(plan: &Plan, target: Target, system: &FileSystem) -> Result<(), Error> {
    let path = || plan.target.clone();
    match target {
        Target::Folder if system.read_only => return Err(forebay_measure::Error::ReadOnly { path: path() }.into()),
        Target::File(_) if plan.settings.does(Kind::Files) => {
            return Err(Error::senseless(format!("{}: --files needs a folder to make files in", path().escaped())));
        }
        Target::File(len) if plan.settings.file_size().0 > len => {
            let (path, len, size) = (path(), Bytes(len), plan.settings.file_size());
            return Err(Error::senseless(format!("{}: its size of {len} is less than --size {size}", path.escaped())));
        }
        _ => {}
    }
    let needed = if target == Target::Folder { plan.space_bytes() } else { 0 };
    if let Some(free) = system.free_bytes.filter(|free| *free < needed) {
        return Err(Error::TooLittleSpace { path: path(), needed: Bytes(needed), free: Bytes(free) });
    }
    let needed = if target == Target::Folder { plan.n_files() } else { 0 };
    if let Some(free) = system.free_files.filter(|free| *free < needed) {
        return Err(Error::TooFewInodes { path: path(), needed, free });
    }
    Ok(())
}

pub(super) fn remarks(plan: &Plan, system: &FileSystem) -> Vec<String> {
    let path = plan.target.escaped();
    let of_network = system.network().map(|name| {
        format!(
            "{path} is on {name}: emptying this machine's page cache does not empty the server's, so reads may come from \
             the server's memory; give a --size of at least twice that memory to measure its disks"
        )
    });
    let of_memory = system.in_memory().map(|name| {
        format!(
            "{path} is on {name}, which is memory, not a disk: its reads are marked warm and are not a disk's ceiling"
        )
    });
    of_network.into_iter().chain(of_memory).collect()
}

pub(super) fn remark_of_cache(size: u64, engines: &[Engine], memory: Option<Memory>) -> Option<String> {
    let memory = memory?.total;
    let fits = engines.contains(&Engine::Sync) && size < memory.saturating_mul(2);
    fits.then(|| {
        format!(
            "the page cache cannot be emptied here, and {} may stay in the {} of memory: buffered reads are then marked warm or \
             mixed; use --engine direct, or give a --size of at least {}",
            Bytes(size),
            Bytes(memory),
            Bytes(memory * 2)
        )
    })
}

/// The engines that work here, tried on a file; with a note if one was replaced.
pub(super) fn engines(plan: &Plan, file: &Path) -> Result<(Vec<Engine>, Option<String>), Error> {
    let found = Capabilities::probe(file);
    let wanted = &plan.settings.engine;
    if wanted.is_empty() {
        return Ok(match found.direct {
            Support::Yes => (vec![Engine::Direct], None),
            Support::No(reason) => {
                let remark =
                    format!("this file system does not support direct I/O ({reason}): measured with --engine sync");
                (vec![Engine::Sync], Some(remark))
            }
        });
    }
    let needs_direct = wanted.iter().any(|engine| *engine != Engine::Sync);
    match (found.direct, found.io_uring) {
        (Support::No(reason), _) if needs_direct => Err(Error::NoDirect { path: plan.target.clone(), reason }),
        (_, Support::No(reason)) if wanted.contains(&Engine::Uring) => Err(Error::NoRing { reason }),
        _ => Ok((wanted.clone(), None)),
    }
}

/// Offset and length of a direct request must be multiples of this.
pub(super) fn direct_alignment(file: &Path) -> io::Result<u64> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let name = CString::new(file.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: all zero is a valid value of this plain structure.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the name ends in a zero and the structure has room for the answer.
    let code = unsafe { libc::statx(libc::AT_FDCWD, name.as_ptr(), 0, libc::STATX_DIOALIGN, &raw mut found) };
    if code != 0 {
        return Err(io::Error::last_os_error());
    }
    // Kernels before 6.1 do not report it; 4 KiB works for every device.
    let known = found.stx_mask & libc::STATX_DIOALIGN != 0 && found.stx_dio_offset_align > 0;
    Ok(if known { u64::from(found.stx_dio_offset_align) } else { 4096 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProbeSettings;

    const EXT4: u64 = 0xEF53;

    fn plan() -> Plan {
        let settings = ProbeSettings { size: Some(Bytes(1 << 30)), ..ProbeSettings::default() };
        Plan { settings, target: "disk".into(), tier: None, runs: 6, trees: Vec::new() }
    }

    fn with(change: impl Fn(&mut ProbeSettings)) -> Plan {
        let mut plan = plan();
        change(&mut plan.settings);
        plan
    }

    fn fake(magic: u64, free_bytes: Option<u64>, read_only: bool) -> FileSystem {
        FileSystem { magic, free_bytes, free_files: None, read_only, id: 1 }
    }

    fn outcome(plan: &Plan, target: Target, system: FileSystem, available: u64) -> String {
        let memory = Memory { total: 16 << 30, available };
        check(plan, target, &system, Some(memory)).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_plan_that_fits_passes() {
        let roomy = fake(EXT4, Some(2 << 30), false);
        assert_eq!(outcome(&plan(), Target::Folder, roomy, 1 << 30), "");
        let unlimited = fake(EXT4, None, false);
        assert_eq!(outcome(&plan(), Target::Folder, unlimited, 1 << 30), "", "ramfs reports no limit");
        let exact = FileSystem { free_files: Some(3), ..roomy };
        assert_eq!(outcome(&plan(), Target::Folder, exact, 1 << 30), "", "a folder and two files");
        let read_only = fake(EXT4, Some(0), true);
        assert_eq!(outcome(&plan(), Target::File(1 << 30), read_only, 1 << 30), "", "reading needs no space");
    }

    #[test]
    fn what_does_not_fit_is_said_with_what_to_do() {
        let roomy = fake(EXT4, Some(2 << 30), false);
        let said = outcome(&plan(), Target::Folder, fake(EXT4, Some(1 << 29), false), 1 << 30);
        assert_eq!(
            said,
            "disk: the probe needs 1.07 GB, but only 536.9 MB are free; give a smaller --size, or another folder"
        );
        let few = FileSystem { free_files: Some(2), ..roomy };
        assert_eq!(
            outcome(&plan(), Target::Folder, few, 1 << 30),
            "disk: the probe creates 3 files and folders, but only 2 inodes are free; give another folder"
        );
        let said = outcome(&plan(), Target::Folder, fake(EXT4, None, true), 1 << 30);
        assert!(
            said.starts_with("disk: the file system is mounted read-only; name a folder on another, or a large file")
        );
        let deep = with(|settings| (settings.depth, settings.block) = (vec![1024], vec![Bytes(1 << 30)]));
        let said = outcome(&deep, Target::Folder, roomy, 1 << 30);
        assert!(
            said.starts_with(
                "the buffers need 1.10 TB of memory, but only 1.07 GB are available; give a smaller --block"
            ),
            "{said}"
        );
        let short = with(|settings| settings.size = Some(Bytes(4096)));
        let said = outcome(&short, Target::File(4096), fake(EXT4, None, false), 1 << 30);
        let wanted =
            "a file of 4.1 KB is too small for a request of 1.0 MB; give a smaller --block or --mix, or a larger file";
        assert_eq!(said, wanted);
        let said = outcome(&plan(), Target::File(1 << 20), roomy, 1 << 30);
        assert_eq!(said, "disk: its size of 1.0 MB is less than --size 1.07 GB");
    }

    #[test]
    fn a_server_and_memory_are_remarked_upon() {
        let of = |magic| remarks(&plan(), &fake(magic, None, false));
        assert_eq!(of(EXT4), [] as [&str; 0]);
        assert!(
            of(0x6969)[0].starts_with("disk is on nfs: emptying this machine's page cache does not empty the server's")
        );
        assert!(of(0x0102_1994)[0].starts_with("disk is on tmpfs, which is memory, not a disk"));
    }

    #[test]
    fn too_much_memory_to_defeat_the_cache_is_said_for_buffered_reads_alone() {
        let memory = Some(Memory { total: 8_000_000_000, available: 1 });
        let said = remark_of_cache(5_000_000_000, &[Engine::Direct, Engine::Sync], memory).unwrap();
        assert!(said.contains("5.00 GB may stay in the 8.00 GB of memory"), "{said}");
        assert!(said.ends_with("use --engine direct, or give a --size of at least 16.00 GB"), "{said}");
        assert_eq!(remark_of_cache(5_000_000_000, &[Engine::Direct], memory), None);
        assert_eq!(remark_of_cache(16_000_000_000, &[Engine::Sync], memory), None);
    }
}
