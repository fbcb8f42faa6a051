//! The loaders of arrays and of tokens.

use std::path::PathBuf;

use forebay_pipeline::{Dataset, Mapped, Rows, TokenFiles};
use forebay_units::Element;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::feed::{Feed, Kind, Taken};
use crate::order::Order;
use crate::spec::Common;
use crate::tensor::Tensor;

/// Decoded pieces of a file (row groups, chunks) that samples are taken from in turns, and samples of each at a time.
const PIECES: usize = 2;
const RUN: usize = 16;
/// Samples that are mixed where they cannot be read alone.
const WINDOW: usize = 4096;
/// Blocks of token sequences that are mixed.
const BLOCKS: usize = 8;

/// The settings of a loader of arrays.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ArraySettings {
    common: Common,
    /// Names of fields with the files of each, where each array has files of its own.
    columns: Option<Vec<(String, Vec<PathBuf>)>>,
    fields: Option<Vec<String>>,
}

/// The settings of a loader of tokens.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TokenSettings {
    common: Common,
    stored: String,
    dtype: String,
    length: u64,
    block: u64,
}

/// The native half of `forebay.ArrayLoader`.
#[pyclass(frozen, extends = Feed, module = "forebay._forebay")]
pub(crate) struct Arrays {
    rows: Rows,
}

/// The native half of `forebay.TokenLoader`.
#[pyclass(frozen, extends = Feed, module = "forebay._forebay")]
pub(crate) struct Tokens {}

struct Named(Rows);

impl Kind for Named {
    fn mapped(&self, dataset: Dataset) -> Mapped {
        dataset.map(self.0.clone())
    }

    /// The fields by name.
    fn present<'py>(&self, py: Python<'py>, batch: Taken) -> PyResult<Bound<'py, PyAny>> {
        let dict = PyDict::new(py);
        for field in self.0.fields() {
            dict.set_item(&field.name, Tensor::of_field(&batch, field, self.0.fields().len() > 1)?)?;
        }
        Ok(dict.into_any())
    }
}

/// Sequences of one token more than their length.
struct Sequences {
    rows: Rows,
    element: Element,
    length: i64,
}

impl Kind for Sequences {
    fn mapped(&self, dataset: Dataset) -> Mapped {
        dataset.map(self.rows.clone())
    }

    /// Inputs and targets: two views of the same memory.
    fn present<'py>(&self, py: Python<'py>, batch: Taken) -> PyResult<Bound<'py, PyAny>> {
        let (n, length) = (batch.samples.len() as i64, self.length);
        let view = |at: u64| {
            let offset = (at * self.element.bytes()) as usize;
            Tensor::strided(&batch.memory, offset, vec![n, length], vec![length + 1, 1], self.element)
        };
        Ok((view(0), view(1)).into_pyobject(py)?.into_any())
    }
}

#[pymethods]
impl Arrays {
    #[new]
    fn new(py: Python<'_>, settings: ArraySettings) -> PyResult<PyClassInitializer<Self>> {
        let ArraySettings { common, columns, fields } = settings;
        let storage = common.storage()?;
        let rows = py.detach(|| match &columns {
            Some(columns) => Rows::side_by_side(storage, columns),
            None => Rows::open(storage, &common.data, fields.as_deref()),
        });
        let rows = rows.map_err(|error| error::of_pipeline(&error))?;
        let source = rows.source().map_err(|error| error::of_pipeline(&error))?;
        let order = match common.shuffle() {
            // Values that were packed together are decoded together.
            Some(seed) if !rows.is_seekable() => Order::Groups { seed, cycle: PIECES, run: RUN, window: WINDOW },
            seed => Order::of_samples(seed),
        };
        let feed = Feed::new(&common, source, order, Box::new(Named(rows.clone())))?;
        Ok(PyClassInitializer::from(feed).add_subclass(Self { rows }))
    }

    /// Name, type and shape of each field in one sample.
    #[getter]
    fn fields(&self) -> Vec<(String, &'static str, Vec<u64>)> {
        let one = |field: &forebay_pipeline::Field| (field.name.clone(), field.element.name(), field.shape.clone());
        self.rows.fields().iter().map(one).collect()
    }
}

/// An integer type by its name.
fn integer(what: &str, name: &str, known: &[Element]) -> PyResult<Element> {
    known.iter().copied().find(|element| element.name() == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|element| element.name()).collect();
        PyValueError::new_err(format!("{what} {name:?} is not one of {}", names.join(", ")))
    })
}

#[pymethods]
impl Tokens {
    #[new]
    fn new(py: Python<'_>, settings: TokenSettings) -> PyResult<PyClassInitializer<Self>> {
        let TokenSettings { common, stored, dtype, length, block } = settings;
        let stored =
            integer("stored", &stored, &[Element::U8, Element::U16, Element::U32, Element::I32, Element::I64])?;
        let element = integer("dtype", &dtype, &[Element::I32, Element::I64])?;
        if length > 1 << 30 || block > 1 << 30 {
            return Err(PyValueError::new_err("length and block are at most 2^30"));
        }
        let of = TokenFiles { stored, element, length, block };
        let storage = common.storage()?;
        let rows =
            py.detach(|| Rows::tokens(storage, &common.data, &of)).map_err(|error| error::of_pipeline(&error))?;
        let source = rows.source().map_err(|error| error::of_pipeline(&error))?;
        let order = match common.shuffle() {
            Some(seed) => Order::Groups { seed, cycle: BLOCKS, run: 1, window: BLOCKS * block as usize },
            None => Order::AsStored,
        };
        let kind = Box::new(Sequences { rows, element, length: length as i64 });
        let feed = Feed::new(&common, source, order, kind)?;
        Ok(PyClassInitializer::from(feed).add_subclass(Self {}))
    }
}
