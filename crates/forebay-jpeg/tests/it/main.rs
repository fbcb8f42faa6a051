//! Integration tests: pixels compared with libjpeg-turbo's, and invalid data.

#![allow(clippy::unwrap_used, reason = "the functions that tests share fail the test too")]

mod corruption;
mod device;
mod fixtures;
mod generated;
mod regions;
mod shim;
