//! One column's chunk of a row group, decoded page by page into its places in rows.
//!
//! A chunk is asked for from front to back in pieces; what is held at a time is a page and what of the next piece came with it.

use super::Codec;
use super::footer::{Chunk, Leaf};
use super::levels::{self, Indices};
use super::page::{self, Header, MAX_HEADER_BYTES, PageKind};
use crate::Error;

/// Dictionary indices decoded at a time, in an array on the stack.
const LOOKUP: usize = 512;

/// Bytes that hold a page's header, unless there are statistics of long fields in it.
const HEADER_BYTES: usize = 256;

/// Gets bytes of the file: appends exactly `len` bytes from `offset` on.
pub type Fetch<'a, E> = &'a mut dyn FnMut(u64, usize, &mut Vec<u8>) -> Result<(), E>;

/// Where the values of the current page are.
#[derive(Debug, Clone)]
enum Values {
    Raw(usize),
    Page(usize),
    Indices(Indices),
}

#[derive(Debug)]
pub(super) struct ChunkReader {
    leaf: Leaf,
    codec: Codec,
    verify: bool,
    piece_bytes: usize,
    /// Bytes of the file from `raw_at` on.
    raw: Vec<u8>,
    raw_at: u64,
    /// Offset in the file of the page after the current one.
    next: u64,
    end: u64,
    page: Vec<u8>,
    dictionary: Vec<u8>,
    values: Values,
    /// Values of the page that are not handed out yet, and of the chunk that are in later pages.
    in_page: u64,
    after: u64,
    before: u64,
    looked_up: Vec<u8>,
}

/// Rows that a column's values are put into.
pub(super) struct Rows<'a> {
    pub(super) bytes: &'a mut [u8],
    pub(super) stride: usize,
    /// Where this column begins in a row.
    pub(super) at: usize,
}

impl ChunkReader {
    pub(super) fn new(leaf: Leaf, chunk: Chunk, piece_bytes: usize, verify: bool) -> Self {
        Self {
            leaf,
            codec: chunk.codec,
            verify,
            piece_bytes: piece_bytes.max(1),
            raw: Vec::new(),
            raw_at: chunk.offset,
            next: chunk.offset,
            end: chunk.offset + chunk.len,
            page: Vec::new(),
            dictionary: Vec::new(),
            values: Values::Raw(0),
            in_page: 0,
            after: chunk.n_values,
            before: 0,
            looked_up: Vec::new(),
        }
    }

    /// Puts the next values of this column into `n_rows` rows.
    pub(super) fn read<E: From<Error>>(
        &mut self,
        n_rows: usize,
        rows: &mut Rows<'_>,
        fetch: Fetch<'_, E>,
    ) -> Result<(), E> {
        let n_values = n_rows * self.leaf.width;
        let mut done = 0;
        while done < n_values {
            while self.in_page == 0 {
                self.load(fetch)?;
            }
            let n = (n_values - done).min(usize::try_from(self.in_page).unwrap_or(usize::MAX));
            self.put(n, done, rows)?;
            self.in_page -= n as u64;
            done += n;
        }
        Ok(())
    }

    /// Passes over the values of `n_rows` rows. Of pages that lie wholly among them, only the headers are asked for.
    pub(super) fn skip<E: From<Error>>(&mut self, n_rows: u64, fetch: Fetch<'_, E>) -> Result<(), E> {
        let mut left = n_rows.saturating_mul(self.leaf.width as u64);
        while left > 0 {
            if self.in_page == 0 {
                if self.pass_page(left, fetch)?.is_some_and(|n| {
                    left -= n;
                    true
                }) {
                    continue;
                }
                self.load(fetch)?;
            }
            let n = left.min(self.in_page);
            self.pass_values(n as usize)?;
            self.in_page -= n;
            left -= n;
        }
        Ok(())
    }

    /// Goes on to the page after the next, if that holds values and at most `most`; returns how many.
    fn pass_page<E: From<Error>>(&mut self, most: u64, fetch: Fetch<'_, E>) -> Result<Option<u64>, E> {
        if self.next >= self.end {
            return Ok(None);
        }
        let (header, header_len) = self.header(HEADER_BYTES, fetch)?;
        let is_data = matches!(header.kind, PageKind::Data { .. } | PageKind::DataV2 { .. });
        let page_end = self.next + header_len as u64 + header.bytes;
        if !is_data || header.n_values > most.min(self.after) || page_end > self.end {
            return Ok(None);
        }
        self.next = page_end;
        self.after -= header.n_values;
        self.before += header.n_values;
        Ok(Some(header.n_values))
    }

