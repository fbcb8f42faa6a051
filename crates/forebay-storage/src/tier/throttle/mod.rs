//! The kernel's block throttle: which groups are limited, by which lines, and how each line is undone.
//!
//! Limits belong to a control group and a device. The loop device's own worker needs none: a request is charged to the
//! group of the process that submits it *to* the loop device. The two cgroup versions differ in which groups have to be
//! limited; [`v1`] and [`v2`] decide it, each a pure function of a group tree.

mod v1;
mod v2;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::Attempt;
use super::mounts::{self, Mount};
use super::{Error, Result, Tier};

/// A limit in a file, and the line that removes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    #[serde(with = "forebay_units::serde_path")]
    pub(super) file: PathBuf,
    pub(super) on: String,
    pub(super) off: String,
}

impl Line {
    pub(super) fn number(&self) -> &str {
        self.off.split(' ').next().unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) read_bytes_per_s: u64,
    pub(super) write_bytes_per_s: u64,
    pub(super) iops: Option<u64>,
}

impl Limits {
    pub(super) fn of(tier: &Tier) -> Self {
        Self {
            read_bytes_per_s: tier.profile.read_bytes_per_s,
            write_bytes_per_s: tier.profile.write_bytes_per_s,
            iops: tier.iops,
        }
    }
}

/// Where the groups are, and which of them this process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Controller {
    /// `blkio`: a group's limits apply to its own members only.
    V1 { root: PathBuf, own: PathBuf },
    /// `io`: a group's limits apply to all groups below it; the root has none.
    V2 { root: PathBuf, own: PathBuf },
}

/// Lines to write, and notes for the user.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) lines: Vec<Line>,
    pub(super) notes: Vec<String>,
}

impl Controller {
    /// The one in force on this machine.
    pub(super) fn of_this_machine() -> Result<Self> {
        let path = Path::new("/proc/self/cgroup");
        let groups = fs::read_to_string(path).attempt("reading", path)?;
        Self::find(&mounts::table()?, &groups).ok_or(Error::NoController)
    }

    /// From the mount table and `/proc/self/cgroup`. A controller is bound to one version at a time: if v1 has `blkio`, v2
    /// does not have `io`.
    fn find(mounts: &[Mount], groups: &str) -> Option<Self> {
        let has_blkio = |mount: &&Mount| mount.fs == "cgroup" && mount.options.split(',').any(|word| word == "blkio");
        if let Some(mount) = mounts.iter().find(has_blkio) {
            let group = group_of(groups, |_, names| names.split(',').any(|name| name == "blkio"))?;
            return Some(Self::V1 { root: mount.point.clone(), own: folder(mount, group) });
        }
        let mount = mounts.iter().find(|mount| mount.fs == "cgroup2")?;
        let group = group_of(groups, |id, _| id == "0")?;
        Some(Self::V2 { root: mount.point.clone(), own: folder(mount, group) })
    }

    /// The lines that limit a device for every process that can be limited.
    pub(super) fn setting(&self, number: &str, limits: Limits) -> Result<Setting> {
        match self {
            Self::V1 { root, own } => v1::setting(root, own, number, limits),
            Self::V2 { root, own } => v2::setting(root, own, number, limits),
        }
    }

    /// The version, if this process may set limits; changes nothing.
    pub(super) fn check(&self) -> Result<u8> {
        let unlimited = Limits { read_bytes_per_s: 0, write_bytes_per_s: 0, iops: None };
        let (version, files) = match self {
            Self::V1 { root, own } => {
                let setting = v1::setting(root, own, "7:0", unlimited)?;
                (1, setting.lines.into_iter().map(|line| line.file).collect())
            }
            Self::V2 { root, own } => (2, v2::files(root, own)?),
        };
        for path in files {
            OpenOptions::new().write(true).open(&path).attempt("opening", &path)?;
        }
        Ok(version)
    }

    /// Whether limits set by these lines apply to this process.
    pub(super) fn is_reached_by(&self, lines: &[Line]) -> bool {
        let mut groups = lines.iter().filter_map(|line| line.file.parent());
        match self {
            Self::V1 { own, .. } => groups.any(|group| group == own),
            Self::V2 { own, .. } => groups.any(|group| own.starts_with(group)),
        }
    }
}

/// The group in a line `id:names:/group` that fits.
fn group_of(groups: &str, fits: impl Fn(&str, &str) -> bool) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (id, names, group) = (parts.next()?, parts.next()?, parts.next()?);
        fits(id, names).then_some(group)
    })
}

/// The folder of a group: its path is from the hierarchy's root, of which only a part may be mounted.
fn folder(mount: &Mount, group: &str) -> PathBuf {
    let group = Path::new(group);
    let below = group.strip_prefix(&mount.root).or_else(|_| group.strip_prefix("/")).unwrap_or(Path::new(""));
    if below.as_os_str().is_empty() { mount.point.clone() } else { mount.point.join(below) }
}

pub(super) fn apply(lines: &[Line]) -> Result<()> {
    lines.iter().try_for_each(|line| write(&line.file, &line.on))
}

