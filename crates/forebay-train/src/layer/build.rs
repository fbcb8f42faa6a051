//! Turns a list of layers into planned operations with slots.

use super::{Describe, Layer, Node, Sequence, Site};
use crate::engine::{Engine, Slot, SlotId, SlotKind};
use crate::error::{Error, Result};
use crate::init::{Fan, Init};
use crate::shape::Shape;

/// Maximum number of values of a batch between two layers, or of a parameter: more than any memory, and small enough
/// that padded sizes do not overflow.
const MOST: usize = 1 << 40;

/// Name and arrangement of a slot's values.
#[derive(Debug, Clone)]
pub(crate) struct SlotName {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) is_statistic: bool,
    pub(crate) init: Init,
    pub(crate) fan: Fan,
}

pub(crate) struct Builder<'a, E: Engine> {
    pub(crate) engine: &'a E,
    pub(crate) batch: usize,
    pub(crate) seed: u64,
    /// Which portion of the step's batch this is.
    pub(crate) portion: u64,
    pub(crate) slots: Vec<Slot>,
    pub(crate) names: Vec<SlotName>,
    pub(crate) n_dropouts: u64,
}

impl<'a, E: Engine> Builder<'a, E> {
    pub(crate) fn new(engine: &'a E, batch: usize, seed: u64, portion: u64) -> Self {
        Self { engine, batch, seed, portion, slots: Vec::new(), names: Vec::new(), n_dropouts: 0 }
    }

    /// Plans layers in order and fuses each ReLU into the previous layer if possible.
    pub(crate) fn sequence(&mut self, nodes: &[Node], input: Shape) -> Result<Sequence<E>> {
        let mut sequence = Sequence::new();
        let mut shape = input;
        let mut nodes = nodes.iter().peekable();
        while let Some(node) = nodes.next() {
            let mut layer = node.layer.clone();
            if nodes.peek().is_some_and(|next| matches!(next.layer, Layer::Relu(_))) && layer.take_relu() {
                nodes.next();
            }
            let output = step(node, shape)?;
            check_size(&node.name, &[self.batch, output.height, output.width, output.channels])?;
            let slots = self.declare(node, &layer, shape)?;
            let operation = layer.build(Site { builder: self, slots: &slots, input: shape, output })?;
            sequence.push(self.engine, operation, self.batch * output.len())?;
            shape = output;
        }
        Ok(sequence)
    }

    fn declare(&mut self, node: &Node, layer: &Layer, input: Shape) -> Result<Vec<SlotId>> {
        let mut ids = Vec::new();
        for parameter in layer.parameters(input) {
            let id = self.slots.len();
            let name = format!("{}.{}", node.name, parameter.name);
            if self.names.iter().any(|slot| slot.name == name) {
                return Err(Error::shape(&node.name, "duplicate layer name"));
            }
            let values = parameter.init.values(parameter.len(), parameter.fan, self.seed, id as u64)?;
            self.slots.push(Slot { kind: parameter.kind, values });
            self.names.push(SlotName {
                name,
                shape: parameter.shape,
                is_statistic: parameter.kind == SlotKind::Statistic,
                init: parameter.init,
                fan: parameter.fan,
            });
            ids.push(SlotId(id));
        }
        Ok(ids)
    }
}

pub(crate) fn output_shape(nodes: &[Node], input: Shape) -> Result<Shape> {
    check_size("input", &[input.height, input.width, input.channels])?;
    nodes.iter().try_fold(input, |shape, node| step(node, shape))
}

/// Number of values that the layers learn, without statistics.
pub(crate) fn count_parameters(nodes: &[Node], input: Shape) -> Result<usize> {
    let mut shape = input;
    let mut total = 0;
    for node in nodes {
        let own = node.layer.parameters(shape);
        total += own.iter().filter(|p| p.kind != SlotKind::Statistic).map(super::Parameter::len).sum::<usize>();
        for branch in node.layer.branches() {
            total += count_parameters(branch, shape)?;
        }
        shape = step(node, shape)?;
    }
    Ok(total)
}

/// The shape after one layer. Branches are checked first, so the error names the innermost layer.
fn step(node: &Node, input: Shape) -> Result<Shape> {
    for branch in node.layer.branches() {
        output_shape(branch, input)?;
    }
    let output = node.layer.output(input).map_err(|reason| Error::shape(&node.name, reason))?;
    check_size(&node.name, &[output.height, output.width, output.channels])?;
    if output.is_empty() {
        return Err(Error::shape(&node.name, format!("an input of {input} leaves an empty output")));
    }
    for parameter in node.layer.parameters(input) {
        check_size(&node.name, &parameter.shape)?;
    }
    Ok(output)
}

/// Returns an error if the product of the sizes exceeds the maximum.
pub(crate) fn check_size(layer: &str, sizes: &[usize]) -> Result<()> {
    let product = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    match product {
        Some(product) if product <= MOST => Ok(()),
        _ => Err(Error::shape(layer, format!("{sizes:?} has more than {MOST} values"))),
    }
}
