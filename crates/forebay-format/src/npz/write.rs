//! Writing archives of arrays in pieces: a member of any size needs only a small buffer.
//!
//! A member's header comes before its bytes but contains their checksum. So it is written twice: first without, and when
//! the member has ended, the caller overwrites it with the [`Patch`]. Unlike data descriptors, this gives readers that go
//! through the file front to back the lengths where they need them. Only lengths and offsets of 4 GiB and more are
//! written in zip64 fields.

use flate2::{Compress, FlushCompress};

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Placeholder in a 32-bit field whose number is in the zip64 field.
const BIG: u32 = u32::MAX;
/// 1980-01-01, the first day of the format: the same content always gives the same bytes.
const DAY: u16 = 0x21;
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// A regular file with mode 0600, as Python's `zipfile` writes.
const ATTRIBUTES: u32 = 0o100_600 << 16;

/// How a member's bytes lie in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Stored,
    Deflated {
        /// zlib's level, 0 (store) to 9 (smallest).
        level: u32,
    },
}

/// Bytes that overwrite those at `offset`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// A checksum. Checksums of separate ranges can be combined, so no single thread has to read all bytes.
#[derive(Debug, Clone, Default)]
pub struct Sum(crc32fast::Hasher);

impl Sum {
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Appends the bytes of another checksum.
    pub fn join(&mut self, next: &Self) {
        self.0.combine(&next.0);
    }
}

/// An archive being written.
///
/// ```
/// use forebay_format::npz::write::{Archive, Method};
///
/// let mut archive = Archive::default();
/// let mut file = archive.begin("x.npy", 5, Method::Stored);
/// archive.stored(b"hello");
/// file.extend_from_slice(b"hello");
/// let patch = archive.end(&mut file);
/// file[..patch.bytes.len()].copy_from_slice(&patch.bytes);
/// file.extend(archive.finish());
/// assert_eq!(file.len() as u64, forebay_format::npz::write::stored_len(&[("x.npy", 5)]));
/// ```
#[derive(Debug, Default)]
pub struct Archive {
    at: u64,
    members: Vec<Member>,
    deflate: Option<Compress>,
    crc: Sum,
}

#[derive(Debug)]
struct Member {
    name: String,
    is_deflated: bool,
    /// Whether its header has zip64's fields: decided before the lengths are known.
    is_big: bool,
    offset: u64,
    crc: u32,
    packed: u64,
    len: u64,
}

impl Archive {
    /// Begins a member of `len` bytes; returns the bytes to write first.
    pub fn begin(&mut self, name: &str, len: u64, method: Method) -> Vec<u8> {
        let is_deflated = method != Method::Stored;
        self.deflate = match method {
            Method::Stored => None,
            Method::Deflated { level } => Some(Compress::new(flate2::Compression::new(level.min(9)), false)),
        };
        self.crc = Sum::default();
        let is_big = needs_zip64(len, is_deflated);
        let (name, offset) = (name.to_owned(), self.at);
        let packed = if is_deflated { 0 } else { len };
        let member = Member { name, is_deflated, is_big, offset, crc: 0, packed, len };
        let header = member.local();
        self.at += header.len() as u64;
        self.members.push(member);
        header
    }

    /// Registers the next bytes of a stored member, which the caller writes itself.
    pub fn stored(&mut self, piece: &[u8]) {
        self.crc.update(piece);
        self.at += piece.len() as u64;
    }

    /// Registers the next `len` bytes of a stored member by their checksum.
    pub fn stored_apart(&mut self, sum: &Sum, len: u64) {
        self.crc.join(sum);
        self.at += len;
    }

    /// Deflates the next bytes of a member and appends the output to `out`.
    pub fn deflated(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.crc.update(piece);
        self.run(piece, FlushCompress::None, out);
    }

    /// Ends a member: appends the rest of it to `out`, and returns its complete header as a patch.
    pub fn end(&mut self, out: &mut Vec<u8>) -> Patch {
        self.run(&[], FlushCompress::Finish, out);
        let member = self.members.last_mut().expect("a member was begun");
        member.crc = self.crc.0.clone().finalize();
        member.packed = self.at - member.offset - member.local().len() as u64;
        Patch { offset: member.offset, bytes: member.local() }
    }

