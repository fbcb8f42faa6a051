//! What a device does for a pipeline.

use forebay_jpeg::device::Batch;

use crate::error::Result;

/// A device that runs the kernels of a batch, with memory for one batch.
///
/// Law: the samples of a batch stay until the next one. After an error it is not used any more.
pub trait Device: Send {
    /// Another one on the same device, for another thread: it shares the kernels, not the memory.
    ///
    /// # Errors
    /// When the device fails.
    fn sibling(&self) -> Result<Box<dyn Device>>;

    /// The name of the device.
    fn describe(&self) -> String;

    /// Decodes a batch. Waits until it is done.
    ///
    /// # Errors
    /// When the device fails or has too little memory.
    fn decode(&mut self, batch: &Batch<'_>) -> Result<Decoded>;

    /// Copies the samples of the last batch to the host.
    ///
    /// # Errors
    /// When the device fails.
    fn samples(&mut self) -> Result<Samples<'_>>;
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Per file, whether the device found it damaged; its sample is then unspecified.
    pub is_marked: Vec<bool>,
    pub times: Times,
}

/// The samples of a batch on the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Samples<'a> {
    /// One after the other.
    pub bytes: &'a [u8],
    pub download_ms: f32,
}

/// Times of a batch on the device.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    pub upload_ms: f32,
    pub kernels_ms: f32,
}
