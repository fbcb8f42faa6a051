//! The decoding tables of a scan, kept between images.

use std::borrow::Cow;

use crate::Error;
use crate::baseline::Codes;
use crate::frame::Frame;
use crate::huffman::{CodeSpec, Table};
use crate::marker::{Headers, ScanComponent};
use crate::pairs::PairTable;
use crate::sequential::Coding;
use crate::standard;

/// Minimum length of data for tables of pairs: each takes some 3 µs to build and saves 2 ns per coefficient.
const MIN_BYTES_FOR_PAIRS: usize = 3 << 10;

/// Decoding tables by number, kept between images.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    dc: [Table; 4],
    ac: [Table; 4],
    pairs: [PairTable; 4],
    /// Whether the pairs are those of the AC table with the same number.
    is_paired: [bool; 4],
}

impl Tables {
    /// Prepares the tables that a scan at `offset` needs for a component: for DC, AC, or both. At most `n_bytes` of
    /// data follow.
    pub(crate) fn load(
        &mut self,
        headers: &Headers,
        c: &ScanComponent,
        (needs_dc, needs_ac): (bool, bool),
        (offset, n_bytes): (usize, usize),
    ) -> Result<(), Error> {
        // Only the sequential process has default tables, and it needs both.
        let has_default = needs_dc && needs_ac;
        let missing = || Error::corrupt(offset, "the Huffman tables of the scan", "an undefined table");
        if needs_dc {
            let spec = spec_of(headers, c.dc, false, has_default);
            self.dc[c.dc].set(spec.ok_or_else(missing)?.as_ref(), false);
        }
        if needs_ac {
            let spec = spec_of(headers, c.ac, true, has_default);
            self.ac[c.ac].set(spec.ok_or_else(missing)?.as_ref(), true);
        }
        if needs_dc && needs_ac {
            let (pairs, ac) = (&mut self.pairs[c.ac], &self.ac[c.ac]);
            if n_bytes >= MIN_BYTES_FOR_PAIRS {
                pairs.set(ac);
            }
            self.is_paired[c.ac] = pairs.is_of(ac);
        }
        Ok(())
    }

    /// The tables that a scan uses for a component.
    pub(crate) fn codes(&self, c: &ScanComponent) -> Codes<'_> {
        let pairs = self.is_paired[c.ac].then_some(&self.pairs[c.ac]);
        Codes { dc: &self.dc[c.dc], ac: &self.ac[c.ac], pairs }
    }

    /// Everything needed to decode a component.
    pub(crate) fn coding<'a>(
        &'a self,
        headers: &'a Headers,
        frame: &Frame,
        c: &ScanComponent,
        offset: usize,
    ) -> Result<Coding<'a>, Error> {
        let quant = quant_of(headers, frame, c.index, offset)?;
        Ok(Coding { codes: self.codes(c), quant })
    }
}

/// A code as defined so far, or the standard's.
pub(crate) fn spec_of(headers: &Headers, number: usize, is_ac: bool, has_default: bool) -> Option<Cow<'_, CodeSpec>> {
    let defined = if is_ac { &headers.ac[number] } else { &headers.dc[number] };
    let default = || has_default.then(|| standard::spec(is_ac, number)).flatten().map(Cow::Owned);
    defined.as_ref().map(Cow::Borrowed).or_else(default)
}

/// The quantisation table of a component as defined so far.
pub(crate) fn quant_of<'a>(
    headers: &'a Headers,
    frame: &Frame,
    component: usize,
    offset: usize,
) -> Result<&'a [i16; 64], Error> {
    let quant = headers.quant[frame.components[component].quant].as_ref();
    quant.ok_or_else(|| Error::corrupt(offset, "the quantisation table of the frame", "an undefined table"))
}
