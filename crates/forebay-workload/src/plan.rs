//! A workload applied to a number of accelerators.

use forebay_units::count;

use crate::Workload;
use crate::check::Problem;
use crate::dataset::Part;
use crate::model;

#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Plan {
    pub accelerators: u64,
    pub samples_train: u64,
    pub samples_eval: u64,
    /// Steps of each accelerator per epoch.
    pub steps_per_epoch: u64,
    /// Steps of each accelerator per evaluation.
    pub steps_eval: u64,
    /// Values only, without framing, headers and compression.
    pub bytes_train: u64,
    pub bytes_eval: u64,
    /// The epochs, from 1, that are followed by an evaluation.
    pub evaluations: Vec<u64>,
    pub checkpoints: u64,
    /// Bytes of one checkpoint, over all ranks.
    pub checkpoint_bytes: u64,
    /// Bytes per second that one accelerator needs to never wait; `None` when it does not compute.
    pub demand_bytes_per_s: Option<f64>,
    /// Expected computing time of one accelerator in the whole run, in seconds.
    pub compute_s: f64,
}

impl Plan {
    /// Plans a workload for this number of accelerators.
    ///
    /// # Errors
    /// When there is not a single step, more steps are requested than the data allows, or the model cannot be spread over
    /// them.
    pub fn new(workload: &Workload, accelerators: u64) -> Result<Self, Problem> {
        if accelerators == 0 {
            return Err(problem("accelerators", "must be at least 1".to_owned()));
        }
        let dataset = &workload.dataset;
        let samples = |part| dataset.n_files(part).saturating_mul(dataset.n_samples_per_file);
        let steps_per_epoch = steps(workload, samples(Part::Train), accelerators)?;
        let steps_eval = steps_eval(workload, samples(Part::Eval), accelerators)?;
        let evaluations = if steps_eval > 0 { evaluations(workload) } else { Vec::new() };
        let saves = workload.workflow.checkpoint;
        let step_s = workload.train.computation_time.mean().abs();
        let demand = workload.reader.batch_size as f64 * dataset.mean_read_bytes() / step_s;
        let Some(steps) = workload.train.epochs.checked_mul(steps_per_epoch) else {
            let text = format!("{} epochs of {steps_per_epoch} steps overflow", workload.train.epochs);
            return Err(problem("train.epochs", text));
        };
        let training_s = steps as f64 * step_s;
        let evaluating_s = evaluations.len() as f64 * steps_eval as f64 * workload.evaluation.eval_time.mean().abs();
        Ok(Self {
            accelerators,
            samples_train: samples(Part::Train),
            samples_eval: samples(Part::Eval),
            steps_per_epoch,
            steps_eval,
            bytes_train: dataset.bytes(Part::Train),
            bytes_eval: dataset.bytes(Part::Eval),
            evaluations,
            checkpoints: if saves { checkpoints(workload, steps_per_epoch) } else { 0 },
            checkpoint_bytes: if saves { model::checkpoint_bytes(workload, accelerators)? } else { 0 },
            demand_bytes_per_s: (workload.workflow.train && step_s > 0.0).then_some(demand),
            compute_s: training_s + evaluating_s,
        })
    }
}

fn problem(key: &str, text: String) -> Problem {
    Problem { key: key.to_owned(), text }
}

/// Whole batches of each accelerator per epoch; samples that do not make a batch for all are dropped.
fn steps(workload: &Workload, samples: u64, accelerators: u64) -> Result<u64, Problem> {
    if !workload.workflow.train {
        return Ok(0);
    }
    let batch = workload.reader.batch_size;
    let most = samples / batch / accelerators;
    let asked = workload.train.max_steps.unwrap_or(most);
    if most == 0 {
        let text = format!("{samples} samples are not one batch of {batch} for each of {accelerators} accelerators");
        return Err(problem("reader.batch_size", text));
    }
    if asked > most {
        let (most, accelerators) = (count(most, "step"), count(accelerators, "accelerator"));
        let text = format!("{asked} steps requested, but the data provides {most} for {accelerators}");
        return Err(problem("train.total_training_steps", text));
    }
    Ok(asked)
}

