//! Reconstructed samples of two rows of MCUs.
//!
//! Each component has a strip that serves as a ring: while one row of MCUs is written, the previous row is still
//! available to the filter across their boundary. Strips stay in the fastest caches even for large images. Rows have
//! margins because filters read beyond the image: one sample on the left, and on the right as many as vector code reads
//! too far.

use crate::frame::Frame;
use crate::idct::{self, Job};
use crate::scale;
use crate::simd::Level;
use crate::upsample::{CHUNK, Method};

/// Samples left of the image; only the last one is read.
const MARGIN_LEFT: usize = 32;
/// Samples right of the padded image, because vector code reads and writes whole chunks.
const MARGIN_RIGHT: usize = 2 * CHUNK;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Plane {
    /// Index of the first sample of the first row, after the margin.
    base: usize,
    pub(crate) stride: usize,
    /// Rows of samples per row of MCUs.
    rows_per_mcu: usize,
    /// Edge of its blocks in samples, after scaling.
    pub(crate) edge: usize,
    pub(crate) size: (usize, usize),
    pub(crate) expand: (usize, usize),
    pub(crate) method: Method,
}

#[derive(Debug, Default)]
pub(crate) struct Planes {
    samples: Vec<u8>,
    planes: Vec<Plane>,
    /// Destination of blocks whose samples are not needed.
    trash: usize,
}

impl Planes {
    /// Lays out strips for `frame`, reusing the memory of earlier images.
    pub(crate) fn prepare(&mut self, frame: &Frame) {
        self.planes.clear();
        let mut end = 0;
        for c in &frame.components {
            let stride = MARGIN_LEFT + (c.padded.0 * c.edge).next_multiple_of(CHUNK) + MARGIN_RIGHT;
            let rows_per_mcu = c.v * c.edge;
            let method = Method::of(c, frame.min_edge);
            let base = end + MARGIN_LEFT;
            let (edge, size, expand) = (c.edge, c.samples, c.expand);
            self.planes.push(Plane { base, stride, rows_per_mcu, edge, size, expand, method });
            end += 2 * rows_per_mcu * stride;
        }
        self.trash = end;
        if self.samples.len() < end + 64 {
            self.samples.resize(end + 64, 0);
        }
    }

    pub(crate) fn planes(&self) -> &[Plane] {
        &self.planes
    }

    /// Index of the first sample of a block: column and row in blocks, the row counted within its row of MCUs.
    pub(crate) fn block_at(&self, component: usize, mcu_row: usize, (column, row): (usize, usize)) -> usize {
        let p = &self.planes[component];
        p.base + (mcu_row % 2 * p.rows_per_mcu + row * p.edge) * p.stride + column * p.edge
    }

    /// Reconstructs two blocks with an edge of 8.
    #[inline(always)]
    pub(crate) fn put_pair(&mut self, level: Level, jobs: [Job<'_>; 2]) {
        idct::pair(level, jobs, &mut self.samples);
    }

    /// Reconstructs a block with an edge of 8 that has only a DC coefficient.
    #[inline(always)]
    pub(crate) fn put_flat(&mut self, job: &Job<'_>) {
        idct::flat(job, &mut self.samples);
    }

    /// Reconstructs a block with an edge of 8.
    pub(crate) fn put_one(&mut self, level: Level, job: Job<'_>) {
        let nowhere = Job { at: self.trash, stride: 8, ..job };
        idct::pair(level, [job, nowhere], &mut self.samples);
    }

    /// Reconstructs two blocks with the same edge, which is below 8.
    #[inline(always)]
    pub(crate) fn put_reduced_pair(&mut self, level: Level, edge: usize, jobs: [Job<'_>; 2]) {
        scale::pair(level, edge, jobs, &mut self.samples);
    }

    /// Reconstructs a block with an edge below 8.
    pub(crate) fn put_reduced(&mut self, edge: usize, job: &Job<'_>) {
        scale::one(edge, job, &mut self.samples);
    }

    /// Fills the margins next to the image, once all blocks of a row of MCUs are written.
    pub(crate) fn finish_mcu_row(&mut self, mcu_row: usize) {
        for p in &self.planes {
            let first = p.base + mcu_row % 2 * p.rows_per_mcu * p.stride;
            for at in (0..p.rows_per_mcu).map(|y| first + y * p.stride) {
                self.samples[at - 1] = self.samples[at];
                self.samples[at + p.size.0] = self.samples[at + p.size.0 - 1];
            }
        }
    }

    /// Row `y` of a component (the nearest row if there is no such row), starting one sample left of the image.
    #[inline]
    pub(crate) fn row(&self, plane: &Plane, y: isize) -> &[u8] {
        let y = y.clamp(0, plane.size.1 as isize - 1) as usize;
        let at = plane.base + y % (2 * plane.rows_per_mcu) * plane.stride - 1;
        &self.samples[at..at + plane.stride - MARGIN_LEFT + 1]
    }
}
