//! Layers with their parameters on an engine: the common part of a network and a block.

use std::borrow::Cow;

use crate::engine::{Engine, Part, SlotId};
use crate::error::{Error, Result};
use crate::layer::{Builder, Node, Run, Sequence, SlotName, Spare, check_size};
use crate::shape::Shape;

pub(crate) struct Body<E: Engine> {
    pub(crate) sequence: Sequence<E>,
    pub(crate) store: E::Store,
    pub(crate) spare: Spare<E>,
    pub(crate) names: Vec<SlotName>,
}

impl<E: Engine> Body<E> {
    /// `portion` says which portion of a step's batch these samples are, of several of this size.
    pub(crate) fn new(
        engine: &E,
        nodes: &[Node],
        input: Shape,
        batch: usize,
        (seed, portion): (u64, u64),
    ) -> Result<Self> {
        if nodes.is_empty() || batch == 0 || input.is_empty() {
            return Err(Error::Order(
                "a network needs at least one layer, one sample per batch and one value per sample",
            ));
        }
        check_size("input", &[batch, input.height, input.width, input.channels])?;
        let mut builder = Builder::new(engine, batch, seed, portion);
        let sequence = builder.sequence(nodes, input)?;
        let Builder { slots, names, .. } = builder;
        Ok(Self { sequence, store: engine.store(slots)?, spare: Spare::new(), names })
    }

    pub(crate) fn forward(&mut self, engine: &E, x: &E::Tensor, training: bool, step: u64) -> Result<()> {
        let (store, spare) = (&mut self.store, &mut self.spare);
        self.sequence.forward(&mut Run { engine, store, spare, training, step }, x)
    }

    /// The backward pass; requires a forward pass in training mode.
    pub(crate) fn backward(
        &mut self,
        engine: &E,
        x: &E::Tensor,
        dy: &mut E::Tensor,
        dx: Option<&mut E::Tensor>,
        step: u64,
    ) -> Result<()> {
        let (store, spare) = (&mut self.store, &mut self.spare);
        self.sequence.backward(&mut Run { engine, store, spare, training: true, step }, x, dy, dx)
    }

    /// The index and description of the slot with this name.
    pub(crate) fn slot(&self, name: &str) -> Result<(SlotId, &SlotName)> {
        let found = self.names.iter().position(|slot| slot.name == name);
        let missing = || Error::State(format!("no parameter named \"{name}\""));
        found.map(|i| (SlotId(i), &self.names[i])).ok_or_else(missing)
    }

    pub(crate) fn read<'a>(&'a self, engine: &E, name: &str, part: Part) -> Result<Cow<'a, [f32]>> {
        engine.read(&self.store, self.slot(name)?.0, part)
    }

    pub(crate) fn write(&mut self, engine: &E, name: &str, part: Part, values: &[f32]) -> Result<()> {
        let (id, slot) = self.slot(name)?;
        Error::check_length(name, slot.shape.iter().product(), values.len())?;
        engine.write(&mut self.store, id, part, values)
    }
}
