//! A CUDA device that decodes batches.

use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PinnedHostSlice,
    PushKernelArg, result, sys as driver,
};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};
use forebay_jpeg::device::{Arguments, Batch, KERNEL_NAMES, KERNELS};

use crate::device::{Decoded, Device, Samples, Times};
use crate::error::{Error, Result};

/// Threads per block. The kernels share nothing between threads, so this only has to fill the device.
const BLOCK: u32 = 128;
/// Memory is allocated in multiples of this, so that batches of similar size do not allocate again and again.
const GRANULE: usize = 16 << 20;

/// A CUDA device with the kernels, and memory for one batch.
pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    functions: Arc<HashMap<&'static str, CudaFunction>>,
    memory: Option<CudaSlice<u8>>,
    /// Page-locked, as the device copies from there and to there.
    upload: Option<PinnedHostSlice<u8>>,
    landing: Option<PinnedHostSlice<u8>>,
    /// Begin, bytes copied, kernels done, all done.
    events: [CudaEvent; 4],
    /// The last batch's samples, as a range of the memory.
    samples: std::ops::Range<usize>,
}

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Argument(Arguments);

// SAFETY: plain numbers in C's layout.
unsafe impl DeviceRepr for Argument {}

impl Gpu {
    /// Opens a device and compiles the kernels for it.
    ///
    /// # Errors
    /// When a library is missing, there is no such device, or the kernels do not compile for it.
    pub fn open(ordinal: usize) -> Result<Self> {
        // SAFETY: they only try to load NVIDIA's libraries, which have no harmful initialisers.
        let (has_driver, has_nvrtc) =
            unsafe { (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()) };
        if !has_driver || !has_nvrtc {
            return Err(Error::MissingLibrary(if has_driver { "NVRTC" } else { "the CUDA driver" }));
        }
        let context = CudaContext::new(ordinal)?;
        // SAFETY: all work of a `Gpu` goes to one stream, and no memory is shared between streams.
        unsafe { context.disable_event_tracking() };
        let functions = Arc::new(compile(&context)?);
        Self::on(context, functions)
    }

    fn on(context: Arc<CudaContext>, functions: Arc<HashMap<&'static str, CudaFunction>>) -> Result<Self> {
        let stream = context.new_stream()?;
        // A thread that waits for one sleeps: its core is for others.
        let event = || context.new_event(Some(driver::CUevent_flags::CU_EVENT_BLOCKING_SYNC));
        let events = [event()?, event()?, event()?, event()?];
        Ok(Self { context, stream, functions, memory: None, upload: None, landing: None, events, samples: 0..0 })
    }

    /// Bytes of the device's memory that are free.
    ///
    /// # Errors
    /// When the device fails.
    pub fn free_bytes(&self) -> Result<usize> {
        Ok(self.context.mem_get_info()?.0)
    }

    /// The address of the last batch's samples on the device.
    pub fn address(&self) -> Option<u64> {
        self.memory.as_ref().map(|memory| memory.device_ptr(&self.stream).0 + self.samples.start as u64)
    }

    fn launch(&self, batch: &Batch<'_>, base: u64) -> Result<()> {
        let argument = Argument(batch.arguments(base));
        for launch in batch.launches() {
            let function = self.functions.get(launch.kernel).expect("every kernel of a batch is in the list of names");
            let grid = launch.n_items.div_ceil(BLOCK).max(1);
            let config = LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
            let mut builder = self.stream.launch_builder(function);
            builder.arg(&argument).arg(&launch.round);
            // SAFETY: these are the kernel's arguments, and the memory they point to lives as long as the stream's work.
            unsafe { builder.launch(config) }.map_err(|error| Error::device(launch.kernel, error.to_string()))?;
        }
        Ok(())
    }

    fn make_room(&mut self, batch: &Batch<'_>) -> Result<()> {
        ensure(&self.context, &mut self.upload, batch.n_upload_bytes())?;
        let n_bytes = batch.n_device_bytes();
        if self.memory.as_ref().is_none_or(|memory| memory.len() < n_bytes) {
            self.samples = 0..0;
            self.memory = None;
            // SAFETY: the kernels read nothing that was not written before.
            let memory = unsafe { self.stream.alloc::<u8>(n_bytes.next_multiple_of(GRANULE)) };
            let what = || format!("allocating {n_bytes} bytes on the device");
            self.memory = Some(memory.map_err(|error| Error::device(what(), Error::from(error).to_string()))?);
        }
        Ok(())
    }
}

impl Device for Gpu {
    fn sibling(&self) -> Result<Box<dyn Device>> {
        Ok(Box::new(Self::on(Arc::clone(&self.context), Arc::clone(&self.functions))?))
    }

    fn describe(&self) -> String {
        self.context.name().unwrap_or_else(|_| "a CUDA device".to_owned())
    }

