//! A step's launches, recorded once and played back.
//!
//! A step of a deep network is hundreds of launches, which are the same every time but for the place of the batch. So each place has a
//! tape. Played back, they cost the host one call, and the device needs not wait for the next launch to arrive.
//!
//! The first run of a place is as always: it makes the memory that a recording must not make. What is recorded holds addresses; so a tape
//! is recorded anew when the scratch memory has moved, and a step that draws lots, whose keys differ every time, is not recorded at all.

use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};

use super::device::Device;
use crate::error::Result;

/// What is known of a place's step.
#[derive(Default)]
pub(super) enum Tape {
    /// Never run: the first run only warms up, since libraries allocate in it.
    #[default]
    Empty,
    Ready,
    /// It was recorded, when the scratch memory was of this generation.
    Recorded(Recording, u64),
    Unfit,
}

pub(super) struct Recording(CudaGraph);

// SAFETY: a graph may be used from any thread, one at a time, which `&mut` access to a network ensures.
unsafe impl Send for Recording {}

impl Tape {
    /// Runs `work`, by playing it back where it was recorded.
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

    /// Runs the work and sees whether it is fit to be recorded.
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
        // Some operation cannot be recorded; nothing has been run yet.
        work()
    }
}
