//! From strips of samples to rows of RGB.
//!
//! Rows are written as soon as the samples they depend on exist: all rows of an MCU row, or all but the last if a
//! filter also reads the row below.

use std::mem::MaybeUninit;

use crate::color::{self, Conversion};
use crate::frame::Frame;
use crate::planes::{Plane, Planes};
use crate::simd::Level;
use crate::upsample::{self, CHUNK, Method, Source};

/// Lines of one value per pixel, for components with fewer samples.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: [Vec<u8>; 4],
}

pub(crate) struct Output<'a> {
    pub(crate) level: Level,
    pub(crate) conversion: Conversion,
    lines: &'a mut Lines,
    pixels: &'a mut [MaybeUninit<u8>],
    next_row: usize,
    size: (usize, usize),
    rows_per_mcu: usize,
    n_mcu_rows: usize,
}

impl<'a> Output<'a> {
    /// `pixels` must be [`color::SLACK`] bytes longer than the image.
    pub(crate) fn new(
        level: Level,
        conversion: Conversion,
        frame: &Frame,
        lines: &'a mut Lines,
        pixels: &'a mut [MaybeUninit<u8>],
    ) -> Self {
        // A sample expands to at most 4 pixels, and vector code writes whole chunks of samples.
        let n = frame.mcus.0 * frame.mcu_pixels.0 + 4 * CHUNK;
        for line in &mut lines.lines[..frame.components.len()] {
            if line.len() < n {
                line.resize(n, 0);
            }
        }
        let (size, rows_per_mcu, n_mcu_rows) = (frame.output, frame.mcu_pixels.1, frame.mcus.1);
        Output { level, conversion, lines, pixels, next_row: 0, size, rows_per_mcu, n_mcu_rows }
    }

    /// Writes the rows that are complete once the samples of `mcu_row` exist.
    pub(crate) fn finish_mcu_row(&mut self, planes: &Planes, mcu_row: usize) {
        let looks_down = planes.planes().iter().any(|p| p.method.needs_context());
        let end = match mcu_row + 1 == self.n_mcu_rows {
            true => self.size.1,
            false => (mcu_row + 1) * self.rows_per_mcu - usize::from(looks_down),
        };
        for y in self.next_row..end {
            self.write_row(planes, y);
        }
        self.next_row = end;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.next_row == self.size.1
    }

    fn write_row(&mut self, planes: &Planes, y: usize) {
        let mut rows: [&[u8]; 4] = [&[]; 4];
        for ((plane, line), row) in planes.planes().iter().zip(&mut self.lines.lines).zip(&mut rows) {
            *row = pixel_line(self.level, planes, plane, y, line);
        }
        let n_pixels = self.size.0;
        color::line(self.level, self.conversion, rows, n_pixels, &mut self.pixels[3 * n_pixels * y..]);
    }
}

/// Line `y` of a component: its samples in place, or upsampled into `line`.
fn pixel_line<'a>(level: Level, planes: &'a Planes, plane: &Plane, y: usize, line: &'a mut [u8]) -> &'a [u8] {
    let row = (y / plane.expand.1) as isize;
    let near = planes.row(plane, row);
    if plane.method == Method::Copy {
        return &near[1..];
    }
    let is_lower = !y.is_multiple_of(2);
    let far = planes.row(plane, if is_lower { row + 1 } else { row - 1 });
    let source = Source { near, far, is_lower, n_samples: plane.size.0 };
    upsample::line(level, plane.method, plane.expand.0, source, line);
    line
}
