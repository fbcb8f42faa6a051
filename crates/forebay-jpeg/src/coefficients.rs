//! The coefficients of a whole image, for files that send them in several scans.

use crate::frame::Frame;

pub(crate) struct Block<'a> {
    /// In natural order (row by row), not zigzag order.
    pub(crate) coefficients: &'a mut [i16; 64],
    /// The nonzero AC coefficients of a progressive image, as a set of zigzag places.
    pub(crate) nonzero: &'a mut u64,
}

/// The blocks of all components; each component in rows, including its padding.
#[derive(Debug, Default)]
pub(crate) struct Coefficients {
    blocks: Vec<[i16; 64]>,
    /// Per block, the set of nonzero coefficients by zigzag place. The refinement scans of the progressive process send
    /// bits for exactly these.
    nonzero: Vec<u64>,
    /// Index of each component's first block, and its number of blocks per row.
    layout: Vec<(usize, usize)>,
}

impl Coefficients {
    /// Allocates the blocks of `frame` and clears them, because scans add to the existing values.
    pub(crate) fn prepare(&mut self, frame: &Frame) {
        self.blocks.clear();
        self.blocks.resize(frame.n_blocks_padded(), [0; 64]);
        self.nonzero.clear();
        self.nonzero.resize(self.blocks.len(), 0);
        self.layout.clear();
        let mut start = 0;
        for c in &frame.components {
            self.layout.push((start, c.padded.0));
            start += c.padded.0 * c.padded.1;
        }
    }

    #[inline(always)]
    pub(crate) fn block_mut(&mut self, component: usize, (x, y): (usize, usize)) -> Block<'_> {
        let (start, width) = self.layout[component];
        let i = start + y * width + x;
        Block { coefficients: &mut self.blocks[i], nonzero: &mut self.nonzero[i] }
    }

    /// The blocks of row `y` of a component, including padding.
    pub(crate) fn row(&self, component: usize, y: usize) -> &[[i16; 64]] {
        let (start, width) = self.layout[component];
        &self.blocks[start + y * width..][..width]
    }
}
