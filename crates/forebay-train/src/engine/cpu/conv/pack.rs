//! Weights in the order in which a sweep reads them.

use super::sweep::Sweep;
use crate::engine::ConvShape;
use crate::engine::cpu::gemm::{View, pack_b};
use crate::engine::cpu::kernel::Kernels;
use crate::engine::cpu::memory::Memory;
use crate::engine::cpu::threads::Threads;
use crate::error::Result;

/// Filters side by side: step *k* of a panel is value *k* of each of its filters.
pub(super) fn forward(
    threads: &Threads,
    kernels: &Kernels,
    shape: &ConvShape,
    sweep: &Sweep,
    weight: &[f32],
    packed: &mut Memory,
) -> Result<()> {
    let packed = packed.room(sweep.packed_len(kernels))?;
    let filters = View::columns(weight, shape.filter_len());
    threads.pieces(packed, sweep.steps() * kernels.columns, |panel, out| {
        let (group, first, width) = sweep.panel(kernels, panel);
        pack_b(filters, 0, group * sweep.group_out + first, width, kernels.columns, out);
    });
    Ok(())
}

/// Input channels side by side: step *k* of a panel is one tap of one filter, in flipped order.
pub(super) fn backward(
    threads: &Threads,
    kernels: &Kernels,
    shape: &ConvShape,
    sweeps: &[Sweep],
    weight: &[f32],
    packed: &mut Memory,
) -> Result<()> {
    let len = sweeps.iter().map(|sweep| sweep.packed_len(kernels)).sum();
    let packed = packed.room(len)?;
    for sweep in sweeps {
        let packed = &mut packed[sweep.packed_at..][..sweep.packed_len(kernels)];
        threads.pieces(packed, sweep.steps() * kernels.columns, |panel, out| {
            let (group, first, width) = sweep.panel(kernels, panel);
            let filters = shape.output.channels / shape.groups;
            let taps = sweep.taps.0.iter().flat_map(|y| sweep.taps.1.iter().map(move |x| y * shape.kernel + x));
            let steps = taps.flat_map(|tap| (0..filters).map(move |filter| (tap, filter)));
            for ((tap, filter), row) in steps.zip(out.chunks_exact_mut(kernels.columns)) {
                let from = (group * filters + filter) * shape.filter_len() + tap * sweep.group_out + first;
                row[..width].copy_from_slice(&weight[from..][..width]);
                row[width..].fill(0.0);
            }
        });
    }
    Ok(())
}
