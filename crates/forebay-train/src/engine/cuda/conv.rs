//! Convolutions by cuDNN, or as matrix products if possible and faster.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::cudnn::sys as dnn;
use dnn::{
    cudnnConvolutionBwdDataAlgo_t as DataAlgorithm, cudnnConvolutionBwdFilterAlgo_t as WeightAlgorithm,
    cudnnConvolutionFwdAlgo_t as ForwardAlgorithm, cudnnMathType_t as Math,
};

use super::Precision;
use super::device::{Address, Device, check, failed};
use super::linear;
use crate::engine::{ConvShape, LinearShape};
use crate::error::{Error, Result};

/// Algorithms that cuDNN may propose per direction.
const MOST: usize = 10;
/// Candidates that are timed here. cuDNN tries each once, which separates good from bad but does not find the best.
const RACERS: usize = 3;
/// Timed runs of each candidate.
const LAPS: usize = 5;

/// A planned convolution: descriptors, and the fastest algorithms found.
pub struct Conv {
    pub(super) shape: ConvShape,
    x: dnn::cudnnTensorDescriptor_t,
    y: dnn::cudnnTensorDescriptor_t,
    w: dnn::cudnnFilterDescriptor_t,
    /// One per direction, since each may use different arithmetic.
    convolutions: [dnn::cudnnConvolutionDescriptor_t; 3],
    pub(super) choice: Choice,
}

// SAFETY: descriptors are plain memory of cuDNN and may be used from any thread.
unsafe impl Send for Conv {}

#[derive(Debug, Clone, Copy)]
enum Way<A> {
    /// By an algorithm of cuDNN, with its arithmetic and the workspace it needs.
    Dnn(A, Math, usize),
    /// As a matrix product, which is possible for 1 × 1 filters.
    Product,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    forward: Way<ForwardAlgorithm>,
    weights: Way<WeightAlgorithm>,
    data: Way<DataAlgorithm>,
}

impl Conv {
    /// Plans a convolution; with no known choice, all algorithms are tried.
    pub(super) fn new(device: &Device, shape: ConvShape, known: Option<Choice>) -> Result<Self> {
        check_size(&shape)?;
        device.enter()?;
        let (x, y, w) = (tensor(device, &shape, false)?, tensor(device, &shape, true)?, filter(device, &shape)?);
        let mut convolutions = [null_mut(); 3];
        for descriptor in &mut convolutions {
            *descriptor = convolution(device, &shape)?;
        }
        let choice = Choice { forward: Way::Product, weights: Way::Product, data: Way::Product };
        let mut conv = Self { shape, x, y, w, convolutions, choice };
        match known {
            Some(choice) => conv.choice = choice,
            None => conv.race(device)?,
        }
        conv.set_arithmetic()?;
        Ok(conv)
    }

    pub(super) fn forward(&self, device: &Device, x: Address, weight: Address, y: Address) -> Result<()> {
        device.enter()?;
        let Way::Dnn(algorithm, _, room) = self.choice.forward else {
            return linear::forward(device, self.product(), x, weight, y);
        };
        let scratch = device.scratch(room)?;
        check!(dnn::cudnnConvolutionForward(
            device.dnn,
            one(),
            self.x,
            at(x),
            self.w,
            at(weight),
            self.convolutions[0],
            algorithm,
            at(scratch),
            room,
            zero(),
            self.y,
            at(y)
        ))
    }

    pub(super) fn backward_weights(&self, device: &Device, x: Address, dy: Address, dw: Address) -> Result<()> {
        device.enter()?;
        let Way::Dnn(algorithm, _, room) = self.choice.weights else {
            return linear::backward_weights(device, self.product(), x, dy, dw, false);
        };
        let scratch = device.scratch(room)?;
        check!(dnn::cudnnConvolutionBackwardFilter(
            device.dnn,
            one(),
            self.x,
            at(x),
            self.y,
            at(dy),
            self.convolutions[1],
            algorithm,
            at(scratch),
            room,
            zero(),
            self.w,
            at(dw)
        ))
    }

    pub(super) fn backward_data(&self, device: &Device, dy: Address, weight: Address, dx: Address) -> Result<()> {
        device.enter()?;
        let Way::Dnn(algorithm, _, room) = self.choice.data else {
            return linear::backward_data(device, self.product(), dy, weight, dx);
        };
        let scratch = device.scratch(room)?;
        check!(dnn::cudnnConvolutionBackwardData(
            device.dnn,
            one(),
            self.w,
            at(weight),
            self.y,
            at(dy),
            self.convolutions[2],
            algorithm,
            at(scratch),
            room,
            zero(),
            self.x,
            at(dx)
        ))
    }