fn steps_eval(workload: &Workload, samples: u64, accelerators: u64) -> Result<u64, Problem> {
    if !(workload.workflow.train && workload.workflow.evaluation) {
        return Ok(0);
    }
    let batch = workload.reader.batch_size_eval;
    match samples / batch / accelerators {
        0 => {
            let text =
                format!("{samples} samples are not one batch of {batch} for each of {accelerators} accelerators");
            Err(problem("reader.batch_size_eval", text))
        }
        steps => Ok(steps),
    }
}

/// The epochs of `1..=epochs` with an event: `first`, and then every `between`.
fn every(epochs: u64, first: u64, between: u64) -> impl Iterator<Item = u64> {
    (first.max(1)..=epochs).step_by(usize::try_from(between.max(1)).unwrap_or(usize::MAX))
}

fn evaluations(workload: &Workload) -> Vec<u64> {
    every(workload.train.epochs, workload.evaluation.after_epoch, workload.evaluation.epochs_between).collect()
}

fn checkpoints(workload: &Workload, steps_per_epoch: u64) -> u64 {
    let checkpoint = &workload.checkpoint;
    match checkpoint.steps_between {
        _ if !workload.workflow.train => checkpoint.n_write,
        Some(steps) => workload.train.epochs * (steps_per_epoch / steps.max(1)),
        None => every(workload.train.epochs, checkpoint.after_epoch, checkpoint.epochs_between).count() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Checkpoint, Dataset, Evaluation, Reader, Train, Workflow};
    use crate::time::Time;

    fn workload() -> Workload {
        Workload {
            dataset: Dataset { n_files_train: 100, n_files_eval: 10, ..Dataset::default() },
            reader: Reader { batch_size: 4, ..Reader::default() },
            train: Train { epochs: 7, computation_time: Time::Normal { mean: 0.5, stdev: 0.1 }, ..Train::default() },
            workflow: Workflow { evaluation: true, checkpoint: true, ..Workflow::default() },
            evaluation: Evaluation { after_epoch: 2, epochs_between: 3, eval_time: Time::Exponential { scale: 0.25 } },
            checkpoint: Checkpoint { after_epoch: 3, epochs_between: 2, ..Checkpoint::default() },
            ..Workload::default()
        }
    }

    #[test]
    fn steps_bytes_and_times_add_up() {
        let plan = Plan::new(&workload(), 3).unwrap();
        assert_eq!((plan.steps_per_epoch, plan.steps_eval), (8, 3));
        assert_eq!((plan.bytes_train, plan.bytes_eval), (100 * 65_536, 10 * 65_536));
        assert_eq!(plan.evaluations, [2, 5]);
        assert_eq!((plan.checkpoints, plan.checkpoint_bytes), (3, 10_240), "after epochs 3, 5 and 7");
        assert_eq!(plan.demand_bytes_per_s, Some(4.0 * 65_536.0 / 0.5));
        assert_eq!(plan.compute_s, 7.0 * 8.0 * 0.5 + 2.0 * 3.0 * 0.25);
    }

    #[test]
    fn too_many_accelerators_or_steps_are_refused_with_the_counts() {
        let problem = Plan::new(&workload(), 26).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "reader.batch_size: 100 samples are not one batch of 4 for each of 26 accelerators"
        );
        let mut capped = workload();
        capped.train.max_steps = Some(26);
        assert_eq!(Plan::new(&capped, 1).unwrap_err().key, "train.total_training_steps");
        capped.train.max_steps = Some(25);
        assert_eq!(Plan::new(&capped, 1).unwrap().steps_per_epoch, 25);
        assert_eq!(Plan::new(&workload(), 11).unwrap_err().key, "reader.batch_size_eval");
    }

    #[test]
    fn checkpoints_by_steps_restart_with_each_epoch_and_those_alone_are_counted_as_stated() {
        let mut workload = workload();
        workload.checkpoint.steps_between = Some(10);
        assert_eq!(Plan::new(&workload, 1).unwrap().checkpoints, 7 * 2);
        workload.workflow.train = false;
        workload.checkpoint.n_write = 4;
        let plan = Plan::new(&workload, 1).unwrap();
        assert_eq!((plan.checkpoints, plan.steps_per_epoch, plan.demand_bytes_per_s), (4, 0, None));
    }
}
