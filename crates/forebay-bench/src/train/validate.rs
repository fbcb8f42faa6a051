//! Evaluates a network on held-out samples at the end of an epoch.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_pipeline::Stats;
use forebay_record::Validation;

use super::consumer::Consumer;
use super::plan::Validate;
use super::run::Error;
use super::trial::Trial;

pub(super) struct Examined {
    /// `None` if it was interrupted, or no sample was usable.
    pub(super) validation: Option<Validation>,
    /// The note on failed samples.
    pub(super) fault: Option<String>,
}

impl Trial<'_> {
    /// Evaluates only if an epoch ends with this step.
    pub(super) fn validate(
        &self,
        step: u64,
        consumer: &mut dyn Consumer,
        cancel: &AtomicBool,
    ) -> Result<Option<Examined>, Error> {
        let data = match (&self.plan.validate, &self.judges) {
            (Some(Validate::Share(_)), _) => self.data.as_ref(),
            (_, judges) => judges.as_ref(),
        };
        let Some(data) = data.filter(|_| step.is_multiple_of(self.steps_per_epoch)) else { return Ok(None) };
        let begin_ns = self.clock.now_ns();
        let mut batches = data.judged(self.threads, self.plan.settings.batch).iter()?;
        let (mut n_samples, mut n_right, mut loss) = (0_u64, 0_u64, 0.0_f64);
        while let Some(batch) = batches.next_unless(cancel) {
            let batch = batch?;
            if let Some(judgement) = consumer.evaluate(&batch)? {
                n_samples += batch.len() as u64;
                n_right += judgement.n_right as u64;
                loss += f64::from(judgement.loss) * batch.len() as f64;
            }
        }
        let (n_samples, n_right, loss) = self.judged_by_all((n_samples, n_right, loss))?;
        let is_whole = n_samples > 0 && !cancel.load(Ordering::Relaxed);
        let validation = is_whole.then(|| Validation {
            n_samples,
            loss: Some((loss / n_samples as f64) as f32).filter(|loss| loss.is_finite()),
            accuracy: n_right as f64 / n_samples as f64,
            seconds: (self.clock.now_ns() - begin_ns) as f64 / 1e9,
        });
        Ok(Some(Examined { validation, fault: fault(&batches.stats(), n_samples) }))
    }
}

impl Trial<'_> {
    /// The sums of all ranks: samples, right ones, loss.
    fn judged_by_all(&self, mine: (u64, u64, f64)) -> Result<(u64, u64, f64), Error> {
        let Some(site) = self.site.several() else { return Ok(mine) };
        let (n_samples, n_right, loss) = mine;
        let sum = |all: Vec<u64>| all.iter().sum::<u64>();
        let losses = site.numbers(loss.to_bits())?;
        let loss = losses.into_iter().map(f64::from_bits).sum();
        Ok((sum(site.numbers(n_samples)?), sum(site.numbers(n_right)?), loss))
    }
}

fn fault(stats: &Stats, n_samples: u64) -> Option<String> {
    let first = stats.failures.first()?;
    let (name, reason, n_failed) = (&first.name, first.reason(), stats.n_failed);
    let of_all = n_failed + n_samples;
    Some(match n_samples {
        0 => format!("validation: none of {of_all} samples could be used; the first: {name}: {reason}"),
        _ => {
            format!("validation: {n_failed} of {of_all} samples failed and were left out; the first: {name}: {reason}")
        }
    })
}
