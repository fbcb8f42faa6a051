//! Scales a workload down in bytes or time; its structure (files, samples, steps, epochs, threads) stays.

use forebay_measure::Refused;
use forebay_workload::{Time, Workload};

pub(super) fn bytes(workload: &mut Workload, by: f64) -> Result<(), Refused> {
    let dataset = &mut workload.dataset;
    if by > 1.0 && !(dataset.record_dims.is_empty() && workload.reader.transformed_dims.is_empty()) {
        return Err("`shrink_bytes` divides record_length_bytes, but the workload gives dimensions".to_owned());
    }
    dataset.record_length_bytes = (dataset.record_length_bytes / by).max(1.0);
    dataset.record_length_bytes_stdev /= by;
    if dataset.record_length_bytes_resize > 0 {
        dataset.record_length_bytes_resize = ((dataset.record_length_bytes_resize as f64 / by) as u64).max(1);
    }
    Ok(())
}

/// Scales computation, evaluation and preparation of samples.
pub(super) fn times(workload: &mut Workload, by: f64) {
    if by > 1.0 {
        let times = [
            &mut workload.train.computation_time,
            &mut workload.evaluation.eval_time,
            &mut workload.reader.preprocess_time,
        ];
        times.into_iter().for_each(|time| *time = shorter(*time, by));
    }
}

/// Whole seconds stay as they are.
fn shorter(time: Time, by: f64) -> Time {
    match time {
        Time::Normal { mean, stdev } => Time::Normal { mean: mean / by, stdev: stdev / by },
        Time::Uniform { min, max } => Time::Uniform { min: min / by, max: max / by },
        Time::Gamma { shape, scale } => Time::Gamma { shape, scale: scale / by },
        Time::Exponential { scale } => Time::Exponential { scale: scale / by },
        Time::Poisson { lam } => Time::Poisson { lam },
    }
}
