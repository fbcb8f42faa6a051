//! What forebay-workload makes of texts that others wrote.

#![allow(clippy::unwrap_used)]

mod check;
mod dlio;
mod round_trip;
