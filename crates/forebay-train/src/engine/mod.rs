//! What computes: the operations that training needs, over tensors on a device.
//!
//! An engine is one folder here. Activations are NHWC in the engine's own precision; convolution weights are OHWI (one
//! filter after the other, each as it lies over the image); parameters, their gradients and the optimiser's moments are
//! f32 in one *store*, so that an update is one sweep over memory. Operations that gain from it are fused:
//! convolution and linear layers take bias and ReLU along, batch norm and the residual sum take ReLU along.

mod cpu;
mod cuda;

pub use cpu::Cpu;
pub(crate) use cpu::widest;
pub use cuda::{Cuda, CudaLibrary, Precision, cuda_libraries};

use std::borrow::Cow;
use std::sync::Arc;

use crate::error::Result;
use crate::lent::{HostMemory, Lent, PageLock};
use crate::optimizer::Rule;
use crate::shape::Shape;
use crate::view::Values;

/// A convolution's dimensions; kernel, stride and padding are the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConvShape {
    pub batch: usize,
    pub input: Shape,
    /// What comes out; its channels are the filters.
    pub output: Shape,
    /// Height and width of a filter, in pixels.
    pub kernel: usize,
    /// Pixels from one place to the next.
    pub stride: usize,
    /// Rows and columns of zeros on every side.
    pub padding: usize,
    /// Parts that channels and filters are cut into; each filter sees its part alone.
    pub groups: usize,
}

impl ConvShape {
    /// Values per filter: with groups, a filter sees only its part of the channels.
    pub fn filter_len(&self) -> usize {
        self.kernel * self.kernel * self.input.channels / self.groups
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearShape {
    pub batch: usize,
    pub inputs: usize,
    pub outputs: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolShape {
    pub batch: usize,
    pub input: Shape,
    pub output: Shape,
    pub kernel: usize,
    /// Pixels from one window to the next.
    pub stride: usize,
    /// Rows and columns around the image that never win a maximum.
    pub padding: usize,
}

/// What a slot of the store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    /// OHWI: one filter after the other, each as it lies over the image.
    ConvWeight,
    LinearWeight,
    /// Biases, and batch norm's scale and shift.
    Vector,
    /// Running statistics: kept and saved, never touched by an optimiser.
    Statistic,
}

/// A parameter or statistic to be placed in a store.
#[derive(Debug, Clone)]
pub struct Slot {
    pub kind: SlotKind,
    pub values: Vec<f32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotId(pub(crate) usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Value,
    Gradient,
    /// A value that the optimiser keeps, counted from 0.
    Moment(usize),
}

/// The slots of a batch norm layer.
#[derive(Debug, Clone, Copy)]
pub struct NormSlots {
    pub weight: SlotId,
    pub bias: SlotId,
    pub mean: SlotId,
    pub variance: SlotId,
}

#[derive(Debug, Clone, Copy)]
pub struct NormShape {
    /// Samples times pixels: what a channel's statistics are taken over.
    pub rows: usize,
    pub channels: usize,
    /// Added to the variance under the root.
    pub epsilon: f32,
    /// Share of the newest batch in the running statistics.
    pub momentum: f32,
}

/// How pixels become the first layer's input: `pixel * scale + shift`, by channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Normalize {
    pub scale: Vec<f32>,
    pub shift: Vec<f32>,
}

impl Normalize {
    pub fn identity(channels: usize) -> Self {
        Self { scale: vec![1.0; channels], shift: vec![0.0; channels] }
    }

    /// From each channel's mean and standard deviation.
    pub fn of(mean: &[f32], deviation: &[f32]) -> Self {
        let scale = deviation.iter().map(|d| 1.0 / d);
        let shift = mean.iter().zip(deviation).map(|(m, d)| -m / d);
        Self { scale: scale.collect(), shift: shift.collect() }
    }
}

/// A value is kept by dropout when the upper 32 bits of its random number reach this.
fn keep_limit(rate: f32) -> u64 {
    (f64::from(rate) * 4_294_967_296.0) as u64
}

/// What a loss layer found in a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Mean cross-entropy over the batch.
    pub loss: f32,
    /// Samples whose largest output is their label.
    pub n_right: usize,
}

/// Operations on a device.
///
/// Laws: operations take effect in the order they are called in, as far as their results can be seen; those of the same
/// arguments give the same bits on the CPU. Lengths are the caller's promise: a tensor may be longer than what an
/// operation uses of it, never shorter. `Err` means that the device failed; the engine is then of no further use.
pub trait Engine: Send + Sized + 'static {
    type Tensor: Send;
    /// All parameters and statistics of a network.
    type Store: Send;
    /// A place for one batch on its way to the device.
    type Input: Send;
    type Conv: Send;
    type Linear: Send;
    /// A planned batch norm, with what backward needs of forward.
    type Norm: Send;
    /// A planned max pool, with the places of the maxima.
    type MaxPool: Send;
    type Loss: Send;

