//! Residual sum (He et al., 2015): adds the output of a branch to its input.

use super::{Describe, Node, Operation, Pass, Run, Sequence, Site, output_shape};
use crate::engine::Engine;
use crate::error::Result;
use crate::shape::Shape;

#[derive(Debug, Clone)]
pub struct Residual {
    main: Vec<Node>,
    /// Empty for the identity.
    shortcut: Vec<Node>,
    relu: bool,
}

impl Residual {
    /// Adds the outputs of `main` and `shortcut` for the same input; an empty shortcut is the input itself.
    pub fn new(main: Vec<Node>, shortcut: Vec<Node>) -> Self {
        Self { main, shortcut, relu: false }
    }
}

impl Describe for Residual {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        if self.main.is_empty() {
            return Err("the main branch has no layers".to_owned());
        }
        let shape = |nodes| output_shape(nodes, input).map_err(|error| error.to_string());
        let (main, shortcut) = (shape(&self.main)?, shape(&self.shortcut)?);
        if main != shortcut {
            return Err(format!("the branches have different output shapes: {main} and {shortcut}"));
        }
        Ok(main)
    }

    fn branches(&self) -> Vec<&[Node]> {
        vec![&self.main, &self.shortcut]
    }

    fn take_relu(&mut self) -> bool {
        self.relu = true;
        true
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        let main = site.builder.sequence(&self.main, site.input)?;
        let shortcut = site.builder.sequence(&self.shortcut, site.input)?;
        let batch = site.builder.batch;
        Ok(Box::new(Planned::<E> {
            main,
            shortcut,
            input_len: batch * site.input.len(),
            output_len: batch * site.output.len(),
            relu: self.relu,
        }))
    }
}

struct Planned<E: Engine> {
    main: Sequence<E>,
    shortcut: Sequence<E>,
    input_len: usize,
    output_len: usize,
    relu: bool,
}

impl<E: Engine> Planned<E> {
    fn main_backward(
        &mut self,
        run: &mut Run<'_, E>,
        x: &E::Tensor,
        dy: &mut E::Tensor,
        dx: Option<&mut E::Tensor>,
    ) -> Result<()> {
        if !self.main.spoils_gradient() {
            return self.main.backward(run, x, dy, dx);
        }
        let mut copy = run.spare.take(run.engine, self.output_len)?;
        run.engine.copy(dy, &mut copy.1, self.output_len)?;
        self.main.backward(run, x, &mut copy.1, dx)?;
        run.spare.give(copy);
        Ok(())
    }
}

impl<E: Engine> Operation<E> for Planned<E> {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        self.main.forward(run, x)?;
        self.shortcut.forward(run, x)?;
        let other = if self.shortcut.is_empty() { x } else { self.shortcut.output() };
        run.engine.add(self.main.output(), other, y, self.output_len, self.relu)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { x, y, dy, dx } = pass;
        if self.relu {
            run.engine.bias_relu_backward(y, dy, self.output_len, 1, true, run.store, None)?;
        }
        let Some(dx) = dx else {
            self.main_backward(run, x, dy, None)?;
            return if self.shortcut.is_empty() { Ok(()) } else { self.shortcut.backward(run, x, dy, None) };
        };
        self.main_backward(run, x, dy, Some(&mut *dx))?;
        if self.shortcut.is_empty() {
            return run.engine.accumulate(dy, dx, self.input_len);
        }
        let mut other = run.spare.take(run.engine, self.input_len)?;
        self.shortcut.backward(run, x, dy, Some(&mut other.1))?;
        run.engine.accumulate(&other.1, dx, self.input_len)?;
        run.spare.give(other);
        Ok(())
    }

    fn spoils_gradient(&self) -> bool {
        self.relu || self.shortcut.spoils_gradient()
    }
}
