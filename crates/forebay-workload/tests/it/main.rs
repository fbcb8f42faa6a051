//! What forebay-workload makes of texts that others wrote.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod check;
mod dlio;
mod remarks;
mod round_trip;