    /// The central directory and the end records, which follow the last member.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        self.members.iter().for_each(|member| member.central(&mut out));
        let (n_members, len) = (self.members.len() as u64, out.len() as u64);
        if self.at >= u64::from(BIG) {
            end_64(&mut out, n_members, len, self.at);
        }
        put(&mut out, &[&END.to_le_bytes(), &[0; 4]]);
        let n = n_members as u16;
        put(&mut out, &[&n.to_le_bytes(), &n.to_le_bytes(), &(len as u32).to_le_bytes(), &capped(self.at), &[0; 2]]);
        out
    }

    fn run(&mut self, mut piece: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        let Some(deflate) = &mut self.deflate else { return };
        loop {
            // The encoder fills a Vec only up to its capacity.
            out.reserve(piece.len() + 4096);
            let (taken, made) = (deflate.total_in(), deflate.total_out());
            let status = deflate.compress_vec(piece, out, flush).expect("deflating to memory does not fail");
            piece = &piece[(deflate.total_in() - taken) as usize..];
            self.at += deflate.total_out() - made;
            let is_done = match flush {
                FlushCompress::Finish => status == flate2::Status::StreamEnd,
                _ => piece.is_empty(),
            };
            if is_done {
                return;
            }
        }
    }
}

/// The length of an archive of stored members with these names and lengths.
pub fn stored_len(members: &[(&str, u64)]) -> u64 {
    let mut archive = Archive::default();
    for &(name, len) in members {
        archive.begin(name, len, Method::Stored);
        archive.at += len;
    }
    archive.at + archive.finish().len() as u64
}

/// Whether lengths may need more than 32 bits; deflate makes incompressible data a little longer.
fn needs_zip64(len: u64, is_deflated: bool) -> bool {
    let slack = if is_deflated { len / 1000 + 4096 } else { 0 };
    len.saturating_add(slack) >= u64::from(BIG)
}

fn capped(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(BIG).to_le_bytes()
}

fn put(out: &mut Vec<u8>, fields: &[&[u8]]) {
    fields.iter().for_each(|field| out.extend_from_slice(field));
}

impl Member {
    fn local(&self) -> Vec<u8> {
        let mut out = LOCAL.to_le_bytes().to_vec();
        self.facts(&mut out, self.is_big);
        let extra = if self.is_big { zip64(&[self.len, self.packed]) } else { Vec::new() };
        put(&mut out, &[&(extra.len() as u16).to_le_bytes(), self.name.as_bytes(), &extra]);
        out
    }

    fn central(&self, out: &mut Vec<u8>) {
        let mut big = Vec::new();
        if self.is_big {
            big.extend([self.len, self.packed]);
        }
        if self.offset >= u64::from(BIG) {
            big.push(self.offset);
        }
        let extra = if big.is_empty() { Vec::new() } else { zip64(&big) };
        // Made by Unix: the attributes are a mode.
        put(out, &[&CENTRAL.to_le_bytes(), &(3 << 8 | VERSION_64).to_le_bytes()]);
        self.facts(out, self.is_big);
        put(out, &[&(extra.len() as u16).to_le_bytes(), &[0; 6], &ATTRIBUTES.to_le_bytes(), &capped(self.offset)]);
        put(out, &[self.name.as_bytes(), &extra]);
    }

    /// What both headers hold, from the version to the length of the name.
    fn facts(&self, out: &mut Vec<u8>, is_big: bool) {
        let (version, method) = (if is_big { VERSION_64 } else { VERSION }, if self.is_deflated { 8u16 } else { 0 });
        put(out, &[&version.to_le_bytes(), &[0; 2], &method.to_le_bytes(), &[0; 2], &DAY.to_le_bytes()]);
        let length = |length: u64| if is_big { BIG.to_le_bytes() } else { capped(length) };
        put(out, &[&self.crc.to_le_bytes(), &length(self.packed), &length(self.len)]);
        put(out, &[&(self.name.len() as u16).to_le_bytes()]);
    }
}

fn zip64(numbers: &[u64]) -> Vec<u8> {
    let mut out = 1u16.to_le_bytes().to_vec();
    put(&mut out, &[&(8 * numbers.len() as u16).to_le_bytes()]);
    numbers.iter().for_each(|number| put(&mut out, &[&number.to_le_bytes()]));
    out
}

