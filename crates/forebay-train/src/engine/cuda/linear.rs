//! Linear layers and 1 × 1 convolutions by cuBLAS.
//!
//! cuBLAS is column-major, so a row-major matrix is its transpose there.

use std::ffi::c_void;

use blas::{cublasComputeType_t as Compute, cublasOperation_t as Operation, cudaDataType_t as Type};
use cudarc::cublas::sys as blas;

use super::Precision;
use super::device::{Address, Device, check};
use crate::engine::LinearShape;
use crate::error::Result;

const PLAIN: Operation = Operation::CUBLAS_OP_N;
const TURNED: Operation = Operation::CUBLAS_OP_T;

/// A factor: whether it is transposed, its address, and the length of its rows.
type Factor = (Operation, Address, usize);

/// y[batch, outputs] = x[batch, inputs] · w[outputs, inputs]ᵀ.
pub(super) fn forward(device: &Device, shape: LinearShape, x: Address, weight: Address, y: Address) -> Result<()> {
    let LinearShape { batch, inputs, outputs } = shape;
    multiply(device, (outputs, batch, inputs), (TURNED, weight, inputs), (PLAIN, x, inputs), (y, outputs, false))
}

/// dw[outputs, inputs] = dy[batch, outputs]ᵀ · x[batch, inputs], in f32 if `is_full`, otherwise in the activations'
/// type.
pub(super) fn backward_weights(
    device: &Device,
    shape: LinearShape,
    x: Address,
    dy: Address,
    dw: Address,
    is_full: bool,
) -> Result<()> {
    let LinearShape { batch, inputs, outputs } = shape;
    multiply(device, (inputs, outputs, batch), (PLAIN, x, inputs), (TURNED, dy, outputs), (dw, inputs, is_full))
}

/// dx[batch, inputs] = dy[batch, outputs] · w[outputs, inputs].
pub(super) fn backward_data(
    device: &Device,
    shape: LinearShape,
    dy: Address,
    weight: Address,
    dx: Address,
) -> Result<()> {
    let LinearShape { batch, inputs, outputs } = shape;
    multiply(device, (inputs, batch, outputs), (PLAIN, weight, inputs), (PLAIN, dy, outputs), (dx, inputs, false))
}

/// The product of `a` and `b` into `c`: its address, the length of its rows, and whether it is always f32.
fn multiply(
    device: &Device,
    size: (usize, usize, usize),
    a: Factor,
    b: Factor,
    c: (Address, usize, bool),
) -> Result<()> {
    device.enter()?;
    let kind = if device.precision == Precision::Bf16 { Type::CUDA_R_16BF } else { Type::CUDA_R_32F };
    let result = if c.2 { Type::CUDA_R_32F } else { kind };
    let compute = if device.precision == Precision::Tf32 {
        Compute::CUBLAS_COMPUTE_32F_FAST_TF32
    } else {
        Compute::CUBLAS_COMPUTE_32F
    };
    let (one, zero) = (1.0f32, 0.0f32);
    let number = |value: &f32| (&raw const *value).cast::<c_void>();
    let pointer = |address: Address| address as *mut c_void;
    let [m, n, k] = [size.0, size.1, size.2].map(|len| len as i32);
    check!(blas::cublasGemmEx(
        device.blas,
        a.0,
        b.0,
        m,
        n,
        k,
        number(&one),
        pointer(a.1),
        kind,
        a.2 as i32,
        pointer(b.1),
        kind,
        b.2 as i32,
        number(&zero),
        pointer(c.0),
        result,
        c.1 as i32,
        compute,
        blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT
    ))
}
