//! Dropout (Srivastava et al., 2014).

use super::{Describe, Operation, Pass, Run, Site};
use crate::engine::Engine;
use crate::error::Result;
use crate::rng::{after, key};
use crate::shape::Shape;

/// In training, sets a fraction of the values to 0 and scales up the others; otherwise passes values through.
///
/// The choice depends only on seed, layer, step and position, so nothing is stored for the backward pass.
#[derive(Debug, Clone)]
pub struct Dropout {
    rate: f32,
}

impl Dropout {
    /// Drops this fraction of the values: at least 0, less than 1.
    pub fn new(rate: f32) -> Self {
        Self { rate }
    }
}

impl Describe for Dropout {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        if !(0.0..1.0).contains(&self.rate) {
            return Err(format!("rate {} is out of range: expected at least 0 and less than 1", self.rate));
        }
        Ok(input)
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        site.builder.n_dropouts += 1;
        // Streams beyond those that weights are drawn from.
        let stream = key(site.builder.seed, (1 << 32) + site.builder.n_dropouts);
        let len = site.builder.batch * site.input.len();
        Ok(Box::new(Planned { rate: self.rate, len, first: site.builder.portion * len as u64, stream, last: None }))
    }
}

struct Planned {
    rate: f32,
    len: usize,
    /// Values of the step's batch before this portion of it.
    first: u64,
    stream: u64,
    /// The key of the last forward pass; `None` if nothing was dropped.
    last: Option<u64>,
}

impl<E: Engine> Operation<E> for Planned {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        self.last = run.training.then(|| after(key(self.stream, run.step), self.first));
        match self.last {
            Some(key) => run.engine.dropout(x, y, self.len, self.rate, key),
            None => run.engine.copy(x, y, self.len),
        }
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { dy, dx, .. } = pass;
        match (dx, self.last) {
            (Some(dx), Some(key)) => run.engine.dropout(dy, dx, self.len, self.rate, key),
            (Some(dx), None) => run.engine.copy(dy, dx, self.len),
            (None, _) => Ok(()),
        }
    }
}
