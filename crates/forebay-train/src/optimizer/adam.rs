//! Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017), as `torch.optim` defines them.

use super::{Arithmetic, Constants, Declared};
use crate::engine::widest;

/// The constants of Adam.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    pub learning_rate: f64,
    /// Decay rate of the first moment.
    pub beta1: f64,
    /// Decay rate of the second moment.
    pub beta2: f64,
    /// Added to the square root of the second moment.
    pub epsilon: f64,
    /// Weight decay.
    pub weight_decay: f64,
    /// Whether weight decay applies to the parameter (AdamW) instead of its gradient.
    pub decoupled: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Self::TORCH
    }
}

impl Adam {
    const TORCH: Self =
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decoupled: false };

    /// By name; the learning rate is lower than PyTorch's.
    pub(super) const USUAL: [(&str, Self); 2] = [
        ("adam", Self { learning_rate: 1e-4, ..Self::TORCH }),
        ("adamw", Self { learning_rate: 1e-4, ..Self::decoupled() }),
    ];
    pub(super) const ARITHMETIC: Arithmetic = Arithmetic { name: "adam", n_moments: 2, sweep, cuda: CUDA };

    /// AdamW with its usual decay.
    pub const fn decoupled() -> Self {
        Self { weight_decay: 0.01, decoupled: true, ..Self::TORCH }
    }
}

impl Declared for Adam {
    fn name(&self) -> &'static str {
        if self.decoupled { "adamw" } else { "adam" }
    }

    fn learning_rate(&mut self) -> &mut f64 {
        &mut self.learning_rate
    }

    fn moments(&self) -> &'static [&'static str] {
        &["exp_avg", "exp_avg_sq"]
    }

    fn constants(&self, step: u64) -> Constants {
        let correction = |beta: f64| 1.0 - beta.powi(i32::try_from(step).unwrap_or(i32::MAX));
        let decay = self.weight_decay;
        let (keep, decay) = if self.decoupled { (1.0 - self.learning_rate * decay, 0.0) } else { (1.0, decay) };
        let (step_size, root) = (self.learning_rate / correction(self.beta1), 1.0 / correction(self.beta2).sqrt());
        let (fresh1, fresh2) = (1.0 - self.beta1, 1.0 - self.beta2);
        [keep, decay, self.beta1, fresh1, self.beta2, fresh2, self.epsilon, step_size, root].map(|value| value as f32)
    }
}

widest! {
    fn sweep(constants: &Constants, values: &mut [f32], gradients: &[f32], first: &mut [f32], second: &mut [f32]) {
        let [keep, decay, beta1, fresh1, beta2, fresh2, epsilon, step_size, root_correction] = *constants;
        for (((value, gradient), first), second) in values.iter_mut().zip(gradients).zip(first).zip(second) {
            let gradient = gradient + decay * *value;
            *first = beta1 * *first + fresh1 * gradient;
            *second = beta2 * *second + fresh2 * gradient * gradient;
            let root = second.sqrt() * root_correction + epsilon;
            *value = keep * *value - step_size * (*first / root);
        }
    }
}

const CUDA: &str = "
struct adam {
    float keep, decay, beta1, fresh1, beta2, fresh2, epsilon, step_size, root_correction;
    __device__ __forceinline__ void step(float& w, float g, float& m, float& v) const {
        g += decay * w;
        m = beta1 * m + fresh1 * g;
        v = beta2 * v + fresh2 * g * g;
        w = keep * w - step_size * (m / (sqrtf(v) * root_correction + epsilon));
    }
};";
