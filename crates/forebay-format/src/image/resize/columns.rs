//! The horizontal half of a resize, laid out for the fastest code that the machine and the image allow.

use super::super::Pixels;
use super::super::convert::Store;
use super::{Tap, portable};
#[cfg(target_arch = "x86_64")]
use super::{avx2, avx512};

/// What is precomputed for images of one width.
#[derive(Debug, Default)]
pub(super) struct Columns {
    src_width: u32,
    plan: Plan,
}

/// A variant for a vector extension exists only if the machine was found to have it, and only for rows that are long
/// enough for its loads: constructing it is the proof that the kernel may run.
#[derive(Debug)]
enum Plan {
    Portable(portable::Plan),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Plan),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Plan),
}

impl Default for Plan {
    fn default() -> Self {
        Self::Portable(portable::Plan::default())
    }
}

impl Columns {
    /// Makes ready for images of this width; does nothing if the last one had it too.
    pub(super) fn prepare(&mut self, src_width: u32, dst_width: u32) {
        if self.src_width != src_width {
            self.plan = Plan::new(src_width, dst_width);
            self.src_width = src_width;
        }
    }

    /// One row of output: `tap` says between which source rows it lies.
    pub(super) fn resize_row(&self, src: Pixels<'_>, tap: Tap, out: &mut [f32], store: Store) {
        let row_bytes = self.src_width as usize * 3;
        let row = |y: u32| &src.rgb[y as usize * row_bytes..][..row_bytes];
        let rows = Rows { top: row(tap.lower), bottom: row(tap.upper), weight: tap.weight };
        match &self.plan {
            Plan::Portable(plan) => plan.resize_row(rows, out),
            #[cfg(target_arch = "x86_64")]
            Plan::Avx2(plan) => plan.resize_row(rows, out, store),
            #[cfg(target_arch = "x86_64")]
            Plan::Avx512(plan) => plan.resize_row(rows, out, store),
        }
    }
}

impl Plan {
    fn new(src_width: u32, dst_width: u32) -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(plan) = avx512::Plan::new(src_width, dst_width) {
                return Self::Avx512(plan);
            }
            if let Some(plan) = avx2::Plan::new(src_width, dst_width) {
                return Self::Avx2(plan);
            }
        }
        Self::Portable(portable::Plan::new(src_width, dst_width))
    }
}

/// Two source rows, as long as the plan was made for, and how far the output row is from the first towards the second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) top: &'a [u8],
    pub(super) bottom: &'a [u8],
    pub(super) weight: f32,
}
