//! Softmax cross-entropy.

use crate::engine::Judgement;

/// A planned loss with its last result.
pub struct Loss {
    n_classes: usize,
    pub(super) judgement: Judgement,
}

impl Loss {
    pub(super) fn new(n_classes: usize) -> Self {
        Self { n_classes, judgement: Judgement { loss: 0.0, n_right: 0 } }
    }

    pub(super) fn forward(&mut self, logits: &[f32], targets: &[f32], rows: usize, mut gradient: Option<&mut [f32]>) {
        let n = self.n_classes;
        let (mut loss, mut n_right) = (0.0, 0);
        for row in 0..rows {
            let (logits, targets) = (&logits[row * n..][..n], &targets[row * n..][..n]);
            let gradient = gradient.as_deref_mut().map(|gradient| &mut gradient[row * n..][..n]);
            let own = row_loss(logits, targets, 1.0 / rows as f32, gradient);
            // NaN outputs predict no class.
            n_right += usize::from(!own.is_nan() && largest(logits) == largest(targets));
            loss += own;
        }
        self.judgement = Judgement { loss: (loss / rows as f64) as f32, n_right };
    }
}

/// The loss of one sample; its gradient is multiplied by `share`.
fn row_loss(logits: &[f32], targets: &[f32], share: f32, gradient: Option<&mut [f32]>) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|z| (z - most).exp()).sum();
    let log = sum.ln() + most;
    if let Some(gradient) = gradient {
        let weight: f32 = targets.iter().sum();
        for ((gradient, z), target) in gradient.iter_mut().zip(logits).zip(targets) {
            *gradient = (weight * (z - log).exp() - target) * share;
        }
    }
    // A class with target 0 costs nothing, even if its output is -∞.
    let term = |(z, target): (&f32, &f32)| if *target == 0.0 { 0.0 } else { f64::from(target * (log - z)) };
    let sum: f64 = logits.iter().zip(targets).map(term).sum();
    if log.is_nan() { f64::NAN } else { sum }
}

/// The index of the largest value; the first one if several are equal.
fn largest(values: &[f32]) -> usize {
    (1..values.len()).fold(0, |best, i| if values[i] > values[best] { i } else { best })
}
