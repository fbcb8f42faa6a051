//! Stochastic gradient descent, as `torch.optim.SGD` defines it.

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    pub learning_rate: f64,
    /// Share of the velocity that stays; 0 keeps none.
    pub momentum: f64,
    /// How strongly parameters are drawn to zero.
    pub weight_decay: f64,
    /// Whether the step looks ahead along the velocity.
    pub nesterov: bool,
}

impl Default for Sgd {
    fn default() -> Self {
        Self { learning_rate: 1e-2, momentum: 0.9, weight_decay: 0.0, nesterov: false }
    }
}

impl Sgd {
    pub(super) fn rule(&self) -> SgdRule {
        SgdRule {
            learning_rate: self.learning_rate as f32,
            momentum: self.momentum as f32,
            decay: self.weight_decay as f32,
            nesterov: self.nesterov,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SgdRule {
    pub(crate) learning_rate: f32,
    pub(crate) momentum: f32,
    pub(crate) decay: f32,
    pub(crate) nesterov: bool,
}

impl SgdRule {
    /// Changes one value and its velocity by its gradient.
    #[inline(always)]
    pub(crate) fn apply(&self, value: &mut f32, gradient: f32, velocity: &mut f32) {
        let gradient = gradient + self.decay * *value;
        *velocity = self.momentum * *velocity + gradient;
        let step = if self.nesterov { gradient + self.momentum * *velocity } else { *velocity };
        *value -= self.learning_rate * step;
    }
}
