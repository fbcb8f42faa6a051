//! The launches of a step, recorded once and replayed.
//!
//! A step of a deep network is hundreds of launches, which are the same every time except for the batch's input slot.
//! Each slot therefore has a recording (CUDA graph). A replay costs the host one call, and the device does not wait for
//! single launches.
//!
//! The first run of a slot is not recorded: it allocates memory, which a recording must not do. A recording contains
//! addresses, so it is made again when the scratch memory has moved. A step with random behaviour, whose keys differ
//! every time, is not recorded.

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::device::Device;
use crate::error::Result;

/// The state of a slot's recording.
#[derive(Default)]
pub(super) enum Tape {
    /// Never run: the first run only warms up, since libraries allocate in it.
    #[default]
    Empty,
    Ready,
    /// Recorded while the scratch memory had this generation.
    Recorded(Recording, u64),
    Unfit,
}

pub(super) struct Recording(CudaGraph);

// SAFETY: a graph may be used from any thread, one at a time, which `&mut` access to a network ensures.
unsafe impl Send for Recording {}

impl Tape {
    /// Runs `work`, replaying the recording if there is one.
    pub(super) fn run(&mut self, device: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        if let Self::Recorded(recording, generation) = self {
            if *generation == device.scratch_generation() {
                return Ok(recording.0.launch()?);
            }
            *self = Self::Empty;
        }
        match self {
            Self::Ready => self.record(device, work),
            Self::Unfit => work(),
            Self::Empty | Self::Recorded(..) => self.listen(device, work),
        }
    }

    /// Runs the work and checks whether it can be recorded.
    fn listen(&mut self, device: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        device.drew_lots.set(false);
        work()?;
        *self = if device.drew_lots.get() { Self::Unfit } else { Self::Ready };
        Ok(())
    }

    fn record(&mut self, device: &Device, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let generation = device.scratch_generation();
        *self = Self::Unfit;
        device.stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        let called = work();
        let ended = device.stream.end_capture(CUgraphInstantiate_flags(0));
        if let (Ok(()), Ok(Some(graph))) = (called, ended) {
            graph.launch()?;
            *self = Self::Recorded(Recording(graph), generation);
            return Ok(());
        }
        // An operation cannot be recorded; nothing has run yet.
        work()
    }
}
