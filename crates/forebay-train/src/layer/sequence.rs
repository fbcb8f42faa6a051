//! Operations in sequence, with the activations between them.

use super::{Operation, Pass};
use crate::engine::Engine;
use crate::error::Result;

/// The context of a pass through the layers.
pub(crate) struct Run<'a, E: Engine> {
    pub(crate) engine: &'a E,
    pub(crate) store: &'a mut E::Store,
    pub(crate) spare: &'a mut Spare<E>,
    /// Training mode: enables dropout and batch statistics.
    pub(crate) training: bool,
    /// The step number, for random behaviour.
    pub(crate) step: u64,
}

/// Tensors for gradients, reused once they are free. After the first step no new one is allocated.
pub(crate) struct Spare<E: Engine> {
    free: Vec<(usize, E::Tensor)>,
}

impl<E: Engine> Spare<E> {
    pub(crate) fn new() -> Self {
        Self { free: Vec::new() }
    }

    /// A tensor of at least `len` values with arbitrary content: the smallest that fits, or a new one.
    pub(crate) fn take(&mut self, engine: &E, len: usize) -> Result<(usize, E::Tensor)> {
        let fitting = self.free.iter().enumerate().filter(|(_, (has, _))| *has >= len);
        match fitting.min_by_key(|(_, (has, _))| *has).map(|(i, _)| i) {
            Some(i) => Ok(self.free.swap_remove(i)),
            None => Ok((len, engine.tensor(len)?)),
        }
    }

    pub(crate) fn give(&mut self, tensor: (usize, E::Tensor)) {
        self.free.push(tensor);
    }
}

pub(crate) struct Sequence<E: Engine> {
    operations: Vec<Box<dyn Operation<E>>>,
    /// The output of each operation in the last forward pass.
    outputs: Vec<(usize, E::Tensor)>,
}

impl<E: Engine> Sequence<E> {
    pub(crate) fn new() -> Self {
        Self { operations: Vec::new(), outputs: Vec::new() }
    }

    pub(crate) fn push(&mut self, engine: &E, operation: Box<dyn Operation<E>>, output_len: usize) -> Result<()> {
        self.operations.push(operation);
        self.outputs.push((output_len, engine.tensor(output_len)?));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    pub(crate) fn output(&self) -> &E::Tensor {
        &self.outputs.last().expect("a sequence that is asked for its output has layers").1
    }

    pub(crate) fn spoils_gradient(&self) -> bool {
        self.operations.last().is_some_and(|last| last.spoils_gradient())
    }

    pub(crate) fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor) -> Result<()> {
        for (i, operation) in self.operations.iter_mut().enumerate() {
            let (before, after) = self.outputs.split_at_mut(i);
            let x = before.last().map_or(x, |(_, tensor)| tensor);
            operation.forward(run, x, &mut after[0].1)?;
        }
        Ok(())
    }

    /// Backward through all layers; `dy` is the gradient of the output, and the last layer may overwrite it.
    pub(crate) fn backward(
        &mut self,
        run: &mut Run<'_, E>,
        x: &E::Tensor,
        dy: &mut E::Tensor,
        mut dx: Option<&mut E::Tensor>,
    ) -> Result<()> {
        let mut gradient: Option<(usize, E::Tensor)> = None;
        for (i, operation) in self.operations.iter_mut().enumerate().rev() {
            let above = gradient.as_mut().map_or(&mut *dy, |(_, tensor)| tensor);
            let y = &self.outputs[i].1;
            if i == 0 {
                operation.backward(run, Pass { x, y, dy: above, dx: dx.take() })?;
                break;
            }
            let (len, x) = &self.outputs[i - 1];
            let mut below = run.spare.take(run.engine, *len)?;
            operation.backward(run, Pass { x, y, dy: above, dx: Some(&mut below.1) })?;
            if let Some(done) = gradient.replace(below) {
                run.spare.give(done);
            }
        }
        if let Some(done) = gradient {
            run.spare.give(done);
        }
        Ok(())
    }
}
