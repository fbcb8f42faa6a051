//! The state of a network that a checkpoint must store.

use std::borrow::Cow;

use crate::engine::{Engine, Part, SlotId};
use crate::error::{Error, Result};
use crate::init::Init;
use crate::layer::SlotName;
use crate::network::Network;
use crate::view::Title;

#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    /// The name of the parameter or statistic; an optimiser's moment is named `parameter.moment`.
    pub name: String,
    /// Its dimensions: filters are filter, row, column, channel; matrices are output, input.
    pub shape: Vec<usize>,
    /// Its values; borrowed from the network if it is on the host.
    pub values: Cow<'a, [f32]>,
}

/// Everything that the next step depends on, besides the model and the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct State<'a> {
    /// Optimiser steps so far; Adam's bias correction depends on it.
    pub n_steps: u64,
    /// Parameters and statistics in the model's order, then the optimiser's moments.
    pub entries: Vec<Entry<'a>>,
}

impl State<'_> {
    /// An owned copy, independent of the network.
    pub fn into_owned(self) -> State<'static> {
        let own = |entry: Entry<'_>| Entry {
            name: entry.name,
            shape: entry.shape,
            values: Cow::Owned(entry.values.into_owned()),
        };
        State { n_steps: self.n_steps, entries: self.entries.into_iter().map(own).collect() }
    }
}

/// The location of an entry in the network.
pub(crate) struct Place {
    name: String,
    shape: Vec<usize>,
    slot: SlotId,
    part: Part,
}

impl Place {
    /// Its location and name.
    pub(crate) fn apart(self) -> ((SlotId, Part), Title) {
        ((self.slot, self.part), Title { name: self.name, shape: self.shape })
    }
}

impl<E: Engine> Network<E> {
    /// The state to store in a checkpoint. A network that loads it makes the same steps as this one.
    ///
    /// # Errors
    /// When the device fails.
    pub fn state(&self) -> Result<State<'_>> {
        let mut entries = Vec::new();
        for Place { name, shape, slot, part } in self.places() {
            entries.push(Entry { name, shape, values: self.engine.read(&self.body.store, slot, part)? });
        }
        Ok(State { n_steps: self.n_steps, entries })
    }

    /// Loads a saved state of the same model and optimiser.
    ///
    /// # Errors
    /// When an entry is missing, unexpected, or has another shape; nothing has changed then. Or when the device fails.
    pub fn load_state(&mut self, state: &State<'_>) -> Result<()> {
        let places = self.places();
        let mut found = Vec::with_capacity(places.len());
        for place in &places {
            found.push(find(state, place)?);
        }
        if let Some(other) = state.entries.iter().find(|entry| places.iter().all(|place| place.name != entry.name)) {
            return Err(Error::State(format!("\"{}\" is not part of this network", other.name)));
        }
        for (place, entry) in places.iter().zip(found) {
            self.engine.write(&mut self.body.store, place.slot, place.part, &entry.values)?;
        }
        self.n_steps = state.n_steps;
        Ok(())
    }

    /// Resets to the initial weights of the seed, with no step made. Like a new network, without the time for planning.
    ///
    /// # Errors
    /// When a batch is staged, a step is not finished, or the device fails.
    pub fn reset(&mut self) -> Result<()> {
        self.check_idle()?;
        for Place { slot, part, .. } in self.places() {
            let SlotName { shape, init, fan, .. } = &self.body.names[slot.0];
            let len = shape.iter().product();
            // Moments start at zero.
            let init = if part == Part::Value { *init } else { Init::Constant(0.0) };
            let values = init.values(len, *fan, self.seed, slot.0 as u64)?;
            self.engine.write(&mut self.body.store, slot, part, &values)?;
        }
        self.n_steps = 0;
        Ok(())
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        let slots = || self.body.names.iter().enumerate();
        let place = |i: usize, name: String, part| Place {
            name,
            shape: self.body.names[i].shape.clone(),
            slot: SlotId(i),
            part,
        };
        let mut places: Vec<Place> = slots().map(|(i, slot)| place(i, slot.name.clone(), Part::Value)).collect();
        for (moment, part) in self.optimizer.moments() {
            let learnt = slots().filter(|(_, slot)| !slot.is_statistic);
            places.extend(learnt.map(|(i, slot)| place(i, format!("{}.{moment}", slot.name), part)));
        }
        places
    }
}

fn find<'s>(state: &'s State<'_>, place: &Place) -> Result<&'s Entry<'s>> {
    let entry = state.entries.iter().find(|entry| entry.name == place.name);
    let entry = entry.ok_or_else(|| Error::State(format!("\"{}\" is missing", place.name)))?;
    let len: usize = place.shape.iter().product();
    if entry.shape != place.shape || entry.values.len() != len {
        return Err(Error::State(format!("\"{}\" has shape {:?}, not {:?}", place.name, entry.shape, place.shape)));
    }
    Ok(entry)
}
