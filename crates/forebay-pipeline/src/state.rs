//! Where an iterator stands, small enough to put into any checkpoint.

use serde::{Deserialize, Serialize};

/// The place of the next sample. Valid for any number of threads, any batch size and any prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`](Self::VERSION) of the writer; states of other versions are refused.
    pub version: u32,
    /// What the order depends on: source and stages.
    pub fingerprint: u64,
    /// Samples of the order that are used up, failed ones included.
    pub position: u64,
}

impl State {
    pub const VERSION: u32 = 1;
    pub const BYTES: usize = 20;

    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.version.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.fingerprint.to_le_bytes());
        bytes[12..].copy_from_slice(&self.position.to_le_bytes());
        bytes
    }

    /// The state from its bytes; `None` when they are not a state of a known version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let version = u32::from_le_bytes(bytes[..4].try_into().ok()?);
        let fingerprint = u64::from_le_bytes(bytes[4..12].try_into().ok()?);
        let position = u64::from_le_bytes(bytes[12..].try_into().ok()?);
        (version == Self::VERSION).then_some(Self { version, fingerprint, position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_bytes() {
        let state = State { version: State::VERSION, fingerprint: 0xfeed, position: 1 << 40 };
        assert_eq!(State::from_bytes(&state.to_bytes()), Some(state));
        assert_eq!(State::from_bytes(&[0; State::BYTES]), None);
        assert_eq!(State::from_bytes(b"short"), None);
    }
}
