//! From header to header through an archive, whether it is in memory or not.

use super::header::{self, Kind};
use super::{BLOCK, MAX_EXTENSION_LEN};
use crate::{Error, Want};

const SPARSE: &str = "a sparse file";

/// A regular file's place in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: Vec<u8>,
    pub(super) header_offset: u64,
    pub(super) data_offset: u64,
    pub(super) size: u64,
    /// Offset behind the padding, where the next header begins.
    pub(super) end: u64,
}

/// An entry that could have been a sample's part, but whose contents cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub offset: u64,
    /// What it is: "a hard link", "a symbolic link", "a sparse file".
    pub what: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    File(File),
    Skipped(Skipped),
    More,
    End,
}

/// Asks for headers and for the extensions before them, and never for the contents of files.
#[derive(Debug, Clone)]
pub(super) struct Walk {
    at: u64,
    total_len: u64,
    /// Whether the archive has to end with a block of zeros, or may end with an entry.
    needs_end_marker: bool,
    /// Where the first of the current entry's headers begins.
    entry_at: u64,
    extension: Extension,
    /// Set while the data of an extension are awaited: its kind and size.
    awaited: Option<(Kind, u64)>,
    /// Set while the map of a sparse file is awaited: its path, and the bytes that follow the map.
    sparse: Option<(Vec<u8>, u64)>,
    done: bool,
}

/// What entries before a file's own header say about it.
#[derive(Debug, Clone, Default)]
struct Extension {
    path: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
    /// A sparse file's own path, which its header does not have.
    sparse_path: Option<Vec<u8>>,
}

