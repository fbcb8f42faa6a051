//! Sums over rows by channel: the gradients of biases, and batch norm.

use super::device::{Address, Argument, BLOCK, Device, Tensor};
use crate::engine::NormShape;
use crate::error::Result;
use Argument::{Count, Flag, Number, Wide};

/// Assumed number of multiprocessors: an H100's or H200's. A different number only costs some speed.
const MULTIPROCESSORS: usize = 132;

/// The launch layout for work over rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    /// Whether vectors of channels are read at once.
    is_wide: bool,
    /// Threads side by side along the channels.
    lanes: u32,
    grid: (u32, u32),
}

impl Layout {
    /// For sums: enough blocks to fill the device four times, each with at least eight rows per thread.
    pub(super) fn new(device: &Device, rows: usize, channels: usize) -> Self {
        Self::of(device, rows, channels, 8, 4 * MULTIPROCESSORS)
    }

    /// For results by row: no partial sums to combine, so more blocks are allowed.
    fn spread(device: &Device, rows: usize, channels: usize) -> Self {
        Self::of(device, rows, channels, 4, 16 * MULTIPROCESSORS)
    }

    fn of(device: &Device, rows: usize, channels: usize, rows_a_thread: usize, n_blocks: usize) -> Self {
        let is_wide = channels.is_multiple_of(device.vector());
        let vectors = channels / if is_wide { device.vector() } else { 1 };
        let lanes = (vectors.next_power_of_two() / if vectors.is_power_of_two() { 1 } else { 2 }).clamp(1, 32);
        let across = vectors.div_ceil(lanes);
        let per_block = BLOCK as usize / lanes;
        let down = rows.div_ceil(per_block * rows_a_thread).clamp(1, n_blocks.div_ceil(across).max(1));
        Self { is_wide, lanes: lanes as u32, grid: (across as u32, down as u32) }
    }

    fn name(&self, wide: &'static str, narrow: &'static str) -> &'static str {
        if self.is_wide { wide } else { narrow }
    }

    /// Partial sums per channel.
    fn parts(&self) -> u32 {
        self.grid.1
    }

    fn scratch(&self, device: &Device, channels: usize, n_sums: usize) -> Result<Address> {
        device.scratch(self.parts() as usize * channels * n_sums * 4)
    }
}

fn finish_grid(channels: usize) -> (u32, u32) {
    (channels.div_ceil(32) as u32, 1)
}

const FINISH_BLOCK: (u32, u32) = (32, 32);

/// Masks dy by y if `relu`, and adds its rows to `bias` if given.
pub(super) fn mask_and_sum(
    device: &Device,
    y: Address,
    dy: Address,
    rows: usize,
    channels: usize,
    relu: bool,
    bias: Option<Address>,
) -> Result<()> {
    if bias.is_none() {
        let vectors = (rows * channels).div_ceil(device.vector());
        let arguments = [Wide(y), Wide(dy), Wide(dy), Wide(vectors as u64)];
        return if relu { device.launch("relu_backward", Device::blocks(vectors), &arguments) } else { Ok(()) };
    }
    let layout = Layout::new(device, rows, channels);
    let partial = layout.scratch(device, channels, 1)?;
    let c = channels as u32;
    let arguments = [
        Wide(y),
        Wide(dy),
        Wide(rows as u64),
        Count(c),
        Count(layout.lanes),
        Flag(relu.into()),
        Flag(1),
        Wide(partial),
    ];
    device.launch(layout.name("mask_sum_v", "mask_sum_1"), layout.grid, &arguments)?;
    let arguments = [Wide(partial), Count(layout.parts()), Count(c), Wide(bias.unwrap_or(0))];
    device.launch_on(&device.stream, "finish_sum", finish_grid(channels), FINISH_BLOCK, &arguments)
}

/// A planned batch norm with the statistics of the last forward pass.
pub struct Norm {
    shape: NormShape,
    layout: Layout,
    spread: Layout,
    mean: Tensor,
    inverse: Tensor,
}

#[derive(Clone, Copy)]
pub(super) struct Affine {
    pub(super) weight: Address,
    pub(super) bias: Address,
}

