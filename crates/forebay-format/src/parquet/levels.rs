//! Small numbers in runs: repetition and definition levels, and the indices of dictionary pages.
//!
//! A run is either one value many times or groups of eight values, bit by bit. Levels are not expanded: that no value is null and
//! that every row has as many values is seen from the runs themselves.

use forebay_units::varint;

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run<'a> {
    Same {
        value: u32,
        len: u64,
    },
    /// `len` values of a few bits each.
    Packed {
        bits: &'a [u8],
        len: u64,
    },
}

impl Run<'_> {
    fn len(&self) -> u64 {
        match *self {
            Self::Same { len, .. } | Self::Packed { len, .. } => len,
        }
    }
}

/// Walks runs of values of `width` bits.
#[derive(Debug, Clone)]
struct Runs<'a> {
    rest: &'a [u8],
    width: u32,
}

impl<'a> Runs<'a> {
    fn next(&mut self) -> Result<Run<'a>, &'static str> {
        let head = self.varint()?;
        if head & 1 == 1 {
            let n_groups = head >> 1;
            let bytes = n_groups.checked_mul(u64::from(self.width)).and_then(|bytes| usize::try_from(bytes).ok());
            // A last run may be cut where its values end.
            let bytes = bytes.ok_or("a run of any length")?.min(self.rest.len());
            if bytes == 0 && self.width > 0 {
                return Err("a run that is not empty");
            }
            let (bits, rest) = self.rest.split_at(bytes);
            self.rest = rest;
            let len = if self.width == 0 { n_groups * 8 } else { (bits.len() as u64 * 8) / u64::from(self.width) };
            return Ok(Run::Packed { bits, len });
        }
        let n_bytes = self.width.div_ceil(8) as usize;
        if self.rest.len() < n_bytes || head == 0 {
            return Err("a run with its value");
        }
        let (bytes, rest) = self.rest.split_at(n_bytes);
        self.rest = rest;
        let value = bytes.iter().rev().fold(0_u32, |value, byte| value << 8 | u32::from(*byte));
        Ok(Run::Same { value, len: head >> 1 })
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        match varint::take(&mut self.rest) {
            Ok(value) if value >> 35 == 0 => Ok(value),
            Err(varint::Invalid::Truncated) => Err("another run"),
            _ => Err("a run's length of at most five bytes"),
        }
    }
}

/// Value `i` of `width` bits, at most 32.
fn packed(bits: &[u8], width: u32, i: u64) -> u32 {
    let first = i * u64::from(width);
    let from = (first / 8) as usize;
    let mut window = [0_u8; 8];
    let n = bits.len().saturating_sub(from).min(8);
    window[..n].copy_from_slice(&bits[from..from + n]);
    let value = u64::from_le_bytes(window) >> (first % 8);
    (value & ((1_u64 << width) - 1)) as u32
}

