//! Indexed binary: samples one after the other in one file, their offsets and sizes in two index files.

pub mod read;
pub mod write;
