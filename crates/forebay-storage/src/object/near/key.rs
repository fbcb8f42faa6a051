//! Which bytes an entry of the cache holds, and how they lie in its file.
//!
//! A file holds the bytes as they are and a trailer behind them, so one read fetches both and the bytes need not be
//! moved. The trailer has a second hash of the name, so two names of one hash are told apart, and a checksum.

use std::ops::Range;
use std::path::Path;

use forebay_units::Fnv;

const MAGIC: &[u8; 8] = b"FBNEAR1\n";
/// Magic, second hash, length, checksum of the bytes, checksum of the trailer.
pub(super) const TRAILER: usize = 32;

/// An object or a part of it, in one version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::object) struct Key {
    /// Names the entry.
    pub(in crate::object) name: u64,
    /// Another hash of the same.
    check: u64,
}

impl Key {
    /// `version` is 0 where the version is not known.
    pub(in crate::object) fn of(path: &Path, range: Option<&Range<u64>>, version: u64) -> Self {
        let hash = |basis: u64| {
            let mut hash = Fnv::default();
            hash.word(basis);
            hash.bytes(path.as_os_str().as_encoded_bytes());
            let (start, end) = range.map_or((u64::MAX, u64::MAX), |range| (range.start, range.end));
            [start, end, version].into_iter().for_each(|word| hash.bytes(&word.to_le_bytes()));
            hash.0
        };
        Self { name: hash(0), check: hash(1) }
    }

    pub(super) fn trailer(&self, bytes: &[u8]) -> [u8; TRAILER] {
        let mut trailer = [0; TRAILER];
        trailer[..8].copy_from_slice(MAGIC);
        trailer[8..16].copy_from_slice(&self.check.to_le_bytes());
        trailer[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        trailer[24..28].copy_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
        let sum = crc32c::crc32c(&trailer[..28]);
        trailer[28..].copy_from_slice(&sum.to_le_bytes());
        trailer
    }

    /// The number of bytes before the trailer, if both are what was written under this key.
    pub(super) fn verify(&self, file: &[u8]) -> Option<usize> {
        let (bytes, trailer) = file.split_at_checked(file.len().checked_sub(TRAILER)?)?;
        (self.trailer(bytes) == trailer).then_some(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let key = Key::of(Path::new("s3://b/k"), None, 7);
        let mut file = b"content".to_vec();
        file.extend(key.trailer(b"content"));
        assert_eq!(key.verify(&file), Some(7));
        for at in 0..file.len() {
            assert_eq!(key.verify(&file[..at]), None, "cut at {at}");
            file[at] ^= 1;
            assert_eq!(key.verify(&file), None, "byte {at}");
            file[at] ^= 1;
        }
    }

    #[test]
    fn names_parts_and_versions_have_keys_of_their_own() {
        let of = |path: &str, range: Option<Range<u64>>, version| Key::of(Path::new(path), range.as_ref(), version);
        let keys =
            [of("s3://b/k", None, 0), of("s3://b/l", None, 0), of("s3://b/k", None, 1), of("s3://b/k", Some(0..1), 0)];
        let names: std::collections::HashSet<u64> = keys.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), 4);
        let mut file = b"x".to_vec();
        file.extend(keys[0].trailer(b"x"));
        assert_eq!(keys[1].verify(&file), None, "another object's bytes are not taken");
    }
}
