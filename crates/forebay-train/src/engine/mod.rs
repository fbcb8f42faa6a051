//! Engines: the operations that training needs, on tensors of a device.
//!
//! Each engine is one folder here. Activations are NHWC in the engine's own precision; convolution weights are OHWI
//! (filter after filter, each in the layout of the image). Parameters, their gradients and the optimiser's moments are
//! f32 in one *store*, so an update is one sweep over memory. Some operations are fused for speed: convolution and
//! linear layers include bias and ReLU; batch norm and the residual sum include ReLU.

mod cpu;
mod cuda;

pub use cpu::Cpu;
pub(crate) use cpu::widest;
pub use cuda::{Cuda, CudaLibrary, Precision, cuda_devices, cuda_libraries};

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
    /// The output; its channels are the filters.
    pub output: Shape,
    /// Height and width of a filter, in pixels.
    pub kernel: usize,
    /// Pixels from one position to the next.
    pub stride: usize,
    /// Rows and columns of zeros on every side.
    pub padding: usize,
    /// Number of groups of channels and filters; each filter sees only its group.
    pub groups: usize,
}

impl ConvShape {
    /// Values per filter: with groups, a filter sees only part of the channels.
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
    /// Rows and columns around the image that never are a maximum.
    pub padding: usize,
}

/// The kind of values in a slot of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotKind {
    /// OHWI: filter after filter, each in the layout of the image.
    ConvWeight,
    LinearWeight,
    /// Biases, and batch norm's scale and shift.
    Vector,
    /// Running statistics: kept and saved, never changed by an optimiser.
    Statistic,
}

/// A parameter or statistic to place in a store.
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
    /// Samples times pixels: the number of values behind a channel's statistics.
    pub rows: usize,
    pub channels: usize,
    /// Added to the variance under the square root.
    pub epsilon: f32,
    /// Weight of the newest batch in the running statistics.
    pub momentum: f32,
}

/// How pixels become the first layer's input: `pixel * scale + shift` per channel.
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

/// Dropout keeps a value when the upper 32 bits of its random number reach this.
fn keep_limit(rate: f32) -> u64 {
    (f64::from(rate) * 4_294_967_296.0) as u64
}

/// Result of a loss layer for a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// Mean cross-entropy over the batch.
    pub loss: f32,
    /// Samples whose largest output is their label.
    pub n_right: usize,
}

