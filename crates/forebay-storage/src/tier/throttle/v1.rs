//! cgroup v1: limits are flat, so each group that shall be limited has to have them.
//!
//! Direct I/O and `fsync` are charged to the caller's group; writeback in the background is the kernel's own and
//! charged to the root group. So the root group is limited always, and the caller's group too where it is another.

use std::path::Path;

use super::{Limits, Line, Setting};
use crate::tier::{Error, Result};

/// The lines for the root group and the caller's.
pub(super) fn setting(root: &Path, own: &Path, number: &str, limits: Limits) -> Result<Setting> {
    let mut groups = vec![root];
    let mut notes = Vec::new();
    if own != root {
        groups.push(own);
        notes.push(format!(
            "control groups of version 1 do not inherit limits: they are set for the root group and for {}; programs in other \
             groups are not limited",
            own.display()
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

fn lines_of(group: &Path, number: &str, limits: Limits) -> [Line; 4] {
    let iops = limits.iops.unwrap_or(0);
    // A limit of 0 is none.
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
    use std::fs;

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
        assert!(setting.notes[0].contains("do not inherit limits"), "{:?}", setting.notes);
    }

    #[test]
    fn a_kernel_without_throttling_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = setting(folder.path(), folder.path(), "7:0", LIMITS).unwrap_err();
        assert!(error.to_string().ends_with("this kernel was built without block throttling"), "{error}");
        assert!(error.hint().unwrap().contains("--shaped"));
    }
}
