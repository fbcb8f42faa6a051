//! Training against PyTorch's golden files, and the laws that no reference is needed for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod abuse;
mod accelerator;
mod alexnet;
mod cuda;
mod finite;
mod golden;
mod layers;
mod learning;
mod lent;
mod networks;
mod optimizers;
mod portions;
mod shapes;
mod state;
mod threads;
