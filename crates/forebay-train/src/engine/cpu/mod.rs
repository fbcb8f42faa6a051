//! The engine that computes on the processor, in f32.
//!
//! No BLAS is used. With NHWC activations, convolutions and linear layers both reduce to one register-tiled loop
//! (`kernel`), which reads activations in place. This saves im2col's memory traffic. It also keeps the split of the
//! work under our control: the same seed gives the same bits for any number of threads.

mod conv;
mod elementwise;
mod gemm;
mod kernel;
mod loss;
mod memory;
mod norm;
mod pool;
mod store;
mod threads;
mod wide;

pub(crate) use wide::widest;

use std::borrow::Cow;
use std::sync::Arc;

use conv::Conv;
use gemm::{Finish, Size, View};
use kernel::Kernels;
use loss::Loss;
use memory::Memory;
use norm::{Affine, Norm};
use pool::MaxPool;
use store::Store;
use threads::Threads;

use super::{
    ConvShape, Engine, Judgement, LinearShape, NormShape, NormSlots, Normalize, Part, PoolShape, Slot, SlotId,
};
use crate::error::{Error, Result};
use crate::lent::{HostMemory, Lent, PageLock};
use crate::optimizer::Rule;
use crate::shape::Shape;
use crate::view::Values;

/// The processor, with its own thread pool.
///
/// Results are bit-identical for any number of threads. They do depend on the processor's instruction set.
pub struct Cpu {
    threads: Threads,
    kernels: Kernels,
}

impl Cpu {
    /// Starts `threads` threads; 0 means one per core.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn new(threads: usize) -> Result<Self> {
        Ok(Self { threads: Threads::new(threads)?, kernels: Kernels::best() })
    }

    fn product(
        &self,
        linear: &mut Linear,
        size: Size,
        a: View<'_>,
        b: View<'_>,
        finish: Finish<'_>,
        c: &mut [f32],
    ) -> Result<()> {
        gemm::product(&self.threads, &self.kernels, size, a, b, finish, &mut linear.packed, c)
    }
}

pub struct Input {
    images: Memory,
    /// Empty until a caller asks for pixels to fill in place.
    pixels: Memory,
    targets: Memory,
}

/// A planned linear layer with its scratch memory.
pub struct Linear {
    shape: LinearShape,
    packed: Memory,
}

impl Engine for Cpu {
    type Tensor = Memory;
    type Store = Store;
    type Input = Input;
    type Conv = Conv;
    type Linear = Linear;
    type Norm = Norm;
    type MaxPool = MaxPool;
    type Loss = Loss;

    fn describe(&self) -> String {
        let threads = self.threads.count();
        format!("cpu, {threads} thread{}, {}", if threads == 1 { "" } else { "s" }, self.kernels.name)
    }

    fn tensor(&self, len: usize) -> Result<Memory> {
        Memory::zeroed(len)
    }

    fn upload(&self, values: &[f32], to: &mut Memory) -> Result<()> {
        to[..values.len()].copy_from_slice(values);
        Ok(())
    }

    fn download(&self, from: &Memory, len: usize) -> Result<Vec<f32>> {
        Ok(from[..len].to_vec())
    }

    fn store(&self, slots: Vec<Slot>) -> Result<Store> {
        Store::new(slots)
    }

