//! The trace file: chunks that are appended, compressed and checksummed one by one, so a file cut off anywhere is readable up to there.
//!
//! A file begins with [`MAGIC`] and the version. Each chunk has a head of 32 bytes: `FBCH`, kind, process, number of entries, share of
//! events kept, uncompressed and stored length, and a CRC-32C over head and content. Opens nothing: it writes to a [`Write`] and reads
//! from bytes.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use crate::columns::{self, Columns};
use crate::event::Entry;

/// Begins every trace file.
pub(crate) const MAGIC: &[u8; 8] = b"FBTRACE\n";
/// Raised when older readers could not read the file.
pub(crate) const VERSION: u32 = 1;

const HEAD: &[u8; 4] = b"FBCH";
const HEAD_BYTES: usize = 32;
const BEGIN_BYTES: usize = 12;
/// Entries that are collected before they become a chunk.
const MAX_ENTRIES: u32 = 65_536;
/// A reader refuses larger chunks before it allocates for them.
const MAX_RAW: u32 = 1 << 28;

const HEADER: u32 = 1;
const PROCESS: u32 = 2;
const EVENTS: u32 = 3;

/// What a trace begins with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Head {
    /// Version of forebay that wrote it.
    pub version: String,
    /// Start in UTC.
    pub started_at: String,
    /// The same moment on the monotonic clock, in nanoseconds.
    pub started_ns: u64,
    /// The command.
    pub command_line: Vec<String>,
}

/// A process of the job.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProcessNote {
    /// Number of the process.
    pub pid: u32,
    /// Its parent when it began.
    pub parent: u32,
    /// Start on the monotonic clock, in nanoseconds.
    pub start_ns: u64,
    /// Path of the program.
    pub exe: String,
    /// Command line.
    pub command: String,
}

/// A part of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// Comes first.
    Head(Head),
    /// Comes before the events of its process, which follow under this index.
    Process(u32, ProcessNote),
    /// Events of a process.
    Events {
        /// Index of the process.
        process: u32,
        /// Every so many calls were kept: 1 for all.
        every: u32,
        /// In the order in which they ended.
        entries: Vec<Entry>,
    },
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Something else, or an empty file.
    #[error("not a trace of forebay: it does not begin with FBTRACE")]
    NotATrace,
    /// Written by a newer forebay.
    #[error("this trace has version {0}; this forebay reads version {VERSION}")]
    Version(u32),
}

/// Writes a trace to a file that it only appends to.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    open: Vec<Columns>,
    every: u32,
    n_written: u64,
}

impl<W: Write> Writer<W> {
    /// # Errors
    /// If the output refuses the first bytes.
    pub fn new(mut out: W, head: &Head) -> io::Result<Self> {
        out.write_all(&[&MAGIC[..], &VERSION.to_le_bytes()].concat())?;
        let mut writer = Self { out, open: Vec::new(), every: 1, n_written: BEGIN_BYTES as u64 };
        writer.chunk(HEADER, 0, 0, &serde_json::to_vec(head)?)?;
        Ok(writer)
    }

    /// Adds a process; its index is the number of processes before it.
    ///
    /// # Errors
    /// If the output refuses it.
    pub fn process(&mut self, note: &ProcessNote) -> io::Result<u32> {
        let index = self.open.len() as u32;
        self.open.push(Columns::default());
        self.chunk(PROCESS, index, 0, &serde_json::to_vec(note)?)?;
        Ok(index)
    }

    /// Adds an entry of a process; written when there are enough, or with [`Self::flush`].
    ///
    /// # Errors
    /// If the output refuses the chunk.
    pub fn push(&mut self, process: u32, entry: &Entry) -> io::Result<()> {
        let columns = &mut self.open[process as usize];
        columns.push(entry);
        if columns.len() >= MAX_ENTRIES { self.flush_one(process) } else { Ok(()) }
    }

    /// Writes what is collected.
    ///
    /// # Errors
    /// If the output refuses it.
    pub fn flush(&mut self) -> io::Result<()> {
        (0..self.open.len()).try_for_each(|index| self.flush_one(index as u32))?;
        self.out.flush()
    }

    /// From here on, the caller passes on only every so many calls.
    ///
    /// # Errors
    /// If the output refuses what is collected.
    pub fn keep_every(&mut self, every: u32) -> io::Result<()> {
        self.flush()?;
        self.every = every;
        Ok(())
    }

    /// Length of the file, without what is collected.
    pub fn n_written(&self) -> u64 {
        self.n_written
    }

    fn flush_one(&mut self, process: u32) -> io::Result<()> {
        let columns = &mut self.open[process as usize];
        let n = columns.len();
        if n == 0 {
            return Ok(());
        }
        let raw = columns.take();
        self.chunk(EVENTS, process, n, &raw)
    }

    fn chunk(&mut self, kind: u32, process: u32, n: u32, raw: &[u8]) -> io::Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(raw.len() / 2), Compression::new(4));
        encoder.write_all(raw)?;
        let stored = encoder.finish()?;
        let mut head = HEAD.to_vec();
        for number in [kind, process, n, self.every, raw.len() as u32, stored.len() as u32] {
            head.extend_from_slice(&number.to_le_bytes());
        }
        let sum = crc32c::crc32c_append(crc32c::crc32c(&head), &stored);
        head.extend_from_slice(&sum.to_le_bytes());
        head.extend_from_slice(&stored);
        // One write: what a kill leaves is a prefix.
        self.out.write_all(&head)?;
        self.n_written += head.len() as u64;
        Ok(())
    }
}

/// Reads the chunks of a trace in order, up to the first that is incomplete or damaged.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// # Errors
    /// If this is no trace, or one of a newer version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let begin = bytes.get(..BEGIN_BYTES).filter(|begin| begin.starts_with(MAGIC)).ok_or(Error::NotATrace)?;
        let version = begin[8..].try_into().map_or(0, u32::from_le_bytes);
        if version != VERSION {
            return Err(Error::Version(version));
        }
        Ok(Self { bytes, at: BEGIN_BYTES })
    }

    /// Bytes that were read; less than the length of the file if the rest is damaged.
    pub fn at(&self) -> usize {
        self.at
    }

    fn chunk(&mut self) -> Option<Chunk> {
        let rest = self.bytes.get(self.at..)?;
        let (head, rest) = rest.split_at_checked(HEAD_BYTES)?;
        let number = |i: usize| head[4 + i * 4..8 + i * 4].try_into().map_or(0, u32::from_le_bytes);
        let [kind, process, n, every, raw_len, len, sum] = std::array::from_fn(number);
        let stored = rest.get(..usize::try_from(len).ok()?)?;
        let is_sound = head.starts_with(HEAD)
            && raw_len <= MAX_RAW
            && crc32c::crc32c_append(crc32c::crc32c(&head[..HEAD_BYTES - 4]), stored) == sum;
        if !is_sound {
            return None;
        }
        let mut raw = Vec::with_capacity(raw_len as usize);
        DeflateDecoder::new(stored).take(u64::from(raw_len)).read_to_end(&mut raw).ok()?;
        let chunk = match kind {
            HEADER => Chunk::Head(serde_json::from_slice(&raw).ok()?),
            PROCESS => Chunk::Process(process, serde_json::from_slice(&raw).ok()?),
            EVENTS => {
                let mut entries = Vec::new();
                columns::read(&raw, n, |entry| entries.push(entry))?;
                Chunk::Events { process, every, entries }
            }
            _ => return None,
        };
        self.at += HEAD_BYTES + stored.len();
        Some(chunk)
    }
}

impl Iterator for Reader<'_> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        self.chunk()
    }
}