/// The bits that levels up to `max` take.
pub(super) fn width_of(max: u32) -> u32 {
    u32::BITS - max.leading_zeros()
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A value is null, or a list empty.
    Null,
    /// A row has more or fewer values than the others.
    Uneven,
    Damaged(&'static str),
}

/// That all of `n` definition levels are `max`: that nothing is null.
pub(super) fn check_definition(bytes: &[u8], n: u64, max: u32) -> Result<(), Wrong> {
    let width = width_of(max);
    walk(bytes, n, width, |run, len| {
        let full = match run {
            Run::Same { value, .. } => value == max,
            Run::Packed { bits, .. } => (0..len).all(|i| packed(bits, width, i) == max),
        };
        if full { Ok(()) } else { Err(Wrong::Null) }
    })
}

/// That of `n` repetition levels of 0 and 1 exactly every `row`-th is 0, the first being value `at` of its column.
pub(super) fn check_repetition(bytes: &[u8], n: u64, mut at: u64, row: u64) -> Result<(), Wrong> {
    walk(bytes, n, 1, |run, len| {
        let to_start = (row - at % row) % row;
        let even = match run {
            Run::Same { value: 0, .. } => row == 1 || (to_start == 0 && len == 1),
            Run::Same { .. } => to_start >= len,
            Run::Packed { bits, .. } => (0..len).all(|i| (packed(bits, 1, i) == 0) == (at + i).is_multiple_of(row)),
        };
        at += len;
        if even { Ok(()) } else { Err(Wrong::Uneven) }
    })
}

/// Calls `check` with every run and how many of its values count.
fn walk(
    bytes: &[u8],
    n: u64,
    width: u32,
    mut check: impl FnMut(Run<'_>, u64) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let mut runs = Runs { rest: bytes, width };
    let mut left = n;
    while left > 0 {
        let run = runs.next().map_err(Wrong::Damaged)?;
        let len = run.len().min(left);
        check(run, len)?;
        left -= len;
    }
    Ok(())
}

/// The indices of a dictionary page, handed out in portions. Holds its place as numbers, since the page's bytes are the caller's.
#[derive(Debug, Clone, Default)]
pub(super) struct Indices {
    width: u32,
    /// Where the next run begins in the page.
    at: usize,
    /// The current run: where its bits are, how many values it has, and how many of them are used; a repeated value otherwise.
    bits: (usize, usize),
    value: Option<u32>,
    len: u64,
    used: u64,
}

impl Indices {
    /// Of a page whose first byte says how wide they are.
    pub(super) fn new(page: &[u8]) -> Result<Self, &'static str> {
        let width = u32::from(*page.first().ok_or("the width of indices")?);
        if width > 32 {
            return Err("indices of at most 32 bits");
        }
        Ok(Self { width, at: 1, ..Self::default() })
    }

    pub(super) fn fill(&mut self, page: &[u8], out: &mut [u32]) -> Result<(), &'static str> {
        let mut done = 0;
        while done < out.len() {
            if self.used == self.len {
                self.next_run(page)?;
            }
            let n = ((self.len - self.used) as usize).min(out.len() - done);
            let to = &mut out[done..done + n];
            match self.value {
                Some(value) => to.fill(value),
                None => {
                    let bits = &page[self.bits.0..self.bits.1];
                    for (i, slot) in (self.used..).zip(to) {
                        *slot = packed(bits, self.width, i);
                    }
                }
            }
            self.used += n as u64;
            done += n;
        }
        Ok(())
    }

    fn next_run(&mut self, page: &[u8]) -> Result<(), &'static str> {
        let mut runs = Runs { rest: page.get(self.at..).unwrap_or_default(), width: self.width };
        let run = runs.next()?;
        self.at = page.len() - runs.rest.len();
        self.used = 0;
        self.len = run.len();
        match run {
            Run::Same { value, .. } => self.value = Some(value),
            Run::Packed { bits, .. } => {
                self.value = None;
                self.bits = (self.at - bits.len(), self.at);
            }
        }
        Ok(())
    }
}

/// The repetition levels of whole rows of `row` values each.
pub(super) fn write_repetition(out: &mut Vec<u8>, n_rows: u64, row: u64) {
    if row <= 8 {
        let n = n_rows * row;
        varint::put(out, n.div_ceil(8) << 1 | 1);
        let bit = |i: u64| u8::from(i < n && !i.is_multiple_of(row));
        out.extend((0..n.div_ceil(8)).map(|byte| (0..8).fold(0, |bits, i| bits | bit(byte * 8 + i) << i)));
        return;
    }
    for _ in 0..n_rows {
        // Eight values bit by bit, a 0 and seven 1, then as many 1 as the row has left.
        out.extend([0x03, 0xfe]);
        varint::put(out, (row - 8) << 1);
        out.push(1);
    }
}

pub(super) fn write_definition(out: &mut Vec<u8>, n: u64) {
    varint::put(out, n << 1);
    out.push(1);
}

impl Wrong {
    pub(super) fn of(self, column: &str, offset: u64) -> Error {
        match self {
            Self::Null => {
                Error::unsupported(format!("Parquet column {column:?} with null values (page at offset {offset})"))
            }
            Self::Uneven => {
                let expected = format!("column {column:?} to have as many values in every row");
                Error::invalid("Parquet page", offset, expected, "a row of another length")
            }
            Self::Damaged(expected) => Error::invalid("Parquet page: levels", offset, expected, "other bytes"),
        }
    }
}
