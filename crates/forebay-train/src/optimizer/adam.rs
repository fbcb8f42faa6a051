//! Adam (Kingma and Ba, 2014) and AdamW (Loshchilov and Hutter, 2017), as `torch.optim` defines them.

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    pub learning_rate: f64,
    /// Share of the first moment that stays.
    pub beta1: f64,
    /// Share of the second moment that stays.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// How strongly parameters are drawn to zero.
    pub weight_decay: f64,
    /// Whether the decay acts on the parameter itself (AdamW) and not on its gradient.
    pub decoupled: bool,
}

impl Default for Adam {
    fn default() -> Self {
        Self { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, decoupled: false }
    }
}

impl Adam {
    /// AdamW: decay applied to the weights directly instead of to the gradient.
    pub fn decoupled() -> Self {
        Self { weight_decay: 0.01, decoupled: true, ..Self::default() }
    }

    pub(super) fn rule(&self, step: u64) -> AdamRule {
        let correction = |beta: f64| 1.0 - beta.powi(i32::try_from(step).unwrap_or(i32::MAX));
        let decay = self.weight_decay;
        AdamRule {
            keep: if self.decoupled { (1.0 - self.learning_rate * decay) as f32 } else { 1.0 },
            decay: if self.decoupled { 0.0 } else { decay as f32 },
            beta1: self.beta1 as f32,
            fresh1: (1.0 - self.beta1) as f32,
            beta2: self.beta2 as f32,
            fresh2: (1.0 - self.beta2) as f32,
            epsilon: self.epsilon as f32,
            step_size: (self.learning_rate / correction(self.beta1)) as f32,
            root_correction: (1.0 / correction(self.beta2).sqrt()) as f32,
        }
    }
}

/// Adam's constants for one step, with the bias corrections of that step folded in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamRule {
    pub(crate) keep: f32,
    pub(crate) decay: f32,
    pub(crate) beta1: f32,
    pub(crate) fresh1: f32,
    pub(crate) beta2: f32,
    pub(crate) fresh2: f32,
    pub(crate) epsilon: f32,
    pub(crate) step_size: f32,
    pub(crate) root_correction: f32,
}

impl AdamRule {
    /// Changes one value and its moments by its gradient.
    #[inline(always)]
    pub(crate) fn apply(&self, value: &mut f32, gradient: f32, first: &mut f32, second: &mut f32) {
        let gradient = gradient + self.decay * *value;
        *first = self.beta1 * *first + self.fresh1 * gradient;
        *second = self.beta2 * *second + self.fresh2 * gradient * gradient;
        let root = second.sqrt() * self.root_correction + self.epsilon;
        *value = self.keep * *value - self.step_size * (*first / root);
    }
}