    fn read<'a>(&self, store: &'a Store, slot: SlotId, part: Part) -> Result<Cow<'a, [f32]>> {
        let values = store.part(slot, part);
        if values.is_empty() {
            return Ok(Cow::Owned(vec![0.0; store.part(slot, Part::Value).len()]));
        }
        Ok(Cow::Borrowed(values))
    }

    fn view<'a>(&'a self, store: &'a Store, wanted: &[(SlotId, Part)]) -> Result<Values<'a>> {
        let values = wanted.iter().map(|(slot, part)| self.read(store, *slot, *part));
        Ok(Values::Here(values.collect::<Result<_>>()?))
    }

    fn write(&self, store: &mut Store, slot: SlotId, part: Part, values: &[f32]) -> Result<()> {
        store.prepare(part)?;
        let to = store.part_mut(slot, part);
        Error::check_length("a slot", to.len(), values.len())?;
        to.copy_from_slice(values);
        Ok(())
    }

    fn update(&self, store: &mut Store, rule: &Rule) -> Result<()> {
        store.update(&self.threads, rule)
    }

    fn input(&self, batch: usize, image: Shape, n_classes: usize) -> Result<Input> {
        let images = Memory::zeroed(batch * image.len())?;
        Ok(Input { images, pixels: Memory::empty(), targets: Memory::zeroed(batch * n_classes)? })
    }

    fn staging<'a>(&self, input: &'a mut Input) -> Result<&'a mut [f32]> {
        input.pixels.room(input.images.len())
    }

    fn stage(&self, input: &mut Input, images: Option<&[f32]>, targets: &[f32], normalize: &Normalize) -> Result<()> {
        let images = images.unwrap_or(&input.pixels);
        elementwise::normalize(&self.threads, images, &mut input.images[..images.len()], normalize);
        input.targets[..targets.len()].copy_from_slice(targets);
        Ok(())
    }

    fn stage_lent(
        &self,
        input: &mut Input,
        images: Box<dyn Lent>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()> {
        self.stage(input, Some(images.floats()), targets, normalize)
    }

    fn reclaim(&self, _: &mut Input) -> Result<()> {
        Ok(())
    }

    fn wait_arrived(&self) -> Result<()> {
        Ok(())
    }

    fn is_idle(&self) -> Result<bool> {
        Ok(true)
    }

    fn lock_pages(&self, _: Arc<dyn HostMemory>) -> Result<PageLock> {
        Ok(PageLock::unneeded())
    }

    fn images<'a>(&self, input: &'a Input) -> Result<&'a Memory> {
        Ok(&input.images)
    }

    fn release(&self, _: &mut Input) -> Result<()> {
        Ok(())
    }

    fn conv(&self, shape: ConvShape) -> Result<Conv> {
        Ok(Conv::new(shape, self.kernels))
    }

    fn conv_forward(
        &self,
        conv: &mut Conv,
        x: &Memory,
        store: &Store,
        weight: SlotId,
        bias: Option<SlotId>,
        relu: bool,
        y: &mut Memory,
    ) -> Result<()> {
        let bias = bias.map(|bias| store.part(bias, Part::Value));
        conv.forward(&self.threads, x, store.part(weight, Part::Value), bias, relu, y)
    }

    fn conv_backward_weights(
        &self,
        conv: &mut Conv,
        x: &Memory,
        dy: &Memory,
        store: &mut Store,
        weight: SlotId,
    ) -> Result<()> {
        conv.backward_weights(&self.threads, x, dy, store.part_mut(weight, Part::Gradient))
    }

    fn conv_backward_data(
        &self,
        conv: &mut Conv,
        dy: &Memory,
        store: &Store,
        weight: SlotId,
        dx: &mut Memory,
    ) -> Result<()> {
        conv.backward_data(&self.threads, dy, store.part(weight, Part::Value), dx)
    }

    fn linear(&self, shape: LinearShape) -> Result<Linear> {
        Ok(Linear { shape, packed: Memory::empty() })
    }

    fn linear_forward(
        &self,
        linear: &mut Linear,
        x: &Memory,
        store: &Store,
        weight: SlotId,
        bias: SlotId,
        relu: bool,
        y: &mut Memory,
    ) -> Result<()> {
        let LinearShape { batch, inputs, outputs } = linear.shape;
        let size = Size { rows: batch, columns: outputs, steps: inputs };
        let weight = View::columns(store.part(weight, Part::Value), inputs);
        let finish = Finish { bias: Some(store.part(bias, Part::Value)), relu };
        self.product(linear, size, View::rows(x, inputs), weight, finish, y)
    }

    fn linear_backward_weights(
        &self,
        linear: &mut Linear,
        x: &Memory,
        dy: &Memory,
        store: &mut Store,
        weight: SlotId,
    ) -> Result<()> {
        let LinearShape { batch, inputs, outputs } = linear.shape;
        let size = Size { rows: outputs, columns: inputs, steps: batch };
        let dw = store.part_mut(weight, Part::Gradient);
        self.product(linear, size, View::columns(dy, outputs), View::rows(x, inputs), Finish::PLAIN, dw)
    }

    fn linear_backward_data(
        &self,
        linear: &mut Linear,
        dy: &Memory,
        store: &Store,
        weight: SlotId,
        dx: &mut Memory,
    ) -> Result<()> {
        let LinearShape { batch, inputs, outputs } = linear.shape;
        let size = Size { rows: batch, columns: inputs, steps: outputs };
        let weight = View::rows(store.part(weight, Part::Value), inputs);
        self.product(linear, size, View::rows(dy, outputs), weight, Finish::PLAIN, dx)
    }

    fn bias_relu_backward(
        &self,
        y: &Memory,
        dy: &mut Memory,
        rows: usize,
        columns: usize,
        relu: bool,
        store: &mut Store,
        bias: Option<SlotId>,
    ) -> Result<()> {
        let bias = bias.map(|bias| store.part_mut(bias, Part::Gradient));
        if relu || bias.is_some() {
            elementwise::bias_relu_backward(&self.threads, y, &mut dy[..rows * columns], columns, relu, bias);
        }
        Ok(())
    }

    fn relu_forward(&self, x: &Memory, y: &mut Memory, len: usize) -> Result<()> {
        elementwise::relu_forward(&self.threads, &x[..len], &mut y[..len]);
        Ok(())
    }

    fn relu_backward(&self, y: &Memory, dy: &Memory, dx: &mut Memory, len: usize) -> Result<()> {
        elementwise::relu_backward(&self.threads, y, dy, &mut dx[..len]);
        Ok(())
    }

    fn max_pool(&self, shape: PoolShape) -> Result<MaxPool> {
        MaxPool::new(shape)
    }

    fn max_pool_forward(&self, pool: &mut MaxPool, x: &Memory, y: &mut Memory) -> Result<()> {
        pool.forward(&self.threads, x, y);
        Ok(())
    }

    fn max_pool_backward(
        &self,
        pool: &mut MaxPool,
        _: &Memory,
        _: &Memory,
        dy: &Memory,
        dx: &mut Memory,
    ) -> Result<()> {
        pool.backward(&self.threads, dy, dx);
        Ok(())
    }

    fn average_pool_forward(&self, shape: PoolShape, x: &Memory, y: &mut Memory) -> Result<()> {
        pool::average_forward(&self.threads, shape, x, y);
        Ok(())
    }

    fn average_pool_backward(&self, shape: PoolShape, dy: &Memory, dx: &mut Memory) -> Result<()> {
        pool::average_backward(&self.threads, shape, dy, dx);
        Ok(())
    }

    fn norm(&self, shape: NormShape) -> Result<Norm> {
        Ok(Norm::new(shape))
    }

    fn norm_forward(
        &self,
        norm: &mut Norm,
        x: &Memory,
        store: &mut Store,
        slots: NormSlots,
        training: bool,
        relu: bool,
        y: &mut Memory,
    ) -> Result<()> {
        if training {
            let (mean, variance) = store.values_mut(slots.mean, slots.variance, Part::Value);
            norm.learn(&self.threads, x, mean, variance);
        } else {
            norm.recall(store.part(slots.mean, Part::Value), store.part(slots.variance, Part::Value));
        }
        let affine =
            Affine { weight: store.part(slots.weight, Part::Value), bias: store.part(slots.bias, Part::Value) };
        norm.apply(&self.threads, x, &affine, relu, y);
        Ok(())
    }

    fn norm_backward(
        &self,
        norm: &mut Norm,
        x: &Memory,
        y: &Memory,
        dy: &mut Memory,
        store: &mut Store,
        slots: NormSlots,
        relu: bool,
        dx: &mut Memory,
    ) -> Result<()> {
        let (weight, bias) = store.values_mut(slots.weight, slots.bias, Part::Gradient);
        norm.backward_affine(&self.threads, x, y, dy, relu, weight, bias);
        let value = store.part(slots.weight, Part::Value);
        let (weight, bias) = (store.part(slots.weight, Part::Gradient), store.part(slots.bias, Part::Gradient));
        norm.backward_data(&self.threads, x, dy, value, weight, bias, dx);
        Ok(())
    }

    fn dropout(&self, x: &Memory, y: &mut Memory, len: usize, rate: f32, key: u64) -> Result<()> {
        elementwise::dropout(&self.threads, &x[..len], &mut y[..len], rate, key);
        Ok(())
    }

    fn add(&self, a: &Memory, b: &Memory, y: &mut Memory, len: usize, relu: bool) -> Result<()> {
        elementwise::add(&self.threads, a, b, &mut y[..len], relu);
        Ok(())
    }

    fn accumulate(&self, x: &Memory, y: &mut Memory, len: usize) -> Result<()> {
        elementwise::accumulate(&self.threads, x, &mut y[..len]);
        Ok(())
    }

    fn copy(&self, x: &Memory, y: &mut Memory, len: usize) -> Result<()> {
        elementwise::copy(&self.threads, x, &mut y[..len]);
        Ok(())
    }

    fn loss(&self, _batch: usize, n_classes: usize) -> Result<Loss> {
        Ok(Loss::new(n_classes))
    }

    fn loss_forward(
        &self,
        loss: &mut Loss,
        logits: &Memory,
        input: &Input,
        rows: usize,
        gradient: Option<&mut Memory>,
    ) -> Result<()> {
        loss.forward(logits, &input.targets, rows, gradient.map(|gradient| &mut gradient[..]));
        Ok(())
    }

    fn judgement(&self, loss: &Loss) -> Result<Judgement> {
        Ok(loss.judgement)
    }
}
