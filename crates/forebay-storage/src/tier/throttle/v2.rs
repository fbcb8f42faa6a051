//! cgroup v2: a limit holds for all groups below the one it is set in, and the root group has none.
//!
//! So every group just below the root is limited: together they hold all processes except the few in the root group
//! itself. Each group gets the full rate. In a container, the group that looks like the root is an ordinary one and is
//! limited itself. Writeback is charged to the group whose pages are written, so it is covered.
//!
//! The `io` controller is switched on for these groups if needed, and stays on: switching it off would remove limits
//! that others may have set since.
//!
//! Tested on made-up group trees only, not on a machine with the `io` controller under v2.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Limits, Line, Setting, write};
use crate::tier::error::Attempt;
use crate::tier::{Error, Result};

/// The lines for all groups that can be limited.
pub(super) fn setting(root: &Path, own: &Path, number: &str, limits: Limits) -> Result<Setting> {
    if root.join("io.max").exists() {
        return Ok(Setting { lines: vec![line(root, number, limits)], notes: Vec::new() });
    }
    if let Some(switch) = switched_off(root, own)? {
        write(&switch, "+io")?;
    }
    let groups = groups(root, own)?;
    let note = format!(
        "limits apply to {} top-level control groups, and each gets the full rate: measure within one group; processes \
        in the root group are not limited",
        groups.len()
    );
    Ok(Setting { lines: groups.iter().map(|group| line(group, number, limits)).collect(), notes: vec![note] })
}

/// The first files that limits would be written to; changes nothing.
pub(super) fn files(root: &Path, own: &Path) -> Result<Vec<PathBuf>> {
    if root.join("io.max").exists() {
        return Ok(vec![root.join("io.max")]);
    }
    match switched_off(root, own)? {
        Some(switch) => Ok(vec![switch]),
        None => Ok(groups(root, own)?.iter().map(|group| group.join("io.max")).collect()),
    }
}

/// The file that switches the controller on for the groups below the root; `None` if it is on.
fn switched_off(root: &Path, own: &Path) -> Result<Option<PathBuf>> {
    if !lists_io(&root.join("cgroup.controllers")) {
        return Err(Error::NoController);
    }
    if own == root {
        return Err(Error::RootGroup { root: root.to_owned() });
    }
    let switch = root.join("cgroup.subtree_control");
    Ok(if lists_io(&switch) { None } else { Some(switch) })
}

fn lists_io(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.split_whitespace().any(|word| word == "io"))
}

/// The groups just below the root that can be limited, in the order of their names.
fn groups(root: &Path, own: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(root).attempt("listing", root)?;
    let mut groups: Vec<PathBuf> = listed.flatten().map(|entry| entry.path()).collect();
    groups.retain(|group| group.join("io.max").exists());
    groups.sort();
    match groups.is_empty() {
        true => Err(Error::NoThrottling { path: top(root, own).join("io.max") }),
        false => Ok(groups),
    }
}

/// The ancestor of a group that is just below the root.
fn top(root: &Path, own: &Path) -> PathBuf {
    let below = own.strip_prefix(root).unwrap_or(own);
    root.join(below.components().next().map(|part| Path::new(part.as_os_str())).unwrap_or(Path::new("")))
}

fn line(group: &Path, number: &str, limits: Limits) -> Line {
    let iops = limits.iops.map_or("max".to_owned(), |n| n.to_string());
    let Limits { read_bytes_per_s: read, write_bytes_per_s: write, .. } = limits;
    Line {
        file: group.join("io.max"),
        on: format!("{number} rbps={read} wbps={write} riops={iops} wiops={iops}"),
        off: format!("{number} rbps=max wbps=max riops=max wiops=max"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { read_bytes_per_s: 163_000_000, write_bytes_per_s: 133_000_000, iops: None };

    /// A root with these controllers, switched on for the groups below or not.
    fn tree(controllers: &str, switched_on: &str, groups: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(folder.path().join("cgroup.subtree_control"), switched_on).unwrap();
        for group in groups {
            fs::create_dir(folder.path().join(group)).unwrap();
            fs::write(folder.path().join(group).join("io.max"), "").unwrap();
        }
        folder
    }

    #[test]
    fn every_group_below_the_root_is_limited() {
        let folder = tree("cpu io memory\n", "cpu io\n", &["user.slice", "system.slice"]);
        let root = folder.path();
        fs::create_dir(root.join("without-limits")).unwrap();
        let setting = setting(root, &root.join("user.slice/a"), "7:0", LIMITS).unwrap();
        let files: Vec<_> = setting.lines.iter().map(|line| line.file.clone()).collect();
        assert_eq!(files, [root.join("system.slice/io.max"), root.join("user.slice/io.max")]);
        assert_eq!(super::files(root, &root.join("user.slice/a")).unwrap(), files, "looking finds the same");
        assert_eq!(setting.lines[0].on, "7:0 rbps=163000000 wbps=133000000 riops=max wiops=max");
        assert_eq!(setting.lines[0].off, "7:0 rbps=max wbps=max riops=max wiops=max");
        assert!(setting.notes[0].contains("2 top-level control groups"));
        assert_eq!(fs::read_to_string(root.join("cgroup.subtree_control")).unwrap(), "cpu io\n", "it was on");
    }

    #[test]
    fn requests_a_second_are_limited_both_ways() {
        let line = line(Path::new("/g"), "7:1", Limits { iops: Some(120), ..LIMITS });
        assert_eq!(line.on, "7:1 rbps=163000000 wbps=133000000 riops=120 wiops=120");
    }

    #[test]
    fn the_controller_is_switched_on_where_it_is_off() {
        let folder = tree("cpu io\n", "cpu\n", &["user.slice"]);
        let switch = folder.path().join("cgroup.subtree_control");
        assert_eq!(files(folder.path(), &folder.path().join("user.slice")).unwrap(), std::slice::from_ref(&switch));
        assert_eq!(fs::read_to_string(&switch).unwrap(), "cpu\n", "looking changes nothing");
        setting(folder.path(), &folder.path().join("user.slice"), "7:0", LIMITS).unwrap();
        // The made-up file is overwritten in place; the kernel would take the write as a command.
        assert!(fs::read_to_string(&switch).unwrap().starts_with("+io"));
    }

    #[test]
    fn a_containers_root_is_an_ordinary_group() {
        let folder = tree("io\n", "", &[]);
        fs::write(folder.path().join("io.max"), "").unwrap();
        let setting = setting(folder.path(), folder.path(), "7:0", LIMITS).unwrap();
        assert_eq!(setting.lines.len(), 1);
        assert_eq!(setting.lines[0].file, folder.path().join("io.max"));
    }

    #[test]
    fn what_cannot_be_limited_says_why_and_what_to_do() {
        let folder = tree("io\n", "io\n", &[]);
        let error = setting(folder.path(), folder.path(), "7:0", LIMITS).unwrap_err();
        assert!(matches!(error, Error::RootGroup { .. }) && error.hint().unwrap().contains("systemd-run --scope"));
        let error = setting(folder.path(), &folder.path().join("a/b"), "7:0", LIMITS).unwrap_err();
        assert!(matches!(&error, Error::NoThrottling { path } if path.ends_with("a/io.max")), "{error:?}");
        let folder = tree("cpu memory\n", "cpu\n", &["a"]);
        let error = setting(folder.path(), &folder.path().join("a"), "7:0", LIMITS).unwrap_err();
        assert!(matches!(error, Error::NoController));
    }
}
