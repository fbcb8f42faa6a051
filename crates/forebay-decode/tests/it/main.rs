//! Integration tests: the device against the decoder for CPUs, where there is a device.

#![allow(clippy::unwrap_used, reason = "the functions that tests share fail the test too")]

mod emulated;
mod fixtures;
mod images;
#[path = "../../../forebay-jpeg/tests/it/shim.rs"]
mod shim;
