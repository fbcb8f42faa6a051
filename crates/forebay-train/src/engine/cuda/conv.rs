//! Convolutions by cuDNN.

use std::ffi::c_void;
use std::ptr::null_mut;

use cudarc::cudnn::sys as dnn;
use dnn::{
    cudnnConvolutionBwdDataAlgo_t as DataAlgorithm, cudnnConvolutionBwdFilterAlgo_t as WeightAlgorithm,
    cudnnConvolutionFwdAlgo_t as ForwardAlgorithm, cudnnMathType_t as Math,
};

use super::Precision;
use super::device::{Address, Device, check, failed};
use crate::engine::ConvShape;
use crate::error::Result;

/// How many algorithms cuDNN may propose.
const MOST: usize = 10;

/// A planned convolution: descriptors, and the algorithms that were fastest when tried.
pub struct Conv {
    pub(super) shape: ConvShape,
    x: dnn::cudnnTensorDescriptor_t,
    y: dnn::cudnnTensorDescriptor_t,
    w: dnn::cudnnFilterDescriptor_t,
    /// One for each direction, since each may want another kind of arithmetic.
    convolutions: [dnn::cudnnConvolutionDescriptor_t; 3],
    pub(super) choice: Choice,
}

// SAFETY: descriptors are plain memory of cuDNN and may be used from any thread.
unsafe impl Send for Conv {}

/// The algorithm of each direction, its arithmetic, and the workspace it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    forward: (ForwardAlgorithm, Math, usize),
    weights: (WeightAlgorithm, Math, usize),
    data: (DataAlgorithm, Math, usize),
}

impl Conv {
    /// Plans a convolution; with no known choice, all algorithms are tried.
    pub(super) fn new(device: &Device, shape: ConvShape, known: Option<Choice>) -> Result<Self> {
        device.enter()?;
        let (x, y) = (tensor(device, &shape, false)?, tensor(device, &shape, true)?);
        let w = filter(device, &shape)?;
        let convolution = convolution(device, &shape)?;
        let choice = match known {
            Some(choice) => choice,
            None => choose(device, (x, w, convolution, y))?,
        };
        check!(dnn::cudnnDestroyConvolutionDescriptor(convolution))?;
        let mut convolutions = [null_mut(); 3];
        for (descriptor, math) in convolutions.iter_mut().zip([choice.forward.1, choice.weights.1, choice.data.1]) {
            *descriptor = self::convolution(device, &shape)?;
            check!(dnn::cudnnSetConvolutionMathType(*descriptor, math))?;
        }
        Ok(Self { shape, x, y, w, convolutions, choice })
    }

    pub(super) fn forward(&self, device: &Device, x: Address, weight: Address, y: Address) -> Result<()> {
        device.enter()?;
        let (algorithm, _, room) = self.choice.forward;
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
        let (algorithm, _, room) = self.choice.weights;
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
        let (algorithm, _, room) = self.choice.data;
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
}

impl Drop for Conv {
    fn drop(&mut self) {
        // Descriptors are memory of the host; a failure to free them leaves nothing to be done.
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

type Descriptors = (
    dnn::cudnnTensorDescriptor_t,
    dnn::cudnnFilterDescriptor_t,
    dnn::cudnnConvolutionDescriptor_t,
    dnn::cudnnTensorDescriptor_t,
);

/// Tries all algorithms of all directions on the device; cuDNN lists the fastest first.
fn choose(device: &Device, (x, w, convolution, y): Descriptors) -> Result<Choice> {
    let (dnn, most) = (device.dnn, MOST as i32);
    let mut n = 0;
    /// The first algorithm that works, of those cuDNN lists.
    macro_rules! first {
        ($type:ty, $what:literal, $find:path, $($descriptor:expr),*) => {{
            // SAFETY: the structures are plain numbers, for which all bits zero is a value.
            let mut found: [$type; MOST] = unsafe { std::mem::zeroed() };
            check!($find(dnn, $($descriptor,)* most, &mut n, found.as_mut_ptr()))?;
            let works = |found: &&$type| found.status as u32 == 0 && suits(device, found.mathType);
            let best = found[..n as usize].iter().find(works).ok_or_else(|| failed($what, "cuDNN has no algorithm for this shape"))?;
            (best.algo, best.mathType, best.memory)
        }};
    }
    Ok(Choice {
        forward: first!(
            dnn::cudnnConvolutionFwdAlgoPerf_t,
            "a convolution",
            dnn::cudnnFindConvolutionForwardAlgorithm,
            x,
            w,
            convolution,
            y
        ),
        weights: first!(
            dnn::cudnnConvolutionBwdFilterAlgoPerf_t,
            "a convolution's weight gradient",
            dnn::cudnnFindConvolutionBackwardFilterAlgorithm,
            x,
            y,
            convolution,
            w
        ),
        data: first!(
            dnn::cudnnConvolutionBwdDataAlgoPerf_t,
            "a convolution's input gradient",
            dnn::cudnnFindConvolutionBackwardDataAlgorithm,
            w,
            y,
            convolution,
            x
        ),
    })
}

/// Strict f32 takes no algorithm that rounds to fewer bits.
fn suits(device: &Device, math: Math) -> bool {
    device.precision != Precision::F32 || math == Math::CUDNN_FMA_MATH
}
