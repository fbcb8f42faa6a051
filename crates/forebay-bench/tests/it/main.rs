//! Integration tests: decoding on a device beside decoding on the CPU.

#![allow(clippy::unwrap_used, reason = "the functions that tests share fail the test too")]

mod decode;
#[path = "../../../forebay-decode/tests/it/emulated.rs"]
mod emulated;
#[path = "../../../forebay-jpeg/tests/it/shim.rs"]
mod shim;
