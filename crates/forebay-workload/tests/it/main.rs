//! What forebay-workload makes of texts that others wrote.

mod check;
mod dlio;