impl Norm {
    pub(super) fn new(device: &Device, shape: NormShape) -> Result<Self> {
        let layout = Layout::new(device, shape.rows, shape.channels);
        let spread = Layout::spread(device, shape.rows, shape.channels);
        let (mean, inverse) = (device.floats(shape.channels)?, device.floats(shape.channels)?);
        Ok(Self { shape, layout, spread, mean, inverse })
    }

    /// Uses the batch's statistics and moves the running ones towards them.
    pub(super) fn learn(
        &self,
        device: &Device,
        x: Address,
        running_mean: Address,
        running_variance: Address,
    ) -> Result<()> {
        let NormShape { rows, channels, epsilon, momentum } = self.shape;
        let partial = self.layout.scratch(device, channels, 2)?;
        let c = Count(channels as u32);
        let arguments = [Wide(x), Wide(rows as u64), c, Count(self.layout.lanes), Wide(partial)];
        device.launch(self.layout.name("norm_sums_v", "norm_sums_1"), self.layout.grid, &arguments)?;
        let arguments = [
            Wide(x),
            Wide(partial),
            Count(self.layout.parts()),
            c,
            Number(rows as f32),
            Number(epsilon),
            Number(momentum),
            Wide(self.mean.at()),
            Wide(self.inverse.at()),
            Wide(running_mean),
            Wide(running_variance),
        ];
        device.launch_on(&device.stream, "norm_finish", finish_grid(channels), FINISH_BLOCK, &arguments)
    }

    /// Uses the running statistics unchanged.
    pub(super) fn recall(&self, device: &Device, running_mean: Address, running_variance: Address) -> Result<()> {
        let NormShape { channels, epsilon, .. } = self.shape;
        let arguments = [
            Count(channels as u32),
            Number(epsilon),
            Wide(running_mean),
            Wide(running_variance),
            Wide(self.mean.at()),
            Wide(self.inverse.at()),
        ];
        device.launch("norm_recall", (channels.div_ceil(BLOCK as usize) as u32, 1), &arguments)
    }

    pub(super) fn apply(&self, device: &Device, x: Address, y: Address, affine: Affine, relu: bool) -> Result<()> {
        let arguments = [
            Wide(x),
            Wide(y),
            Wide(self.shape.rows as u64),
            Count(self.shape.channels as u32),
            Count(self.spread.lanes),
            Wide(self.mean.at()),
            Wide(self.inverse.at()),
            Wide(affine.weight),
            Wide(affine.bias),
            Flag(relu.into()),
        ];
        device.launch(self.spread.name("norm_apply_v", "norm_apply_1"), self.spread.grid, &arguments)
    }

    /// The gradients of scale and shift, then of the input.
    #[expect(clippy::too_many_arguments, reason = "one fused operation")]
    pub(super) fn backward(
        &self,
        device: &Device,
        x: Address,
        dy: Address,
        dx: Address,
        affine: Affine,
        gradient: Affine,
        relu: bool,
    ) -> Result<()> {
        let channels = self.shape.channels;
        let partial = self.layout.scratch(device, channels, 2)?;
        let (c, relu) = (Count(channels as u32), Flag(relu.into()));
        let (mean, inverse) = (Wide(self.mean.at()), Wide(self.inverse.at()));
        let (weight, bias) = (Wide(affine.weight), Wide(affine.bias));
        let rows = Wide(self.shape.rows as u64);
        let arguments =
            [Wide(x), Wide(dy), rows, c, Count(self.layout.lanes), mean, inverse, weight, bias, relu, Wide(partial)];
        device.launch(self.layout.name("norm_back_sums_v", "norm_back_sums_1"), self.layout.grid, &arguments)?;
        let (d_weight, d_bias) = (Wide(gradient.weight), Wide(gradient.bias));
        let arguments = [Wide(partial), Count(self.layout.parts()), c, inverse, d_weight, d_bias];
        device.launch_on(&device.stream, "norm_back_finish", finish_grid(channels), FINISH_BLOCK, &arguments)?;
        let share = Number(1.0 / self.shape.rows as f32);
        let arguments = [
            Wide(x),
            Wide(dy),
            Wide(dx),
            rows,
            c,
            Count(self.spread.lanes),
            mean,
            inverse,
            weight,
            bias,
            d_weight,
            d_bias,
            share,
            relu,
        ];
        device.launch(self.spread.name("norm_back_apply_v", "norm_back_apply_1"), self.spread.grid, &arguments)
    }
}