/// Removes the limits. A group that is gone has none, and a file that was never written need not be writable.
pub(super) fn clear(lines: &[Line]) -> Result<()> {
    for line in lines.iter().filter(|line| !matches!(found(line), Ok(None))) {
        match write(&line.file, &line.off) {
            Err(Error::Limit { source, .. }) if is_gone(&source) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

/// The group or the device no longer exists.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

fn write(path: &Path, line: &str) -> Result<()> {
    // One write call per line: the kernel takes each write as one setting.
    let outcome = OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(line.as_bytes()));
    outcome.map_err(|source| Error::Limit { path: path.to_owned(), line: line.to_owned(), source })
}

/// Whether the kernel has exactly these limits now.
pub(super) fn in_force(lines: &[Line]) -> bool {
    !lines.is_empty() && lines.iter().all(holds)
}

fn holds(line: &Line) -> bool {
    match found(line) {
        Ok(Some(found)) => found == line.on,
        // A device without limits has no line.
        Ok(None) => line.on == line.off,
        Err(_) => false,
    }
}

/// What the kernel reports for the line's device.
fn found(line: &Line) -> io::Result<Option<String>> {
    let text = fs::read_to_string(&line.file)?;
    Ok(text.lines().find(|found| found.split(' ').next() == Some(line.number())).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { read_bytes_per_s: 163_000_000, write_bytes_per_s: 133_000_000, iops: None };

    #[test]
    fn a_machine_with_v1_mounted_is_limited_through_v1() {
        let mounts = mounts::parse(
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
             38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
        );
        let found = Controller::find(&mounts, "7:blkio:/\n0::/\n").unwrap();
        let root = PathBuf::from("/sys/fs/cgroup/blkio");
        assert_eq!(found, Controller::V1 { root: root.clone(), own: root.clone() });
        let found = Controller::find(&mounts, "7:cpu,blkio:/batch/7\n0::/\n").unwrap();
        assert_eq!(found, Controller::V1 { own: root.join("batch/7"), root });
    }

    #[test]
    fn a_machine_with_v2_alone_is_limited_through_v2() {
        let mounts = mounts::parse("31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n");
        let found = Controller::find(&mounts, "0::/user.slice/session-1.scope\n").unwrap();
        let root = PathBuf::from("/sys/fs/cgroup");
        assert_eq!(found, Controller::V2 { own: root.join("user.slice/session-1.scope"), root });
        assert_eq!(Controller::find(&[], "0::/\n"), None);
    }

    #[test]
    fn a_part_of_the_hierarchy_may_be_mounted() {
        let mounts = mounts::parse("38 31 0:35 /box/1 /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n");
        let own = |group: &str| match Controller::find(&mounts, group) {
            Some(Controller::V1 { own, .. }) => own,
            other => panic!("{other:?}"),
        };
        assert_eq!(own("7:blkio:/box/1\n"), Path::new("/sys/fs/cgroup/blkio"));
        assert_eq!(own("7:blkio:/box/1/inner\n"), Path::new("/sys/fs/cgroup/blkio/inner"));
    }

    #[test]
    fn v1_limits_reach_the_group_itself_and_v2_limits_the_groups_below() {
        let line = |file: &str| Line { file: file.into(), on: String::new(), off: String::new() };
        let (root, own) = (PathBuf::from("/g"), PathBuf::from("/g/a/b"));
        let v1 = Controller::V1 { root: root.clone(), own: own.clone() };
        let v2 = Controller::V2 { root, own };
        for (file, by_v1, by_v2) in
            [("/g/x", false, true), ("/g/a/x", false, true), ("/g/a/b/x", true, true), ("/g/c/x", false, false)]
        {
            let lines = [line(file)];
            assert_eq!((v1.is_reached_by(&lines), v2.is_reached_by(&lines)), (by_v1, by_v2), "{file}");
        }
    }

    #[test]
    fn limits_are_set_recognised_and_cleared_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("io.max");
        let line = Line { file: file.clone(), on: "7:0 rbps=5".to_owned(), off: "7:0 rbps=max".to_owned() };
        let lines = std::slice::from_ref(&line);
        assert!(matches!(apply(lines), Err(Error::Limit { .. })), "no such file is made up");
        clear(lines).unwrap();
        fs::write(&file, "").unwrap();
        assert!(!in_force(lines));
        apply(lines).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "7:0 rbps=5");
        assert!(in_force(lines) && !in_force(&[]));
        clear(lines).unwrap();
        assert!(fs::read_to_string(&file).unwrap().starts_with("7:0 rbps=max"));
        fs::write(&file, "7:01 rbps=5\n7:0 rbps=6\n").unwrap();
        assert!(!in_force(lines), "another limit, and another device");
        let unlimited = Line { on: line.off.clone(), ..line };
        fs::write(&file, "7:1 rbps=6\n").unwrap();
        assert!(in_force(&[unlimited]), "what is not limited has no line");
    }

    #[test]
    fn both_versions_undo_what_they_do() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["read_bps", "write_bps", "read_iops", "write_iops"] {
            fs::write(root.join(format!("blkio.throttle.{name}_device")), "").unwrap();
        }
        fs::write(root.join("io.max"), "").unwrap();
        let v1 = Controller::V1 { root: root.to_owned(), own: root.to_owned() };
        let v2 = Controller::V2 { root: root.to_owned(), own: root.to_owned() };
        for controller in [v1, v2] {
            let setting = controller.setting("7:3", LIMITS).unwrap();
            assert!(controller.is_reached_by(&setting.lines));
            assert!(setting.lines.iter().all(|line| line.on.starts_with("7:3 ") && line.off.starts_with("7:3 ")));
        }
    }
}
