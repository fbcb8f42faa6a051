//! How a storage tier is served.

use serde::{Deserialize, Serialize};

/// What stands behind a tier's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TierKind {
    /// A real device, as it is.
    Device,
    /// A loop device whose rates the kernel limits.
    Kernel,
    /// The in-process shaper over the real disk.
    Shaped,
}

impl TierKind {
    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Device => "a real device",
            Self::Kernel => "a loop device throttled by the kernel",
            Self::Shaped => "shaped in this process",
        }
    }
}
