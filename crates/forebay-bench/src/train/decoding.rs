//! What a training run decodes with: the CPU, a GPU, or the faster of them, and the number of threads.

use forebay_measure::{Cache, Event, Observer, ThreadCount, cold};
use forebay_pipeline::Tuning;
use forebay_record::Baseline;

use super::consumer::Kind;
use super::data::TrainingData;
use super::plan::Plan;
use super::run::Error;
use super::trial::Trial;
use crate::decoder::{DecodeOn, Decoder, Question};
use crate::supply;

impl Trial<'_> {
    pub(super) fn decode_with(&mut self, decoder: &Decoder) {
        self.data.iter_mut().chain(&mut self.judges).for_each(|data| data.decode_with(decoder));
    }

    /// Where images are decoded, if that was a question.
    pub(super) fn decoded_where(&self) -> Option<String> {
        let data = self.data.as_ref().filter(|_| self.plan.settings.decode != DecodeOn::Cpu)?;
        Some(data.decoder().name().unwrap_or_else(|| "cpu".to_owned()))
    }
}

/// The GPU that was asked for, opened before anything is measured.
pub(super) fn decoding_gpu(plan: &Plan, kind: &Kind, data: Option<&TrainingData>) -> Result<Decoder, Error> {
    match (plan.settings.decode, data) {
        (DecodeOn::Gpu, Some(data)) => {
            Ok(Decoder::on_gpu(&plan.gpus, kind.ordinal().unwrap_or(0), &data.source, data.output())?)
        }
        _ => Ok(Decoder::Cpu),
    }
}

/// With `auto`, the faster decoder, and why it is that.
pub(super) fn settle_decoder(
    trial: &mut Trial<'_>,
    baseline: Option<Baseline>,
    observer: Observer<'_>,
) -> Option<String> {
    let (plan, data) = (trial.plan, trial.data.as_ref()?);
    if plan.settings.decode != DecodeOn::Auto {
        return None;
    }
    observer.tell(Event::phase("finding the faster decoder"));
    let question = Question {
        source: &data.source,
        order: plan.settings.order(),
        output: data.output(),
        takes_per_s: baseline.map(|baseline| plan.settings.batch as f64 / baseline.step_s),
        shares_gpu: trial.kind.ordinal().is_some(),
        cancel: observer.cancel,
    };
    let (decoder, why) = Decoder::faster(&plan.gpus, trial.kind.ordinal().unwrap_or(0), &question);
    trial.decode_with(&decoder);
    Some(why)
}

/// The thread count as given, or found by the tuner before any measurement.
pub(super) fn settle_threads(trial: &mut Trial<'_>, observer: Observer<'_>) -> Result<(Option<Tuning>, bool), Error> {
    let Some(data) = &trial.data else { return Ok((None, false)) };
    if let ThreadCount::Fixed(threads) = trial.plan.settings.threads {
        trial.threads = threads;
        return Ok((None, false));
    }
    observer.tell(Event::phase("finding the thread count"));
    let is_cold = trial.plan.settings.cache() == Cache::Cold;
    cold::prepare(data.source.files(), is_cold)?;
    let (threads, tuning) = supply::tune(&data.tuning(is_cold), observer.cancel)?;
    trial.threads = threads;
    Ok((tuning, true))
}
