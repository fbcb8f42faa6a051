//! The geometry of an image: components, sampling factors, blocks and minimum coded units.
//!
//! The terms are those of the standard. A component is sampled `h` by `v` times per minimum coded unit (MCU). A scan of
//! several components sends whole MCUs, padded at the right and bottom; a scan of one component sends only the blocks
//! that contain image. With a [`Scale`], each component has its own block edge: chroma sampled at half the rate is
//! reconstructed with twice the edge, as in libjpeg, and then needs no upsampling.

use crate::{Error, Scale};

/// A component of the frame, as sent and as reconstructed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Component {
    /// Identifier by which scans refer to it.
    pub(crate) id: u8,
    pub(crate) h: usize,
    pub(crate) v: usize,
    /// Number of its quantisation table.
    pub(crate) quant: usize,
    /// Blocks that contain image, per row and per column.
    pub(crate) blocks: (usize, usize),
    /// Blocks including the padding to whole MCUs.
    pub(crate) padded: (usize, usize),
    /// Edge in samples of a reconstructed block: 1, 2, 4 or 8.
    pub(crate) edge: usize,
    /// Width and height in samples of the reconstructed plane, without padding.
    pub(crate) samples: (usize, usize),
    /// Output pixels per sample, horizontally and vertically.
    pub(crate) expand: (usize, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// Each coefficient is sent once (SOF0, SOF1).
    Sequential,
    /// Coefficients are sent by band and by bit (SOF2).
    Progressive,
}

/// A parsed frame header with the geometry derived from it.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) process: Process,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) components: Vec<Component>,
    /// MCUs per row and per column.
    pub(crate) mcus: (usize, usize),
    /// Width and height of an MCU in output pixels, after scaling.
    pub(crate) mcu_pixels: (usize, usize),
    /// Width and height in pixels, after scaling.
    pub(crate) output: (usize, usize),
    /// Block edge of the most densely sampled component.
    pub(crate) min_edge: usize,
}

impl Frame {
    /// Derives the geometry at `scale` from identifiers, sampling factors and table numbers.
    pub(crate) fn new(
        process: Process,
        (width, height): (usize, usize),
        mut components: Vec<Component>,
        scale: Scale,
    ) -> Result<Self, Error> {
        if let [only] = components.as_mut_slice() {
            // The sampling factors of a single component have no effect, because its scans are never interleaved.
            (only.h, only.v) = (1, 1);
        }
        let h_max = components.iter().map(|c| c.h).max().unwrap_or(1);
        let v_max = components.iter().map(|c| c.v).max().unwrap_or(1);
        let min_edge = scale.block_edge();
        let mcus = (width.div_ceil(8 * h_max), height.div_ceil(8 * v_max));
        for c in &mut components {
            c.edge = block_edge(min_edge, (h_max, v_max), (c.h, c.v));
            c.blocks = ((width * c.h).div_ceil(8 * h_max), (height * c.v).div_ceil(8 * v_max));
            c.padded = (mcus.0 * c.h, mcus.1 * c.v);
            c.samples = ((width * c.h * c.edge).div_ceil(8 * h_max), (height * c.v * c.edge).div_ceil(8 * v_max));
            c.expand = expansion(h_max * min_edge, c.h * c.edge)
                .zip(expansion(v_max * min_edge, c.v * c.edge))
                .ok_or_else(|| fractional((c.h, c.v), (h_max, v_max)))?;
        }
        Ok(Frame {
            process,
            width,
            height,
            components,
            mcus,
            mcu_pixels: (h_max * min_edge, v_max * min_edge),
            output: ((width * min_edge).div_ceil(8), (height * min_edge).div_ceil(8)),
            min_edge,
        })
    }

    /// Blocks of all components, including padding.
    pub(crate) fn n_blocks_padded(&self) -> usize {
        self.components.iter().map(|c| c.padded.0 * c.padded.1).sum()
    }
}

/// Doubles the edge as long as the component then has no more samples than output pixels.
fn block_edge(min_edge: usize, max: (usize, usize), own: (usize, usize)) -> usize {
    let mut edge = min_edge;
    while edge < 8
        && (max.0 * min_edge).is_multiple_of(own.0 * edge * 2)
        && (max.1 * min_edge).is_multiple_of(own.1 * edge * 2)
    {
        edge *= 2;
    }
    edge
}

fn expansion(pixels: usize, samples: usize) -> Option<usize> {
    pixels.is_multiple_of(samples).then(|| pixels / samples)
}

fn fractional(own: (usize, usize), max: (usize, usize)) -> Error {
    Error::unsupported(format!("fractional sampling ({}x{} of {}x{})", own.0, own.1, max.0, max.1))
}

#[cfg(test)]
mod tests {
    use super::{Component, Frame, Process};
    use crate::Scale;

    fn frame(factors: &[(usize, usize)], scale: Scale) -> Frame {
        let components = factors.iter().map(|&(h, v)| Component { h, v, ..Component::default() }).collect();
        Frame::new(Process::Sequential, (17, 33), components, scale).unwrap()
    }

    #[test]
    fn mcus_cover_the_image_and_blocks_do_not_exceed_it() {
        let f = frame(&[(2, 2), (1, 1), (1, 1)], Scale::Full);
        assert_eq!((f.mcus, f.mcu_pixels, f.output), ((2, 3), (16, 16), (17, 33)));
        assert_eq!((f.components[0].blocks, f.components[0].padded), ((3, 5), (4, 6)));
        assert_eq!((f.components[1].samples, f.components[1].expand), ((9, 17), (2, 2)));
    }

    #[test]
    fn half_scale_reconstructs_subsampled_chroma_in_full() {
        let f = frame(&[(2, 2), (1, 1), (1, 1)], Scale::Half);
        assert_eq!(f.components.iter().map(|c| c.edge).collect::<Vec<_>>(), [4, 8, 8]);
        assert_eq!((f.components[1].expand, f.output), ((1, 1), (9, 17)));
        let f = frame(&[(2, 1), (1, 1), (1, 1)], Scale::Half);
        assert_eq!(f.components.iter().map(|c| c.edge).collect::<Vec<_>>(), [4, 4, 4]);
        assert_eq!(f.components[1].expand, (2, 1));
    }

    #[test]
    fn factors_of_a_lone_component_are_ignored() {
        let f = frame(&[(2, 2)], Scale::Full);
        assert_eq!((f.mcus, f.components[0].blocks), ((3, 5), (3, 5)));
    }
}
