//! Max pooling.

use super::{Describe, Operation, Pass, Run, Site, windows};
use crate::engine::{Engine, PoolShape};
use crate::error::Result;
use crate::shape::Shape;

/// Largest window: positions within it are stored in one byte.
const MOST_WINDOW: usize = 16;

/// The largest value of each window, by channel. Windows may overlap.
#[derive(Debug, Clone)]
pub struct MaxPool {
    kernel: usize,
    stride: usize,
    padding: usize,
}

impl MaxPool {
    /// Windows of `kernel` × `kernel`, `stride` apart.
    pub fn new(kernel: usize, stride: usize) -> Self {
        Self { kernel, stride, padding: 0 }
    }

    /// Rows and columns around the image that never are a maximum.
    #[must_use]
    pub fn padding(self, padding: usize) -> Self {
        Self { padding, ..self }
    }
}

impl Describe for MaxPool {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        if self.kernel > MOST_WINDOW {
            return Err(format!("window size {} exceeds {MOST_WINDOW}", self.kernel));
        }
        if self.padding > self.kernel / 2 {
            return Err(format!("a window of {} with padding {} may contain no pixel", self.kernel, self.padding));
        }
        let along = |len| windows(len, self.kernel, self.stride, self.padding);
        Ok(Shape::new(along(input.height)?, along(input.width)?, input.channels))
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        let shape = PoolShape {
            batch: site.builder.batch,
            input: site.input,
            output: site.output,
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
        };
        Ok(Box::new(Planned::<E> { plan: site.builder.engine.max_pool(shape)? }))
    }
}

struct Planned<E: Engine> {
    plan: E::MaxPool,
}

impl<E: Engine> Operation<E> for Planned<E> {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        run.engine.max_pool_forward(&mut self.plan, x, y)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { x, y, dy, dx } = pass;
        dx.map_or(Ok(()), |dx| run.engine.max_pool_backward(&mut self.plan, x, y, dy, dx))
    }
}
