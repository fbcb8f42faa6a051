//! The engine that computes on an NVIDIA GPU.
//!
//! cuDNN runs the convolutions, cuBLAS the linear layers; the rest are our own kernels (`kernels.cu`, compiled when the
//! device is opened). All libraries are loaded at run time. Activations are NHWC in f32 or bf16; parameters are always
//! f32.

mod conv;
mod device;
mod input;
mod library;
mod linear;
mod lock;
mod loss;
mod pool;
mod precision;
mod rows;
mod store;
mod tape;
mod view;

use std::borrow::Cow;
use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use conv::{Choice, Conv};
use device::Argument::{Count, Flag, Number, Wide};
use device::{Address, Argument, Device, Tensor};
use input::Input;
pub use library::{CudaLibrary, cuda_devices, cuda_libraries};
use lock::Way;
use loss::Loss;
use pool::MaxPool;
pub use precision::Precision;
use rows::{Affine, Norm};
use store::Store;

use super::{
    ConvShape, Engine, Judgement, LinearShape, NormShape, NormSlots, Normalize, Part, PoolShape, Slot, SlotId,
    keep_limit,
};
use crate::error::{Error, Result};
use crate::lent::{HostMemory, Lent, PageLock};
use crate::optimizer::Rule;
use crate::shape::Shape;
use crate::view::Values;

/// Threads that copy pixels into page-locked memory: about as many as a PCIe link can absorb.
const COPY_THREADS: usize = 4;

/// An NVIDIA GPU.
///
/// Results may differ between runs in the last bits: cuDNN's fastest algorithms add in any order.
pub struct Cuda {
    /// The fastest algorithms per shape, so equal layers are tried once.
    choices: RefCell<Vec<(ConvShape, Choice)>>,
    copiers: rayon::ThreadPool,
    device: Device,
}

impl Cuda {
    /// Opens a device, counted from 0.
    ///
    /// # Errors
    /// When a library is missing, the device does not exist, or it does not support the precision.
    pub fn new(ordinal: usize, precision: Precision) -> Result<Self> {
        Self::with_folders(ordinal, precision, &[])
    }

    /// Opens a device; libraries that the system does not find are searched in these folders, for example those of pip
    /// packages.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_folders(ordinal: usize, precision: Precision, folders: &[PathBuf]) -> Result<Self> {
        library::check(folders)?;
        let device = Device::open(ordinal, precision)?;
        let name = |i| format!("forebay:copy-{i}");
        let builder = rayon::ThreadPoolBuilder::new().num_threads(COPY_THREADS).thread_name(name);
        let copiers = builder.build().map_err(|source| Error::Threads { threads: COPY_THREADS, source })?;
        Ok(Self { choices: RefCell::new(Vec::new()), copiers, device })
    }
}

fn to_host(device: &Device, from: Address, len: usize) -> Result<Vec<f32>> {
    if device.size() == 4 {
        return device.to_host(from, len);
    }
    let floats = device.scratch(4 * len)?;
    device.launch("cast_out", Device::blocks(len), &[Wide(from), Wide(floats), Wide(len as u64)])?;
    device.to_host(floats, len)
}

fn to_device(device: &Device, values: &[f32], to: Address) -> Result<()> {
    if device.size() == 4 {
        return device.to_device(values, to);
    }
    let floats = device.scratch(4 * values.len())?;
    device.to_device(values, floats)?;
    device.launch("cast_in", Device::blocks(values.len()), &[Wide(floats), Wide(to), Wide(values.len() as u64)])
}

impl Cuda {
    /// Adds a bias and applies ReLU, in place.
    fn bias_act(&self, y: &Tensor, bias: Address, rows: usize, columns: usize, relu: bool) -> Result<()> {
        let wide = columns.is_multiple_of(self.device.vector());
        let items = rows * columns / if wide { self.device.vector() } else { 1 };
        let arguments = [Wide(y.at()), Wide(bias), Wide(items as u64), Count(columns as u32), Flag(relu.into())];
        self.device.launch(if wide { "bias_act_v" } else { "bias_act_1" }, Device::blocks(items), &arguments)
    }

