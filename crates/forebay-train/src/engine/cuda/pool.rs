//! Pooling.

use super::device::Argument::Wide;
use super::device::{Address, Argument, Device, Tensor};
use crate::engine::PoolShape;
use crate::error::Result;

/// A planned max pool with the positions of the maxima.
pub struct MaxPool {
    shape: PoolShape,
    /// The position of the maximum in its window, one byte per output.
    winners: Tensor,
}

impl MaxPool {
    pub(super) fn new(device: &Device, shape: PoolShape) -> Result<Self> {
        Ok(Self { shape, winners: device.floats((shape.batch * shape.output.len()).div_ceil(4))? })
    }

    pub(super) fn forward(&self, device: &Device, x: Address, y: Address) -> Result<()> {
        let tensors = [x, y, self.winners.at()];
        self.launch(device, ["max_pool_v", "max_pool_1"], self.shape.output.pixels(), tensors)
    }

    pub(super) fn backward(&self, device: &Device, dy: Address, dx: Address) -> Result<()> {
        let tensors = [dy, self.winners.at(), dx];
        self.launch(device, ["max_pool_back_v", "max_pool_back_1"], self.shape.input.pixels(), tensors)
    }

    /// Runs the kernel of the width that the channels allow, one thread per vector of `pixels`.
    fn launch(&self, device: &Device, names: [&'static str; 2], pixels: usize, tensors: [Address; 3]) -> Result<()> {
        let channels = self.shape.input.channels;
        let is_wide = channels.is_multiple_of(device.vector());
        let items = self.shape.batch * pixels * channels / if is_wide { device.vector() } else { 1 };
        let [a, b, c] = tensors.map(Wide);
        device.launch(names[usize::from(!is_wide)], Device::blocks(items), &[a, b, c, argument(&self.shape)])
    }
}

pub(super) fn average_forward(device: &Device, shape: &PoolShape, x: Address, y: Address) -> Result<()> {
    let blocks = Device::blocks(shape.batch * shape.output.len());
    device.launch("average_pool", blocks, &[Wide(x), Wide(y), argument(shape)])
}

pub(super) fn average_backward(device: &Device, shape: &PoolShape, dy: Address, dx: Address) -> Result<()> {
    let blocks = Device::blocks(shape.batch * shape.input.len());
    device.launch("average_pool_back", blocks, &[Wide(dy), Wide(dx), argument(shape)])
}

fn argument(shape: &PoolShape) -> Argument {
    let PoolShape { batch, input, output, kernel, stride, padding } = *shape;
    let sizes =
        [batch, input.height, input.width, input.channels, output.height, output.width, kernel, stride, padding];
    Argument::Pool(sizes.map(|size| size as u32))
}