/// Operations on a device.
///
/// Laws: operations take effect in the order of the calls, as far as results are visible; on the CPU, the same
/// arguments give the same bits. The caller guarantees lengths: a tensor may be longer than an operation needs, never
/// shorter. `Err` means that the device failed; the engine cannot be used any more.
pub trait Engine: Send + Sized + 'static {
    type Tensor: Send;
    /// All parameters and statistics of a network.
    type Store: Send;
    /// A slot for one batch in transfer to the device.
    type Input: Send;
    type Conv: Send;
    type Linear: Send;
    /// A planned batch norm, with what backward needs from forward.
    type Norm: Send;
    /// A planned max pool, with the positions of the maxima.
    type MaxPool: Send;
    type Loss: Send;

    /// A description of the device for records: "cpu, 2 threads, avx512".
    fn describe(&self) -> String;

    fn tensor(&self, len: usize) -> Result<Self::Tensor>;
    fn upload(&self, values: &[f32], to: &mut Self::Tensor) -> Result<()>;
    /// Copies the first `len` values to the host. Waits for all previous operations.
    fn download(&self, from: &Self::Tensor, len: usize) -> Result<Vec<f32>>;

    fn store(&self, slots: Vec<Slot>) -> Result<Self::Store>;
    /// A slot's values; borrowed if host and device share memory. Statistics only have a value.
    fn read<'a>(&self, store: &'a Self::Store, slot: SlotId, part: Part) -> Result<Cow<'a, [f32]>>;
    /// Values in place, in this order; statistics only have a value.
    fn view<'a>(&'a self, store: &'a Self::Store, wanted: &[(SlotId, Part)]) -> Result<Values<'a>>;
    fn write(&self, store: &mut Self::Store, slot: SlotId, part: Part, values: &[f32]) -> Result<()>;
    /// Applies the optimiser to every parameter. Statistics are unchanged.
    fn update(&self, store: &mut Self::Store, rule: &Rule) -> Result<()>;

    /// A slot for a batch of images and their targets.
    fn input(&self, batch: usize, image: Shape, n_classes: usize) -> Result<Self::Input>;
    /// Pixels to fill in place without a copy: `stage` sends these when it is given none.
    fn staging<'a>(&self, input: &'a mut Self::Input) -> Result<&'a mut [f32]>;
    /// Starts the transfer of a batch. May return before it has arrived; never reads the slices after returning.
    fn stage(
        &self,
        input: &mut Self::Input,
        images: Option<&[f32]>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()>;
    /// Like `stage`, but takes ownership of the pixels until they have left the host if that saves a copy; otherwise
    /// releases them at once.
    fn stage_lent(
        &self,
        input: &mut Self::Input,
        images: Box<dyn Lent>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()>;
    /// Releases memory lent for this slot if it has left the host. Does not wait.
    fn reclaim(&self, input: &mut Self::Input) -> Result<()>;
    /// Waits until all staged batches are on the device.
    fn wait_arrived(&self) -> Result<()>;
    /// Whether all operations called so far are done; batches may still be in transfer. Does not wait.
    fn is_idle(&self) -> Result<bool>;
    /// Locks pages, so batches lent from them need no copy on the host.
    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock>;
    /// The staged images; later operations wait for them.
    fn images<'a>(&self, input: &'a Self::Input) -> Result<&'a Self::Tensor>;
    /// Calls `work`, which calls the operations of a training step on the staged batch. For the same slot these are
    /// always the same operations on the same tensors, except for `dropout`'s keys, so an engine may record and replay
    /// them.
    fn repeat(&self, input: &Self::Input, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _ = input;
        work()
    }
    /// Marks the end of all operations on the staged batch: the slot may be filled again.
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

    /// If `relu`, sets dy to 0 where y is not positive; then the gradient of the bias is the sum of dy's rows.
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
    /// dx = dy where y is positive, otherwise 0.
    fn relu_backward(&self, y: &Self::Tensor, dy: &Self::Tensor, dx: &mut Self::Tensor, len: usize) -> Result<()>;

    fn max_pool(&self, shape: PoolShape) -> Result<Self::MaxPool>;
    /// The maximum of each window; the first of several equal ones.
    fn max_pool_forward(&self, pool: &mut Self::MaxPool, x: &Self::Tensor, y: &mut Self::Tensor) -> Result<()>;
    /// Passes each gradient to the position of its maximum.
    fn max_pool_backward(
        &self,
        pool: &mut Self::MaxPool,
        x: &Self::Tensor,
        y: &Self::Tensor,
        dy: &Self::Tensor,
        dx: &mut Self::Tensor,
    ) -> Result<()>;
    /// The mean of each window, without padding.
    fn average_pool_forward(&self, shape: PoolShape, x: &Self::Tensor, y: &mut Self::Tensor) -> Result<()>;
    /// Spreads each gradient evenly over its window.
    fn average_pool_backward(&self, shape: PoolShape, dy: &Self::Tensor, dx: &mut Self::Tensor) -> Result<()>;

    fn norm(&self, shape: NormShape) -> Result<Self::Norm>;
    /// Normalises by the batch's statistics and updates the running ones; outside training, by the running ones.
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
    /// The gradients of input, scale and shift after a forward pass in training; with `relu`, overwrites dy.
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

    /// y = x / (1 - rate) where the stream `key` keeps the value, otherwise 0. Applied to gradients, it is its own
    /// backward pass.
    fn dropout(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize, rate: f32, key: u64) -> Result<()>;
    /// y = a + b; with `relu`, at least 0.
    fn add(&self, a: &Self::Tensor, b: &Self::Tensor, y: &mut Self::Tensor, len: usize, relu: bool) -> Result<()>;
    /// y = y + x.
    fn accumulate(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize) -> Result<()>;
    /// y = x.
    fn copy(&self, x: &Self::Tensor, y: &mut Self::Tensor, len: usize) -> Result<()>;

    /// Plans the loss of `batch` samples of `n_classes` outputs.
    fn loss(&self, batch: usize, n_classes: usize) -> Result<Self::Loss>;
    /// Softmax cross-entropy of the first `rows` samples against the staged targets, and its gradient if requested.
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
