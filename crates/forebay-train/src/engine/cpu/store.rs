//! Parameters in one block of memory, so an update is one sweep.

use std::ops::Range;

use rayon::prelude::*;

use super::memory::Memory;
use super::threads::{CHUNK, Threads};
use crate::engine::{Part, Slot, SlotId, SlotKind};
use crate::error::Result;
use crate::optimizer::{MOST_MOMENTS, Rule};

/// Slots begin at multiples of a cache line.
const ALIGN: usize = 16;

/// All parameters and statistics of a network.
pub struct Store {
    places: Vec<Place>,
    values: Memory,
    gradients: Memory,
    /// Empty until an optimiser or a loaded state needs them.
    moments: [Memory; MOST_MOMENTS],
    statistics: Memory,
}

struct Place {
    range: Range<usize>,
    is_statistic: bool,
}

impl Store {
    pub(super) fn new(slots: Vec<Slot>) -> Result<Self> {
        let mut places = Vec::with_capacity(slots.len());
        let mut ends = [0, 0];
        for slot in &slots {
            let is_statistic = slot.kind == SlotKind::Statistic;
            let end = &mut ends[usize::from(is_statistic)];
            let range = *end..*end + slot.values.len();
            *end = range.end.next_multiple_of(ALIGN);
            places.push(Place { range, is_statistic });
        }
        let [n_values, n_statistics] = ends;
        let (values, gradients) = (Memory::zeroed(n_values)?, Memory::zeroed(n_values)?);
        let (moments, statistics) = (std::array::from_fn(|_| Memory::empty()), Memory::zeroed(n_statistics)?);
        let mut store = Self { places, values, gradients, moments, statistics };
        for (i, slot) in slots.into_iter().enumerate() {
            store.part_mut(SlotId(i), Part::Value).copy_from_slice(&slot.values);
        }
        Ok(store)
    }

    /// A slot's values; empty for a moment that was never needed.
    pub(super) fn part(&self, slot: SlotId, part: Part) -> &[f32] {
        let place = &self.places[slot.0];
        let memory = match part {
            Part::Value if place.is_statistic => &self.statistics,
            Part::Value => &self.values,
            Part::Gradient => &self.gradients,
            Part::Moment(i) => &self.moments[i],
        };
        memory.get(place.range.clone()).unwrap_or(&[])
    }

    /// A slot's values, mutable; a moment must have been prepared.
    pub(super) fn part_mut(&mut self, slot: SlotId, part: Part) -> &mut [f32] {
        let place = &self.places[slot.0];
        let memory = match part {
            Part::Value if place.is_statistic => &mut self.statistics,
            Part::Value => &mut self.values,
            Part::Gradient => &mut self.gradients,
            Part::Moment(i) => &mut self.moments[i],
        };
        &mut memory[place.range.clone()]
    }

    /// Allocates a moment, zeroed, on first use.
    pub(super) fn prepare(&mut self, part: Part) -> Result<()> {
        let Part::Moment(i) = part else { return Ok(()) };
        self.moments[i].room(self.values.len()).map(|_| ())
    }

    /// Two slots' values, both mutable.
    pub(super) fn values_mut(&mut self, a: SlotId, b: SlotId, part: Part) -> (&mut [f32], &mut [f32]) {
        let (from, to) = (self.places[a.0].range.clone(), self.places[b.0].range.clone());
        assert!(from.end <= to.start, "slots of a layer follow each other");
        let memory = match part {
            Part::Gradient => &mut self.gradients,
            _ => &mut self.statistics,
        };
        let (left, right) = memory.split_at_mut(to.start);
        (&mut left[from], &mut right[..to.end - to.start])
    }

    pub(super) fn update(&mut self, threads: &Threads, rule: &Rule) -> Result<()> {
        (0..rule.arithmetic.n_moments).try_for_each(|i| self.prepare(Part::Moment(i)))?;
        let (values, gradients) = (&mut self.values, &self.gradients);
        let n_chunks = values.len().div_ceil(CHUNK);
        let [firsts, seconds] = self.moments.each_mut().map(|moment| {
            let mut chunks: Vec<&mut [f32]> = moment.chunks_mut(CHUNK).collect();
            chunks.resize_with(n_chunks, Default::default);
            chunks
        });
        threads.run(|| {
            let chunks = values.par_chunks_mut(CHUNK).zip(gradients.par_chunks(CHUNK));
            chunks.zip(firsts).zip(seconds).for_each(|(((values, gradients), first), second)| {
                (rule.arithmetic.sweep)(&rule.constants, values, gradients, first, second);
            });
        });
        Ok(())
    }
}
