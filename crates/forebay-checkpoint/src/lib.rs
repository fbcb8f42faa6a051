//! How state becomes durable: formats, commit protocol, tiers, drain, retention, restore.
//!
//! A [`Snapshot`] is a program's state at one moment: named tensors and a few strings.

mod plan;
mod tensor;

pub use plan::{FilePlan, Piece};
pub use tensor::{Dtype, Header, Snapshot, Tensor};
