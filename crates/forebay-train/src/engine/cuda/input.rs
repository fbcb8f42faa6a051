//! Transfer of batches to the device.
//!
//! Pixels go through page-locked memory, which the device can copy by itself, on a separate stream. A batch is thus
//! transferred while the previous one is computed; two events order the streams.

use std::cell::RefCell;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream, PinnedHostSlice, result};
use rayon::prelude::*;

use super::device::{Address, Argument, BLOCK, Device, Tensor};
use super::tape::Tape;
use crate::engine::Normalize;
use crate::error::Result;
use crate::lent::Lent;
use crate::shape::Shape;

/// Floats that one thread copies at a time.
const PIECE: usize = 1 << 18;

pub struct Input {
    pixels: PinnedHostSlice<f32>,
    labels: PinnedHostSlice<f32>,
    raw: Tensor,
    images: Tensor,
    targets: Tensor,
    constants: Tensor,
    normalize: Option<Normalize>,
    /// The source of the pixels in transfer, if it is not `pixels`.
    lent: Option<Box<dyn Lent>>,
    copies: Arc<CudaStream>,
    pub(super) tape: RefCell<Tape>,
    /// Recorded after the copy: once it has passed, the host memory is free again.
    left: CudaEvent,
    /// The images are ready for the main stream.
    arrived: CudaEvent,
    /// The main stream no longer needs the images.
    released: CudaEvent,
}

impl Input {
    pub(super) fn new(device: &Device, batch: usize, image: Shape, n_classes: usize) -> Result<Self> {
        let n_pixels = (batch * image.len()).next_multiple_of(4);
        let pinned = |len: usize| -> Result<PinnedHostSlice<f32>> {
            // SAFETY: it is filled with zeros before anyone reads it.
            let mut slice = unsafe { device.context.alloc_pinned_with_flags::<f32>(len.max(1), 0)? };
            slice.as_mut_slice()?.fill(0.0);
            Ok(slice)
        };
        let event = || device.context.new_event(None);
        let input = Self {
            pixels: pinned(n_pixels)?,
            labels: pinned(batch * n_classes)?,
            raw: device.floats(n_pixels)?,
            images: device.tensor(n_pixels)?,
            targets: device.floats(batch * n_classes)?,
            constants: device.floats(2 * image.channels)?,
            normalize: None,
            lent: None,
            copies: Arc::clone(&device.copies),
            tape: RefCell::default(),
            left: event()?,
            arrived: event()?,
            released: event()?,
        };
        // Memory was made on the main stream and is first used on the other.
        device.stream.synchronize()?;
        Ok(input)
    }

    /// The page-locked pixels, once the previous ones have been copied.
    pub(super) fn staging(&mut self) -> Result<&mut [f32]> {
        self.left.synchronize()?;
        Ok(self.pixels.as_mut_slice()?)
    }

    pub(super) fn stage(
        &mut self,
        device: &Device,
        threads: &rayon::ThreadPool,
        images: Option<&[f32]>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()> {
        let n = images.map_or(self.pixels.len(), <[f32]>::len);
        self.empty()?;
        if let Some(images) = images {
            let pixels = self.pixels.as_mut_slice()?;
            threads.install(|| {
                let pieces = pixels[..n].par_chunks_mut(PIECE).zip(images.par_chunks(PIECE));
                pieces.for_each(|(to, from)| to.copy_from_slice(from));
            });
        }
        self.send(device, n, targets, normalize)
    }

    /// Stages pixels in place, if the device can copy from there.
    pub(super) fn stage_lent(
        &mut self,
        device: &Device,
        threads: &rayon::ThreadPool,
        images: Box<dyn Lent>,
        targets: &[f32],
        normalize: &Normalize,
    ) -> Result<()> {
        if !device.locks.cover(images.floats()) {
            return self.stage(device, threads, Some(images.floats()), targets, normalize);
        }
        self.empty()?;
        let n = images.floats().len();
        self.lent = Some(images);
        self.send(device, n, targets, normalize)
    }

    /// Waits until the last batch has left the host.
    fn empty(&mut self) -> Result<()> {
        self.left.synchronize()?;
        self.lent = None;
        Ok(())
    }

    /// Releases lent memory that has left the host.
    pub(super) fn reclaim(&mut self) -> Result<()> {
        if self.lent.is_some() && self.left.try_is_complete()? {
            self.lent = None;
        }
        Ok(())
    }

    /// Queues copy and normalisation on the copy stream.
    fn send(&mut self, device: &Device, n_pixels: usize, targets: &[f32], normalize: &Normalize) -> Result<()> {
        self.labels.as_mut_slice()?[..targets.len()].copy_from_slice(targets);
        self.set_constants(device, normalize)?;
        let copies = &device.copies;
        device.enter()?;
        copies.wait(&self.released)?;
        let pixels = match &self.lent {
            Some(lent) => lent.floats(),
            None => &self.pixels.as_slice()?[..n_pixels],
        };
        // SAFETY: what is copied from is not written to before `left` has passed, and it lives as long as the copies' work: dropping
        // this place waits for the stream.
        unsafe {
            result::memcpy_htod_async(self.raw.at(), pixels, copies.cu_stream())?;
            if !targets.is_empty() {
                let labels = &self.labels.as_slice()?[..targets.len()];
                result::memcpy_htod_async(self.targets.at(), labels, copies.cu_stream())?;
            }
        }
        self.left.record(copies)?;
        let (vectors, n_channels) = (n_pixels.div_ceil(4), normalize.scale.len());
        let arguments = [
            Argument::Wide(self.raw.at()),
            Argument::Wide(self.images.at()),
            Argument::Wide(vectors as u64),
            Argument::Count(n_channels as u32),
            Argument::Wide(self.constants.at()),
            Argument::Wide(self.constants.at() + 4 * n_channels as u64),
        ];
        device.launch_on(copies, "normalize", Device::blocks(vectors), (BLOCK, 1), &arguments)?;
        Ok(self.arrived.record(copies)?)
    }

    fn set_constants(&mut self, device: &Device, normalize: &Normalize) -> Result<()> {
        if self.normalize.as_ref() == Some(normalize) {
            return Ok(());
        }
        device.copies.synchronize()?;
        device.to_device(&[normalize.scale.as_slice(), &normalize.shift].concat(), self.constants.at())?;
        self.normalize = Some(normalize.clone());
        Ok(())
    }

    /// The images; later work on the main stream waits for them.
    pub(super) fn images(&self, device: &Device) -> Result<&Tensor> {
        device.stream.wait(&self.arrived)?;
        Ok(&self.images)
    }

    pub(super) fn targets(&self) -> Address {
        self.targets.at()
    }

    pub(super) fn release(&mut self, device: &Device) -> Result<()> {
        Ok(self.released.record(&device.stream)?)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // The whole stream, since copies may have been queued that an error kept `left` from marking, and since the kernel behind them
        // writes to memory that goes now. A device that fails here has nothing under way.
        let _ = self.copies.synchronize();
    }
}