    fn decode(&mut self, batch: &Batch<'_>) -> Result<Decoded> {
        self.context.bind_to_thread()?;
        self.make_room(batch)?;
        let (Some(memory), Some(upload)) = (&self.memory, &mut self.upload) else {
            return Err(Error::device("decoding", "there is no memory"));
        };
        let base = memory.device_ptr(&self.stream).0;
        let bytes = &mut upload.as_mut_slice()?[..batch.n_upload_bytes()];
        batch.upload(bytes);
        let (stream, zeroed) = (self.stream.cu_stream(), batch.zeroed());
        self.events[0].record(&self.stream)?;
        // SAFETY: the memory has room for the batch, and the bytes stay as they are until the stream has been waited for.
        unsafe {
            result::memcpy_htod_async(base, bytes, stream)?;
            self.events[1].record(&self.stream)?;
            result::memset_d8_async(base + zeroed.start as u64, 0, zeroed.len(), stream)?;
        }
        let queued = self.launch(batch, base);
        let mut faults = vec![0_u8; batch.faults().len()];
        let copied = queued.and_then(|()| {
            self.events[2].record(&self.stream)?;
            // SAFETY: both hold so many bytes; the stream is waited for before `faults` can go.
            unsafe { result::memcpy_dtoh_async(&mut faults, base + batch.faults().start as u64, stream)? };
            self.events[3].record(&self.stream)?;
            Ok(self.events[3].synchronize()?)
        });
        // Even after a failure: the device must no longer read what was queued.
        self.stream.synchronize()?;
        copied?;
        self.samples = batch.out();
        let is_marked = faults.as_chunks::<4>().0.iter().map(|fault| *fault != [0; 4]).collect();
        let [begin, uploaded, done, _] = &self.events;
        let times = Times { upload_ms: begin.elapsed_ms(uploaded)?, kernels_ms: uploaded.elapsed_ms(done)? };
        Ok(Decoded { is_marked, times })
    }

    /// The samples come to page-locked memory.
    fn samples(&mut self) -> Result<Samples<'_>> {
        self.context.bind_to_thread()?;
        let n_bytes = self.samples.len();
        ensure(&self.context, &mut self.landing, n_bytes)?;
        let (Some(memory), Some(landing)) = (&self.memory, &mut self.landing) else {
            return Ok(Samples { bytes: &[], download_ms: 0.0 });
        };
        let from = memory.device_ptr(&self.stream).0 + self.samples.start as u64;
        let to = &mut landing.as_mut_slice()?[..n_bytes];
        let [begin, end, ..] = &self.events;
        begin.record(&self.stream)?;
        // SAFETY: both hold so many bytes; the stream is waited for before anyone reads them.
        unsafe { result::memcpy_dtoh_async(to, from, self.stream.cu_stream())? };
        end.record(&self.stream)?;
        let waited = end.synchronize();
        self.stream.synchronize()?;
        waited?;
        Ok(Samples { bytes: &landing.as_slice()?[..n_bytes], download_ms: begin.elapsed_ms(end)? })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // A device that fails here has no work left that could use the memory.
        let _ = self.stream.synchronize();
    }
}

/// Page-locked memory of at least so many bytes.
fn ensure(context: &Arc<CudaContext>, memory: &mut Option<PinnedHostSlice<u8>>, n_bytes: usize) -> Result<()> {
    if memory.as_ref().is_none_or(|memory| memory.len() < n_bytes) {
        *memory = None;
        // SAFETY: bytes are valid whatever they are, and they are written before they are read.
        let slice = unsafe { context.alloc_pinned_with_flags(n_bytes.max(1).next_multiple_of(GRANULE), 0) };
        *memory = Some(slice?);
    }
    Ok(())
}

fn compile(context: &Arc<CudaContext>) -> Result<HashMap<&'static str, CudaFunction>> {
    let module = context.load_module(program(context.compute_capability()?)?)?;
    KERNEL_NAMES.into_iter().map(|name| Ok((name, module.load_function(name)?))).collect()
}

/// The kernels for devices of a compute capability; needs NVRTC, but no device.
fn program((major, minor): (i32, i32)) -> Result<Ptx> {
    // Fused operations round once, the CPU's rounds twice.
    let options = vec![format!("--gpu-architecture=compute_{major}{minor}"), "--fmad=false".to_owned()];
    let options = CompileOptions { options, ..CompileOptions::default() };
    compile_ptx_with_opts(KERNELS, options)
        .map_err(|error| Error::device("compiling the kernels", format!("{error:?}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use forebay_testing::{Reason, not_run};

    #[test]
    fn nvrtc_compiles_every_kernel_for_every_generation_from_turing_on() {
        // SAFETY: it only tries to load the library, which has no harmful initialisers.
        if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
            return not_run(
                Reason::NoGpu,
                "NVRTC is missing: `pip install nvidia-cuda-nvrtc`, and put its folder into LD_LIBRARY_PATH",
            );
        }
        for capability in [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0)] {
            let ptx = program(capability).unwrap().to_src();
            for name in KERNEL_NAMES {
                assert!(ptx.contains(&format!(".entry {name}(")), "{name} for {capability:?}");
            }
        }
    }
}
