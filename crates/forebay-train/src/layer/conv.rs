//! Convolution.

use super::{Describe, MOST, Operation, Parameter, Pass, Run, Site, windows};
use crate::engine::{ConvShape, Engine, SlotId, SlotKind};
use crate::error::Result;
use crate::init::{Fan, Init};
use crate::shape::Shape;

#[derive(Debug, Clone)]
pub struct Conv {
    filters: usize,
    kernel: usize,
    stride: usize,
    padding: usize,
    groups: usize,
    has_bias: bool,
    init: Init,
    relu: bool,
}

impl Conv {
    /// `filters` filters of `kernel` × `kernel`.
    pub fn new(filters: usize, kernel: usize) -> Self {
        Self { filters, kernel, stride: 1, padding: 0, groups: 1, has_bias: true, init: Init::HeUniform, relu: false }
    }

    /// Pixels from one position to the next.
    #[must_use]
    pub fn stride(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    /// Rows and columns of zeros on every side.
    #[must_use]
    pub fn padding(self, padding: usize) -> Self {
        Self { padding, ..self }
    }

    /// Splits channels and filters into groups; each filter sees only its group.
    #[must_use]
    pub fn groups(self, groups: usize) -> Self {
        Self { groups, ..self }
    }

    /// Omits the bias, for example before a batch norm.
    #[must_use]
    pub fn without_bias(self) -> Self {
        Self { has_bias: false, ..self }
    }

    /// Sets the distribution of the initial weights.
    #[must_use]
    pub fn init(self, init: Init) -> Self {
        Self { init, ..self }
    }
}

impl Describe for Conv {
    fn output(&self, input: Shape) -> Result<Shape, String> {
        if self.filters == 0 || self.groups == 0 {
            return Err("filters and groups must be at least 1".to_owned());
        }
        if !input.channels.is_multiple_of(self.groups) || !self.filters.is_multiple_of(self.groups) {
            return Err(format!(
                "{} channels and {} filters cannot be split into {} equal groups",
                input.channels, self.filters, self.groups
            ));
        }
        if self.kernel > MOST {
            return Err(format!("kernel size {} exceeds {MOST}", self.kernel));
        }
        let along = |len| windows(len, self.kernel, self.stride, self.padding);
        Ok(Shape::new(along(input.height)?, along(input.width)?, self.filters))
    }

    fn parameters(&self, input: Shape) -> Vec<Parameter> {
        let per_group = input.channels / self.groups;
        let area = self.kernel * self.kernel;
        let weight = Parameter {
            name: "weight",
            shape: vec![self.filters, self.kernel, self.kernel, per_group],
            kind: SlotKind::ConvWeight,
            init: self.init,
            fan: Fan { fan_in: area * per_group, fan_out: area * self.filters / self.groups },
        };
        let bias = self.has_bias.then(|| Parameter::vector("bias", self.filters, 0.0, SlotKind::Vector));
        [weight].into_iter().chain(bias).collect()
    }

    fn take_relu(&mut self) -> bool {
        self.relu = true;
        true
    }

    fn build<E: Engine>(&self, site: Site<'_, '_, E>) -> Result<Box<dyn Operation<E>>> {
        let shape = ConvShape {
            batch: site.builder.batch,
            input: site.input,
            output: site.output,
            kernel: self.kernel,
            stride: self.stride,
            padding: self.padding,
            groups: self.groups,
        };
        let plan = site.builder.engine.conv(shape)?;
        Ok(Box::new(Planned::<E> {
            plan,
            shape,
            weight: site.slots[0],
            bias: site.slots.get(1).copied(),
            relu: self.relu,
        }))
    }
}

struct Planned<E: Engine> {
    plan: E::Conv,
    shape: ConvShape,
    weight: SlotId,
    bias: Option<SlotId>,
    relu: bool,
}

impl<E: Engine> Operation<E> for Planned<E> {
    fn forward(&mut self, run: &mut Run<'_, E>, x: &E::Tensor, y: &mut E::Tensor) -> Result<()> {
        run.engine.conv_forward(&mut self.plan, x, run.store, self.weight, self.bias, self.relu, y)
    }

    fn backward(&mut self, run: &mut Run<'_, E>, pass: Pass<'_, E>) -> Result<()> {
        let Pass { x, y, dy, dx } = pass;
        let (rows, columns) = (self.shape.batch * self.shape.output.pixels(), self.shape.output.channels);
        run.engine.bias_relu_backward(y, dy, rows, columns, self.relu, run.store, self.bias)?;
        run.engine.conv_backward_weights(&mut self.plan, x, dy, run.store, self.weight)?;
        match dx {
            Some(dx) => run.engine.conv_backward_data(&mut self.plan, dy, run.store, self.weight, dx),
            None => Ok(()),
        }
    }

    fn spoils_gradient(&self) -> bool {
        self.relu
    }
}
