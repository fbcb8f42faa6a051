//! Vectors that may be too large: no memory for one is an error, not the end of the program.

use crate::error::{Error, Result};

/// `vec![value; len]`, but running out of memory is an error and not an abort.
pub(crate) fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>> {
    let mut values = empty(len)?;
    values.resize(len, value);
    Ok(values)
}

/// All values of an iterator that says how many it has.
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
