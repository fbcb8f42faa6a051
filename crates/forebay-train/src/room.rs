//! Fallible allocation of vectors: running out of memory is an error, not an abort.

use crate::error::{Error, Result};

/// `vec![value; len]`, but running out of memory is an error instead of an abort.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut values = empty(len)?;
    values.resize(len, value);
    Ok(values)
}

/// Collects an iterator with an exact length.
pub(crate) fn collected<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut all = empty(values.len())?;
    all.extend(values);
    Ok(all)
}

fn empty<T>(len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(len).map_err(|_| Error::memory::<T>(len))?;
    Ok(values)
}
