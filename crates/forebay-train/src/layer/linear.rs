//! Linear layer: every output a weighted sum of all inputs.

use super::{Describe, Operation, Parameter, Pass, Run, Site};
use crate::engine::{Engine, LinearShape, SlotId, SlotKind};
use crate::error::Result;
use crate::init::{Fan, Init};
use crate::shape::Shape;

/// A matrix and a bias. An image is treated as one vector in memory order.
#[derive(Debug, Clone)]
pub struct Linear {
    outputs: usize,
    init: Init,
    relu: bool,
}

impl Linear {
    pub fn new(outputs: usize) -> Self {
        Self { outputs, init: Init::HeUniform, relu: false }
    }

    /// Sets the distribution of the initial weights.
    #[must_use]
    pub fn init(self, init: Init) -> Self {
        Self { init, ..self }
    }
}

impl Describe for Linear {
    fn output(&self, _input: Shape) -> Result<Shape, String> {
        if self.outputs == 0 {
            return Err("outputs must be at least 1".to_owned());
        }
        Ok(Shape::vector(self.outputs))
    }

    fn parameters(&self, input: Shape) -> Vec<Parameter> {
        let weight = Parameter {
            name: "weight",
            shape: vec![self.outputs, input.len()],
            kind: SlotKind::LinearWeight,
            init: self.init,
            fan: Fan { fan_in: input.len(), fan_out: self.outputs },
        };
        vec![weight, Parameter::vector("bias", self.outputs, 0.0, SlotKind::Vector)]
    }

    fn take_relu(&mut self) -> bool {
        self.relu = true;
        true
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        let shape = LinearShape { batch: site.builder.batch, inputs: site.input.len(), outputs: self.outputs };
        let plan = site.builder.engine.linear(shape)?;
        Ok(Box::new(Planned::<E> { plan, shape, weight: site.slots[0], bias: site.slots[1], relu: self.relu }))
    }
}

struct Planned<E: Engine> {
    plan: E::Linear,
    shape: LinearShape,
    weight: SlotId,
    bias: SlotId,
    relu: bool,
}

impl<E: Engine> Operation<E> for Planned<E> {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        run.engine.linear_forward(&mut self.plan, x, run.store, self.weight, self.bias, self.relu, y)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { x, y, dy, dx } = pass;
        let LinearShape { batch, outputs, .. } = self.shape;
        run.engine.bias_relu_backward(y, dy, batch, outputs, self.relu, run.store, Some(self.bias))?;
        run.engine.linear_backward_weights(&mut self.plan, x, dy, run.store, self.weight)?;
        match dx {
            Some(dx) => run.engine.linear_backward_data(&mut self.plan, dy, run.store, self.weight, dx),
            None => Ok(()),
        }
    }

    fn spoils_gradient(&self) -> bool {
        self.relu
    }
}
