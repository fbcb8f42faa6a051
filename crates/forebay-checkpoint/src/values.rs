//! The location of a tensor's values: in memory, or on a device that copies them on request.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::Pages;

/// A device that holds values, such as a GPU. All methods may be called from many threads and must not panic.
pub trait Elsewhere: Sync {
    /// Copies ranges of tensors into host memory. All copies are complete when it returns, so a device can queue them
    /// all and wait once. In [`Mode::Async`](crate::Mode::Async) one call covers a whole state, otherwise one chunk.
    ///
    /// # Errors
    /// When the device failed. The save is then not made.
    fn fetch(&self, fetches: &mut [Fetch<'_>]) -> io::Result<()>;

    /// Registers pool memory so that the device can copy to it at full rate, until the returned value is dropped.
    /// Called once per piece of memory, not once per save.
    ///
    /// # Errors
    /// When the device refuses. The save is then not made.
    fn lock(&self, pages: Arc<Pages>) -> io::Result<Option<Box<dyn Any + Send>>> {
        let _ = pages;
        Ok(None)
    }
}

/// A range of a tensor's bytes and its destination.
#[derive(Debug)]
pub struct Fetch<'a> {
    /// The device's number for the tensor.
    pub index: usize,
    pub offset: u64,
    /// The destination; its length is the length of the range.
    pub into: &'a mut [u8],
}

#[derive(Clone, Copy)]
pub enum Values<'a> {
    Here(&'a [u8]),
    There {
        device: &'a dyn Elsewhere,
        /// The device's number for the tensor.
        index: usize,
        n_bytes: u64,
    },
}

impl<'a> Values<'a> {
    pub fn n_bytes(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::There { n_bytes, .. } => *n_bytes,
        }
    }

    /// The bytes, if they are in memory.
    pub fn here(&self) -> Option<&'a [u8]> {
        match self {
            Self::Here(bytes) => Some(bytes),
            Self::There { .. } => None,
        }
    }
}

impl<'a> From<&'a [u8]> for Values<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Here(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for Values<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Here(bytes)
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Values<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Self::Here(bytes)
    }
}

impl fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::There { index, n_bytes, .. } => write!(f, "{n_bytes} bytes of tensor {index} on a device"),
        }
    }
}

/// Ranges to fetch, grouped by device.
#[derive(Default)]
pub(crate) struct Errand<'d, 'm> {
    devices: Vec<(&'d dyn Elsewhere, Vec<Fetch<'m>>)>,
}

impl<'d, 'm> Errand<'d, 'm> {
    pub(crate) fn add(&mut self, device: &'d dyn Elsewhere, fetch: Fetch<'m>) {
        match self.devices.iter_mut().find(|(known, _)| std::ptr::addr_eq(*known, device)) {
            Some((_, fetches)) => fetches.push(fetch),
            None => self.devices.push((device, vec![fetch])),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.devices.is_empty()
    }

    pub(crate) fn run(mut self) -> io::Result<()> {
        self.devices.iter_mut().try_for_each(|(device, fetches)| device.fetch(fetches))
    }
}
