//! cgroup v1: limits are flat, so each group to be limited needs its own.
//!
//! Direct I/O and `fsync` are charged to the caller's group; writeback in the background is the kernel's own and
//! charged to the root group. So the root group is always limited, and the caller's group too if it is another.

use std::fs;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use super::{Limits, Line, Setting};
use crate::tier::{Error, Result};

/// Number of groups named in a note.
const GROUPS_NAMED: usize = 3;

/// The lines for the root group and the caller's.
pub(super) fn setting(root: &Path, own: &Path, number: &str, limits: Limits) -> Result<Setting> {
    let mut groups = vec![root];
    let mut notes = Vec::new();
    let mut limited = "the root group".to_owned();
    if own != root {
        groups.push(own);
        limited.push_str(&format!(" and {}", own.escaped()));
    }
    let mut others = Vec::new();
    find_inhabited(root, &groups, &mut others);
    if own != root || !others.is_empty() {
        notes.push(format!(
            "limits apply only to {limited}, because cgroup v1 limits are not inherited; programs in other groups{} are not \
            limited",
            named(&others)
        ));
    }
    let mut lines = Vec::new();
    for group in groups {
        lines.extend(lines_of(group, number, limits));
    }
    match lines.iter().find(|line| !line.file.exists()) {
        Some(line) => Err(Error::NoThrottling { path: line.file.clone() }),
        None => Ok(Setting { lines, notes }),
    }
}

/// Finds the groups with processes that get no limits, starting with the root group itself.
fn find_inhabited(group: &Path, limited: &[&Path], found: &mut Vec<PathBuf>) {
    let has_processes = || fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|listed| !listed.trim().is_empty());
    if !limited.contains(&group) && has_processes() {
        found.push(group.to_owned());
    }
    let mut below: Vec<PathBuf> = fs::read_dir(group)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    below.sort();
    below.iter().for_each(|group| find_inhabited(group, limited, found));
}

/// " (a, b and 3 more)".
fn named(groups: &[PathBuf]) -> String {
    let first: Vec<String> = groups.iter().take(GROUPS_NAMED).map(|group| group.escaped().into_owned()).collect();
    match groups.len() {
        0 => String::new(),
        n if n > GROUPS_NAMED => format!(" ({} and {} more)", first.join(", "), n - GROUPS_NAMED),
        _ => format!(" ({})", first.join(", ")),
    }
}

fn lines_of(group: &Path, number: &str, limits: Limits) -> [Line; 4] {
    let iops = limits.iops.unwrap_or(0);
    // 0 means no limit.
    [
        ("read_bps", limits.read_bytes_per_s),
        ("write_bps", limits.write_bytes_per_s),
        ("read_iops", iops),
        ("write_iops", iops),
    ]
    .map(|(name, limit)| Line {
        file: group.join(format!("blkio.throttle.{name}_device")),
        on: format!("{number} {limit}"),
        off: format!("{number} 0"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &Path) {
        fs::create_dir_all(path).unwrap();
        for name in ["read_bps", "write_bps", "read_iops", "write_iops"] {
            fs::write(path.join(format!("blkio.throttle.{name}_device")), "").unwrap();
        }
    }

    const LIMITS: Limits = Limits { read_bytes_per_s: 163_000_000, write_bytes_per_s: 133_000_000, iops: Some(120) };

    #[test]
    fn a_caller_in_the_root_group_is_limited_there_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        group(folder.path());
        let setting = setting(folder.path(), folder.path(), "7:0", LIMITS).unwrap();
        let on: Vec<&str> = setting.lines.iter().map(|line| line.on.as_str()).collect();
        assert_eq!(on, ["7:0 163000000", "7:0 133000000", "7:0 120", "7:0 120"]);
        assert!(setting.lines.iter().all(|line| line.off == "7:0 0"));
        assert_eq!(setting.lines[0].file, folder.path().join("blkio.throttle.read_bps_device"));
        assert!(setting.notes.is_empty());
    }

    #[test]
    fn a_caller_in_another_group_is_limited_in_both_and_told_so() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("batch");
        group(folder.path());
        group(&own);
        let setting = setting(folder.path(), &own, "7:0", LIMITS).unwrap();
        assert_eq!(setting.lines.len(), 8);
        assert_eq!(setting.lines[4].file, own.join("blkio.throttle.read_bps_device"));
        assert!(setting.notes[0].contains("cgroup v1 limits are not inherited"), "{:?}", setting.notes);
    }

    #[test]
    fn groups_with_programs_that_are_not_limited_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let inhabited = |name: &str| {
            group(&root.join(name));
            fs::write(root.join(name).join("cgroup.procs"), "12\n").unwrap();
        };
        group(root);
        fs::write(root.join("cgroup.procs"), "1\n").unwrap();
        group(&root.join("empty"));
        fs::write(root.join("empty/cgroup.procs"), "").unwrap();
        assert!(setting(root, root, "7:0", LIMITS).unwrap().notes.is_empty(), "nobody is left out");
        inhabited("empty/a");
        let notes = setting(root, root, "7:0", LIMITS).unwrap().notes;
        let said = format!("in other groups ({}) are not limited", root.join("empty/a").display());
        assert!(notes[0].contains("only to the root group, ") && notes[0].ends_with(&said), "{notes:?}");
        let notes = setting(root, &root.join("empty/a"), "7:0", LIMITS).unwrap().notes;
        assert!(notes[0].ends_with("other groups are not limited"), "the caller's own group is limited: {notes:?}");
        ["b", "c", "d"].into_iter().for_each(inhabited);
        assert!(setting(root, root, "7:0", LIMITS).unwrap().notes[0].ends_with(" and 1 more) are not limited"));
    }

    #[test]
    fn a_kernel_without_throttling_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = setting(folder.path(), folder.path(), "7:0", LIMITS).unwrap_err();
        assert!(error.to_string().ends_with("this kernel was built without block throttling"), "{error}");
        assert!(error.hint().unwrap().contains("--shaped"));
    }
}
