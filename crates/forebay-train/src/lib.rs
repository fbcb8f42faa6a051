//! What consumes batches: layers, AlexNet, ResNet-50, Adam and SGD, and the emulated accelerator.
//!
//! A [`Model`] is a list of layers; a [`Network`] is a model planned on an [`Engine`] for one batch size, with its
//! parameters and an [`Optimizer`]. Batches are what the pipeline delivers: NHWC floats and labels.
//!
//! It is not a general framework: there is no graph to build at run time and no automatic differentiation, each layer
//! knows its own backward pass. It reads no files; [`Network::state`] gives what a checkpoint must keep.
//!
//! # Limits
//! Convolutions and pools are square. A training step takes exactly the batch it was planned for; evaluation takes fewer too.
//! Strides, margins and filters' sides are at most 1,024, a batch between two layers at most 2⁴⁰ values; what the system has no memory
//! for is an error.
//!
//! # Same seed, same losses
//! On the CPU the losses of a seed are the same to the last bit for any number of threads.
//!
//! ```
//! use forebay_train::{Cpu, Labels, Model, Network, Settings};
//!
//! let model = Model::named("resnet-small", 10)?;
//! let mut network = Network::new(Cpu::new(2)?, &model, Settings::new(4, 1))?;
//! let images = vec![0.5; 4 * model.input.len()];
//! let first = network.step(&images, Labels::Index(&[1, 2, 3, 4]))?;
//! let second = network.step(&images, Labels::Index(&[1, 2, 3, 4]))?;
//! assert!(second < first);
//! # Ok::<(), forebay_train::Error>(())
//! ```

mod accelerator;
mod block;
mod body;
mod engine;
mod error;
mod init;
mod labels;
mod layer;
mod lent;
mod model;
mod network;
pub mod optimizer;
mod rng;
mod room;
mod shape;
mod state;
mod view;

pub use accelerator::{EmulatedAccelerator, EmulatedStep, Emulation, Law, Manner};
pub use block::Block;
pub use engine::{
    ConvShape, Cpu, Cuda, CudaLibrary, Engine, Judgement, LinearShape, NormShape, NormSlots, Normalize, Part,
    PoolShape, Precision, Slot, SlotId, SlotKind, cuda_libraries,
};
pub use error::{Error, Result};
pub use init::Init;
pub use labels::Labels;
pub use layer::{AveragePool, BatchNorm, Conv, Dropout, Layer, Linear, MaxPool, Node, Relu, Residual};
pub use lent::{HostMemory, Lent, PageLock};
pub use model::Model;
pub use network::{Network, Settings};
pub use optimizer::{Optimizer, Rule};
pub use shape::Shape;
pub use state::{Entry, State};
pub use view::{Fetch, Remote, Title, Values, View};