    /// The device in words, for records: "cpu, 2 threads, avx512".
    fn describe(&self) -> String;

    fn tensor(&self, len: usize) -> Result<Self::Tensor>;
    fn upload(&self, values: &[f32], to: &mut Self::Tensor) -> Result<()>;
    /// The first `len` values, to the host. Waits for all operations before it.
    fn download(&self, from: &Self::Tensor, len: usize) -> Result<Vec<f32>>;

    fn store(&self, slots: Vec<Slot>) -> Result<Self::Store>;
    /// A slot's values; borrowed where host and device are one. Statistics have nothing but a value.
    fn read<'a>(&self, store: &'a Self::Store, slot: SlotId, part: Part) -> Result<Cow<'a, [f32]>>;
    /// Values where they lie, in this order; statistics have nothing but a value.
    fn view<'a>(&'a self, store: &'a Self::Store, wanted: &[(SlotId, Part)]) -> Result<Values<'a>>;
    fn write(&self, store: &mut Self::Store, slot: SlotId, part: Part, values: &[f32]) -> Result<()>;
    /// Applies the optimiser to every parameter. Statistics stay as they are.
    fn update(&self, store: &mut Self::Store, rule: &Rule) -> Result<()>;

    /// A place for a batch of images and their targets.
    fn input(&self, batch: usize, image: Shape, n_classes: usize) -> Result<Self::Input>;
    /// Pixels that can be filled in place, without a copy: what `stage` sends when it is given none.
    fn staging<'a>(&self, input: &'a mut Self::Input) -> Result<&'a mut [f32]>;
    /// Sends a batch on its way. May return before it has arrived, and never reads the slices after returning.
    fn stage(
        &self,
        input: &mut Self::Input,
        images: Option<&[f32]>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()>;
    /// As `stage`, of pixels that are kept until they have left the host where that saves a copy, and let go at once where not.
    fn stage_lent(
        &self,
        input: &mut Self::Input,
        images: Box<dyn Lent>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()>;
    /// Lets go of what was lent for this place, if it has left the host. Does not wait.
    fn reclaim(&self, input: &mut Self::Input) -> Result<()>;
    /// Waits until all staged batches are on the device.
    fn wait_arrived(&self) -> Result<()>;
    /// Whether all operations called so far are done; batches may still be on their way. Does not wait.
    fn is_idle(&self) -> Result<bool>;
    /// Locks pages, so that what is lent from them need not be copied on the host.
    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock>;
    /// The staged images; operations that follow wait for them.
    fn images<'a>(&self, input: &'a Self::Input) -> Result<&'a Self::Tensor>;
    /// Calls `work`, which calls the operations of a training step on the staged batch: the same ones, on the same tensors, every time
    /// this is called with the same place, but for `dropout`'s keys. So an engine may record them and play them back.
    fn repeat(&self, input: &Self::Input, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _ = input;
        work()
    }
    /// Tells that all operations on the staged batch have been called, so that the place may be filled anew.
    fn release(&self, input: &mut Self::Input) -> Result<()>;

    fn conv(&self, shape: ConvShape) -> Result<Self::Conv>;
    /// y = act(x ∗ w + bias).
    #[expect(clippy::too_many_arguments, reason = "one fused operation")]
    fn conv_forward(
        &self,
        conv: &mut Self::Conv,
        x: &Self::Tensor,
        store: &Self::Store,
        weight: SlotId,
        bias: Option<SlotId>,
        relu: bool,
        y: &mut Self::Tensor,
    ) -> Result<()>;
    fn conv_backward_weights(
        &self,
        conv: &mut Self::Conv,
        x: &Self::Tensor,
        dy: &Self::Tensor,
        store: &mut Self::Store,
        weight: SlotId,
    ) -> Result<()>;
    fn conv_backward_data(
        &self,
        conv: &mut Self::Conv,
        dy: &Self::Tensor,
        store: &Self::Store,
        weight: SlotId,
        dx: &mut Self::Tensor,
    ) -> Result<()>;

    fn linear(&self, shape: LinearShape) -> Result<Self::Linear>;
    /// y = act(x · wᵀ + bias).
    #[expect(clippy::too_many_arguments, reason = "one fused operation")]
    fn linear_forward(
        &self,
        linear: &mut Self::Linear,
        x: &Self::Tensor,
        store: &Self::Store,
        weight: SlotId,
        bias: SlotId,
        relu: bool,
        y: &mut Self::Tensor,
    ) -> Result<()>;
    fn linear_backward_weights(
        &self,
        linear: &mut Self::Linear,
        x: &Self::Tensor,
        dy: &Self::Tensor,
        store: &mut Self::Store,
        weight: SlotId,
    ) -> Result<()>;
    fn linear_backward_data(
        &self,
        linear: &mut Self::Linear,
        dy: &Self::Tensor,
        store: &Self::Store,
        weight: SlotId,
        dx: &mut Self::Tensor,
    ) -> Result<()>;

    /// Where `relu` and y is not positive, dy becomes 0; then the bias' gradient is the sum of dy's rows.
    #[expect(clippy::too_many_arguments, reason = "one fused operation")]
    fn bias_relu_backward(
        &self,
        y: &Self::Tensor,
        dy: &mut Self::Tensor,
        rows: usize,
        columns: usize,
        relu: bool,
        store: &mut Self::Store,
        bias: Option<SlotId>,
    ) -> Result<()>;
    /// y = max(x, 0).
    fn relu_forward(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize) -> Result<()>;
    /// dx = dy where y is positive, else 0.
    fn relu_backward(&self, y: &Self::Tensor, dy: &Self::Tensor, dx: &mut Self::Tensor, len: usize) -> Result<()>;

    fn max_pool(&self, shape: PoolShape) -> Result<Self::MaxPool>;
    /// The largest value of each window; the first of equals.
    fn max_pool_forward(&self, pool: &mut Self::MaxPool, x: &Self::Tensor, y: &mut Self::Tensor) -> Result<()>;
    /// Each gradient to the place of its maximum.
    fn max_pool_backward(
        &self,
        pool: &mut Self::MaxPool,
        x: &Self::Tensor,
        y: &Self::Tensor,
        dy: &Self::Tensor,
        dx: &mut Self::Tensor,
    ) -> Result<()>;
    /// The mean of each window; there is no padding.
    fn average_pool_forward(&self, shape: PoolShape, x: &Self::Tensor, y: &mut Self::Tensor) -> Result<()>;
    /// Each gradient spread evenly over its window.
    fn average_pool_backward(&self, shape: PoolShape, dy: &Self::Tensor, dx: &mut Self::Tensor) -> Result<()>;

    fn norm(&self, shape: NormShape) -> Result<Self::Norm>;
    /// Normalises by the batch's own statistics and updates the running ones, or, not training, by the running ones.
    #[expect(clippy::too_many_arguments, reason = "one fused operation")]
    fn norm_forward(
        &self,
        norm: &mut Self::Norm,
        x: &Self::Tensor,
        store: &mut Self::Store,
        slots: NormSlots,
        training: bool,
        relu: bool,
        y: &mut Self::Tensor,
    ) -> Result<()>;
    /// The gradients of input, scale and shift after a forward pass in training; with `relu`, dy is spoilt.
    #[expect(clippy::too_many_arguments, reason = "one fused operation")]
    fn norm_backward(
        &self,
        norm: &mut Self::Norm,
        x: &Self::Tensor,
        y: &Self::Tensor,
        dy: &mut Self::Tensor,
        store: &mut Self::Store,
        slots: NormSlots,
        relu: bool,
        dx: &mut Self::Tensor,
    ) -> Result<()>;

    /// y = x / (1 - rate) where the stream `key` keeps the value, else 0. The same call on gradients is its backward pass.
    fn dropout(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize, rate: f32, key: u64) -> Result<()>;
    /// y = a + b, and with `relu` not below 0.
    fn add(&self, a: &Self::Tensor, b: &Self::Tensor, y: &mut Self::Tensor, len: usize, relu: bool) -> Result<()>;
    /// y = y + x.
    fn accumulate(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize) -> Result<()>;
    /// y = x.
    fn copy(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize) -> Result<()>;

    /// Plans the loss of `batch` samples of `n_classes` outputs.
    fn loss(&self, batch: usize, n_classes: usize) -> Result<Self::Loss>;
    /// Softmax cross-entropy of the first `rows` samples against the staged targets, and its gradient where wanted.
    fn loss_forward(
        &self,
        loss: &mut Self::Loss,
        logits: &Self::Tensor,
        input: &Self::Input,
        rows: usize,
        gradient: Option<&mut Self::Tensor>,
    ) -> Result<()>;
    /// The last result. Waits for it.
    fn judgement(&self, loss: &Self::Loss) -> Result<Judgement>;
}
