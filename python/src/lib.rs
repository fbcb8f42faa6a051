//! The native half of the Python package `forebay`: thin bindings on the libraries.
//!
//! The package's Python half gives the classes that users see and turns tensors into those of a framework. This
//! half lends batches without a copy (DLPack), keeps lent memory alive, never holds the interpreter's lock while it waits
//! or decodes, answers Ctrl-C, and refuses to work in a forked process, which has none of its threads.

// What `#[pymethods]` expands to.
#![allow(clippy::useless_conversion)]

mod arrays;
mod dlpack;
mod error;
mod feed;
mod images;
mod lending;
mod order;
mod patience;
mod process;
mod records;
mod spec;
mod stats;
mod store;
mod tensor;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _forebay {
    #[pymodule_export]
    use super::arrays::{Arrays, Tokens};
    #[pymodule_export]
    use super::error::{CheckpointError, SampleError};
    #[pymodule_export]
    use super::feed::{Feed, Ring};
    #[pymodule_export]
    use super::images::Images;
    #[pymodule_export]
    use super::records::RecordFeed;
    #[pymodule_export]
    use super::store::{Checkpoint, Store};
    #[pymodule_export]
    use super::tensor::Tensor;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
