//! A CUDA device: context, streams, handles, kernels, and memory.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublas::sys as blas;
use cudarc::cudnn::sys as dnn;
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, LaunchConfig, PushKernelArg, result,
    sys as driver,
};
use cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

use forebay_units::Bytes;

use super::Precision;
use super::lock::Locks;
use crate::error::{Error, Result};
use crate::optimizer::{ARITHMETICS, Arithmetic, Constants};

const KERNELS: &str = include_str!("kernels.cu");

/// Threads per block, in every kernel.
pub(super) const BLOCK: u32 = 256;
/// Tensors are padded to a multiple of this many values, so elementwise kernels need no tail.
const PAD: usize = 64;
/// Workspace for cuBLAS; its own default for Hopper is 32 MiB.
const BLAS_WORKSPACE: usize = 64 << 20;

/// Names of all kernels in `kernels.cu`.
const NAMES: [&str; 31] = [
    "cast_in",
    "cast_out",
    "normalize",
    "relu_forward",
    "relu_backward",
    "add",
    "dropout",
    "bias_act_v",
    "bias_act_1",
    "mask_sum_v",
    "mask_sum_1",
    "finish_sum",
    "norm_sums_v",
    "norm_sums_1",
    "norm_finish",
    "norm_recall",
    "norm_apply_v",
    "norm_apply_1",
    "norm_back_sums_v",
    "norm_back_sums_1",
    "norm_back_finish",
    "norm_back_apply_v",
    "norm_back_apply_1",
    "max_pool_v",
    "max_pool_1",
    "max_pool_back_v",
    "max_pool_back_1",
    "average_pool",
    "average_pool_back",
    "loss_rows",
    "loss_total",
];

pub(super) type Address = u64;

pub struct Tensor {
    slice: CudaSlice<u8>,
    address: Address,
}

impl Tensor {
    pub(super) fn at(&self) -> Address {
        self.address
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.slice.len()
    }
}

pub(super) struct Device {
    pub(super) context: Arc<CudaContext>,
    pub(super) stream: Arc<CudaStream>,
    pub(super) copies: Arc<CudaStream>,
    pub(super) dnn: dnn::cudnnHandle_t,
    pub(super) blas: blas::cublasHandle_t,
    pub(super) precision: Precision,
    /// Host memory that the device can copy from (DMA).
    pub(super) locks: Locks,
    functions: HashMap<String, CudaFunction>,
    /// Scratch memory shared by all operations, which run one after the other on one stream.
    scratch: RefCell<Option<Tensor>>,
    /// Counts moves of the scratch memory: a recording made before a move holds a stale address.
    generation: Cell<u64>,
    /// Whether an operation that differs from step to step was called since this was last set.
    pub(super) drew_lots: Cell<bool>,
    _blas_workspace: Tensor,
}

// SAFETY: the handles may be used from any thread, one at a time, which `&mut` access to a network ensures; the device is not `Sync`.
unsafe impl Send for Device {}

/// Turns a status of cuDNN or cuBLAS into a result.
macro_rules! check {
    ($call:expr) => {{
        // SAFETY: handles and descriptors are alive, addresses are of this device and large enough for their descriptors.
        let status = unsafe { $call };
        if status as u32 == 0 { Ok(()) } else { Err($crate::engine::cuda::device::failed(stringify!($call), &format!("{status:?}"))) }
    }};
}
pub(super) use check;

pub(super) fn failed(call: &str, why: &str) -> Error {
    let name = call.split(['(', '<']).next().unwrap_or(call).trim();
    Error::Device { what: name.rsplit("::").next().unwrap_or(name).to_owned(), why: why.to_owned() }
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Self::Device { what: "a call of the CUDA driver".to_owned(), why: words(&error) }
    }
}

/// The driver's message and error name.
pub(super) fn words(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => format!("{} ({:?})", text.to_string_lossy(), error.0),
        Err(_) => format!("{:?}", error.0),
    }
}

fn not_opened(ordinal: usize, error: &DriverError) -> Error {
    let why = match CudaContext::device_count() {
        Ok(n) if ordinal >= n as usize => format!("the driver reports {n} device(s), counted from 0"),
        _ => words(error),
    };
    Error::Device { what: format!("opening CUDA device {ordinal}"), why }
}

