//! The kinds of damage that a checkpoint on a tier can have.

use std::fmt;
use std::path::PathBuf;

use forebay_units::PathText;

use crate::Name;

/// Why a checkpoint fails verification.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// No manifest: not a checkpoint, or partly deleted. Left untouched.
    NoManifest,
    /// A file or link has the name of a checkpoint. Left untouched.
    NotAFolder,
    Manifest {
        what: String,
    },
    /// The file with the manifest's name is not a manifest.
    Foreign,
    /// The manifest's step differs from the folder's name: the folder was renamed.
    OtherStep {
        /// The step in the manifest.
        found: u64,
    },
    /// A link, folder or pipe has replaced a file.
    NotAFile {
        file: String,
    },
    Missing {
        file: String,
    },
    /// A file is shorter or longer than recorded.
    Length {
        file: String,
        expected: u64,
        found: u64,
    },
    /// A chunk holds zeros instead of data.
    Zeroed {
        file: String,
        offset: u64,
    },
    /// A chunk starts with data and ends with zeros: its write never finished.
    Torn {
        file: String,
        /// Where the zeros start, in whole sectors.
        offset: u64,
    },
    /// A chunk's checksum does not match.
    Changed {
        file: String,
        offset: u64,
        expected: u32,
        found: u32,
    },
    /// The bytes are intact, but they cannot be opened in the format that the file names imply.
    Format {
        what: String,
    },
    Unreadable {
        what: String,
    },
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoManifest => write!(f, "no manifest: not written by forebay, or partly deleted"),
            Self::NotAFolder => write!(f, "not a folder, so not written by forebay"),
            Self::NotAFile { file } => write!(f, "{file} is not a plain file"),
            Self::Manifest { what } => write!(f, "the manifest is damaged: {what}"),
            Self::Foreign => write!(f, "the manifest was not written by forebay"),
            Self::OtherStep { found } => write!(f, "the manifest is of step {found}; the folder was renamed"),
            Self::Missing { file } => write!(f, "{file} is missing"),
            Self::Length { file, expected, found } if found < expected => {
                write!(f, "{file} is truncated: {found} of {expected} bytes")
            }
            Self::Length { file, expected, found } => write!(f, "{file} has {found} bytes instead of {expected}"),
            Self::Zeroed { file, offset } => write!(f, "{file} is all zeros from offset {offset}"),
            Self::Torn { file, offset } => write!(f, "{file} is torn at offset {offset}"),
            Self::Changed { file, offset, expected, found } => {
                write!(f, "{file}: checksum mismatch at offset {offset}: expected {expected:08x}, found {found:08x}")
            }
            Self::Format { what } => write!(f, "cannot be opened in its format: {what}"),
            Self::Unreadable { what } => write!(f, "cannot be read: {what}"),
        }
    }
}

/// A checkpoint, or a whole tier, that was skipped in the search for a good one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    pub tier: PathBuf,
    /// The checkpoint; `None` when the tier itself could not be read.
    pub name: Option<Name>,
    pub damage: Damage,
}

impl fmt::Display for PassedOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{}: {}", self.tier.join(name.to_string()).escaped(), self.damage),
            None => write!(f, "{}: {}", self.tier.escaped(), self.damage),
        }
    }
}

/// Classifies damage from the content of a chunk whose checksum does not match.
pub(crate) fn of_chunk(file: &str, offset: u64, bytes: &[u8], expected: u32, found: u32) -> Damage {
    const SECTOR: usize = 512;
    let data = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let sectors = data.div_ceil(SECTOR) * SECTOR;
    let file = file.to_owned();
    if data == 0 {
        Damage::Zeroed { file, offset }
    } else if sectors < bytes.len() {
        Damage::Torn { file, offset: offset + sectors as u64 }
    } else {
        Damage::Changed { file, offset, expected, found }
    }
}
