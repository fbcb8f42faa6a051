//! Rectified linear unit: sets negative values to 0.

use super::{Describe, Operation, Pass, Run, Site};
use crate::engine::Engine;
use crate::error::Result;
use crate::shape::Shape;

/// A ReLU. After a convolution, linear layer, batch norm or residual sum it is fused and costs nothing.
#[derive(Debug, Clone, Copy)]
pub struct Relu;

impl Describe for Relu {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        Ok(input)
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        Ok(Box::new(Planned { len: site.builder.batch * site.input.len() }))
    }
}

struct Planned {
    len: usize,
}

impl<E: Engine> Operation<E> for Planned {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        run.engine.relu_forward(x, y, self.len)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { y, dy, dx, .. } = pass;
        dx.map_or(Ok(()), |dx| run.engine.relu_backward(y, dy, dx, self.len))
    }
}
