//! The loader of records.

use forebay_pipeline::{Dataset, Field, Mapped, Parts, RecordField, Records, Source};
use forebay_units::{Bytes, Element};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::error;
use crate::feed::{Feed, Kind, Taken};
use crate::order::Order;
use crate::spec::Common;
use crate::tensor::Tensor;

/// A field by name, with type and shape if it has a fixed size.
type Wanted = (String, Option<(String, Vec<u64>)>);

/// The settings of a loader of records.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct RecordSettings {
    common: Common,
    fields: Vec<Wanted>,
    max_sample_size: u64,
}

/// The native half of `forebay.RecordLoader`.
#[pyclass(frozen, extends = Feed, module = "forebay._forebay")]
pub(crate) struct RecordFeed {}

struct Taking {
    records: Records,
    /// The names of the fields in the order asked for.
    names: Vec<String>,
}

impl Kind for Taking {
    fn mapped(&self, dataset: Dataset) -> Mapped {
        dataset.map(self.records.clone())
    }

    /// The fields by name, or a list of whole records.
    fn present<'py>(&self, py: Python<'py>, batch: Taken) -> PyResult<Bound<'py, PyAny>> {
        let parts: Vec<Parts> = batch.samples.iter().map(|sample| self.records.take(*sample)).collect();
        if self.names.is_empty() {
            let records = parts.iter().map(|parts| whole(py, parts)).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, records)?.into_any());
        }
        let dict = PyDict::new(py);
        let fixed = self.records.fixed();
        for name in &self.names {
            match fixed.iter().find(|field: &&Field| field.name == *name) {
                Some(field) => dict.set_item(name, Tensor::of_field(&batch, field, fixed.len() > 1)?)?,
                None => {
                    let of = |parts: &Parts| {
                        let found = parts.iter().find(|(known, _)| known == name);
                        PyBytes::new(py, found.map_or(&[], |(_, bytes)| bytes))
                    };
                    dict.set_item(name, PyList::new(py, parts.iter().map(of))?)?;
                }
            }
        }
        Ok(dict.into_any())
    }

    fn ended(&self) {
        self.records.forget();
    }
}

/// One record: its bytes, or a dict of the files that it consists of.
fn whole<'py>(py: Python<'py>, parts: &Parts) -> PyResult<Bound<'py, PyAny>> {
    if let [(name, bytes)] = parts.as_slice()
        && name.is_empty()
    {
        return Ok(PyBytes::new(py, bytes).into_any());
    }
    let dict = PyDict::new(py);
    for (name, bytes) in parts {
        dict.set_item(name, PyBytes::new(py, bytes))?;
    }
    Ok(dict.into_any())
}

#[pymethods]
impl RecordFeed {
    #[new]
    fn new(py: Python<'_>, settings: RecordSettings) -> PyResult<PyClassInitializer<Self>> {
        let RecordSettings { common, fields, max_sample_size } = settings;
        let wanted = fields.iter().map(field_of).collect::<PyResult<Vec<_>>>()?;
        let storage = common.storage()?;
        let source =
            py.detach(|| Source::records(storage, &common.data)).map_err(|error| error::of_pipeline(&error))?;
        let source = source.with_max_sample_size(Bytes(max_sample_size));
        let records = Records::of(&source, &wanted).map_err(|error| error::of_pipeline(&error))?;
        let names = wanted.into_iter().map(|field| field.name).collect();
        let order = Order::of_samples(common.shuffle());
        let feed = Feed::new(&common, source, order, Box::new(Taking { records, names }))?;
        Ok(PyClassInitializer::from(feed).add_subclass(Self {}))
    }
}

fn field_of((name, numbers): &Wanted) -> PyResult<RecordField> {
    let numbers = match numbers {
        None => None,
        Some((dtype, shape)) => {
            let element = Element::named(dtype).ok_or_else(|| {
                let names = Element::ALL.map(Element::name).join(", ");
                PyValueError::new_err(format!("{name}: {dtype:?} is not one of {names}; give bytes for any length"))
            })?;
            Some((element, shape.clone()))
        }
    };
    Ok(RecordField { name: name.clone(), numbers })
}
