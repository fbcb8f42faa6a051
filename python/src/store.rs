//! Checkpoints: the native half of `forebay.Checkpointer`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use forebay_checkpoint::format::{self, Catalog, Entry, Format};
use forebay_checkpoint::{
    Dtype, Fate, Handle, Header, Keep, Level, LocalFs, Memory as Recycled, Mode, Options, Restored, Snapshot,
    Store as Saver, Tensor as Saved, Tier, Wanted, list, restore_with,
};
use forebay_units::{Element, chain};
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;

use crate::error;
use crate::patience::{abandonable, interruptible};
use crate::process::Own;
use crate::tensor::{Memory, Tensor};

/// The stem of the files of a checkpoint.
const STEM: &str = "model";

/// Types by the names that torch and NumPy give them.
const TYPES: [(&str, Dtype); 20] = [
    ("bool", Dtype::Bool),
    ("uint8", Dtype::U8),
    ("int8", Dtype::I8),
    ("uint16", Dtype::U16),
    ("int16", Dtype::I16),
    ("float16", Dtype::F16),
    ("bfloat16", Dtype::Bf16),
    ("uint32", Dtype::U32),
    ("int32", Dtype::I32),
    ("float32", Dtype::F32),
    ("uint64", Dtype::U64),
    ("int64", Dtype::I64),
    ("float64", Dtype::F64),
    ("float8_e5m2", Dtype::F8E5m2),
    ("float8_e4m3fn", Dtype::F8E4m3),
    ("float8_e8m0fnu", Dtype::F8E8m0),
    ("float8_e4m3fnuz", Dtype::F8E4m3Fnuz),
    ("float8_e5m2fnuz", Dtype::F8E5m2Fnuz),
    ("complex64", Dtype::C64),
    ("complex128", Dtype::C128),
];

/// Checkpoints in one folder, or in a fast one that is drained to another.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Store {
    tiers: Vec<Tier>,
    options: Options,
    format: &'static dyn Format,
    inner: Own<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// Opened by the first save: reading needs no lock.
    saver: Option<Arc<Saver>>,
    last: Option<Arc<Handle>>,
}

/// Name, type, shape, address and bytes of a tensor that Python keeps alive during the call.
type Given = (String, String, Vec<u64>, usize, usize);

#[pymethods]
impl Store {
    #[new]
    fn new(dirs: Vec<PathBuf>, mode: &str, keep: usize, format: &str) -> PyResult<Self> {
        let refused = |said: String| Err(PyValueError::new_err(said));
        let mode = match mode {
            "direct" => Mode::Direct,
            "burst" => Mode::Burst,
            "async" => Mode::Async,
            other => return refused(format!("mode {other:?} is not one of \"async\", \"burst\", \"direct\"")),
        };
        if mode == Mode::Burst && dirs.len() < 2 {
            return refused("mode \"burst\" saves to a burst buffer first: give burst_dir".to_owned());
        }
        if mode == Mode::Direct && dirs.len() > 1 {
            return refused("mode \"direct\" saves straight to the last folder: omit burst_dir".to_owned());
        }
        if keep == 0 {
            return refused("keep is the number of newest checkpoints that stay: at least 1".to_owned());
        }
        let Some(format) = format::named(format) else {
            let names = format::FORMATS.map(Format::name).join(", ");
            return refused(format!("format {format:?} is not one of {names}"));
        };
        let fs = Arc::new(LocalFs);
        let tier = |dir: PathBuf| Tier { keep: Keep::last(keep), ..Tier::new(fs.clone(), dir) };
        let tiers = dirs.into_iter().map(tier).collect();
        let options = Options { mode, ..Options::default() };
        Ok(Self { tiers, options, format, inner: Own::new(Mutex::new(Inner::default())) })
    }

    /// Saves tensors and notes. Returns when training may go on.
    fn save(
        &self,
        py: Python<'_>,
        step: u64,
        metric: Option<f64>,
        tensors: Vec<Given>,
        notes: BTreeMap<String, String>,
    ) -> PyResult<()> {
        let inner = self.inner.check("checkpointer")?;
        let mut headers = Vec::with_capacity(tensors.len());
        for (name, dtype, shape, _, _) in &tensors {
            let known = TYPES.iter().find(|(known, _)| known == dtype);
            let (_, dtype) =
                known.ok_or_else(|| PyValueError::new_err(format!("{name}: type {dtype} cannot be saved")))?;
            headers.push(Header { name: name.clone(), dtype: *dtype, shape: shape.clone() });
        }
        let bytes = |(_, _, _, address, len): &Given| match len {
            0 => &[][..],
            // SAFETY: the Python half passes the address and length of contiguous memory that it keeps alive and that nobody
            // frees during this call; torch and NumPy write to it only from code that the caller runs at the same time.
            _ => unsafe { std::slice::from_raw_parts(*address as *const u8, *len) },
        };
        let saved = headers.iter().zip(&tensors).map(|(header, given)| Saved::new(header, bytes(given)));
        let snapshot = Snapshot { tensors: saved.collect(), notes };
        let layout = self.format.plan(STEM, &snapshot).map_err(|error| error::of_format(&error))?;
        let saver = self.saver(py, inner)?;
        let handle = interruptible(py, |stop| saver.save_until(step, metric, &snapshot, &layout, stop))?;
        lock(inner).last = Some(Arc::new(handle.map_err(|error| error::of_checkpoint(&error))?));
        Ok(())
    }

