//! Medians per mode and format, with a note if the times are scattered.

use forebay_checkpoint::Mode;
use forebay_measure::Place;
use forebay_record::{CheckpointCell, CheckpointSample, Medium};
use forebay_units::{PathText, Summary, format_seconds, median};

use super::Plan;
use super::bare::Rates;
use super::plan::mode_name;
use super::scratch_dirs::ScratchDirs;
use super::trial::Machine;
use super::values::Values;

#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) samples: Vec<CheckpointSample>,
    pub(super) rates: Vec<Rates>,
    pub(super) copies_s: Vec<f64>,
    pub(super) memory_bytes: Option<u64>,
}

impl Measured {
    pub(super) fn new(saves: Vec<(CheckpointSample, Machine)>) -> Self {
        let (samples, machine): (Vec<_>, Vec<Machine>) = saves.into_iter().unzip();
        let (rates, copies_s): (Vec<_>, Vec<_>) = machine.into_iter().unzip();
        let (rates, copies_s) = (rates.into_iter().flatten().collect(), copies_s.into_iter().flatten().collect());
        Self { samples, rates, copies_s, memory_bytes: None }
    }
}

pub(super) fn cell(
    plan: &Plan,
    dirs: &ScratchDirs,
    values: &Values,
    mode: Mode,
    format: &str,
    measured: Measured,
) -> CheckpointCell {
    let of =
        |pick: fn(&CheckpointSample) -> Option<f64>| -> Vec<f64> { measured.samples.iter().filter_map(pick).collect() };
    let durable_fast = of(|sample| sample.durable_fast_s);
    let spread = Summary::of(&durable_fast).filter(|summary| summary.n > 1);
    let rates = |pick: fn(&Rates) -> f64| median(&measured.rates.iter().map(pick).collect::<Vec<_>>());
    let burst = dirs.places().fast.as_ref().zip(plan.places.fast.as_ref());
    CheckpointCell {
        mode: mode_name(mode).to_owned(),
        format: format.to_owned(),
        state: values.what.clone(),
        device: values.device(),
        n_tensors: values.n_tensors(),
        bytes: values.bytes().len() as u64,
        medium: medium(&dirs.places().slow, &plan.places.slow),
        burst: burst.map(|(own, given)| medium(own, given)),
        stall_s: median(&of(|sample| Some(sample.stall_s))).unwrap_or_default(),
        durable_fast_s: median(&durable_fast),
        durable_slow_s: median(&of(|sample| sample.durable_slow_s)),
        restore_s: median(&of(|sample| sample.restore_s)),
        ceiling_mb_per_s: rates(|rates| rates.write),
        rated_mb_per_s: plan.places.rated_mb_per_s(mode),
        read_ceiling_mb_per_s: rates(|rates| rates.read),
        copy_s: median(&measured.copies_s),
        memory_bytes: measured.memory_bytes,
        spread: spread.map(|summary| (summary.max - summary.min) / 2.0 / summary.median),
        samples: measured.samples,
        disturbed: None,
    }
}

/// Half the range over the median above which the times are too scattered to represent the machine.
const FAR_APART: f64 = 0.25;
/// Below this many seconds, scatter is ignored.
const SHORT_S: f64 = 0.010;

/// Notes on scattered times.
pub(super) fn scatter(cell: &CheckpointCell) -> Vec<String> {
    let of = |what: &str, pick: fn(&CheckpointSample) -> Option<f64>| {
        let times = Summary::of(&cell.samples.iter().filter_map(pick).collect::<Vec<_>>())?;
        let is_far = (times.max - times.min) / 2.0 > FAR_APART * times.median && times.median >= SHORT_S;
        let (mode, format) = (&cell.mode, &cell.format);
        let (least, most) = (format_seconds(times.min), format_seconds(times.max));
        is_far.then(|| format!("{mode}, {format}: {what} took {least} to {most}, so their median is uncertain"))
    };
    let saves = of("the saves", |sample| sample.durable_fast_s);
    saves.into_iter().chain(of("the restores", |sample| sample.restore_s)).collect()
}

fn medium(own: &Place, given: &Place) -> Medium {
    Medium::new(format!("{}: {}", given.dir.escaped(), own.fs().description()), given.tier(), Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_lie_far_apart_are_noted() {
        let sample = |durable: f64, restore: f64| CheckpointSample {
            stall_s: durable,
            durable_fast_s: Some(durable),
            restore_s: Some(restore),
            ..CheckpointSample::default()
        };
        let noted = |samples: &[CheckpointSample]| {
            let json = serde_json::json!({
                "mode": "direct", "format": "safetensors", "bytes": 1, "stall_s": 1.0, "samples": samples,
            });
            scatter(&serde_json::from_value(json).unwrap())
        };
        assert_eq!(noted(&[sample(1.0, 0.5), sample(1.2, 0.5), sample(1.4, 0.6)]), [] as [&str; 0]);
        let said = noted(&[sample(1.0, 0.001), sample(1.2, 0.002), sample(1.9, 0.009)]);
        let wanted = "direct, safetensors: the saves took 1.00 s to 1.90 s, so their median is uncertain";
        assert_eq!(said, [wanted], "milliseconds always differ");
        assert_eq!(noted(&[sample(1.0, 0.1), sample(1.0, 0.1), sample(1.0, 0.3)]).len(), 1);
        assert!(noted(&[]).is_empty());
    }
}