impl Device {
    pub(super) fn open(ordinal: usize, precision: Precision) -> Result<Self> {
        let context = CudaContext::new(ordinal).map_err(|error| not_opened(ordinal, &error))?;
        // SAFETY: all work goes to one stream, and copies wait for each other by events of our own.
        unsafe { context.disable_event_tracking() };
        let (stream, copies) = (context.new_stream()?, context.new_stream()?);
        let functions = compile(&context, precision)?;
        let (mut dnn, mut blas) = (std::ptr::null_mut(), std::ptr::null_mut());
        check!(dnn::cudnnCreate(&mut dnn))?;
        check!(dnn::cudnnSetStream(dnn, stream.cu_stream().cast()))?;
        check!(blas::cublasCreate_v2(&mut blas))?;
        check!(blas::cublasSetStream_v2(blas, stream.cu_stream().cast()))?;
        let workspace = allocate(&stream, BLAS_WORKSPACE)?;
        check!(blas::cublasSetWorkspace_v2(blas, workspace.at() as *mut c_void, BLAS_WORKSPACE))?;
        let scratch = RefCell::new(None);
        let locks = Locks::default();
        Ok(Self {
            context,
            stream,
            copies,
            dnn,
            blas,
            precision,
            locks,
            functions,
            scratch,
            generation: Cell::new(0),
            drew_lots: Cell::new(false),
            _blas_workspace: workspace,
        })
    }

    /// Makes the device current on this thread, as cuDNN and cuBLAS require.
    pub(super) fn enter(&self) -> Result<()> {
        Ok(self.context.bind_to_thread()?)
    }

    /// Whether the main stream is idle.
    pub(super) fn is_idle(&self) -> Result<bool> {
        self.enter()?;
        // SAFETY: the stream is alive.
        match unsafe { driver::cuStreamQuery(self.stream.cu_stream()) } {
            driver::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => Ok(status.result().map(|()| true)?),
        }
    }

    /// Bytes of a value of an activation.
    pub(super) fn size(&self) -> usize {
        if self.precision == Precision::Bf16 { 2 } else { 4 }
    }

    /// Values of an activation that a kernel processes at once.
    pub(super) fn vector(&self) -> usize {
        16 / self.size()
    }

    pub(super) fn tensor(&self, len: usize) -> Result<Tensor> {
        allocate(&self.stream, len.next_multiple_of(PAD) * self.size())
    }

    /// Zeroed memory for `len` values of four bytes.
    pub(super) fn floats(&self, len: usize) -> Result<Tensor> {
        allocate(&self.stream, len.next_multiple_of(PAD) * 4)
    }

    /// Scratch memory of at least this many bytes; later work on the stream may overwrite it.
    pub(super) fn scratch(&self, n_bytes: usize) -> Result<Address> {
        let mut scratch = self.scratch.borrow_mut();
        if scratch.as_ref().is_none_or(|scratch| scratch.n_bytes() < n_bytes) {
            *scratch = Some(allocate(&self.stream, n_bytes)?);
            self.generation.set(self.generation.get() + 1);
        }
        Ok(scratch.as_ref().map_or(0, Tensor::at))
    }

    /// Frees the scratch memory after trials that may have needed more than the final choice.
    pub(super) fn shed_scratch(&self) {
        *self.scratch.borrow_mut() = None;
        self.generation.set(self.generation.get() + 1);
    }

    /// How often the scratch memory has moved; old addresses are invalid after a move.
    pub(super) fn scratch_generation(&self) -> u64 {
        self.generation.get()
    }

    pub(super) fn to_device(&self, values: &[f32], to: Address) -> Result<()> {
        self.enter()?;
        // SAFETY: the destination was allocated for these values; the stream is waited for before the slice can go.
        unsafe { result::memcpy_htod_async(to, values, self.stream.cu_stream())? };
        Ok(self.stream.synchronize()?)
    }

    pub(super) fn to_host(&self, from: Address, len: usize) -> Result<Vec<f32>> {
        self.enter()?;
        let mut values = vec![0.0; len];
        // SAFETY: as in `to_device`, the other way round.
        unsafe { result::memcpy_dtoh_async(&mut values, from, self.stream.cu_stream())? };
        self.stream.synchronize()?;
        Ok(values)
    }

    /// Copies from one place on the device to another.
    pub(super) fn copy(&self, from: Address, to: Address, n_bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: both were allocated for at least so many bytes.
        unsafe { result::memcpy_dtod_async(to, from, n_bytes, self.stream.cu_stream())? };
        Ok(())
    }

    /// Milliseconds per run of `n` runs on the main stream, after one untimed run.
    pub(super) fn time(&self, n: usize, run: impl Fn() -> Result<()>) -> Result<f32> {
        let event = || self.context.new_event(Some(driver::CUevent_flags::CU_EVENT_DEFAULT));
        let (begin, end) = (event()?, event()?);
        run()?;
        begin.record(&self.stream)?;
        (0..n).try_for_each(|_| run())?;
        end.record(&self.stream)?;
        Ok(begin.elapsed_ms(&end)? / n as f32)
    }

    /// Starts a kernel on the main stream.
    pub(super) fn launch(&self, name: &str, grid: (u32, u32), arguments: &[Argument]) -> Result<()> {
        self.launch_on(&self.stream, name, grid, (BLOCK, 1), arguments)
    }