    /// The number of whole vectors that hold this many values.
    fn vectors(&self, len: usize) -> usize {
        len.div_ceil(self.device.vector())
    }

    fn elementwise(&self, name: &'static str, len: usize, before: &[Argument], after: &[Argument]) -> Result<()> {
        let vectors = self.vectors(len);
        let arguments = [before, &[Wide(vectors as u64)], after].concat();
        self.device.launch(name, Device::blocks(vectors), &arguments)
    }
}

impl Engine for Cuda {
    type Tensor = Tensor;
    type Store = Store;
    type Input = Input;
    type Conv = Conv;
    type Linear = LinearShape;
    type Norm = Norm;
    type MaxPool = MaxPool;
    type Loss = Loss;

    fn describe(&self) -> String {
        let name = self.device.context.name().unwrap_or_else(|_| "a GPU".to_owned());
        format!("cuda:{}, {name}, {}", self.device.context.ordinal(), self.device.precision)
    }

    fn tensor(&self, len: usize) -> Result<Tensor> {
        self.device.tensor(len)
    }

    fn upload(&self, values: &[f32], to: &mut Tensor) -> Result<()> {
        to_device(&self.device, values, to.at())
    }

    fn download(&self, from: &Tensor, len: usize) -> Result<Vec<f32>> {
        to_host(&self.device, from.at(), len)
    }

    fn store(&self, slots: Vec<Slot>) -> Result<Store> {
        Store::new(&self.device, slots)
    }

