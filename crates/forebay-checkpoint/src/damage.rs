//! What can be wrong with a checkpoint on a tier, as variants that a report names.

use std::fmt;
use std::path::PathBuf;

use forebay_units::PathText;

use crate::Name;

/// Why a checkpoint does not verify.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// There is no manifest: it was never a checkpoint, or is half deleted. It is left alone.
    NoManifest,
    /// A file or a link has a checkpoint's name. It is left alone.
    NotAFolder,
    Manifest {
        what: String,
    },
    /// Something else lies under the manifest's name.
    Foreign,
    /// The manifest is of another step than the folder's name says: it was moved there.
    OtherStep {
        /// The step in the manifest.
        found: u64,
    },
    /// A link, a folder or a pipe lies where a file was.
    NotAFile {
        file: String,
    },
    Missing {
        file: String,
    },
    /// A file is shorter or longer than it was.
    Length {
        file: String,
        expected: u64,
        found: u64,
    },
    /// A chunk holds zeros where data was.
    Zeroed {
        file: String,
        offset: u64,
    },
    /// A chunk begins with data and goes on with zeros: it was never written to its end.
    Torn {
        file: String,
        /// Where the zeros start, in whole sectors.
        offset: u64,
    },
    /// A chunk holds something else than was written.
    Changed {
        file: String,
        offset: u64,
        expected: u32,
        found: u32,
    },
    /// It is as it was written, and cannot be opened as what its files' names say it is.
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
            Self::NoManifest => write!(f, "it has no manifest: not written by forebay, or half deleted"),
            Self::NotAFolder => write!(f, "it is no folder: not written by forebay"),
            Self::NotAFile { file } => write!(f, "{file} is not a plain file"),
            Self::Manifest { what } => write!(f, "its manifest is damaged: {what}"),
            Self::Foreign => write!(f, "its manifest was not written by forebay"),
            Self::OtherStep { found } => write!(f, "it is the checkpoint of step {found} under another name"),
            Self::Missing { file } => write!(f, "{file} is missing"),
            Self::Length { file, expected, found } if found < expected => {
                write!(f, "{file} is truncated: {found} of {expected} bytes")
            }
            Self::Length { file, expected, found } => write!(f, "{file} has {found} bytes instead of {expected}"),
            Self::Zeroed { file, offset } => write!(f, "{file} holds zeros from {offset} on"),
            Self::Torn { file, offset } => write!(f, "{file} is torn at {offset}"),
            Self::Changed { file, offset, expected, found } => {
                write!(f, "{file} at {offset}: checksum {found:08x} instead of {expected:08x}")
            }
            Self::Format { what } => write!(f, "its format is not right: {what}"),
            Self::Unreadable { what } => write!(f, "it cannot be read: {what}"),
        }
    }
}

/// A checkpoint, or a whole tier, that was passed over in looking for a good one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    pub tier: PathBuf,
    /// Which checkpoint; none when the tier itself could not be read.
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

/// What the content of a chunk says about why its checksum does not match.
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