    pub(super) fn launch_on(
        &self,
        stream: &CudaStream,
        name: &str,
        grid: (u32, u32),
        block: (u32, u32),
        arguments: &[Argument],
    ) -> Result<()> {
        let function = self.functions.get(name).expect("every kernel that is used is in the list of names");
        let mut launch = stream.launch_builder(function);
        for argument in arguments {
            argument.push(&mut launch);
        }
        let config =
            LaunchConfig { grid_dim: (grid.0, grid.1, 1), block_dim: (block.0, block.1, 1), shared_mem_bytes: 0 };
        // SAFETY: the arguments are those of the kernel's signature, and what they point to lives as long as the stream's work:
        // memory is given back in the stream's order.
        unsafe { launch.launch(config) }.map_err(|error| failed(name, &error.to_string()))?;
        Ok(())
    }

    /// Blocks for a kernel that strides over `n` items.
    pub(super) fn blocks(n: usize) -> (u32, u32) {
        // Four times what 132 multiprocessors hold at once; more blocks would only wait.
        ((n.div_ceil(BLOCK as usize).clamp(1, 132 * 32)) as u32, 1)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // A failure of the device during cleanup cannot be handled.
        let _ = self.enter();
        let _ = self.copies.synchronize();
        let _ = self.stream.synchronize();
        let _ = check!(dnn::cudnnDestroy(self.dnn));
        let _ = check!(blas::cublasDestroy_v2(self.blas));
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Argument {
    /// An address, or a count of 64 bits.
    Wide(u64),
    Count(u32),
    Number(f32),
    Flag(i32),
    Pool([u32; 9]),
    Constants(Constants),
}

impl Argument {
    fn push<'a>(&'a self, launch: &mut cudarc::driver::LaunchArgs<'a>) {
        match self {
            Self::Wide(value) => launch.arg(value),
            Self::Count(value) => launch.arg(value),
            Self::Number(value) => launch.arg(value),
            Self::Flag(value) => launch.arg(value),
            Self::Pool(value) => launch.arg(value),
            Self::Constants(value) => launch.arg(value),
        };
    }
}

fn allocate(stream: &Arc<CudaStream>, n_bytes: usize) -> Result<Tensor> {
    let slice = stream.alloc_zeros::<u8>(n_bytes.max(1)).map_err(|error| not_allocated(stream, n_bytes, &error))?;
    let address = slice.device_ptr(stream).0;
    Ok(Tensor { slice, address })
}

fn not_allocated(stream: &CudaStream, n_bytes: usize, error: &DriverError) -> Error {
    let why = match stream.context().mem_get_info() {
        Ok((free, total)) if error.0 == driver::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            let (free, total) = (Bytes(free as u64), Bytes(total as u64));
            format!("{free} of {total} are free; use a smaller batch")
        }
        _ => words(error),
    };
    Error::Device { what: format!("allocating {} on the device", Bytes(n_bytes as u64)), why }
}

/// Compiles the kernels for this device.
fn compile(context: &Arc<CudaContext>, precision: Precision) -> Result<HashMap<String, CudaFunction>> {
    let (major, minor) = context.compute_capability()?;
    if precision == Precision::Bf16 && major < 8 {
        let why = format!("compute capability {major}.{minor}; bf16 needs 8.0");
        return Err(Error::Device { what: "bf16 on this device".to_owned(), why });
    }
    let bf16 = i32::from(precision == Precision::Bf16);
    let options = vec![format!("--gpu-architecture=compute_{major}{minor}"), format!("-DBF16={bf16}")];
    let options = CompileOptions { options, ..CompileOptions::default() };
    let program = compile_ptx_with_opts(source(), options)
        .map_err(|error| Error::Device { what: "compiling the kernels".to_owned(), why: format!("{error:?}") })?;
    let module = context.load_module(program).map_err(|error| {
        let what = "loading the kernels (the driver may be older than NVRTC)".to_owned();
        Error::Device { what, why: words(&error) }
    })?;
    let updates = ARITHMETICS.iter().flat_map(|rule| [false, true].map(|typed| update_kernel(rule.name, typed)));
    let names = NAMES.into_iter().map(str::to_owned).chain(updates);
    names.map(|name| module.load_function(&name).map(|function| (name, function)).map_err(Error::from)).collect()
}

/// The update kernel of a rule: from gradients of the activations' type, or f32.
pub(super) fn update_kernel(rule: &str, typed: bool) -> String {
    format!("{rule}_{}", if typed { 't' } else { 'f' })
}

/// The common kernels, and two for each optimiser.
fn source() -> String {
    let mut source = KERNELS.to_owned();
    for Arithmetic { name, n_moments, cuda, .. } in ARITHMETICS {
        source += cuda;
        for (typed, gradient) in [(true, "T"), (false, "float")] {
            source += &format!("\nUPDATE({}, {gradient}, {n_moments}, {name})\n", update_kernel(name, typed));
        }
    }
    source
}
