//! From strips of samples to rows of RGB, of the whole image or a window of it.
//!
//! Rows are written as soon as the samples they depend on exist: all rows of an MCU row, or all but the last if a
//! filter also reads the row below.

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::color::{self, Conversion};
use crate::frame::Frame;
use crate::planes::{Plane, Planes};
use crate::region::Window;
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
    window: Window,
    rows_per_mcu: usize,
    n_mcu_rows: usize,
}

impl<'a> Output<'a> {
    /// `pixels` must be [`color::SLACK`] bytes longer than the window.
    pub(crate) fn new(
        level: Level,
        conversion: Conversion,
        (frame, window): (&Frame, &Window),
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
        let (window, next_row) = (window.clone(), window.rows.start);
        let (rows_per_mcu, n_mcu_rows) = (frame.mcu_pixels.1, frame.mcus.1);
        Output { level, conversion, lines, pixels, next_row, window, rows_per_mcu, n_mcu_rows }
    }

    /// Writes the rows that are complete once the samples of `mcu_row` exist.
    pub(crate) fn finish_mcu_row(&mut self, planes: &Planes, mcu_row: usize) {
        let looks_down = planes.planes().iter().any(|p| p.method.needs_context());
        let end = match mcu_row + 1 == self.n_mcu_rows {
            true => self.window.rows.end,
            false => self.window.rows.end.min((mcu_row + 1) * self.rows_per_mcu - usize::from(looks_down)),
        };
        while self.next_row < end {
            self.write_row(planes, self.next_row);
            self.next_row += 1;
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.next_row == self.window.rows.end
    }

    fn write_row(&mut self, planes: &Planes, y: usize) {
        let mut rows: [&[u8]; 4] = [&[]; 4];
        for ((plane, line), row) in planes.planes().iter().zip(&mut self.lines.lines).zip(&mut rows) {
            *row = pixel_line(self.level, planes, plane, (&self.window.columns, y), line);
        }
        let (n_pixels, row) = (self.window.columns.len(), y - self.window.rows.start);
        color::line(self.level, self.conversion, rows, n_pixels, &mut self.pixels[3 * n_pixels * row..]);
    }
}

/// The columns `x` of line `y` of a component: its samples in place, or upsampled into `line`.
fn pixel_line<'a>(
    level: Level,
    planes: &'a Planes,
    plane: &Plane,
    (x, y): (&Range<usize>, usize),
    line: &'a mut [u8],
) -> &'a [u8] {
    let row = (y / plane.expand.1) as isize;
    let near = planes.row(plane, row);
    if plane.method == Method::Copy {
        return &near[1 + x.start..];
    }
    let (first, end) = (x.start / plane.expand.0, x.end.div_ceil(plane.expand.0));
    let is_lower = !y.is_multiple_of(2);
    let far = planes.row(plane, if is_lower { row + 1 } else { row - 1 });
    let source = Source { near: &near[first..], far: &far[first..], is_lower, n_samples: end - first };
    upsample::line(level, plane.method, plane.expand.0, source, line);
    &line[x.start - first * plane.expand.0..]
}
