//! Softmax cross-entropy.

use super::device::Argument::{Count, Number, Wide};
use super::device::{Address, Device, Tensor};
use crate::engine::Judgement;
use crate::error::Result;

pub struct Loss {
    n_classes: usize,
    rows: Tensor,
    total: Tensor,
}

impl Loss {
    pub(super) fn new(device: &Device, batch: usize, n_classes: usize) -> Result<Self> {
        Ok(Self { n_classes, rows: device.floats(2 * batch)?, total: device.floats(2)? })
    }

    pub(super) fn forward(
        &self,
        device: &Device,
        logits: Address,
        targets: Address,
        rows: usize,
        gradient: Option<Address>,
    ) -> Result<()> {
        let arguments = [
            Wide(logits),
            Wide(targets),
            Wide(gradient.unwrap_or(0)),
            Wide(self.rows.at()),
            Count(self.n_classes as u32),
            Number(1.0 / rows as f32),
        ];
        device.launch("loss_rows", (rows as u32, 1), &arguments)?;
        device.launch("loss_total", (1, 1), &[Wide(self.rows.at()), Count(rows as u32), Wide(self.total.at())])
    }

    pub(super) fn judgement(&self, device: &Device) -> Result<Judgement> {
        let values = device.to_host(self.total.at(), 2)?;
        Ok(Judgement { loss: values[0], n_right: values[1] as usize })
    }
}
