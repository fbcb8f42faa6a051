//! The formats of data: a format is a variant and a row of [`TABLE`], which says what a workload may ask of it.

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

/// What a workload may ask of a format.
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
    /// Whether files are read past the page cache where that is asked for.
    pub(crate) is_direct: bool,
    /// Why reads are not of the size that a workload says.
    pub(crate) no_transfer_size: Option<&'static str>,
}

/// Whether a sample takes more than to be read and verified.
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
        no_transfer_size: Some("it is for datasets without chunks; a chunk is read whole"),
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
        no_transfer_size: Some("files are mapped, and the kernel reads as much at a time as it likes"),
        ..facts(Format::MmapIndexedBinary, "mmap_indexed_binary")
    },
    Facts { no_transfer_size: Some("nothing is read"), ..facts(Format::Synthetic, "synthetic") },
];

const fn facts(format: Format, name: &'static str) -> Facts {
    let (made, only_read, decodes) = (&[], &[], Decodes::Never);
    Facts { format, name, made, only_read, decodes, is_picture: false, is_direct: false, no_transfer_size: None }
}

const fn picture(format: Format, name: &'static str) -> Facts {
    let no_transfer_size = Some("pictures are read whole");
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

    /// As DLIO spells it, which is also the ending of the files' names.
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

    /// As workload files spell it.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].0
    }
}

impl Dataset {
    /// Whether its files are made and read, with the compression they have.
    pub fn is_made(&self) -> bool {
        self.compression == Compression::None || self.format.facts().made.contains(&self.compression)
    }

    /// Whether its files are read, with the compression they have.
    pub fn is_read(&self) -> bool {
        self.is_made() || self.format.facts().only_read.contains(&self.compression)
    }

    /// Whether there is more to do than to read and to verify, so that threads that compute may be kept apart.
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
