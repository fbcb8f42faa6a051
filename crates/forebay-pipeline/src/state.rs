//! The position of an iterator, small enough for any checkpoint.

use serde::{Deserialize, Serialize};

/// The position of the next sample. Valid for any number of threads, any batch size and any prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`](Self::VERSION) of the writer; other versions are refused.
    pub version: u32,
    /// Identifies what the order depends on: source and stages.
    pub fingerprint: u64,
    /// Number of samples consumed, including failed ones.
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

    /// Decodes a state; `None` if the bytes are not a state of a known version.
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