    /// Waits until the last save is durable in the last folder; false if a newer one replaced it or it was skipped.
    fn wait(&self, py: Python<'_>) -> PyResult<bool> {
        let last = lock(self.inner.check("checkpointer")?).last.clone();
        let Some(handle) = last else { return Ok(true) };
        let fate = abandonable(py, move || handle.wait(Level::DurableSlow))?;
        fate.map(|fate| fate == Fate::Reached).map_err(|error| error::of_checkpoint(&error))
    }

    /// The steps of all checkpoints, oldest first. They are not verified.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        let tiers = self.tiers.clone();
        let found = abandonable(py, move || list(&tiers, &mut Vec::new()))?;
        let mut steps: Vec<u64> = found.keys().map(|name| name.step).collect();
        steps.dedup();
        Ok(steps)
    }

    /// Reads and verifies the newest valid checkpoint, or that of a step.
    fn restore(&self, py: Python<'_>, step: Option<u64>) -> PyResult<Checkpoint> {
        let tiers = self.tiers.clone();
        let wanted = move || {
            let restored = restore_with(&tiers, Wanted { step, progress: None }, &mut Recycled::default());
            restored.map_err(|error| (list(&tiers, &mut Vec::new()).is_empty(), error))
        };
        let restored = abandonable(py, wanted)?.map_err(|(is_empty, error)| match is_empty {
            true => PyFileNotFoundError::new_err(chain(&error)),
            false => error::of_checkpoint(&error),
        });
        Checkpoint::open(restored?)
    }

    /// Finishes the saves in progress and gives up the folders. Raises an error that no save has reported.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Inner { saver, last } = std::mem::take(&mut *lock(self.inner.check("checkpointer")?));
        drop(last);
        let Some(saver) = saver else { return Ok(()) };
        let closed = abandonable(py, move || Arc::into_inner(saver).map(Saver::close))?;
        let errors = closed.map(|closed| closed.errors).unwrap_or_default();
        errors.first().map_or(Ok(()), |error| Err(error::of_checkpoint(error)))
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().expect("no holder of this lock panics")
}

impl Store {
    fn saver(&self, py: Python<'_>, inner: &Mutex<Inner>) -> PyResult<Arc<Saver>> {
        if let Some(saver) = &lock(inner).saver {
            return Ok(Arc::clone(saver));
        }
        let (tiers, options) = (self.tiers.clone(), self.options.clone());
        let opened =
            abandonable(py, move || Saver::open(tiers, options))?.map_err(|error| error::of_checkpoint(&error))?;
        Ok(Arc::clone(lock(inner).saver.insert(Arc::new(opened))))
    }
}

/// A checkpoint that was read and verified.
#[pyclass(frozen, module = "forebay._forebay")]
pub(crate) struct Checkpoint {
    restored: Arc<Restored>,
    catalog: Catalog,
}

impl Checkpoint {
    fn open(restored: Restored) -> PyResult<Self> {
        let files = restored.by_name();
        let name = files.keys().find_map(|name| format::recognise(name));
        let Some((format, stem)) = name else {
            return Err(PyValueError::new_err("the checkpoint has no file of a known format"));
        };
        let catalog = format.open(stem, &files).map_err(|error| error::of_format(&error))?;
        drop(files);
        Ok(Self { restored: Arc::new(restored), catalog })
    }

    fn entry(&self, name: &str) -> PyResult<&Entry> {
        let entry = self.catalog.tensors.iter().find(|entry| entry.header.name == name);
        entry.ok_or_else(|| PyValueError::new_err(format!("the checkpoint has no tensor {name:?}")))
    }
}

#[pymethods]
impl Checkpoint {
    #[getter]
    fn step(&self) -> u64 {
        self.restored.name.step
    }

    #[getter]
    fn notes(&self) -> BTreeMap<String, String> {
        self.catalog.notes.clone()
    }

    /// Newer or nearer checkpoints that were skipped, and why.
    #[getter]
    fn passed_over(&self) -> Vec<String> {
        self.restored.passed_over.iter().map(ToString::to_string).collect()
    }

    /// Name, type and shape of every tensor.
    #[getter]
    fn tensors(&self) -> Vec<(String, &'static str, Vec<u64>)> {
        let header = |header: &Header| (header.name.clone(), name_of(header.dtype), header.shape.clone());
        self.catalog.tensors.iter().map(|entry| header(&entry.header)).collect()
    }

    /// Type and shape of a tensor.
    fn header_of(&self, name: &str) -> PyResult<(&'static str, Vec<u64>)> {
        let header = &self.entry(name)?.header;
        Ok((name_of(header.dtype), header.shape.clone()))
    }

    /// The bytes of a tensor, without a copy.
    fn bytes_of(&self, name: &str) -> PyResult<Tensor> {
        let entry = self.entry(name)?;
        let file = self.restored.file(&self.catalog.files[entry.file]).unwrap_or_default();
        let range = entry.offset as usize..(entry.offset + entry.n_bytes) as usize;
        let bytes =
            file.get(range).ok_or_else(|| PyValueError::new_err(format!("tensor {name:?} is not in its file")))?;
        let shape = vec![bytes.len() as i64];
        Ok(Tensor::new(Memory::restored(&self.restored, bytes), shape, Element::U8))
    }
}

/// The name of a type; formats may have more types than torch.
fn name_of(dtype: Dtype) -> &'static str {
    TYPES.iter().find(|(_, known)| *known == dtype).map_or("unknown", |(name, _)| name)
}