    fn read<'a>(&self, store: &'a Store, slot: SlotId, part: Part) -> Result<Cow<'a, [f32]>> {
        Ok(Cow::Owned(store.read(&self.device, slot, part)?))
    }

    fn view<'a>(&'a self, store: &'a Store, wanted: &[(SlotId, Part)]) -> Result<Values<'a>> {
        Ok(Values::There(Box::new(store.view(&self.device, wanted))))
    }

    fn write(&self, store: &mut Store, slot: SlotId, part: Part, values: &[f32]) -> Result<()> {
        store.write(&self.device, slot, part, values)
    }

    fn update(&self, store: &mut Store, rule: &Rule) -> Result<()> {
        store.update(&self.device, rule)
    }

    fn input(&self, batch: usize, image: Shape, n_classes: usize) -> Result<Input> {
        Input::new(&self.device, batch, image, n_classes)
    }

    fn staging<'a>(&self, input: &'a mut Input) -> Result<&'a mut [f32]> {
        input.staging()
    }

    fn stage(&self, input: &mut Input, images: Option<&[f32]>, targets: &[f32], normalize: &Normalize) -> Result<()> {
        input.stage(&self.device, &self.copiers, images, targets, normalize)
    }

    fn stage_lent(
        &self,
        input: &mut Input,
        images: Box<dyn Lent>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()> {
        input.stage_lent(&self.device, &self.copiers, images, targets, normalize)
    }

    fn reclaim(&self, input: &mut Input) -> Result<()> {
        input.reclaim()
    }

    fn wait_arrived(&self) -> Result<()> {
        Ok(self.device.copies.synchronize()?)
    }

    fn is_idle(&self) -> Result<bool> {
        self.device.is_idle()
    }

    fn lock_pages(&self, memory: Arc<dyn HostMemory>) -> Result<PageLock> {
        let (context, stream) = (Arc::clone(&self.device.context), Arc::clone(&self.device.copies));
        self.device.locks.lock(Way { context, stream }, memory).map(PageLock::of)
    }

    fn images<'a>(&self, input: &'a Input) -> Result<&'a Tensor> {
        input.images(&self.device)
    }

    fn repeat(&self, input: &Input, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        input.tape.borrow_mut().run(&self.device, work)
    }

    fn release(&self, input: &mut Input) -> Result<()> {
        input.release(&self.device)
    }

    fn conv(&self, shape: ConvShape) -> Result<Conv> {
        let known = self.choices.borrow().iter().find(|(known, _)| *known == shape).map(|(_, choice)| *choice);
        let conv = Conv::new(&self.device, shape, known)?;
        if known.is_none() {
            self.choices.borrow_mut().push((shape, conv.choice));
        }
        Ok(conv)
    }

    fn conv_forward(
        &self,
        conv: &mut Conv,
        x: &Tensor,
        store: &Store,
        weight: SlotId,
        bias: Option<SlotId>,
        relu: bool,
        y: &mut Tensor,
    ) -> Result<()> {
        conv.forward(&self.device, x.at(), store.weight(&self.device, weight), y.at())?;
        let (rows, columns) = (conv.shape.batch * conv.shape.output.pixels(), conv.shape.output.channels);
        match bias {
            Some(bias) => self.bias_act(y, store.value(bias), rows, columns, relu),
            None if relu => self.elementwise("relu_forward", rows * columns, &[Wide(y.at()), Wide(y.at())], &[]),
            None => Ok(()),
        }
    }

    fn conv_backward_weights(
        &self,
        conv: &mut Conv,
        x: &Tensor,
        dy: &Tensor,
        store: &mut Store,
        weight: SlotId,
    ) -> Result<()> {
        conv.backward_weights(&self.device, x.at(), dy.at(), store.gradient(&self.device, weight))
    }

    fn conv_backward_data(
        &self,
        conv: &mut Conv,
        dy: &Tensor,
        store: &Store,
        weight: SlotId,
        dx: &mut Tensor,
    ) -> Result<()> {
        conv.backward_data(&self.device, dy.at(), store.weight(&self.device, weight), dx.at())
    }

    fn linear(&self, shape: LinearShape) -> Result<LinearShape> {
        Ok(shape)
    }

    fn linear_forward(
        &self,
        linear: &mut LinearShape,
        x: &Tensor,
        store: &Store,
        weight: SlotId,
        bias: SlotId,
        relu: bool,
        y: &mut Tensor,
    ) -> Result<()> {
        linear::forward(&self.device, *linear, x.at(), store.weight(&self.device, weight), y.at())?;
        self.bias_act(y, store.value(bias), linear.batch, linear.outputs, relu)
    }

    fn linear_backward_weights(
        &self,
        linear: &mut LinearShape,
        x: &Tensor,
        dy: &Tensor,
        store: &mut Store,
        weight: SlotId,
    ) -> Result<()> {
        linear::backward_weights(&self.device, *linear, x.at(), dy.at(), store.gradient(&self.device, weight), true)
    }

    fn linear_backward_data(
        &self,
        linear: &mut LinearShape,
        dy: &Tensor,
        store: &Store,
        weight: SlotId,
        dx: &mut Tensor,
    ) -> Result<()> {
        linear::backward_data(&self.device, *linear, dy.at(), store.weight(&self.device, weight), dx.at())
    }

    fn bias_relu_backward(
        &self,
        y: &Tensor,
        dy: &mut Tensor,
        rows: usize,
        columns: usize,
        relu: bool,
        store: &mut Store,
        bias: Option<SlotId>,
    ) -> Result<()> {
        let bias = bias.map(|bias| store.gradient(&self.device, bias));
        rows::mask_and_sum(&self.device, y.at(), dy.at(), rows, columns, relu, bias)
    }

    fn relu_forward(&self, x: &Tensor, y: &mut Tensor, len: usize) -> Result<()> {
        self.elementwise("relu_forward", len, &[Wide(x.at()), Wide(y.at())], &[])
    }

    fn relu_backward(&self, y: &Tensor, dy: &Tensor, dx: &mut Tensor, len: usize) -> Result<()> {
        self.elementwise("relu_backward", len, &[Wide(y.at()), Wide(dy.at()), Wide(dx.at())], &[])
    }

    fn max_pool(&self, shape: PoolShape) -> Result<MaxPool> {
        MaxPool::new(&self.device, shape)
    }

    fn max_pool_forward(&self, pool: &mut MaxPool, x: &Tensor, y: &mut Tensor) -> Result<()> {
        pool.forward(&self.device, x.at(), y.at())
    }

    fn max_pool_backward(
        &self,
        pool: &mut MaxPool,
        _: &Tensor,
        _: &Tensor,
        dy: &Tensor,
        dx: &mut Tensor,
    ) -> Result<()> {
        pool.backward(&self.device, dy.at(), dx.at())
    }

    fn average_pool_forward(&self, shape: PoolShape, x: &Tensor, y: &mut Tensor) -> Result<()> {
        pool::average_forward(&self.device, &shape, x.at(), y.at())
    }

    fn average_pool_backward(&self, shape: PoolShape, dy: &Tensor, dx: &mut Tensor) -> Result<()> {
        pool::average_backward(&self.device, &shape, dy.at(), dx.at())
    }

    fn norm(&self, shape: NormShape) -> Result<Norm> {
        Norm::new(&self.device, shape)
    }

    fn norm_forward(
        &self,
        norm: &mut Norm,
        x: &Tensor,
        store: &mut Store,
        slots: NormSlots,
        training: bool,
        relu: bool,
        y: &mut Tensor,
    ) -> Result<()> {
        let (mean, variance) = (store.value(slots.mean), store.value(slots.variance));
        if training {
            norm.learn(&self.device, x.at(), mean, variance)?;
        } else {
            norm.recall(&self.device, mean, variance)?;
        }
        let affine = Affine { weight: store.value(slots.weight), bias: store.value(slots.bias) };
        norm.apply(&self.device, x.at(), y.at(), affine, relu)
    }

    fn norm_backward(
        &self,
        norm: &mut Norm,
        x: &Tensor,
        _: &Tensor,
        dy: &mut Tensor,
        store: &mut Store,
        slots: NormSlots,
        relu: bool,
        dx: &mut Tensor,
    ) -> Result<()> {
        let affine = Affine { weight: store.value(slots.weight), bias: store.value(slots.bias) };
        let gradient = Affine {
            weight: store.gradient(&self.device, slots.weight),
            bias: store.gradient(&self.device, slots.bias),
        };
        norm.backward(&self.device, x.at(), dy.at(), dx.at(), affine, gradient, relu)
    }

    fn dropout(&self, x: &Tensor, y: &mut Tensor, len: usize, rate: f32, key: u64) -> Result<()> {
        self.device.drew_lots.set(true);
        let after = [Wide(key), Count(keep_limit(rate) as u32), Number(1.0 / (1.0 - rate))];
        self.elementwise("dropout", len, &[Wide(x.at()), Wide(y.at())], &after)
    }

    fn add(&self, a: &Tensor, b: &Tensor, y: &mut Tensor, len: usize, relu: bool) -> Result<()> {
        self.elementwise("add", len, &[Wide(a.at()), Wide(b.at()), Wide(y.at())], &[Flag(relu.into())])
    }

    fn accumulate(&self, x: &Tensor, y: &mut Tensor, len: usize) -> Result<()> {
        self.elementwise("add", len, &[Wide(x.at()), Wide(y.at()), Wide(y.at())], &[Flag(0)])
    }

    fn copy(&self, x: &Tensor, y: &mut Tensor, len: usize) -> Result<()> {
        self.device.copy(x.at(), y.at(), len * self.device.size())
    }

    fn loss(&self, batch: usize, n_classes: usize) -> Result<Loss> {
        Loss::new(&self.device, batch, n_classes)
    }

    fn loss_forward(
        &self,
        loss: &mut Loss,
        logits: &Tensor,
        input: &Input,
        rows: usize,
        gradient: Option<&mut Tensor>,
    ) -> Result<()> {
        loss.forward(&self.device, logits.at(), input.targets(), rows, gradient.map(|gradient| gradient.at()))
    }

    fn judgement(&self, loss: &Loss) -> Result<Judgement> {
        loss.judgement(&self.device)
    }
}
