//! Reading archives of arrays: the directory from the end, then one member in pieces, its length and CRC-32 checked.
//!
//! [`Finder`] asks for the pieces that it needs, starting with the last bytes of the file; [`Content`] takes a member's
//! bytes in order and passes on the expanded bytes.

use flate2::{Decompress, FlushDecompress, Status};

use crate::little_endian::{u32_at, u64_at};
use crate::{Error, Want};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
const END_LEN: usize = 22;
const END_64_LEN: usize = 56;
const LOCATOR_LEN: usize = 20;
/// The fixed part of a member's own header; its name and more follow.
pub const LOCAL_LEN: usize = 30;
const CENTRAL_LEN: usize = 46;
/// Enough for the directory of a few arrays; only an archive comment, which array writers do not write, needs more.
const FIRST_TAIL: u64 = 1024;
const LONGEST_TAIL: u64 = (END_LEN + LOCATOR_LEN + END_64_LEN + u16::MAX as usize) as u64;
/// A directory of a hundred thousand arrays is smaller.
const LONGEST_DIRECTORY: u64 = 16 << 20;

/// How a member's bytes lie in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Stored,
    Deflated,
}

/// A member's entry in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// With the extension, such as `x.npy`.
    pub name: String,
    pub method: Method,
    /// CRC-32 of the content before compression.
    pub crc32: u32,
    /// Length in the archive, after compression.
    pub packed_bytes: u64,
    /// Length of the content, before compression.
    pub bytes: u64,
    /// Where the member's local header begins; the content follows it.
    pub offset: u64,
}

impl Entry {
    /// Where its content begins, from the first [`LOCAL_LEN`] bytes of its own header.
    ///
    /// # Errors
    /// When the header is missing or contradicts the directory, or the content reaches past `file_len`.
    pub fn data_offset(&self, header: &[u8], file_len: u64) -> Result<u64, Error> {
        let Some(header) = header.get(..LOCAL_LEN) else {
            return Err(Error::truncated(self.what("header"), self.offset, LOCAL_LEN as u64, header.len() as u64));
        };
        let (signature, method) = (u32_at(header, 0), u16_at(header, 8));
        if signature != LOCAL {
            return Err(Error::invalid(
                self.what("header"),
                self.offset,
                "its signature",
                format!("{signature:#010x}"),
            ));
        }
        if method != u16::from(self.method == Method::Deflated) * 8 {
            return Err(Error::invalid(self.what("header"), self.offset, "the directory's method", method));
        }
        let behind = u64::from(u16_at(header, 26)) + u64::from(u16_at(header, 28));
        let start = self.offset + LOCAL_LEN as u64 + behind;
        match start.checked_add(self.packed_bytes) {
            Some(end) if end <= file_len => Ok(start),
            _ => Err(Error::truncated(self.what("content"), start, self.packed_bytes, file_len.saturating_sub(start))),
        }
    }

    fn what(&self, part: &str) -> String {
        format!("{}: {part}", self.name)
    }
}

/// Finds the directory of an archive, from pieces that the caller reads.
#[derive(Debug)]
pub struct Finder {
    file_len: u64,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Tail { len: u64 },
    End64 { offset: u64 },
    Directory { offset: u64, len: u64, n_entries: u64 },
    Done(Vec<Entry>),
}

impl Finder {
    /// Starts on an archive of this length.
    ///
    /// # Errors
    /// When this is too short for an archive.
    pub fn new(file_len: u64) -> Result<Self, Error> {
        if file_len < END_LEN as u64 {
            return Err(Error::truncated("end of archive", 0, END_LEN as u64, file_len));
        }
        Ok(Self { file_len, step: Step::Tail { len: FIRST_TAIL.min(file_len) } })
    }

    /// The piece needed next, or `None` when the directory is complete.
    pub fn want(&self) -> Option<Want> {
        let (offset, len) = match &self.step {
            Step::Tail { len } => (self.file_len - len, *len),
            Step::End64 { offset } => (*offset, END_64_LEN as u64),
            Step::Directory { offset, len, .. } => (*offset, *len),
            Step::Done(_) => return None,
        };
        Some(Want { offset, len: len as usize })
    }

