//! What inspecting or verifying a dataset found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use forebay_units::{Bytes, PathText, Summary};
use serde::{Deserialize, Serialize};

use crate::check::{Checked, same};
use crate::metric::{Measurement, Metric, Unit};
use crate::{Cell, Levels, Step};

/// The contents of a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inspection {
    /// Path as the user gave it, escaped.
    #[serde(with = "forebay_units::serde_path")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// What the path is: a folder, a list or a single file.
    pub form: Form,
    /// Number of files, good and bad.
    pub n_files: u64,
    /// Number of good samples: image files, or records of shards.
    pub n_samples: u64,
    /// Total size of all files in bytes.
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub total_bytes: Bytes,
    /// Number of files per format.
    pub file_formats: BTreeMap<String, u64>,
    /// Number of samples per format.
    pub sample_formats: BTreeMap<String, u64>,
    /// Classes and their sample counts, ordered by label.
    pub classes: Vec<Class>,
    /// Sample sizes in bytes; `None` without samples.
    pub sizes: Option<Summary>,
    /// Sample sizes in buckets of powers of two.
    pub histogram: Vec<Bucket>,
    /// Image widths in pixels; `None` where no sample is an image.
    pub widths: Option<Summary>,
    /// Image heights in pixels; `None` where no sample is an image.
    pub heights: Option<Summary>,
    /// Number of samples per color type.
    pub colours: BTreeMap<String, u64>,
    /// Samples stored in passes: progressive JPEG, interlaced PNG.
    pub n_progressive: u64,
    /// Samples whose EXIF orientation is not upright; decoding does not apply it.
    pub n_rotated: u64,
    /// Number of bad files and records.
    pub n_bad: u64,
    /// The first bad files and records, ordered by path and offset.
    pub bad: Vec<Fault>,
    /// Value of fio's `bssplit` that imitates the sizes; `None` without samples.
    pub bssplit: Option<String>,
    /// Remarks on the result: splits read together, unknown labels, skipped files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Cell for Inspection {
    const STEP: Step = Step::Inspect;
    const METRICS: &'static [Metric<Self>] = &[
        Metric::fact("n_samples", "samples", Unit::Count("samples"), |found: &Self| {
            Some(Measurement::single(found.n_samples as f64))
        })
        .headline(),
        Metric::fact("total_bytes", "bytes", Unit::Bytes, |found: &Self| {
            Some(Measurement::single(found.total_bytes.0 as f64))
        })
        .headline(),
        Metric::fact("median_bytes", "median size", Unit::Bytes, |found: &Self| {
            found.sizes.as_ref().map(|sizes| Measurement::single(sizes.median))
        }),
        Metric::fact("mean_bytes", "mean size", Unit::Bytes, |found: &Self| {
            found.sizes.as_ref().map(|sizes| Measurement::single(sizes.mean))
        }),
        Metric::lower("failed_samples", "failed samples", Unit::Count("samples"), |found: &Self| {
            (found.n_bad > 0).then(|| Measurement::single(found.n_bad as f64))
        }),
    ];

    fn levels(&self) -> Levels {
        Levels::new()
    }

    fn check(&self) -> Checked {
        let n = self.n_samples as f64;
        if let Some(sizes) = &self.sizes {
            same("sizes.n", sizes.n as f64, n, "n_samples gives")?;
        }
        let in_histogram: u64 = self.histogram.iter().map(|bucket| bucket.n_samples).sum();
        match self.histogram.is_empty() {
            true => Ok(()),
            false => same("n_samples", n, in_histogram as f64, "the histogram gives"),
        }
    }
}

/// What the path of a dataset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A folder with one subfolder per class.
    Folder,
    /// A text file with one `path label` line per file.
    List,
    /// A single image or shard.
    File,
}

/// A class and its samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Class {
    /// Label; `None` for samples without one.
    pub label: Option<i64>,
    /// Name from the folder or a manifest; `None` where neither gives one.
    pub name: Option<String>,
    /// Good samples with this label.
    pub n_samples: u64,
}

/// Samples whose size is at least `from` and below twice that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Smallest size in bytes: a power of two, or 0 for empty samples.
    pub from: u64,
    /// Good samples of these sizes.
    pub n_samples: u64,
    /// Total size of these samples in bytes.
    pub bytes: u64,
}

/// Result of checking every checksum and decoding every image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Path as the user gave it, escaped.
    #[serde(with = "forebay_units::serde_path")]
    pub path: PathBuf,
    /// Files that were read, good and bad.
    pub n_files: u64,
    /// Samples without a fault.
    pub n_good: u64,
    /// Bad files and records.
    pub n_bad: u64,
    /// All faults, ordered by path and offset.
    pub bad: Vec<Fault>,
    /// Bytes read to verify them.
    pub bytes: Bytes,
    /// Whether a manifest was there to compare with.
    pub manifest: bool,
    /// Remarks on the result: splits read together, unknown labels, skipped files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Verification {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.n_bad == 0
    }
}

/// A bad file, or a bad record in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fault {
    /// Path of the file, escaped.
    #[serde(with = "forebay_units::serde_path")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Byte offset of the record in the file; `None` when the whole file is bad.
    pub offset: Option<u64>,
    /// What is wrong with it.
    pub reason: String,
}

impl Fault {
    /// A file that is bad as a whole.
    pub fn of_file(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: None, reason: reason.into() }
    }

    /// A bad record in a file that may be good otherwise.
    pub fn of_record(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        Self { path: path.to_owned(), offset: Some(offset), reason: reason.into() }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at offset {offset}: {}", self.path.escaped(), self.reason),
            None => write!(f, "{}: {}", self.path.escaped(), self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn findings_survive_their_json() {
        let fault = Fault::of_record(Path::new("d/x.tfrecord"), 512, "payload checksum");
        let found = Verification { path: "d".into(), n_good: 7, n_bad: 1, bad: vec![fault], ..Verification::default() };
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<Verification>(&text).unwrap(), found);
        assert!(!found.is_sound());
    }

    #[test]
    fn a_path_of_any_bytes_survives_its_json_and_is_printed_as_it_is_written() {
        let path = PathBuf::from(OsStr::from_bytes(b"ph\xffotos/a\x1b\n.jpg"));
        let fault = Fault::of_file(&path, "empty file");
        assert_eq!(fault.to_string(), r"ph\xffotos/a\x1b\x0a.jpg: empty file");
        let found = Verification { path, bad: vec![fault], ..Verification::default() };
        let text = serde_json::to_string(&found).unwrap();
        assert!(text.starts_with(r#"{"path":"ph\\xffotos/a\\x1b\\x0a.jpg""#), "{text}");
        assert_eq!(serde_json::from_str::<Verification>(&text).unwrap(), found);
    }

    #[test]
    fn a_fault_names_the_place_before_the_reason() {
        assert_eq!(Fault::of_file(Path::new("d/1.jpg"), "empty file").to_string(), "d/1.jpg: empty file");
        let record = Fault::of_record(Path::new("d/x.tar"), 1024, "no image");
        assert_eq!(record.to_string(), "d/x.tar at offset 1024: no image");
    }
}