    /// The matrices of a 1 × 1 filter.
    fn product(&self) -> LinearShape {
        let ConvShape { batch, input, output, .. } = self.shape;
        LinearShape { batch: batch * output.pixels(), inputs: input.channels, outputs: output.channels }
    }

    fn is_product(&self) -> bool {
        let ConvShape { kernel, stride, padding, groups, .. } = self.shape;
        (kernel, stride, padding, groups) == (1, 1, 0, 1)
    }

    /// Gives each direction's descriptor the arithmetic of its algorithm.
    fn set_arithmetic(&self) -> Result<()> {
        /// The arithmetic of an algorithm, if it is cuDNN's.
        fn of<A>(way: &Way<A>) -> Option<Math> {
            if let Way::Dnn(_, math, _) = way { Some(*math) } else { None }
        }
        let Choice { forward, weights, data } = &self.choice;
        for (descriptor, math) in self.convolutions.into_iter().zip([of(forward), of(weights), of(data)]) {
            if let Some(math) = math {
                check!(dnn::cudnnSetConvolutionMathType(descriptor, math))?;
            }
        }
        Ok(())
    }

    /// Tries the candidates for each direction and keeps the fastest.
    fn race(&mut self, device: &Device) -> Result<()> {
        let candidates = Candidates::find(device, self)?;
        let ConvShape { batch, input, output, .. } = self.shape;
        let (x, y) = (device.tensor(batch * input.len())?, device.tensor(batch * output.len())?);
        let w = device.tensor(output.channels * self.shape.filter_len())?;
        let (x, y, w) = (x.at(), y.at(), w.at());
        /// Runs the candidates of a direction and chooses.
        macro_rules! race {
            ($direction:ident, $run:ident, $a:expr, $b:expr, $c:expr) => {{
                let mut best = None;
                for way in candidates.$direction {
                    self.choice.$direction = way;
                    self.set_arithmetic()?;
                    // A candidate that cannot run here, for example for lack of memory, is out.
                    let Ok(time) = device.time(LAPS, || self.$run(device, $a, $b, $c)) else { continue };
                    if best.is_none_or(|(least, _)| time < least) {
                        best = Some((time, way));
                    }
                }
                let lost = || failed("a convolution", "none of cuDNN's algorithms for this shape runs");
                self.choice.$direction = best.ok_or_else(lost)?.1;
            }};
        }
        race!(forward, forward, x, w, y);
        race!(weights, backward_weights, x, y, w);
        race!(data, backward_data, y, w, x);
        device.shed_scratch();
        Ok(())
    }
}

impl Drop for Conv {
    fn drop(&mut self) {
        // Descriptors are host memory; a failure to free them cannot be handled.
        let _ = check!(dnn::cudnnDestroyTensorDescriptor(self.x));
        let _ = check!(dnn::cudnnDestroyTensorDescriptor(self.y));
        let _ = check!(dnn::cudnnDestroyFilterDescriptor(self.w));
        for convolution in self.convolutions {
            let _ = check!(dnn::cudnnDestroyConvolutionDescriptor(convolution));
        }
    }
}

fn one() -> *const c_void {
    (&raw const ONE).cast()
}

fn zero() -> *const c_void {
    (&raw const ZERO).cast()
}

static ONE: f32 = 1.0;
static ZERO: f32 = 0.0;

fn at(address: Address) -> *mut c_void {
    address as *mut c_void
}

fn data_type(device: &Device) -> dnn::cudnnDataType_t {
    match device.precision {
        Precision::Bf16 => dnn::cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        Precision::F32 | Precision::Tf32 => dnn::cudnnDataType_t::CUDNN_DATA_FLOAT,
    }
}

const NHWC: dnn::cudnnTensorFormat_t = dnn::cudnnTensorFormat_t::CUDNN_TENSOR_NHWC;

/// Refuses shapes whose number of values does not fit cuDNN's 31 bits.
fn check_size(shape: &ConvShape) -> Result<()> {
    let n = shape.batch.saturating_mul(shape.input.len().max(shape.output.len()));
    if n <= i32::MAX as usize {
        return Ok(());
    }
    let what = format!("a convolution of {} × {} to {}", shape.batch, shape.input, shape.output);
    let why = format!("cuDNN supports at most {} values per tensor; use a smaller batch", i32::MAX);
    Err(Error::Device { what, why })
}

