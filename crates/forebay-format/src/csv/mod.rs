//! Tables of numbers as text.

pub mod read;
pub mod write;
