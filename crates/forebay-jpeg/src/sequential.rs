//! A sequential scan with all components, decoded to pixels in a single pass.
//!
//! A block is decoded into one of two workspaces; when both are full, both blocks are transformed. So the transform
//! reads data written long before, and the CPU overlaps it with the entropy decoding of the next block, which is a long
//! chain of dependent instructions and leaves most units idle.

use std::ops::Range;

use crate::Error;
use crate::baseline::{Codes, decode_block};
use crate::entropy::Entropy;
use crate::frame::Frame;
use crate::idct::Job;
use crate::marker::ScanComponent;
use crate::output::Output;
use crate::planes::Planes;
use crate::region::Window;
use crate::simd::Level;
use crate::zigzag::Workspace;

#[derive(Clone, Copy)]
pub(crate) struct Coding<'a> {
    pub(crate) codes: Codes<'a>,
    pub(crate) quant: &'a [i16; 64],
}

struct Slot<'a> {
    coding: Coding<'a>,
    component: usize,
    /// Column and row of the block within the MCU.
    place: (usize, usize),
    /// Destination of the block in the first MCU of the current row.
    at: usize,
    /// Distance to the block in the next MCU.
    step: usize,
    stride: usize,
    edge: usize,
}

/// Decodes the scan at the position of `entropy`; `codings` correspond to `components`. Blocks that the window does not
/// depend on are read and dropped.
pub(crate) fn decode(
    (frame, window): (&Frame, &Window),
    (components, codings): (&[ScanComponent], &[Coding<'_>]),
    entropy: &mut Entropy<'_>,
    planes: &mut Planes,
    output: &mut Output<'_>,
) -> Result<(), Error> {
    let mut slots = slots(frame, components, codings, planes);
    let mut blocks = Blocks::default();
    for mcu_row in 0..frame.mcus.1 {
        for slot in &mut slots {
            slot.at = planes.block_at(slot.component, mcu_row, slot.place);
        }
        let is_wanted = window.mcu_rows.contains(&mcu_row);
        let mcus = (frame.mcus.0, if is_wanted { window.mcu_columns.clone() } else { 0..0 });
        match output.level {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: this level guarantees these CPU features.
            Level::Avx2 => unsafe { mcu_row_avx2(mcus, &slots, entropy, planes, &mut blocks)? },
            Level::Portable => mcu_row_on(Level::Portable, mcus, &slots, entropy, planes, &mut blocks)?,
        }
        if !is_wanted {
            continue;
        }
        blocks.flush(output.level, &slots, planes);
        planes.finish_mcu_row(mcu_row);
        output.finish_mcu_row(planes, mcu_row);
    }
    Ok(())
}

fn slots<'a>(frame: &Frame, components: &[ScanComponent], codings: &[Coding<'a>], planes: &Planes) -> Vec<Slot<'a>> {
    let mut slots = Vec::with_capacity(10);
    for (scanned, &coding) in components.iter().zip(codings) {
        let (c, plane) = (&frame.components[scanned.index], &planes.planes()[scanned.index]);
        for place in (0..c.v).flat_map(|y| (0..c.h).map(move |x| (x, y))) {
            slots.push(Slot {
                coding,
                component: scanned.index,
                place,
                at: 0,
                step: c.h * c.edge,
                stride: plane.stride,
                edge: c.edge,
            });
        }
    }
    slots
}

/// The workspace of blocks that are not transformed. Nobody reads it, so it is never cleared.
const DROPPED: usize = 2;

struct Blocks {
    /// Two for blocks that will be transformed, and one for those that are dropped.
    workspaces: [Workspace; 3],
    /// Slot and destination of the blocks that await their transform.
    waiting: [(usize, usize); 2],
    n_waiting: usize,
    /// Maximum zigzag index of the last coefficients of waiting blocks.
    last: u32,
    predictions: [i32; 4],
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks { workspaces: [[0; 256]; 3], waiting: [(0, 0); 2], n_waiting: 0, last: 0, predictions: [0; 4] }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn mcu_row_avx2(
    mcus: (usize, Range<usize>),
    slots: &[Slot<'_>],
    entropy: &mut Entropy<'_>,
    planes: &mut Planes,
    blocks: &mut Blocks,
) -> Result<(), Error> {
    mcu_row_on(Level::Avx2, mcus, slots, entropy, planes, blocks)
}

/// Inlined into a function per level, to let the compiler use the level's instructions.
#[inline(always)]
fn mcu_row_on(
    level: Level,
    (n_mcus, wanted): (usize, Range<usize>),
    slots: &[Slot<'_>],
    entropy: &mut Entropy<'_>,
    planes: &mut Planes,
    blocks: &mut Blocks,
) -> Result<(), Error> {
    for mcu in 0..n_mcus {
        if entropy.begin_mcu()? {
            blocks.predictions = [0; 4];
        }
        let is_wanted = wanted.contains(&mcu);
        for (i, slot) in slots.iter().enumerate() {
            let workspace = &mut blocks.workspaces[if is_wanted { blocks.n_waiting & 1 } else { DROPPED }];
            let prediction = &mut blocks.predictions[slot.component & 3];
            match decode_block(&entropy.segment, &mut entropy.bits, slot.coding.codes, prediction, workspace) {
                Ok(_) if !is_wanted => continue,
                Ok(last) => blocks.last |= last,
                Err(fault) => return Err(entropy.error(fault)),
            }
            blocks.waiting[blocks.n_waiting & 1] = (i, slot.at + mcu * slot.step);
            blocks.n_waiting += 1;
            if blocks.n_waiting == 2 {
                blocks.transform(level, slots, planes);
            }
        }
    }
    Ok(())
}

impl Blocks {
    #[inline(always)]
    fn transform(&mut self, level: Level, slots: &[Slot<'_>], planes: &mut Planes) {
        let (a, b) = (&slots[self.waiting[0].0], &slots[self.waiting[1].0]);
        let jobs = [self.job(0, a), self.job(1, b)];
        match (a.edge, b.edge) {
            (8, 8) if self.last == 0 => {
                planes.put_flat(&jobs[0]);
                planes.put_flat(&jobs[1]);
            }
            (8, 8) => planes.put_pair(level, jobs),
            (p, q) if p == q => planes.put_reduced_pair(level, p, jobs),
            _ => return self.flush(level, slots, planes),
        }
        self.clear();
    }

    /// Transforms the waiting blocks one by one.
    #[inline(never)]
    fn flush(&mut self, level: Level, slots: &[Slot<'_>], planes: &mut Planes) {
        for i in 0..self.n_waiting {
            let slot = &slots[self.waiting[i].0];
            let job = self.job(i, slot);
            if slot.edge == 8 { planes.put_one(level, job) } else { planes.put_reduced(slot.edge, &job) }
        }
        self.clear();
    }

    #[inline(always)]
    fn job<'a>(&'a self, i: usize, slot: &Slot<'a>) -> Job<'a> {
        let coefficients = self.workspaces[i].first_chunk().expect("a workspace has 256 elements");
        Job { coefficients, quant: slot.coding.quant, at: self.waiting[i].1, stride: slot.stride }
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.workspaces[0][..64].fill(0);
        self.workspaces[1][..64].fill(0);
        self.n_waiting = 0;
        self.last = 0;
    }
}
