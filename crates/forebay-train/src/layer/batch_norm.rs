//! Batch normalisation (Ioffe and Szegedy, 2015).

use super::{Describe, Operation, Parameter, Pass, Run, Site};
use crate::engine::{Engine, NormShape, NormSlots, SlotKind};
use crate::error::Result;
use crate::shape::Shape;

/// Normalises each channel to mean 0 and variance 1 over the batch, then scales and shifts it; outside training, uses
/// running statistics.
#[derive(Debug, Clone)]
pub struct BatchNorm {
    epsilon: f32,
    momentum: f32,
    relu: bool,
}

impl Default for BatchNorm {
    fn default() -> Self {
        Self { epsilon: 1e-5, momentum: 0.1, relu: false }
    }
}

impl BatchNorm {
    /// With PyTorch's constants: epsilon 1e-5, momentum 0.1.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Describe for BatchNorm {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        Ok(input)
    }

    fn parameters(&self, input: Shape) -> Vec<Parameter> {
        vec![
            Parameter::vector("weight", input.channels, 1.0, SlotKind::Vector),
            Parameter::vector("bias", input.channels, 0.0, SlotKind::Vector),
            Parameter::vector("running_mean", input.channels, 0.0, SlotKind::Statistic),
            Parameter::vector("running_var", input.channels, 1.0, SlotKind::Statistic),
        ]
    }

    fn take_relu(&mut self) -> bool {
        self.relu = true;
        true
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        let rows = site.builder.batch * site.input.pixels();
        let shape = NormShape { rows, channels: site.input.channels, epsilon: self.epsilon, momentum: self.momentum };
        let [weight, bias, mean, variance] = [0, 1, 2, 3].map(|i| site.slots[i]);
        let slots = NormSlots { weight, bias, mean, variance };
        Ok(Box::new(Planned::<E> {
            plan: site.builder.engine.norm(shape)?,
            slots,
            len: rows * shape.channels,
            relu: self.relu,
        }))
    }
}

struct Planned<E: Engine> {
    plan: E::Norm,
    slots: NormSlots,
    len: usize,
    relu: bool,
}

impl<E: Engine> Operation<E> for Planned<E> {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        run.engine.norm_forward(&mut self.plan, x, run.store, self.slots, run.training, self.relu, y)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { x, y, dy, dx } = pass;
        if let Some(dx) = dx {
            return run.engine.norm_backward(&mut self.plan, x, y, dy, run.store, self.slots, self.relu, dx);
        }
        let mut unwanted = run.spare.take(run.engine, self.len)?;
        run.engine.norm_backward(&mut self.plan, x, y, dy, run.store, self.slots, self.relu, &mut unwanted.1)?;
        run.spare.give(unwanted);
        Ok(())
    }

    fn spoils_gradient(&self) -> bool {
        self.relu
    }
}
