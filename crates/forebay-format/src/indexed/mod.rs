//! Samples one after the other in one file, with their offsets and sizes in two files beside it.

pub mod read;
pub mod write;
