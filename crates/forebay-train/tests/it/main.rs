//! Training against PyTorch's golden files, and the laws that no reference is needed for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod accelerator;
mod finite;
mod golden;
mod layers;
mod learning;
mod networks;
mod shapes;
mod state;
mod threads;
