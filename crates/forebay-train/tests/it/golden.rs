//! Golden files: tensors by name, in safetensors, made by `tests/golden/make.py`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where the files are: in the crate, or, for a test binary that was carried to another machine, below the repository's root.
fn folder() -> PathBuf {
    let crates = [Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("crates/forebay-train")];
    let folders = crates.map(|dir| dir.join("tests/golden"));
    folders.iter().find(|folder| folder.is_dir()).unwrap_or(&folders[0]).clone()
}

pub(crate) struct Golden(BTreeMap<String, Vec<f32>>);

impl Golden {
    pub(crate) fn open(name: &str) -> Self {
        let path = folder().join(format!("{name}.safetensors"));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let header_len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header_len]).unwrap();
        let body = &bytes[8 + header_len..];
        let tensor = |entry: &serde_json::Value| {
            let at = |i: usize| entry["data_offsets"][i].as_u64().unwrap() as usize;
            let floats = body[at(0)..at(1)].chunks_exact(4);
            floats.map(|float| f32::from_le_bytes(float.try_into().unwrap())).collect()
        };
        Self(header.as_object().unwrap().iter().map(|(name, entry)| (name.clone(), tensor(entry))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> &[f32] {
        self.0.get(name).unwrap_or_else(|| panic!("the golden file has no {name}"))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&[f32]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// The tensors whose names begin so, without that beginning.
    pub(crate) fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a [f32])> {
        self.0.iter().filter_map(move |(name, values)| Some((name.strip_prefix(prefix)?, values.as_slice())))
    }
}

/// Asserts that values agree to `tolerance` of themselves, or of their root mean square where they are smaller.
pub(crate) fn assert_close(what: &str, got: &[f32], want: &[f32], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{what}: length");
    let square = want.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / want.len() as f64;
    let floor = square.sqrt().max(1e-12);
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(*got) - f64::from(*want)).abs() / f64::from(want.abs()).max(floor);
        assert!(error <= tolerance, "{what}[{i}]: {got}, not {want}: off by {error:.1e}");
    }
}

/// Pixels between 0 and 1 that need not be stored; `make.py` has the same formula.
pub(crate) fn pixels(n: usize) -> Vec<f32> {
    pixels_at(0, n).collect()
}

pub(crate) fn pixels_at(first: u32, n: usize) -> impl Iterator<Item = f32> {
    let hash = |i: u32| {
        let mut h = i.wrapping_mul(2_654_435_761);
        h ^= h >> 16;
        h = h.wrapping_mul(0x85EB_CA6B);
        h ^ (h >> 13)
    };
    (first..first + n as u32).map(move |i| (hash(i) >> 8) as f32 / (1 << 24) as f32)
}