    /// Takes the bytes that [`want`](Self::want) asked for.
    ///
    /// # Errors
    /// When there are fewer, or they are not part of an archive.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let Some(want) = self.want() else { return Ok(()) };
        let Some(bytes) = bytes.get(..want.len) else {
            return Err(Error::truncated("archive", want.offset, want.len as u64, bytes.len() as u64));
        };
        self.step = match &self.step {
            Step::Tail { len } => self.tail(bytes, *len)?,
            Step::End64 { .. } => self.end_64(bytes, want.offset)?,
            Step::Directory { n_entries, .. } => Step::Done(entries(bytes, want.offset, *n_entries)?),
            Step::Done(_) => return Ok(()),
        };
        // No need to read again what the tail already contains.
        if let Some(next) = self.want()
            && next.offset >= want.offset
            && next.offset + next.len as u64 <= want.offset + want.len as u64
            && (next.offset, next.len) != (want.offset, want.len)
        {
            return self.feed(&bytes[(next.offset - want.offset) as usize..][..next.len]);
        }
        Ok(())
    }

    /// The members, once [`want`](Self::want) returns `None`.
    pub fn finish(self) -> Vec<Entry> {
        match self.step {
            Step::Done(entries) => entries,
            _ => Vec::new(),
        }
    }

    fn tail(&self, bytes: &[u8], len: u64) -> Result<Step, Error> {
        let ends_here =
            |at: &usize| u32_at(bytes, *at) == END && at + END_LEN + usize::from(u16_at(bytes, at + 20)) == bytes.len();
        let Some(at) = (0..=bytes.len() - END_LEN).rev().find(ends_here) else {
            let longest = LONGEST_TAIL.min(self.file_len);
            if len < longest {
                return Ok(Step::Tail { len: longest });
            }
            return Err(Error::NotRecognised { expected: "an npz archive", found: "no end of a directory".to_owned() });
        };
        if at >= LOCATOR_LEN && u32_at(bytes, at - LOCATOR_LEN) == LOCATOR_64 {
            return Ok(Step::End64 { offset: self.within(u64_at(bytes, at - LOCATOR_LEN + 8), END_64_LEN as u64)? });
        }
        let end = &bytes[at..];
        self.directory(u64::from(u16_at(end, 10)), u64::from(u32_at(end, 12)), u64::from(u32_at(end, 16)))
    }

    fn end_64(&self, bytes: &[u8], offset: u64) -> Result<Step, Error> {
        if u32_at(bytes, 0) != END_64 {
            return Err(Error::invalid("end of archive (zip64)", offset, "its signature", u32_at(bytes, 0)));
        }
        self.directory(u64_at(bytes, 32), u64_at(bytes, 40), u64_at(bytes, 48))
    }

    fn directory(&self, n_entries: u64, len: u64, offset: u64) -> Result<Step, Error> {
        if len > LONGEST_DIRECTORY {
            return Err(Error::TooLarge { what: "directory".to_owned(), limit: LONGEST_DIRECTORY, found: len });
        }
        Ok(Step::Directory { offset: self.within(offset, len)?, len, n_entries })
    }

    fn within(&self, offset: u64, len: u64) -> Result<u64, Error> {
        match offset.checked_add(len) {
            Some(end) if end <= self.file_len => Ok(offset),
            _ => Err(Error::truncated("directory", offset, len, self.file_len.saturating_sub(offset))),
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn entries(mut bytes: &[u8], mut offset: u64, n: u64) -> Result<Vec<Entry>, Error> {
    let mut found = Vec::new();
    for number in 0..n {
        let (entry, len) = entry(bytes, offset, number)?;
        found.push(entry);
        bytes = &bytes[len..];
        offset += len as u64;
    }
    if !bytes.is_empty() {
        return Err(Error::invalid("directory", offset, format!("{n} members"), "more bytes"));
    }
    Ok(found)
}

fn entry(bytes: &[u8], offset: u64, number: u64) -> Result<(Entry, usize), Error> {
    let what = || format!("directory: member {number}");
    let cut = |needed: usize| Error::truncated(what(), offset, needed as u64, bytes.len() as u64);
    let header = bytes.get(..CENTRAL_LEN).ok_or_else(|| cut(CENTRAL_LEN))?;
    if u32_at(header, 0) != CENTRAL {
        return Err(Error::invalid(what(), offset, "its signature", format!("{:#010x}", u32_at(header, 0))));
    }
    let [name_len, extra_len, comment_len] = [28, 30, 32].map(|at| usize::from(u16_at(header, at)));
    let len = CENTRAL_LEN + name_len + extra_len + comment_len;
    let whole = bytes.get(..len).ok_or_else(|| cut(len))?;
    let name = String::from_utf8_lossy(&whole[CENTRAL_LEN..][..name_len]).into_owned();
    if u16_at(header, 8) & 1 != 0 {
        return Err(Error::unsupported(format!("{name} is encrypted")));
    }
    let method = match u16_at(header, 10) {
        0 => Method::Stored,
        8 => Method::Deflated,
        other => return Err(Error::unsupported(format!("{name} is compressed by method {other}"))),
    };
    let [mut packed_bytes, mut bytes, mut at] = [20, 24, 42].map(|at| u64::from(u32_at(header, at)));
    let extra = &whole[CENTRAL_LEN + name_len..][..extra_len];
    let mut big = zip64(extra);
    for number in [&mut bytes, &mut packed_bytes, &mut at] {
        if *number == u64::from(u32::MAX)
            && let Some((eight, rest)) = big.split_first_chunk::<8>()
        {
            (*number, big) = (u64::from_le_bytes(*eight), rest);
        }
    }
    if method == Method::Stored && packed_bytes != bytes {
        return Err(Error::invalid(what(), offset, format!("{bytes} stored bytes"), packed_bytes));
    }
    Ok((Entry { name, method, crc32: u32_at(header, 16), packed_bytes, bytes, offset: at }, len))
}

/// The numbers of the zip64 field, if present.
fn zip64(mut extra: &[u8]) -> &[u8] {
    while extra.len() >= 4 {
        let (id, len) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let Some(field) = extra.get(4..4 + len) else { break };
        if id == 1 {
            return field;
        }
        extra = &extra[4 + len..];
    }
    &[]
}

/// A member's content, checked as it passes through.
pub struct Content {
    what: String,
    offset: u64,
    crc: Option<crc32fast::Hasher>,
    expected_crc: u32,
    packed_left: u64,
    left: u64,
    inflate: Option<Box<(Decompress, [u8; EXPANDED])>>,
    ended: bool,
}

/// Bytes expanded at a time; they stay in a core's nearest cache.
const EXPANDED: usize = 32 << 10;

impl Content {
    /// Starts at the first byte of a member's content; `verify` says whether to check its checksum.
    pub fn new(entry: &Entry, verify: bool) -> Self {
        let inflate = (entry.method == Method::Deflated).then(|| Box::new((Decompress::new(false), [0; EXPANDED])));
        Self {
            what: entry.name.clone(),
            offset: entry.offset,
            crc: verify.then(crc32fast::Hasher::new),
            expected_crc: entry.crc32,
            packed_left: entry.packed_bytes,
            left: entry.bytes,
            ended: inflate.is_none(),
            inflate,
        }
    }

    /// Takes the next bytes of the archive and passes the expanded bytes to `each`.
    ///
    /// # Errors
    /// When there are more than the member has, they cannot be expanded, or `each` fails.
    pub fn feed(&mut self, packed: &[u8], mut each: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let Some(packed_left) = self.packed_left.checked_sub(packed.len() as u64) else {
            return Err(self.longer());
        };
        self.packed_left = packed_left;
        match self.inflate.take() {
            None => self.pass(packed, &mut each),
            Some(mut state) => {
                let outcome = self.expand(packed, &mut state, &mut each);
                self.inflate = Some(state);
                outcome
            }
        }
    }

    fn pass(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| self.longer())?;
        if let Some(crc) = &mut self.crc {
            crc.update(bytes);
        }
        each(bytes)
    }

    fn expand(
        &mut self,
        mut packed: &[u8],
        (inflate, out): &mut (Decompress, [u8; EXPANDED]),
        each: &mut impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
            let status = inflate.decompress(packed, out, FlushDecompress::None).map_err(|error| {
                Error::invalid(format!("{}: deflated content", self.what), self.offset, "deflated bytes", error)
            })?;
            let (taken, made) =
                ((inflate.total_in() - before_in) as usize, (inflate.total_out() - before_out) as usize);
            packed = &packed[taken..];
            self.pass(&out[..made], each)?;
            self.ended |= status == Status::StreamEnd;
            if self.ended && !packed.is_empty() {
                return Err(self.longer());
            }
            if self.ended || (packed.is_empty() && made < EXPANDED) || (taken == 0 && made == 0) {
                return Ok(());
            }
        }
    }

    /// Ends the content, and checks its length and checksum.
    ///
    /// # Errors
    /// When some are missing, or the checksum differs.
    pub fn finish(self) -> Result<(), Error> {
        if self.left > 0 || self.packed_left > 0 || !self.ended {
            let missing = self.left.max(self.packed_left).max(1);
            return Err(Error::truncated(format!("{}: content", self.what), self.offset, missing, 0));
        }
        match self.crc.map(crc32fast::Hasher::finalize) {
            Some(found) if found != self.expected_crc => Err(Error::Checksum {
                what: self.what,
                offset: self.offset,
                part: "content",
                expected: self.expected_crc,
                found,
            }),
            _ => Ok(()),
        }
    }

    fn longer(&self) -> Error {
        Error::invalid(format!("{}: content", self.what), self.offset, "the directory's length", "more bytes")
    }
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").field("what", &self.what).field("left", &self.left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
