//! A few layers on their own.

use std::borrow::Cow;

use crate::body::Body;
use crate::engine::{Engine, Part};
use crate::error::{Error, Result};
use crate::layer::{Node, output_shape};
use crate::shape::Shape;

/// Layers without loss and optimiser; the caller provides inputs and gradients. For tests and experiments.
pub struct Block<E: Engine> {
    engine: E,
    body: Body<E>,
    x: E::Tensor,
    dx: E::Tensor,
    dy: E::Tensor,
    input_len: usize,
    output_len: usize,
    step: u64,
}

impl<E: Engine> Block<E> {
    /// Plans the layers for batches of `batch` samples of shape `input`.
    ///
    /// # Errors
    /// When the layers do not fit together, or the device fails.
    pub fn new(engine: E, layers: &[Node], input: Shape, batch: usize, seed: u64) -> Result<Self> {
        let output = output_shape(layers, input)?;
        let body = Body::new(&engine, layers, input, batch, (seed, 0))?;
        let (input_len, output_len) = (batch * input.len(), batch * output.len());
        let (x, dx, dy) = (engine.tensor(input_len)?, engine.tensor(input_len)?, engine.tensor(output_len)?);
        Ok(Self { engine, body, x, dx, dy, input_len, output_len, step: 0 })
    }

    /// The output of the layers for `x`. Each training pass counts as a step for layers with random behaviour.
    ///
    /// # Errors
    /// When the slice does not have the length of the batch, or the device fails.
    pub fn forward(&mut self, x: &[f32], training: bool) -> Result<Vec<f32>> {
        Error::check_length("the input", self.input_len, x.len())?;
        self.engine.upload(x, &mut self.x)?;
        self.step += u64::from(training);
        self.body.forward(&self.engine, &self.x, training, self.step)?;
        self.engine.download(self.body.sequence.output(), self.output_len)
    }

    /// The gradient of the last input for a given gradient of the output. The parameters' gradients can be read
    /// afterwards.
    ///
    /// # Errors
    /// When the slice does not have the length of the output, or the device fails.
    pub fn backward(&mut self, dy: &[f32]) -> Result<Vec<f32>> {
        Error::check_length("the gradient", self.output_len, dy.len())?;
        self.engine.upload(dy, &mut self.dy)?;
        self.body.backward(&self.engine, &self.x, &mut self.dy, Some(&mut self.dx), self.step)?;
        self.engine.download(&self.dx, self.input_len)
    }

    /// Both parameters and statistics.
    pub fn names(&self) -> Vec<String> {
        self.body.names.iter().map(|slot| slot.name.clone()).collect()
    }

    /// A parameter or statistic.
    ///
    /// # Errors
    /// When the name is unknown, or the device fails.
    pub fn value(&self, name: &str) -> Result<Cow<'_, [f32]>> {
        self.body.read(&self.engine, name, Part::Value)
    }

    /// Sets a parameter or statistic.
    ///
    /// # Errors
    /// When the name is unknown, the length is wrong, or the device fails.
    pub fn set_value(&mut self, name: &str, values: &[f32]) -> Result<()> {
        self.body.write(&self.engine, name, Part::Value, values)
    }

    /// A parameter's gradient from the last backward pass.
    ///
    /// # Errors
    /// When the name is unknown, or the device fails.
    pub fn gradient(&self, name: &str) -> Result<Cow<'_, [f32]>> {
        self.body.read(&self.engine, name, Part::Gradient)
    }
}
