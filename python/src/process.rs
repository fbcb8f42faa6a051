//! The process that an object belongs to.
//!
//! A forked process has a copy of the memory but none of the threads, and locks that those held stay locked forever. Objects
//! with threads therefore work only in the process that made them, and are leaked, not destroyed, in any other.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

/// A value that only the process that made it may use.
pub(crate) struct Own<T> {
    process: u32,
    value: ManuallyDrop<T>,
}

impl<T> Own<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: std::process::id(), value: ManuallyDrop::new(value) }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }

    /// # Errors
    /// In a forked process.
    pub(crate) fn check(&self, what: &str) -> PyResult<&T> {
        if self.is_own() {
            return Ok(&self.value);
        }
        Err(PyRuntimeError::new_err(format!(
            "this {what} was made in process {}, and process {} is a fork of it, without the {what}'s threads: make the {what} \
             after the fork, or start processes with the method \"spawn\"",
            self.process,
            std::process::id()
        )))
    }
}

impl<T> Deref for Own<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Own<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.is_own() {
            // SAFETY: nothing uses the value after this.
            unsafe { ManuallyDrop::drop(&mut self.value) };
        }
    }
}
