//! Networks that share the batches of their steps: data-parallel training.

use crate::engine::{Engine, Part, SlotId};
use crate::error::Error;
use crate::network::Network;

impl<E: Engine> Network<E> {
    /// Hands the gradients of a step to `mean`, which replaces them by their mean over all networks that share the
    /// step's batch. With equal portions these are the gradients of the whole batch, so
    /// [`apply`](Self::apply) makes the step of a single network with that batch, up to rounding.
    ///
    /// The running statistics of batch norm are averaged with them. Batch norm itself uses the statistics of its own
    /// portion, as in PyTorch without `SyncBatchNorm`.
    ///
    /// # Errors
    /// When the device fails, or `mean` does.
    pub fn exchange<F>(&mut self, mean: impl FnOnce(&mut [f32]) -> Result<(), F>) -> Result<(), F>
    where
        F: From<Error>,
    {
        let names = self.body.names.iter();
        let parts = names.map(|slot| if slot.is_statistic { Part::Value } else { Part::Gradient });
        let places: Vec<(SlotId, Part)> = parts.enumerate().map(|(i, part)| (SlotId(i), part)).collect();
        let mut values = std::mem::take(&mut self.exchanged);
        values.clear();
        for (slot, part) in &places {
            values.extend_from_slice(&self.engine.read(&self.body.store, *slot, *part)?);
        }
        mean(&mut values)?;
        let mut rest = values.as_slice();
        for (slot, part) in places {
            let (own, after) = rest.split_at(self.body.names[slot.0].shape.iter().product());
            self.engine.write(&mut self.body.store, slot, part, own)?;
            rest = after;
        }
        self.exchanged = values;
        Ok(())
    }
}
