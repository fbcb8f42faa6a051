//! Average pooling.

use super::{Describe, Operation, Pass, Run, Site, windows};
use crate::engine::{Engine, PoolShape};
use crate::error::Result;
use crate::shape::Shape;

/// The mean of each window, by channel.
#[derive(Debug, Clone)]
pub struct AveragePool {
    /// Kernel and stride; `None` is the whole image.
    window: Option<(usize, usize)>,
}

impl AveragePool {
    /// Windows of `kernel` × `kernel`, `stride` apart.
    pub fn new(kernel: usize, stride: usize) -> Self {
        Self { window: Some((kernel, stride)) }
    }

    /// The mean of the whole image, which must be square.
    pub fn global() -> Self {
        Self { window: None }
    }

    fn window(&self, input: Shape) -> (usize, usize) {
        self.window.unwrap_or((input.height, 1))
    }
}

impl Describe for AveragePool {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        if self.window.is_none() && input.height != input.width {
            return Err(format!("{input} is not square"));
        }
        let (kernel, stride) = self.window(input);
        Ok(Shape::new(
            windows(input.height, kernel, stride, 0)?,
            windows(input.width, kernel, stride, 0)?,
            input.channels,
        ))
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        let (kernel, stride) = self.window(site.input);
        let (batch, input, output) = (site.builder.batch, site.input, site.output);
        Ok(Box::new(Planned { shape: PoolShape { batch, input, output, kernel, stride, padding: 0 } }))
    }
}

struct Planned {
    shape: PoolShape,
}

impl<E: Engine> Operation<E> for Planned {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        run.engine.average_pool_forward(self.shape, x, y)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { dy, dx, .. } = pass;
        dx.map_or(Ok(()), |dx| run.engine.average_pool_backward(self.shape, dy, dx))
    }
}
