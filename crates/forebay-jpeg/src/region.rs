//! A part of an image, and the samples that its pixels depend on.

use std::ops::Range;

use crate::Error;
use crate::frame::Frame;

/// Pixels beyond a part whose samples it may depend on. A triangle filter mixes into each half of a sample the sample next
/// to that half, which is the one of the next pixel.
const REACH: usize = 1;

/// A rectangle of a decoded image, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub left: u32,
    pub top: u32,
    pub width: u32,
    pub height: u32,
}

/// The pixels to write, and the minimum coded units to reconstruct for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) columns: Range<usize>,
    pub(crate) rows: Range<usize>,
    pub(crate) mcu_columns: Range<usize>,
    pub(crate) mcu_rows: Range<usize>,
}

impl Window {
    /// # Errors
    /// When `region` is empty or not within the decoded image.
    pub(crate) fn new(frame: &Frame, region: Region) -> Result<Self, Error> {
        let (width, height) = (frame.output.0 as u32, frame.output.1 as u32);
        let range = |start: u32, len: u32, of: u32| {
            let end = start.checked_add(len).filter(|&end| len > 0 && end <= of);
            end.map(|end| start as usize..end as usize).ok_or(Error::NoSuchRegion { region, width, height })
        };
        let (columns, rows) = (range(region.left, region.width, width)?, range(region.top, region.height, height)?);
        let mcus = |pixels: &Range<usize>, edge: usize, n: usize| {
            pixels.start.saturating_sub(REACH) / edge..(pixels.end + REACH).div_ceil(edge).min(n)
        };
        let (mcu_columns, mcu_rows) =
            (mcus(&columns, frame.mcu_pixels.0, frame.mcus.0), mcus(&rows, frame.mcu_pixels.1, frame.mcus.1));
        Ok(Self { columns, rows, mcu_columns, mcu_rows })
    }

    /// Bytes of the pixels.
    pub(crate) fn n_bytes(&self) -> usize {
        3 * self.columns.len() * self.rows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Region, Window};
    use crate::frame::{Component, Frame, Process};
    use crate::{Error, Scale};

    fn window(region: [u32; 4]) -> Result<Window, Error> {
        let components = [(2, 2), (1, 1), (1, 1)].map(|(h, v)| Component { h, v, ..Component::default() });
        let frame = Frame::new(Process::Sequential, (100, 70), components.to_vec(), Scale::Full).unwrap();
        let [left, top, width, height] = region;
        Window::new(&frame, Region { left, top, width, height })
    }

    #[test]
    fn units_next_to_a_part_count_where_a_filter_reads_them() {
        let found = window([17, 33, 14, 14]).unwrap();
        assert_eq!((found.mcu_columns, found.mcu_rows, found.columns), (1..2, 2..3, 17..31));
        let found = window([16, 32, 16, 16]).unwrap();
        assert_eq!((found.mcu_columns, found.mcu_rows), (0..3, 1..4));
        let found = window([0, 0, 100, 70]).unwrap();
        assert_eq!((found.n_bytes(), found.mcu_columns, found.mcu_rows), (21_000, 0..7, 0..5));
    }

    #[test]
    fn parts_outside_the_image_are_refused() {
        for region in [[0, 0, 101, 1], [99, 0, 2, 1], [0, 70, 1, 1], [0, 0, 0, 5], [u32::MAX, 0, 2, 1]] {
            assert!(matches!(window(region), Err(Error::NoSuchRegion { width: 100, height: 70, .. })), "{region:?}");
        }
    }
}