fn end_64(out: &mut Vec<u8>, n_members: u64, len: u64, at: u64) {
    let end = at + len;
    put(out, &[&END_64.to_le_bytes(), &44u64.to_le_bytes(), &VERSION_64.to_le_bytes(), &VERSION_64.to_le_bytes()]);
    put(out, &[&[0; 8], &n_members.to_le_bytes(), &n_members.to_le_bytes(), &len.to_le_bytes(), &at.to_le_bytes()]);
    put(out, &[&LOCATOR_64.to_le_bytes(), &[0; 4], &end.to_le_bytes(), &1u32.to_le_bytes()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(members: &[(&str, &[u8])], method: Method, piece: usize) -> Vec<u8> {
        let (mut archive, mut file) = (Archive::default(), Vec::new());
        for (name, bytes) in members {
            file.extend(archive.begin(name, bytes.len() as u64, method));
            for piece in bytes.chunks(piece) {
                match method {
                    Method::Stored => {
                        archive.stored(piece);
                        file.extend_from_slice(piece);
                    }
                    Method::Deflated { .. } => archive.deflated(piece, &mut file),
                }
            }
            let patch = archive.end(&mut file);
            file[patch.offset as usize..][..patch.bytes.len()].copy_from_slice(&patch.bytes);
        }
        file.extend(archive.finish());
        file
    }

    fn numbers(n: usize) -> Vec<u8> {
        (0..n).map(|i| (i * i % 251) as u8).collect()
    }

    #[test]
    fn a_stored_archive_has_the_length_that_was_foretold() {
        let values = numbers(1000);
        let file = archive(&[("x.npy", &values), ("y.npy", b"12345678")], Method::Stored, 64);
        assert_eq!(file.len() as u64, stored_len(&[("x.npy", 1000), ("y.npy", 8)]));
        assert_eq!(file[35..][..1000], values);
    }

    #[test]
    fn the_pieces_do_not_matter() {
        let values = numbers(100_000);
        for method in [Method::Stored, Method::Deflated { level: 4 }] {
            assert_eq!(
                archive(&[("x.npy", &values)], method, 7),
                archive(&[("x.npy", &values)], method, 100_000),
                "{method:?}"
            );
        }
    }

    #[test]
    fn a_member_whose_ranges_were_summed_apart_is_the_same() {
        let values = numbers(100_000);
        let [mut first, mut second] = [Sum::default(), Sum::default()];
        first.update(&values[..30_001]);
        second.update(&values[30_001..]);
        first.join(&second);
        let (mut apart, mut file) = (Archive::default(), Vec::new());
        apart.begin("x.npy", 100_000, Method::Stored);
        apart.stored_apart(&first, 100_000);
        let patch = apart.end(&mut file);
        file.extend(apart.finish());
        let whole = archive(&[("x.npy", &values)], Method::Stored, 64);
        assert!(whole.starts_with(&patch.bytes) && whole.ends_with(&file) && !file.is_empty());
    }

    #[test]
    fn a_deflated_member_inflates_to_what_it_was() {
        let values = numbers(300_000);
        let file = archive(&[("x.npy", &values)], Method::Deflated { level: 4 }, 4096);
        assert!(file.len() < 300_000);
        let packed = u32::from_le_bytes(file[18..22].try_into().unwrap()) as usize;
        let mut found = Vec::with_capacity(values.len() + 1);
        let mut inflate = flate2::Decompress::new(false);
        inflate.decompress_vec(&file[35..][..packed], &mut found, flate2::FlushDecompress::Finish).unwrap();
        assert_eq!(found, values);
        assert_eq!(u32::from_le_bytes(file[14..18].try_into().unwrap()), crc32fast::hash(&values));
    }

    #[test]
    fn lengths_of_four_gibibytes_go_into_zip64s_fields() {
        let mut archive = Archive::default();
        let len = 5u64 << 30;
        let header = archive.begin("x.npy", len, Method::Stored);
        archive.at += len;
        let patch = archive.end(&mut Vec::new());
        assert_eq!(patch.bytes.len(), header.len());
        assert_eq!(patch.bytes[18..26], [0xFF; 8]);
        assert_eq!(patch.bytes[35..], zip64(&[len, len])[..]);
        let next = archive.begin("y.npy", 8, Method::Stored);
        assert_eq!(next.len(), 35, "a short member has short fields");
        archive.end(&mut Vec::new());
        let tail = archive.finish();
        let second = 46 + 5 + 20;
        assert_eq!(tail[second + 46 + 5..][..12], zip64(&[len + header.len() as u64])[..]);
        assert!(tail.windows(4).any(|four| four == LOCATOR_64.to_le_bytes()));
    }
}
