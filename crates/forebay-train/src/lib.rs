//! Consumers of batches: networks (AlexNet, ResNet-50) with Adam and SGD, and an emulated accelerator.
//!
//! A [`Model`] is a list of layers; a [`Network`] is a model planned on an [`Engine`] for one batch size, with its
//! parameters and an [`Optimizer`]. Batches are what the pipeline delivers: NHWC floats and labels.
//!
//! It is not a general framework: no graph is built at run time and nothing is differentiated automatically; each layer
//! has its own backward pass. It reads no files; [`Network::state`] returns what a checkpoint must store.
//!
//! # Limits
//! Convolutions and pools are square. A training step needs exactly the planned batch size; evaluation accepts fewer
//! samples. Strides, padding and filter sides are at most 1,024, and a batch between two layers has at most 2⁴⁰ values.
//! Running out of memory is an error, not a crash.
//!
//! # Same seed, same losses
//! On the CPU, losses are bit-identical for the same seed and any number of threads.
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
mod portion;
mod rng;
mod room;
mod shape;
mod state;
mod view;

pub use accelerator::{EmulatedAccelerator, EmulatedStep, Emulation, Law, Manner};
pub use block::Block;
pub use engine::{
    ConvShape, Cpu, Cuda, CudaLibrary, Engine, Judgement, LinearShape, NormShape, NormSlots, Normalize, Part,
    PoolShape, Precision, Slot, SlotId, SlotKind, cuda_devices, cuda_libraries,
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
