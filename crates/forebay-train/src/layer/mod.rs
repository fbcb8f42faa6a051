//! The layers of a model: one file each, and one line in the table below.
//!
//! A layer is a description: its output shape, its parameters, and how to build the *operation* that an engine runs
//! forward and backward. A ReLU is fused into the previous layer if that layer supports it.

mod average_pool;
mod batch_norm;
mod build;
mod conv;
mod dropout;
mod linear;
mod max_pool;
mod relu;
mod residual;
mod sequence;

pub use average_pool::AveragePool;
pub use batch_norm::BatchNorm;
pub use conv::Conv;
pub use dropout::Dropout;
pub use linear::Linear;
pub use max_pool::MaxPool;
pub use relu::Relu;
pub use residual::Residual;

pub(crate) use build::{Builder, SlotName, check_size, count_parameters, output_shape};
pub(crate) use sequence::{Run, Sequence, Spare};

use crate::engine::{Engine, SlotId, SlotKind};
use crate::error::Result;
use crate::init::{Fan, Init};
use crate::shape::Shape;

/// Defines the enum of all layers and forwards each call to the layer's own file.
macro_rules! table {
    ($($name:ident),* $(,)?) => {
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum Layer {
            $(#[doc = concat!("See [`", stringify!($name), "`](struct@", stringify!($name), ").")] $name($name)),*
        }

        $(impl From<$name> for Layer {
            fn from(layer: $name) -> Self {
                Self::$name(layer)
            }
        })*

        impl Describe for Layer {
            fn output(&self, input: Shape) -> Result<Shape, String> {
                match self { $(Self::$name(layer) => layer.output(input)),* }
            }

            fn parameters(&self, input: Shape) -> Vec<Parameter> {
                match self { $(Self::$name(layer) => layer.parameters(input)),* }
            }

            fn branches(&self) -> Vec<&[Node]> {
                match self { $(Self::$name(layer) => layer.branches()),* }
            }

            fn take_relu(&mut self) -> bool {
                match self { $(Self::$name(layer) => layer.take_relu()),* }
            }

            fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
                match self { $(Self::$name(layer) => layer.build(site)),* }
            }
        }
    };
}

table![Conv, Linear, Relu, MaxPool, AveragePool, BatchNorm, Dropout, Residual];

/// A layer with its name in the model.
#[derive(Debug, Clone)]
pub struct Node {
    pub(crate) name: String,
    pub(crate) layer: Layer,
}

impl Node {
    /// Names a layer. Its parameters are named `name.weight`, `name.bias` and so on.
    pub fn new(name: impl Into<String>, layer: impl Into<Layer>) -> Self {
        Self { name: name.into(), layer: layer.into() }
    }
}

/// A parameter or statistic of a layer.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<usize>,
    pub(crate) kind: SlotKind,
    pub(crate) init: Init,
    pub(crate) fan: Fan,
}

impl Parameter {
    /// One value per channel, all equal at first.
    pub(crate) fn vector(name: &'static str, len: usize, value: f32, kind: SlotKind) -> Self {
        Self { name, shape: vec![len], kind, init: Init::Constant(value), fan: Fan { fan_in: len, fan_out: len } }
    }

    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

pub(crate) struct Site<'a, 'b, E: Engine> {
    pub(crate) builder: &'a mut Builder<'b, E>,
    /// The layer's slots, in the order of its parameters.
    pub(crate) slots: &'a [SlotId],
    pub(crate) input: Shape,
    pub(crate) output: Shape,
}

pub(crate) trait Describe {
    /// The output shape, or why the layer does not accept this input.
    fn output(&self, input: Shape) -> Result<Shape, String>;

    fn parameters(&self, _input: Shape) -> Vec<Parameter> {
        Vec::new()
    }

    /// Nested layers by branch; each branch takes the layer's input.
    fn branches(&self) -> Vec<&[Node]> {
        Vec::new()
    }

    /// Fuses a following ReLU, if possible.
    fn take_relu(&mut self) -> bool {
        false
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>>;
}

/// What the backward pass needs: input and output of the last forward pass, and their gradients.
pub(crate) struct Pass<'a, E: Engine> {
    pub(crate) x: &'a E::Tensor,
    pub(crate) y: &'a E::Tensor,
    pub(crate) dy: &'a mut E::Tensor,
    /// Whether the gradient of x is needed.
    pub(crate) dx: Option<&'a mut E::Tensor>,
}

pub(crate) trait Operation<E: Engine>: Send {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()>;

    /// Computes the gradients of the parameters and, if needed, of x. May overwrite dy only if it says so.
    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()>;

    /// Whether backward overwrites dy.
    fn spoils_gradient(&self) -> bool {
        false
    }
}

/// Maximum stride, padding or filter side, in pixels.
const MOST: usize = 1024;

/// How many windows fit along an axis, or why none does.
fn windows(len: usize, kernel: usize, stride: usize, padding: usize) -> Result<usize, String> {
    if kernel == 0 || stride == 0 {
        return Err("kernel and stride must be at least 1".to_owned());
    }
    if stride.max(padding) > MOST {
        return Err(format!("stride and padding must be at most {MOST}"));
    }
    match (len + 2 * padding).checked_sub(kernel) {
        Some(room) => Ok(room / stride + 1),
        None => Err(format!("a kernel of {kernel} does not fit into {len} pixels with padding {padding}")),
    }
}
