//! safetensors: an eight-byte length, a JSON header, and the values without gaps.
//!
//! The header is padded with spaces, which the format allows, so values start at a multiple of 4096. A file written
//! with `O_DIRECT` in whole pages then needs no read-modify-write. Values are ordered by type size, largest first, as
//! in the Python package. Each tensor starts at a multiple of its type's size, and a mapped file can be used in place.
//! The format has no checksums.

mod decode;
mod encode;

use super::{Catalog, Error, Format, Layout, Source};
use crate::{Dtype, Snapshot};

/// Every reader refuses longer headers.
const HEADER_MAX: u64 = 100_000_000;
/// The header's length comes first, as a little-endian u64.
const PREFIX: u64 = 8;
/// The key under which strings are stored; no tensor can have this name.
const METADATA: &str = "__metadata__";
const EXTENSION: &str = ".safetensors";

/// One file, `STEM.safetensors`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Safetensors;

impl Format for Safetensors {
    fn name(&self) -> &'static str {
        "safetensors"
    }

    fn has_checksums(&self) -> bool {
        false
    }

    fn stem<'a>(&self, file: &'a str) -> Option<&'a str> {
        file.strip_suffix(EXTENSION).filter(|stem| !stem.is_empty())
    }

    fn plan(&self, stem: &str, snapshot: &Snapshot<'_>) -> Result<Layout, Error> {
        super::check(self.name(), stem, snapshot)?;
        encode::plan(format!("{stem}{EXTENSION}"), snapshot)
    }

    fn open(&self, stem: &str, source: &dyn Source) -> Result<Catalog, Error> {
        decode::open(format!("{stem}{EXTENSION}"), source)
    }
}

/// Our types and the format's names for them. The format has no 128-bit complex type.
const DTYPES: [(Dtype, &str); 22] = [
    (Dtype::Bool, "BOOL"),
    (Dtype::F4, "F4"),
    (Dtype::F6E2m3, "F6_E2M3"),
    (Dtype::F6E3m2, "F6_E3M2"),
    (Dtype::U8, "U8"),
    (Dtype::I8, "I8"),
    (Dtype::F8E5m2, "F8_E5M2"),
    (Dtype::F8E4m3, "F8_E4M3"),
    (Dtype::F8E8m0, "F8_E8M0"),
    (Dtype::F8E4m3Fnuz, "F8_E4M3FNUZ"),
    (Dtype::F8E5m2Fnuz, "F8_E5M2FNUZ"),
    (Dtype::I16, "I16"),
    (Dtype::U16, "U16"),
    (Dtype::F16, "F16"),
    (Dtype::Bf16, "BF16"),
    (Dtype::I32, "I32"),
    (Dtype::U32, "U32"),
    (Dtype::F32, "F32"),
    (Dtype::C64, "C64"),
    (Dtype::F64, "F64"),
    (Dtype::I64, "I64"),
    (Dtype::U64, "U64"),
];

fn dtype_named(name: &str) -> Option<Dtype> {
    DTYPES.into_iter().find(|(_, known)| *known == name).map(|(dtype, _)| dtype)
}

fn name_of(dtype: Dtype) -> Option<&'static str> {
    DTYPES.into_iter().find(|(known, _)| *known == dtype).map(|(_, name)| name)
}