impl Walk {
    pub(super) fn new(at: u64, end: u64, needs_end_marker: bool) -> Self {
        Self {
            at,
            total_len: end,
            needs_end_marker,
            entry_at: at,
            extension: Extension::default(),
            awaited: None,
            sparse: None,
            done: false,
        }
    }

    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The piece needed next. It may be shorter than a header where the archive is cut off.
    pub(super) fn want(&self) -> Option<Want> {
        let rest = self.total_len - self.at;
        if self.done || (rest == 0 && !self.needs_end_marker && self.entry_at == self.at) {
            return None;
        }
        let len = self.awaited.map_or(BLOCK as u64, |(_, size)| size);
        Some(Want { offset: self.at, len: len.min(rest) as usize })
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Step, Error> {
        let step = match self.awaited.take() {
            _ if self.done => Ok(Step::End),
            Some((kind, size)) => self.feed_extension(kind, size, bytes),
            None => self.feed_header(bytes),
        };
        self.done = !matches!(step, Ok(Step::File(_) | Step::Skipped(_) | Step::More));
        step
    }

    fn feed_header(&mut self, bytes: &[u8]) -> Result<Step, Error> {
        let Some(block) = bytes.first_chunk::<BLOCK>() else {
            return Err(Error::truncated("tar header", self.at, BLOCK as u64, bytes.len() as u64));
        };
        if header::is_zero(block) {
            return Ok(Step::End);
        }
        let header = header::parse(block, self.at)?;
        match header.kind {
            Kind::File => return self.file(block, header.size),
            Kind::Link(what) => {
                let path = self.take_path(block);
                self.end_of_data(0)?;
                return Ok(self.leave_out(path, what, self.at + BLOCK as u64));
            }
            Kind::Sparse { more } => return self.sparse_file(block, header.size, more),
            Kind::Pax | Kind::LongName => {
                self.end_of_data(header.size)?;
                self.await_extension(header.kind, header.size)?;
            }
            Kind::Note => self.at = self.end_of_data(header.size)?,
            Kind::Other | Kind::SparseMap => {
                self.extension = Extension::default();
                self.at = self.end_of_data(header.size)?;
                self.entry_at = self.at;
            }
        }
        Ok(Step::More)
    }

    /// The path of the current entry. Uses up what extensions before it said.
    fn take_path(&mut self, block: &[u8; BLOCK]) -> Vec<u8> {
        let extension = std::mem::take(&mut self.extension);
        extension.sparse_path.or(extension.path).unwrap_or_else(|| header::path(block))
    }

    fn file(&mut self, block: &[u8; BLOCK], size: u64) -> Result<Step, Error> {
        let size = self.extension.size.unwrap_or(size);
        let is_sparse = self.extension.is_sparse;
        let path = self.take_path(block);
        let end = self.end_of_data(size)?;
        if is_sparse {
            return Ok(self.leave_out(path, SPARSE, end));
        }
        let (header_offset, data_offset) = (self.entry_at, self.at + BLOCK as u64);
        self.at = end;
        self.entry_at = end;
        // Some writers mark a directory by its name alone.
        Ok(if path.ends_with(b"/") {
            Step::More
        } else {
            Step::File(File { path, header_offset, data_offset, size, end })
        })
    }

    fn leave_out(&mut self, path: Vec<u8>, what: &'static str, end: u64) -> Step {
        let offset = self.entry_at;
        self.at = end;
        self.entry_at = end;
        Step::Skipped(Skipped { path, offset, what })
    }

    /// A sparse file in GNU's own form: the map of its holes begins in the header and may go on in blocks of its own,
    /// which its size does not count.
    fn sparse_file(&mut self, block: &[u8; BLOCK], size: u64, more: bool) -> Result<Step, Error> {
        let path = self.take_path(block);
        let end = self.end_of_data(size)?;
        if !more {
            return Ok(self.leave_out(path, SPARSE, end));
        }
        self.sparse = Some((path, size));
        self.awaited = Some((Kind::SparseMap, BLOCK as u64));
        self.at += BLOCK as u64;
        Ok(Step::More)
    }

    fn feed_sparse_map(&mut self, bytes: &[u8]) -> Result<Step, Error> {
        let Some(block) = bytes.first_chunk::<BLOCK>() else {
            return Err(Error::truncated("map of a sparse tar entry", self.at, BLOCK as u64, bytes.len() as u64));
        };
        if block[504] != 0 {
            self.awaited = Some((Kind::SparseMap, BLOCK as u64));
            self.at += BLOCK as u64;
            return Ok(Step::More);
        }
        let (path, size) = self.sparse.take().unwrap_or_default();
        let end = self.end_of_data(size)?;
        Ok(self.leave_out(path, SPARSE, end))
    }

    fn await_extension(&mut self, kind: Kind, size: u64) -> Result<(), Error> {
        if size > MAX_EXTENSION_LEN {
            return Err(Error::TooLarge {
                what: format!("extended tar header at offset {}", self.at),
                limit: MAX_EXTENSION_LEN,
                found: size,
            });
        }
        self.awaited = Some((kind, size));
        self.at += BLOCK as u64;
        Ok(())
    }

    fn feed_extension(&mut self, kind: Kind, size: u64, bytes: &[u8]) -> Result<Step, Error> {
        if kind == Kind::SparseMap {
            return self.feed_sparse_map(bytes);
        }
        let Some(data) = bytes.get(..size as usize) else {
            return Err(Error::truncated("extended tar header", self.at, size, bytes.len() as u64));
        };
        match kind {
            Kind::LongName => self.extension.path = Some(header::until_nul(data).to_owned()),
            _ => self.extension.read_pax(data, self.at)?,
        }
        self.at += size.next_multiple_of(BLOCK as u64);
        Ok(Step::More)
    }

    /// Where the padded data of the current entry end.
    fn end_of_data(&self, size: u64) -> Result<u64, Error> {
        let padded = size.checked_next_multiple_of(BLOCK as u64).and_then(|padded| padded.checked_add(BLOCK as u64));
        let found = self.total_len - self.at;
        match padded {
            Some(needed) if needed <= found => Ok(self.at + needed),
            _ => Err(Error::truncated("tar entry", self.at, padded.unwrap_or(u64::MAX), found)),
        }
    }
}

impl Extension {
    /// Reads records of the form `length key=value\n`, where the length counts the whole record.
    fn read_pax(&mut self, mut data: &[u8], offset: u64) -> Result<(), Error> {
        while !data.is_empty() {
            let (record, rest) = split_record(data).ok_or_else(|| {
                Error::invalid("pax record", offset, "length, key and value", data[..data.len().min(32)].escape_ascii())
            })?;
            match record {
                (b"path", value) => self.path = Some(value.to_owned()),
                (b"size", value) => self.size = Some(parse_size(value, offset)?),
                (b"GNU.sparse.name", value) => {
                    self.is_sparse = true;
                    self.sparse_path = Some(value.to_owned());
                }
                (key, _) if key.starts_with(b"GNU.sparse.") => self.is_sparse = true,
                _ => {}
            }
            data = rest;
        }
        Ok(())
    }
}

type Record<'a> = (&'a [u8], &'a [u8]);

fn split_record(data: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let space = data.iter().position(|&byte| byte == b' ')?;
    let len: usize = std::str::from_utf8(&data[..space]).ok()?.parse().ok()?;
    let record = data.get(space + 1..len)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|&byte| byte == b'=')?;
    Some(((&record[..equals], &record[equals + 1..]), &data[len..]))
}

fn parse_size(value: &[u8], offset: u64) -> Result<u64, Error> {
    let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    size.ok_or_else(|| Error::invalid("pax record: size", offset, "a number", value.escape_ascii()))
}
