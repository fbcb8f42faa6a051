//! Where a run took place: needed before comparing its numbers with others.

use serde::{Deserialize, Serialize};

/// The machine and the version of forebay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Environment {
    /// Version of forebay that ran.
    pub version: String,
    /// Start of the run in UTC, such as "2026-11-15T17:03:00Z".
    pub started_at: String,
    /// Processor model; `None` where unknown.
    pub cpu: Option<String>,
    /// Cores available to the process.
    pub n_cores: u64,
    /// Main memory in bytes; `None` where unknown.
    pub memory_bytes: Option<u64>,
    /// Kernel release; `None` where unknown.
    pub kernel: Option<String>,
    /// File system of the data, type and device, such as "ext4 on /dev/vda"; `None` where unknown.
    pub data_file_system: Option<String>,
    /// Mount point of that file system; `None` where unknown.
    #[serde(default)]
    pub data_mount: Option<String>,
    /// Id of that file system as `statvfs` gives it, in hexadecimal; stable over reboots on ext4 and btrfs; `None` where unknown.
    #[serde(default)]
    pub data_file_system_id: Option<String>,
    /// Whether the run had root privileges, which dropping the whole page cache requires.
    pub root: bool,
}
