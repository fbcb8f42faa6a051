//! Parameters in one block of device memory.
//!
//! Values and moments are f32. With bf16, layers read a working copy, which the optimiser updates. cuDNN returns weight
//! gradients in the activations' type, everything else returns f32; convolution weights therefore come first, and an
//! update is two launches.

use super::Precision;
use super::device::{Address, Argument, Device, Tensor, update_kernel};
use crate::engine::{Part, Slot, SlotId, SlotKind};
use crate::error::Result;
use crate::optimizer::{MOST_MOMENTS, Rule};

/// Slots start at multiples of this many values: 128 bytes in bf16.
const ALIGN: usize = 64;

/// All parameters and statistics of a network.
pub struct Store {
    places: Vec<Place>,
    n_values: usize,
    /// Values before this index are convolution weights.
    n_conv: usize,
    values: Tensor,
    /// bf16 copies of the values; `None` if layers read the values themselves.
    working: Option<Tensor>,
    conv_gradients: Tensor,
    gradients: Tensor,
    moments: [Option<Tensor>; MOST_MOMENTS],
    statistics: Tensor,
}

#[derive(Clone, Copy)]
struct Place {
    at: usize,
    len: usize,
    kind: SlotKind,
}

impl Store {
    pub(super) fn new(device: &Device, slots: Vec<Slot>) -> Result<Self> {
        let mut places: Vec<Place> =
            slots.iter().map(|slot| Place { at: 0, len: slot.values.len(), kind: slot.kind }).collect();
        let mut lay = |wanted: &dyn Fn(SlotKind) -> bool, mut at: usize| {
            for place in places.iter_mut().filter(|place| wanted(place.kind)) {
                place.at = at;
                at += place.len.next_multiple_of(ALIGN);
            }
            at
        };
        let n_conv = lay(&|kind| kind == SlotKind::ConvWeight, 0);
        let n_values = lay(&|kind| matches!(kind, SlotKind::LinearWeight | SlotKind::Vector), n_conv);
        let n_statistics = lay(&|kind| kind == SlotKind::Statistic, 0);
        let working = if device.precision == Precision::Bf16 { Some(device.tensor(n_values)?) } else { None };
        let store = Self {
            places,
            n_values,
            n_conv,
            values: device.floats(n_values)?,
            working,
            conv_gradients: device.tensor(n_conv)?,
            gradients: device.floats(n_values - n_conv)?,
            moments: [const { None }; MOST_MOMENTS],
            statistics: device.floats(n_statistics)?,
        };
        for (i, slot) in slots.into_iter().enumerate() {
            device.to_device(&slot.values, store.value(SlotId(i)))?;
        }
        store.copy_working(device)?;
        Ok(store)
    }

    pub(super) fn value(&self, slot: SlotId) -> Address {
        let place = self.places[slot.0];
        let arena = if place.kind == SlotKind::Statistic { &self.statistics } else { &self.values };
        arena.at() + 4 * place.at as u64
    }

    /// A weight as layers read it, in the activations' type.
    pub(super) fn weight(&self, device: &Device, slot: SlotId) -> Address {
        let arena = self.working.as_ref().unwrap_or(&self.values);
        arena.at() + (device.size() * self.places[slot.0].at) as u64
    }

    /// The destination of a slot's gradient: of the activations' type for convolution weights, otherwise f32.
    pub(super) fn gradient(&self, device: &Device, slot: SlotId) -> Address {
        let place = self.places[slot.0];
        if place.kind == SlotKind::ConvWeight {
            self.conv_gradients.at() + (device.size() * place.at) as u64
        } else {
            self.gradients.at() + 4 * (place.at - self.n_conv) as u64
        }
    }

    /// Address and number of the f32 values of a slot's part; none for moments before the first step.
    pub(super) fn lies(&self, slot: SlotId, part: Part) -> (Option<Address>, usize) {
        let place = self.places[slot.0];
        let at = match part {
            Part::Value => Some(self.value(slot)),
            Part::Moment(i) => self.moments[i].as_ref().map(|moment| moment.at() + 4 * place.at as u64),
            Part::Gradient => panic!("a gradient is no part of a state"),
        };
        (at, place.len)
    }

    pub(super) fn read(&self, device: &Device, slot: SlotId, part: Part) -> Result<Vec<f32>> {
        let place = self.places[slot.0];
        match part {
            Part::Value | Part::Moment(_) => match self.lies(slot, part) {
                (Some(at), len) => device.to_host(at, len),
                (None, len) => Ok(vec![0.0; len]),
            },
            Part::Gradient if place.kind == SlotKind::ConvWeight => {
                super::to_host(device, self.gradient(device, slot), place.len)
            }
            Part::Gradient => device.to_host(self.gradient(device, slot), place.len),
        }
    }

    pub(super) fn write(&mut self, device: &Device, slot: SlotId, part: Part, values: &[f32]) -> Result<()> {
        let place = self.places[slot.0];
        crate::error::Error::check_length("a slot", place.len, values.len())?;
        match part {
            Part::Value => {
                device.to_device(values, self.value(slot))?;
                self.copy_working(device)
            }
            Part::Moment(i) => {
                device.to_device(values, ready(device, &mut self.moments[i], self.n_values)? + 4 * place.at as u64)
            }
            Part::Gradient if place.kind == SlotKind::ConvWeight => {
                super::to_device(device, values, self.gradient(device, slot))
            }
            Part::Gradient => device.to_device(values, self.gradient(device, slot)),
        }
    }

    /// Updates the working copy after values were set from outside.
    fn copy_working(&self, device: &Device) -> Result<()> {
        let Some(working) = &self.working else { return Ok(()) };
        let arguments =
            [Argument::Wide(self.values.at()), Argument::Wide(working.at()), Argument::Wide(self.n_values as u64)];
        device.launch("cast_in", Device::blocks(self.n_values), &arguments)
    }

    pub(super) fn update(&mut self, device: &Device, rule: &Rule) -> Result<()> {
        let Rule { arithmetic, constants } = rule;
        let mut moments = [0; MOST_MOMENTS];
        for (address, moment) in moments.iter_mut().zip(&mut self.moments).take(arithmetic.n_moments) {
            *address = ready(device, moment, self.n_values)?;
        }
        let [first, second] = moments;
        let working = self.working.as_ref().map_or(0, Tensor::at);
        let typed = device.precision == Precision::Bf16;
        let regions = [
            (0, self.n_conv, self.conv_gradients.at(), typed),
            (self.n_conv, self.n_values, self.gradients.at(), false),
        ];
        for (from, to, gradients, typed) in regions.into_iter().filter(|(from, to, ..)| from < to) {
            let at = |arena: Address, size: usize| Argument::Wide(arena + (size * from) as u64);
            let n = (to - from) / 4;
            let arguments = [
                at(self.values.at(), 4),
                Argument::Wide(gradients),
                at(first, 4),
                at(second, 4),
                at(working, 2),
                Argument::Wide(n as u64),
                Argument::Constants(*constants),
            ];
            device.launch(&update_kernel(arithmetic.name, typed), Device::blocks(n), &arguments)?;
        }
        Ok(())
    }
}

/// A moment's memory, zeroed on first use.
fn ready(device: &Device, moment: &mut Option<Tensor>, len: usize) -> Result<Address> {
    if moment.is_none() {
        *moment = Some(device.floats(len)?);
    }
    Ok(moment.as_ref().map_or(0, Tensor::at))
}
