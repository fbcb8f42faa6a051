//! Where a run took place: what one needs to know before comparing its numbers with others.

use serde::{Deserialize, Serialize};

/// The machine and the program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// forebay's version.
    pub version: String,
    /// When the run started, in UTC, as "2026-11-15T17:03:00Z".
    pub started_at: String,
    /// The processor's name.
    pub cpu: Option<String>,
    /// Cores this process may use.
    pub n_cores: u64,
    /// Main memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The file system the data lies on: its type and device, as "ext4 on /dev/vda".
    pub data_file_system: Option<String>,
    /// Where that file system is mounted.
    #[serde(default)]
    pub data_mount: Option<String>,
    /// The file system's own number, as `statvfs` gives it, in hexadecimal; the same after a reboot for ext4 and btrfs.
    #[serde(default)]
    pub data_file_system_id: Option<String>,
    /// Whether the run had root's rights, which dropping the whole page cache needs.
    pub root: bool,
}