    /// Skips values of the current page.
    fn pass_values(&mut self, n: usize) -> Result<(), Error> {
        match &mut self.values {
            Values::Raw(at) | Values::Page(at) => *at += n * self.leaf.stored_bytes,
            Values::Indices(indices) => {
                let mut numbers = [0_u32; LOOKUP];
                for done in (0..n).step_by(LOOKUP) {
                    let passed = indices.fill(&self.page, &mut numbers[..LOOKUP.min(n - done)]);
                    passed.map_err(|expected| {
                        Error::invalid("Parquet page: indices", self.next, expected, "other bytes")
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Hands out `n` values of the current page, the first of which is the `first`-th of these rows.
    fn put(&mut self, n: usize, first: usize, rows: &mut Rows<'_>) -> Result<(), Error> {
        let len = n * self.leaf.stored_bytes;
        match &mut self.values {
            Values::Raw(at) => {
                place(&self.leaf, &self.raw[*at..*at + len], first, rows);
                *at += len;
            }
            Values::Page(at) => {
                place(&self.leaf, &self.page[*at..*at + len], first, rows);
                *at += len;
            }
            Values::Indices(indices) => {
                let size = self.leaf.stored_bytes;
                let mut numbers = [0_u32; LOOKUP];
                let offset = self.next;
                let wrong =
                    |expected: &str, found: &str| Error::invalid("Parquet page: indices", offset, expected, found);
                for done in (0..n).step_by(LOOKUP) {
                    let numbers = &mut numbers[..LOOKUP.min(n - done)];
                    indices.fill(&self.page, numbers).map_err(|expected| wrong(expected, "other bytes"))?;
                    self.looked_up.clear();
                    for number in numbers.iter() {
                        let from = (*number as usize).saturating_mul(size);
                        let value = self.dictionary.get(from..from.saturating_add(size));
                        self.looked_up
                            .extend(value.ok_or_else(|| wrong("an entry of the dictionary", &number.to_string()))?);
                    }
                    place(&self.leaf, &self.looked_up, first + done, rows);
                }
            }
        }
        Ok(())
    }

    /// Goes on to the next page; a dictionary is kept, other pages are passed over.
    fn load<E: From<Error>>(&mut self, fetch: Fetch<'_, E>) -> Result<(), E> {
        if self.after == 0 || self.next >= self.end {
            return Err(Error::truncated(self.what(), self.next, self.after.max(1), 0).into());
        }
        let (header, header_len) = self.header(self.piece_bytes, fetch)?;
        let body_at = self.next + header_len as u64;
        let page_end = body_at + header.bytes;
        if page_end > self.end {
            return Err(Error::truncated("Parquet page", self.next, header.bytes, self.end - body_at).into());
        }
        let start = self.have(page_end, self.piece_bytes, fetch)? + header_len;
        let offset = std::mem::replace(&mut self.next, page_end);
        self.open(&header, start, offset).map_err(E::from)
    }

    /// Reads the header of the next page, asking for pieces of `want` bytes, and more until it is whole.
    fn header<E: From<Error>>(&mut self, mut want: usize, fetch: Fetch<'_, E>) -> Result<(Header, usize), E> {
        loop {
            let to = self.end.min(self.next.saturating_add(want as u64));
            let start = self.have(to, want, fetch)?;
            match Header::parse(&self.raw[start..], self.next) {
                Ok(found) => return Ok(found),
                Err(Error::Truncated { .. }) if to < self.end && want < MAX_HEADER_BYTES => want *= 2,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sees to it that the file's bytes from the next page to `to` are in `raw`, asking for at least `piece`; returns where they begin.
    fn have<E: From<Error>>(&mut self, to: u64, piece: usize, fetch: Fetch<'_, E>) -> Result<usize, E> {
        let mut have_to = self.raw_at + self.raw.len() as u64;
        if have_to < to {
            if have_to < self.next {
                // What lies between was passed over.
                (self.raw_at, have_to) = (self.next, self.next);
                self.raw.clear();
            } else {
                self.raw.drain(..(self.next - self.raw_at) as usize);
                self.raw_at = self.next;
            }
            let len = (to - have_to).max(piece as u64).min(self.end - have_to) as usize;
            fetch(have_to, len, &mut self.raw)?;
            let found = self.raw_at + self.raw.len() as u64;
            if found < to {
                return Err(Error::truncated(self.what(), have_to, len as u64, found - have_to).into());
            }
        }
        Ok((self.next - self.raw_at) as usize)
    }

    /// Takes a page whose bytes begin at `start` of `raw`.
    fn open(&mut self, header: &Header, start: usize, offset: u64) -> Result<(), Error> {
        let body = start..start + header.bytes as usize;
        if self.verify {
            page::verify(header, &self.raw[body.clone()], offset)?;
        }
        match header.kind {
            PageKind::Other => Ok(()),
            PageKind::Dictionary => self.open_dictionary(header, body, offset),
            PageKind::Data { .. } | PageKind::DataV2 { .. } => self.open_data(header, body, offset),
        }
    }

    fn open_dictionary(&mut self, header: &Header, body: std::ops::Range<usize>, offset: u64) -> Result<(), Error> {
        self.plain_only(header, &[page::PLAIN, page::PLAIN_DICTIONARY])?;
        self.dictionary.clear();
        page::expand(self.codec, &self.raw[body], header.expanded as usize, offset, &mut self.dictionary)?;
        let needed = header.n_values.saturating_mul(self.leaf.stored_bytes as u64);
        if (self.dictionary.len() as u64) < needed {
            return Err(Error::truncated("Parquet dictionary", offset, needed, self.dictionary.len() as u64));
        }
        Ok(())
    }

    fn open_data(&mut self, header: &Header, body: std::ops::Range<usize>, offset: u64) -> Result<(), Error> {
        let dictionary = [page::PLAIN_DICTIONARY, page::RUNS_DICTIONARY].contains(&header.encoding);
        if !dictionary {
            self.plain_only(header, &[page::PLAIN])?;
        }
        if header.n_values > self.after {
            let expected = format!("at most {} values", self.after);
            return Err(Error::invalid("Parquet page", offset, expected, header.n_values));
        }
        let in_place = self.codec == Codec::None;
        if !in_place {
            self.expand_data(header, body.clone(), offset)?;
        }
        let bytes = if in_place { &self.raw[body.clone()] } else { &self.page[..] };
        let levels = self.check_levels(header, bytes, offset)?;
        let found = (bytes.len() - levels) as u64;
        let needed = header.n_values.saturating_mul(self.leaf.stored_bytes as u64);
        self.values = if dictionary {
            let values = bytes[levels..].to_vec();
            let wrong = |expected| Error::invalid("Parquet page: indices", offset, expected, "nothing");
            let indices = Indices::new(&values).map_err(wrong)?;
            self.page = values;
            Values::Indices(indices)
        } else if found < needed {
            return Err(Error::truncated("Parquet page: values", offset, needed, found));
        } else if in_place {
            Values::Raw(body.start + levels)
        } else {
            Values::Page(levels)
        };
        self.in_page = header.n_values;
        self.after -= header.n_values;
        self.before += header.n_values;
        Ok(())
    }

    /// Levels of a page of the second version are never compressed, and its values only where it says so.
    fn expand_data(&mut self, header: &Header, body: std::ops::Range<usize>, offset: u64) -> Result<(), Error> {
        let body = &self.raw[body];
        self.page.clear();
        let (plain, codec) = match header.kind {
            PageKind::DataV2 { definition_bytes, repetition_bytes, compressed } => {
                let codec = if compressed { self.codec } else { Codec::None };
                (definition_bytes.saturating_add(repetition_bytes), codec)
            }
            _ => (0, self.codec),
        };
        let (levels, values) = usize::try_from(plain)
            .ok()
            .and_then(|plain| body.split_at_checked(plain))
            .filter(|_| header.expanded >= plain)
            .ok_or_else(|| Error::truncated("Parquet page: levels", offset, plain, body.len() as u64))?;
        self.page.extend_from_slice(levels);
        page::expand(codec, values, header.expanded as usize - levels.len(), offset, &mut self.page)
    }

    /// Checks a page's levels; returns how many bytes they take.
    fn check_levels(&self, header: &Header, bytes: &[u8], offset: u64) -> Result<usize, Error> {
        let leaf = &self.leaf;
        let split = Levels::split(header, leaf, bytes, offset)?;
        let wrong = |wrong: levels::Wrong| wrong.of(&leaf.name, offset);
        if leaf.max_repetition > 0 {
            let row = leaf.width as u64;
            levels::check_repetition(split.repetition, header.n_values, self.before, row).map_err(wrong)?;
        }
        if leaf.max_definition > 0 {
            levels::check_definition(split.definition, header.n_values, leaf.max_definition).map_err(wrong)?;
        }
        Ok(split.len)
    }

    fn plain_only(&self, header: &Header, allowed: &[i32]) -> Result<(), Error> {
        if allowed.contains(&header.encoding) {
            return Ok(());
        }
        const NAMES: [&str; 10] = [
            "plain",
            "",
            "dictionary",
            "runs",
            "packed bits",
            "deltas",
            "delta lengths",
            "delta strings",
            "dictionary",
            "split byte streams",
        ];
        let name = usize::try_from(header.encoding).ok().and_then(|i| NAMES.get(i)).copied().unwrap_or("unknown");
        let column = &self.leaf.name;
        Err(Error::unsupported(format!("Parquet column {column:?} encoded as {name}; plain and dictionary are read")))
    }

    fn what(&self) -> String {
        format!("Parquet column {:?}", self.leaf.name)
    }
}

/// The levels in front of a page's values.
struct Levels<'a> {
    repetition: &'a [u8],
    definition: &'a [u8],
    len: usize,
}

impl<'a> Levels<'a> {
    fn split(header: &Header, leaf: &Leaf, bytes: &'a [u8], offset: u64) -> Result<Self, Error> {
        let cut = |at: usize, len: u64| {
            let end = usize::try_from(len).ok().and_then(|len| at.checked_add(len));
            end.and_then(|end| bytes.get(at..end))
                .ok_or_else(|| Error::truncated("Parquet page: levels", offset, len, bytes.len() as u64))
        };
        if let PageKind::DataV2 { definition_bytes, repetition_bytes, .. } = header.kind {
            let repetition = cut(0, repetition_bytes)?;
            let definition = cut(repetition.len(), definition_bytes)?;
            return Ok(Self { repetition, definition, len: repetition.len() + definition.len() });
        }
        let mut at = 0;
        let mut next = |max: u32| -> Result<&'a [u8], Error> {
            if max == 0 {
                return Ok(&bytes[..0]);
            }
            let head = cut(at, 4)?;
            let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let levels = cut(at + 4, u64::from(len))?;
            at += 4 + levels.len();
            Ok(levels)
        };
        let repetition = next(leaf.max_repetition)?;
        let definition = next(leaf.max_definition)?;
        if let PageKind::Data { definition, repetition } = header.kind
            && (definition != page::RUNS && leaf.max_definition > 0
                || repetition != page::RUNS && leaf.max_repetition > 0)
        {
            return Err(Error::unsupported("Parquet pages with levels of packed bits"));
        }
        Ok(Self { repetition, definition, len: at })
    }
}

/// Puts plain values into their places, narrowed to the bytes their type has.
fn place(leaf: &Leaf, stored: &[u8], first: usize, rows: &mut Rows<'_>) {
    let (width, size) = (leaf.width, leaf.value_bytes);
    let spot = |i: usize| i / width * rows.stride + rows.at + i % width * size;
    if width == 1 {
        let (to, stride) = (&mut rows.bytes[spot(first)..], rows.stride);
        match (leaf.stored_bytes, size) {
            (2, 2) => scatter::<2, 2>(stored, to, stride),
            (4, 1) => scatter::<4, 1>(stored, to, stride),
            (4, 2) => scatter::<4, 2>(stored, to, stride),
            (4, 4) => scatter::<4, 4>(stored, to, stride),
            (8, 8) => scatter::<8, 8>(stored, to, stride),
            (stored_bytes, _) => {
                for (value, row) in stored.chunks_exact(stored_bytes).zip(to.chunks_mut(stride)) {
                    row[..size].copy_from_slice(&value[..size]);
                }
            }
        }
    } else if size != leaf.stored_bytes {
        for (i, value) in (first..).zip(stored.chunks_exact(leaf.stored_bytes)) {
            let at = spot(i);
            rows.bytes[at..at + size].copy_from_slice(&value[..size]);
        }
    } else {
        let (mut i, mut rest) = (first, stored);
        while !rest.is_empty() {
            let run = ((width - i % width) * size).min(rest.len());
            let at = spot(i);
            rows.bytes[at..at + run].copy_from_slice(&rest[..run]);
            i += run / size;
            rest = &rest[run..];
        }
    }
}

/// The first `N` of every `S` stored bytes, one value per row: lengths known when this is compiled make a copy one move.
fn scatter<const S: usize, const N: usize>(stored: &[u8], rows: &mut [u8], stride: usize) {
    for (value, row) in stored.as_chunks::<S>().0.iter().zip(rows.chunks_mut(stride)) {
        row[..N].copy_from_slice(&value[..N]);
    }
}
