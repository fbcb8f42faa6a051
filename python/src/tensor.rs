//! Values that a framework takes over without a copy.

use std::sync::{Arc, Mutex, Weak};

use forebay_checkpoint::Restored;
use forebay_pipeline::Batch;
use forebay_storage::Buffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dlpack::{self, Element};
use crate::process::Own;

/// Buffers that copied batches are returned to.
pub(crate) type Pool = Arc<Mutex<Vec<Buffer>>>;

/// What keeps the values where they are.
enum Keeper {
    /// A batch in the ring of its loader, which gets the slots back when this is dropped.
    Batch(#[allow(dead_code, reason = "held for its drop")] Batch),
    Copy(Buffer, Weak<Mutex<Vec<Buffer>>>),
    Numbers(#[allow(dead_code, reason = "held for its drop")] Vec<i64>),
    Checkpoint(#[allow(dead_code, reason = "held for its drop")] Arc<Restored>),
}

/// Values in memory, alive as long as this is.
pub(crate) struct Memory {
    address: *mut u8,
    keeper: Own<Keeper>,
}

// SAFETY: an address whose bytes only the consumer of the tensor reads and writes, by DLPack's rules.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) fn lent(mut batch: Batch) -> Arc<Self> {
        let address = batch.as_mut_ptr();
        Arc::new(Self { address, keeper: Own::new(Keeper::Batch(batch)) })
    }

    /// A copy in recycled memory; the batch goes back to its loader.
    pub(crate) fn copied(batch: &Batch, pool: &Pool) -> Arc<Self> {
        let mut buffer = pool.lock().expect("no holder of this lock panics").pop().unwrap_or_default();
        buffer.fill_from(batch.data());
        let address = buffer.as_mut_slice().as_mut_ptr();
        Arc::new(Self { address, keeper: Own::new(Keeper::Copy(buffer, Arc::downgrade(pool))) })
    }

    pub(crate) fn numbers(mut numbers: Vec<i64>) -> Arc<Self> {
        let address = numbers.as_mut_ptr().cast();
        Arc::new(Self { address, keeper: Own::new(Keeper::Numbers(numbers)) })
    }

    /// Bytes of a checkpoint that is read.
    pub(crate) fn restored(checkpoint: &Arc<Restored>, bytes: &[u8]) -> Arc<Self> {
        let address = bytes.as_ptr().cast_mut();
        Arc::new(Self { address, keeper: Own::new(Keeper::Checkpoint(Arc::clone(checkpoint))) })
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.address
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // A fork may have copied the pool's lock while it was held.
        if self.keeper.is_own()
            && let Keeper::Copy(buffer, pool) = &mut *self.keeper
            && let Some(pool) = pool.upgrade()
            && let Ok(mut pool) = pool.lock()
        {
            pool.push(std::mem::take(buffer));
        }
    }
}

/// Values of one type and shape, in row-major order. Any library that knows DLPack takes them without a copy:
/// `torch.from_dlpack(tensor)`, `numpy.from_dlpack(tensor)`.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Tensor {
    memory: Arc<Memory>,
    shape: Vec<i64>,
    element: Element,
}

impl Tensor {
    pub(crate) fn new(memory: Arc<Memory>, shape: Vec<i64>, element: Element) -> Self {
        Self { memory, shape, element }
    }

    pub(crate) fn numbers(numbers: Vec<i64>) -> Self {
        let shape = vec![numbers.len() as i64];
        Self::new(Memory::numbers(numbers), shape, Element::I64)
    }
}

#[pymethods]
impl Tensor {
    /// The length of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// The name of the values' type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.element.name()
    }

    /// Bytes of all values.
    #[getter]
    fn nbytes(&self) -> usize {
        self.shape.iter().product::<i64>() as usize * self.element.bytes()
    }

    fn __len__(&self) -> usize {
        self.shape.first().map_or(0, |n| *n as usize)
    }

    fn __repr__(&self) -> String {
        format!("forebay.Tensor(shape={:?}, dtype={})", self.shape, self.element.name())
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        dlpack::CPU
    }

    /// A capsule for the consumer. The memory stays as long as the consumer keeps it.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        if stream.is_some() {
            return Err(PyValueError::new_err("the values are in the host's memory, which has no streams"));
        }
        if dl_device.is_some_and(|device| device != dlpack::CPU) {
            return Err(PyBufferError::new_err("the values are in the host's memory: copy them to the device"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("the values are lent: copy what the consumer made of them"));
        }
        let is_versioned = max_version.is_some_and(|version| version >= dlpack::VERSION);
        dlpack::capsule(py, &self.memory, &self.shape, self.element, is_versioned)
    }
}
