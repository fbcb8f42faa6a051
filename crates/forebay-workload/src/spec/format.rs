//! Data formats: a format is a variant and a row of [`TABLE`], which lists what it supports.

use serde::{Deserialize, Serialize};

use super::Dataset;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Tfrecord,
    Hdf5,
    Csv,
    Npz,
    Npy,
    Jpeg,
    Png,
    Parquet,
    IndexedBinary,
    MmapIndexedBinary,
    Synthetic,
}

/// What a format supports.
#[derive(Clone, Copy)]
pub(crate) struct Facts {
    format: Format,
    name: &'static str,
    /// Compressions that files are made and read with.
    pub(crate) made: &'static [Compression],
    /// Compressions that files are read with, but not made.
    pub(crate) only_read: &'static [Compression],
    decodes: Decodes,
    pub(crate) is_picture: bool,
    /// Whether files can be read with O_DIRECT.
    pub(crate) is_direct: bool,
    /// Why the workload's read size has no effect.
    pub(crate) no_transfer_size: Option<&'static str>,
}

/// Whether a sample needs more work than reading and verifying.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Decodes {
    Never,
    WhereCompressed,
    Always,
}

const TABLE: &[Facts] = &[
    Facts { decodes: Decodes::Always, ..facts(Format::Tfrecord, "tfrecord") },
    Facts {
        made: &[Compression::Gzip],
        only_read: &[Compression::Lzf],
        decodes: Decodes::WhereCompressed,
        no_transfer_size: Some("only for datasets without chunks; a chunk is read whole"),
        ..facts(Format::Hdf5, "hdf5")
    },
    Facts {
        made: &[Compression::Gzip],
        only_read: &[Compression::Zip],
        decodes: Decodes::Always,
        ..facts(Format::Csv, "csv")
    },
    Facts {
        made: &[Compression::Zip],
        decodes: Decodes::WhereCompressed,
        is_direct: true,
        ..facts(Format::Npz, "npz")
    },
    Facts { is_direct: true, ..facts(Format::Npy, "npy") },
    picture(Format::Jpeg, "jpeg"),
    picture(Format::Png, "png"),
    Facts {
        made: &[Compression::Gzip, Compression::Snappy],
        decodes: Decodes::WhereCompressed,
        ..facts(Format::Parquet, "parquet")
    },
    facts(Format::IndexedBinary, "indexed_binary"),
    Facts {
        no_transfer_size: Some("no effect: files are mapped, and the kernel chooses the size of reads"),
        ..facts(Format::MmapIndexedBinary, "mmap_indexed_binary")
    },
    Facts { no_transfer_size: Some("no effect: nothing is read"), ..facts(Format::Synthetic, "synthetic") },
];

const fn facts(format: Format, name: &'static str) -> Facts {
    let (made, only_read, decodes) = (&[], &[], Decodes::Never);
    Facts { format, name, made, only_read, decodes, is_picture: false, is_direct: false, no_transfer_size: None }
}

const fn picture(format: Format, name: &'static str) -> Facts {
    let no_transfer_size = Some("no effect: images are read whole");
    Facts { decodes: Decodes::Always, is_picture: true, no_transfer_size, ..facts(format, name) }
}

impl Format {
    pub const ALL: [Self; TABLE.len()] = {
        let mut all = [Self::Tfrecord; TABLE.len()];
        let mut i = 0;
        while i < all.len() {
            assert!(TABLE[i].format as usize == i, "rows lie in the order of the variants");
            all[i] = TABLE[i].format;
            i += 1;
        }
        all
    };

    /// DLIO's name, which is also the file extension.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    pub(crate) fn facts(self) -> &'static Facts {
        &TABLE[self as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Lzf,
    Bz2,
    Zip,
    Xz,
    Snappy,
}

impl Compression {
    pub(crate) const NAMES: [(&'static str, Self); 7] = [
        ("none", Self::None),
        ("gzip", Self::Gzip),
        ("lzf", Self::Lzf),
        ("bz2", Self::Bz2),
        ("zip", Self::Zip),
        ("xz", Self::Xz),
        ("snappy", Self::Snappy),
    ];

    /// The name in workload files.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

impl Dataset {
    /// Whether files with this compression can be made and read.
    pub fn is_made(&self) -> bool {
        self.compression == Compression::None || self.format.facts().made.contains(&self.compression)
    }

    /// Whether files with this compression can be read.
    pub fn is_read(&self) -> bool {
        self.is_made() || self.format.facts().only_read.contains(&self.compression)
    }

    /// Whether samples need more work than reading and verifying, so that separate compute threads make sense.
    pub fn decodes(&self) -> bool {
        match self.format.facts().decodes {
            Decodes::Never => false,
            Decodes::WhereCompressed => self.compression != Compression::None,
            Decodes::Always => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_compressions_are_written_as_they_are_named() {
        for format in Format::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
        for (name, compression) in Compression::NAMES {
            assert_eq!((compression.name(), serde_json::to_value(compression).unwrap()), (name, name.into()));
        }
    }
}
