//! Stochastic gradient descent, as `torch.optim.SGD` defines it.

use super::{Arithmetic, Constants, Declared};
use crate::engine::widest;

/// The constants of stochastic gradient descent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    pub learning_rate: f64,
    /// Momentum; 0 for none.
    pub momentum: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Nesterov momentum.
    pub nesterov: bool,
}

impl Default for Sgd {
    fn default() -> Self {
        Self::TORCH
    }
}

impl Sgd {
    const TORCH: Self = Self { learning_rate: 1e-2, momentum: 0.9, weight_decay: 0.0, nesterov: false };
    pub(super) const USUAL: [(&str, Self); 1] = [("sgd", Self::TORCH)];
    pub(super) const ARITHMETIC: Arithmetic = Arithmetic { name: "sgd", n_moments: 1, sweep, cuda: CUDA };
}

impl Declared for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn moments(&self) -> &'static [&'static str] {
        if self.momentum == 0.0 { &[] } else { &["momentum_buffer"] }
    }

    fn constants(&self, _: u64) -> Constants {
        let [rate, momentum, decay] = [self.learning_rate, self.momentum, self.weight_decay].map(|value| value as f32);
        [rate, momentum, decay, f32::from(u8::from(self.nesterov)), 0.0, 0.0, 0.0, 0.0, 0.0]
    }
}

widest! {
    fn sweep(constants: &Constants, values: &mut [f32], gradients: &[f32], velocities: &mut [f32], _none: &mut [f32]) {
        let [rate, momentum, decay, nesterov, ..] = *constants;
        for ((value, gradient), velocity) in values.iter_mut().zip(gradients).zip(velocities) {
            let gradient = gradient + decay * *value;
            *velocity = momentum * *velocity + gradient;
            *value -= rate * if nesterov == 0.0 { *velocity } else { gradient + momentum * *velocity };
        }
    }
}

const CUDA: &str = "
struct sgd {
    float rate, momentum, decay, nesterov;
    __device__ __forceinline__ void step(float& w, float g, float& m, float&) const {
        g += decay * w;
        m = momentum * m + g;
        w -= rate * (nesterov == 0.f ? m : g + momentum * m);
    }
};";