fn tensor(device: &Device, shape: &ConvShape, output: bool) -> Result<dnn::cudnnTensorDescriptor_t> {
    let image = if output { shape.output } else { shape.input };
    let [n, c, h, w] = [shape.batch, image.channels, image.height, image.width].map(|len| len as i32);
    let mut descriptor = null_mut();
    check!(dnn::cudnnCreateTensorDescriptor(&mut descriptor))?;
    check!(dnn::cudnnSetTensor4dDescriptor(descriptor, NHWC, data_type(device), n, c, h, w))?;
    Ok(descriptor)
}

fn filter(device: &Device, shape: &ConvShape) -> Result<dnn::cudnnFilterDescriptor_t> {
    let (filters, channels) = (shape.output.channels as i32, (shape.input.channels / shape.groups) as i32);
    let kernel = shape.kernel as i32;
    let mut descriptor = null_mut();
    check!(dnn::cudnnCreateFilterDescriptor(&mut descriptor))?;
    check!(dnn::cudnnSetFilter4dDescriptor(descriptor, data_type(device), NHWC, filters, channels, kernel, kernel))?;
    Ok(descriptor)
}

fn convolution(device: &Device, shape: &ConvShape) -> Result<dnn::cudnnConvolutionDescriptor_t> {
    let (padding, stride) = (shape.padding as i32, shape.stride as i32);
    let mode = dnn::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
    let sums = dnn::cudnnDataType_t::CUDNN_DATA_FLOAT;
    let mut descriptor = null_mut();
    check!(dnn::cudnnCreateConvolutionDescriptor(&mut descriptor))?;
    check!(dnn::cudnnSetConvolution2dDescriptor(descriptor, padding, padding, stride, stride, 1, 1, mode, sums))?;
    check!(dnn::cudnnSetConvolutionGroupCount(descriptor, shape.groups as i32))?;
    let math = match device.precision {
        Precision::Bf16 => Math::CUDNN_TENSOR_OP_MATH,
        Precision::Tf32 => Math::CUDNN_DEFAULT_MATH,
        Precision::F32 => Math::CUDNN_FMA_MATH,
    };
    check!(dnn::cudnnSetConvolutionMathType(descriptor, math))?;
    Ok(descriptor)
}

/// Candidates for the fastest algorithm in each direction.
struct Candidates {
    forward: Vec<Way<ForwardAlgorithm>>,
    weights: Vec<Way<WeightAlgorithm>>,
    data: Vec<Way<DataAlgorithm>>,
}

impl Candidates {
    /// Lets cuDNN try all its algorithms on the device; it lists the fastest first.
    fn find(device: &Device, conv: &Conv) -> Result<Self> {
        let (dnn, most) = (device.dnn, MOST as i32);
        let mut n = 0;
        /// The first algorithms that work, of those cuDNN lists.
        macro_rules! first {
            ($type:ty, $what:literal, $find:path, $($descriptor:expr),*) => {{
                // SAFETY: the structures are plain numbers, for which all bits zero is a value.
                let mut found: [$type; MOST] = unsafe { std::mem::zeroed() };
                check!($find(dnn, $($descriptor,)* most, &mut n, found.as_mut_ptr()))?;
                let works = |found: &&$type| found.status as u32 == 0 && suits(device, found.mathType);
                let found = found[..n as usize].iter().filter(works).take(RACERS);
                let ways = found.map(|found| Way::Dnn(found.algo, found.mathType, found.memory));
                let ways: Vec<_> = ways.chain(conv.is_product().then_some(Way::Product)).collect();
                if ways.is_empty() {
                    return Err(failed($what, "cuDNN has no algorithm for this shape"));
                }
                ways
            }};
        }
        Ok(Self {
            forward: first!(
                dnn::cudnnConvolutionFwdAlgoPerf_t,
                "a convolution",
                dnn::cudnnFindConvolutionForwardAlgorithm,
                conv.x,
                conv.w,
                conv.convolutions[0],
                conv.y
            ),
            weights: first!(
                dnn::cudnnConvolutionBwdFilterAlgoPerf_t,
                "a convolution's weight gradient",
                dnn::cudnnFindConvolutionBackwardFilterAlgorithm,
                conv.x,
                conv.y,
                conv.convolutions[1],
                conv.w
            ),
            data: first!(
                dnn::cudnnConvolutionBwdDataAlgoPerf_t,
                "a convolution's input gradient",
                dnn::cudnnFindConvolutionBackwardDataAlgorithm,
                conv.w,
                conv.y,
                conv.convolutions[2],
                conv.x
            ),
        })
    }
}

/// Strict f32 excludes algorithms that round to fewer bits.
fn suits(device: &Device, math: Math) -> bool {
    device.precision != Precision::F32 || math == Math::CUDNN_FMA_MATH
}
