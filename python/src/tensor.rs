//! Values that a framework takes over without a copy.

use std::sync::{Arc, Mutex, Weak};

use forebay_checkpoint::Restored;
use forebay_pipeline::{Batch, Field};
use forebay_storage::Buffer;
use forebay_units::Element;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::dlpack;
use crate::feed::Taken;
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

    /// A copy of a view whose samples have gaps between them.
    pub(crate) fn gathered(view: &View) -> Arc<Self> {
        let n_samples = view.shape.first().map_or(1, |n| *n as usize);
        let value_bytes = view.element.bytes() as usize;
        let sample_bytes = view.shape.iter().skip(1).product::<i64>() as usize * value_bytes;
        let stride = view.strides.first().map_or(0, |stride| *stride as usize * value_bytes);
        let mut buffer = Buffer::default();
        buffer.resize(n_samples * sample_bytes);
        for (number, place) in buffer.as_mut_slice().chunks_exact_mut(sample_bytes.max(1)).enumerate() {
            // SAFETY: the view lies within its memory, whose values are written by nobody but its consumer, who called.
            let from = unsafe { view.memory.address.add(view.offset + number * stride) };
            // SAFETY: as above; the copy is new.
            unsafe { std::ptr::copy_nonoverlapping(from, place.as_mut_ptr(), sample_bytes) };
        }
        let address = buffer.as_mut_slice().as_mut_ptr();
        Arc::new(Self { address, keeper: Own::new(Keeper::Copy(buffer, Weak::new())) })
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

/// Where the values of a tensor are in its memory.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) memory: Arc<Memory>,
    /// Of the first value, in bytes.
    pub(crate) offset: usize,
    pub(crate) shape: Vec<i64>,
    /// From one value to the next of each dimension, in values.
    pub(crate) strides: Vec<i64>,
    pub(crate) element: Element,
}

/// Values of one type and shape. Any library that knows DLPack takes them without a copy: `torch.from_dlpack(tensor)`,
/// `numpy.from_dlpack(tensor)`.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Tensor(View);

impl Tensor {
    /// Values without gaps.
    pub(crate) fn new(memory: Arc<Memory>, shape: Vec<i64>, element: Element) -> Self {
        let strides = dlpack::strides_of(&shape);
        Self(View { memory, offset: 0, shape, strides, element })
    }

    pub(crate) fn strided(
        memory: &Arc<Memory>,
        offset: usize,
        shape: Vec<i64>,
        strides: Vec<i64>,
        element: Element,
    ) -> Self {
        Self(View { memory: Arc::clone(memory), offset, shape, strides, element })
    }

    /// A field of all samples of a batch. Where samples have `several` fields, those between are stepped over.
    pub(crate) fn of_field(batch: &Taken, field: &Field, several: bool) -> PyResult<Self> {
        let side = |side: &u64| i64::try_from(*side).map_err(|_| PyValueError::new_err("a side is too long"));
        let mut shape = vec![batch.samples.len() as i64];
        shape.extend(field.shape.iter().map(side).collect::<PyResult<Vec<_>>>()?);
        let mut strides = dlpack::strides_of(&shape);
        if several {
            strides[0] = (batch.slot_bytes as u64 / field.element.bytes()) as i64;
        }
        Ok(Self::strided(&batch.memory, field.offset, shape, strides, field.element))
    }

    pub(crate) fn numbers(numbers: Vec<i64>) -> Self {
        let shape = vec![numbers.len() as i64];
        Self::new(Memory::numbers(numbers), shape, Element::I64)
    }

    pub(crate) fn indices(samples: &[u32]) -> Self {
        Self::numbers(samples.iter().map(|sample| i64::from(*sample)).collect())
    }
}

#[pymethods]
impl Tensor {
    /// The length of each dimension.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.shape)
    }

    /// The name of the values' type.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.0.element.name()
    }

    /// Bytes of all values.
    #[getter]
    fn nbytes(&self) -> usize {
        self.0.shape.iter().product::<i64>() as usize * self.0.element.bytes() as usize
    }

    fn __len__(&self) -> usize {
        self.0.shape.first().map_or(0, |n| *n as usize)
    }

    fn __repr__(&self) -> String {
        format!("forebay.Tensor(shape={:?}, dtype={})", self.0.shape, self.0.element.name())
    }

    /// The same values without gaps: itself, or a copy.
    fn contiguous(this: &Bound<'_, Self>) -> PyResult<Py<Self>> {
        let (py, view) = (this.py(), &this.get().0);
        let packed = dlpack::strides_of(&view.shape);
        if packed == view.strides {
            return Ok(this.clone().unbind());
        }
        let memory = py.detach(|| Memory::gathered(view));
        Py::new(py, Self::new(memory, view.shape.clone(), view.element))
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
        dlpack::capsule(py, &self.0, is_versioned)
    }
}
