//! Utilisation and throughput from the times of steps: whole epoch, steady state, and DLIO's arithmetic to the last digit.
//!
//! DLIO excludes steps from its utilisation (the first, by default) and divides by the remaining time. The first step
//! waits for all read threads to fill their queues, so an epoch of few steps is judged by the part that did not wait.
//! [`au_epoch`] excludes nothing. [`dlio`] is what DLIO prints, for comparison.
//!
//! Versions differ. Up to 2.0.0, the version that `pip` installs, only the first step is excluded, and samples per second
//! are over the whole block: [`dlio_2_0`]. Since then the excluded steps can be set, and samples per second are of all
//! steps minus two, whatever was set, divided by the remaining time: [`dlio`]. For one block with the defaults the
//! utilisation is the same. A run's figure is the mean over ranks, then over epochs, with the population's deviation.
//!
//! In evaluations DLIO concatenates the ranks' lists instead of adding them, and then divides by the number of ranks: its
//! utilisation of evaluations is too low by that factor. This is not imitated here.

/// The times of one accelerator's steps in one epoch, or in one block between checkpoints of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// From requesting a batch to receiving it, in seconds.
    pub load_s: Vec<f64>,
    pub compute_s: Vec<f64>,
    /// From the block's start to its end.
    pub wall_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dlio {
    /// Its accelerator utilisation, in percent.
    pub au: f64,
    /// Its samples per second; 0 or negative if a block has too few steps, as DLIO itself prints.
    pub samples_per_s: f64,
}

/// DLIO's arithmetic for one block: its excluded steps, and its constant 2.
///
/// A step's total time is its loading plus its computing; if DLIO's own files give the total, use [`dlio_of`].
pub fn dlio(block: &Block, batch: u64, exclude_start: u64, exclude_end: u64, steps_per_epoch: u64) -> Dlio {
    let whole_s: Vec<f64> = block.load_s.iter().zip(&block.compute_s).map(|(load, compute)| load + compute).collect();
    let excluded = Excluded { start: exclude_start, end: exclude_end, steps_per_epoch };
    dlio_of(&block.compute_s, &whole_s, block.wall_s, batch, excluded)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excluded {
    /// Number of steps excluded at the start of each block.
    pub start: u64,
    /// Excludes the last steps of an *epoch*; counted in every block from the block's start, as DLIO does.
    pub end: u64,
    pub steps_per_epoch: u64,
}

impl Excluded {
    /// Seconds of the excluded steps of a block.
    pub fn seconds(&self, whole_s: &[f64]) -> f64 {
        let (start, end) = self.bounds(whole_s.len());
        sum(&whole_s[..start]) + sum(&whole_s[end..])
    }

    /// Seconds of the included steps of a block.
    pub fn counted(&self, compute_s: &[f64]) -> f64 {
        let (start, end) = self.bounds(compute_s.len());
        sum(compute_s.get(start..end).unwrap_or_default())
    }

    /// The range of included steps: the first one, and the first excluded one after it.
    fn bounds(&self, steps: usize) -> (usize, usize) {
        let end = self.steps_per_epoch as i64 - self.end as i64;
        ((self.start as usize).min(steps), python_end(end, steps))
    }
}

/// DLIO's arithmetic since 2.0.0, from each step's computing time and total time.
pub fn dlio_of(compute_s: &[f64], whole_s: &[f64], wall_s: f64, batch: u64, excluded: Excluded) -> Dlio {
    let computed = excluded.counted(compute_s);
    let total_s = wall_s - excluded.seconds(whole_s);
    let au = if computed == 0.0 { 0.0 } else { 100.0 * (computed / total_s) };
    Dlio { au, samples_per_s: (compute_s.len() as f64 - 2.0) / total_s * batch as f64 }
}

/// The end of a Python slice: a negative index counts from the back.
fn python_end(end: i64, len: usize) -> usize {
    let end = if end < 0 { end + len as i64 } else { end };
    end.clamp(0, len as i64) as usize
}

pub fn dlio_2_0(compute_s: &[f64], whole_s: &[f64], wall_s: f64, batch: u64) -> Dlio {
    let computed = sum(compute_s.get(1..).unwrap_or_default());
    let total_s = wall_s - whole_s.first().copied().unwrap_or(0.0);
    let au = if computed == 0.0 { 0.0 } else { 100.0 * (computed / total_s) };
    Dlio { au, samples_per_s: compute_s.len() as f64 / wall_s * batch as f64 }
}

/// The step-weighted mean over the blocks of an epoch, as in DLIO.
pub fn dlio_epoch(blocks: &[(Dlio, usize)]) -> Option<Dlio> {
    let steps: usize = blocks.iter().map(|(_, steps)| steps).sum();
    let mean = |of: fn(&Dlio) -> f64| {
        let weighted: Vec<f64> = blocks.iter().map(|(block, steps)| of(block) * *steps as f64).collect();
        sum(&weighted) / steps as f64
    };
    (steps > 0).then(|| Dlio { au: mean(|block| block.au), samples_per_s: mean(|block| block.samples_per_s) })
}

#[derive(Debug, Clone, PartialEq)]
pub struct DlioRun {
    /// Utilisation by epoch: the mean over ranks, in percent.
    pub au: Vec<f64>,
    /// Samples per second by epoch: the sum over ranks.
    pub samples_per_s: Vec<f64>,
}

impl DlioRun {
    /// Combines ranks, each with its epochs; `None` if a rank has fewer epochs than the others, or there are no ranks.
    pub fn of(ranks: &[Vec<Dlio>]) -> Option<Self> {
        let epochs = ranks.first()?.len();
        if epochs == 0 || ranks.iter().any(|rank| rank.len() != epochs) {
            return None;
        }
        let over_ranks = |epoch: usize, of: fn(&Dlio) -> f64| ranks.iter().map(|rank| of(&rank[epoch])).sum::<f64>();
        Some(Self {
            au: (0..epochs).map(|epoch| over_ranks(epoch, |dlio| dlio.au) / ranks.len() as f64).collect(),
            samples_per_s: (0..epochs).map(|epoch| over_ranks(epoch, |dlio| dlio.samples_per_s)).collect(),
        })
    }

    /// Its "MB/s", which are MiB/s computed from the configured record length, not from bytes read: mean and deviation.
    pub fn mib_per_s(&self, record_length_bytes: f64) -> Option<(f64, f64)> {
        let (mean, stdev) = mean_and_stdev(&self.samples_per_s)?;
        let mib = |rate: f64| rate * record_length_bytes / 1024.0 / 1024.0;
        Some((mib(mean), mib(stdev)))
    }
}

/// Mean and population standard deviation, NumPy's defaults; `None` without values.
pub fn mean_and_stdev(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let mean = sum(values) / values.len() as f64;
    let squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
    Some((mean, (sum(&squares) / values.len() as f64).sqrt()))
}

/// Computing time divided by total time, as a fraction of 1; `None` if the total is 0.
pub fn au_epoch(compute_s: f64, wall_s: f64) -> Option<f64> {
    (wall_s > 0.0).then(|| compute_s / wall_s)
}

/// The utilisation of a run: each accelerator's computing time divided by its total time, both summed over its epochs,
/// averaged over accelerators, as a fraction of 1.
///
/// The total time is the epochs' time, with checkpoints and barriers, without evaluations. For the steady state, the wait
/// for the first batch of every epoch is subtracted. The same formula serves our runs and DLIO's.
pub fn au_mean(accelerators: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let shares = accelerators.into_iter().map(|(compute_s, time_s)| au_epoch(compute_s, time_s));
    mean_and_stdev(&shares.collect::<Option<Vec<f64>>>()?).map(|(mean, _)| mean)
}

/// A sum in NumPy's order for fewer than 128 values: sequential up to 7, else eight in turn. The order affects the last
/// digits.
fn sum(values: &[f64]) -> f64 {
    if values.len() < 8 {
        return values.iter().fold(0.0, |total, value| total + value);
    }
    if values.len() > 128 {
        let half = values.len() / 2;
        let half = half - half % 8;
        return sum(&values[..half]) + sum(&values[half..]);
    }
    let mut lanes = [0.0; 8];
    let eights = values.chunks_exact(8);
    let rest = eights.remainder();
    for eight in eights {
        for (lane, value) in lanes.iter_mut().zip(eight) {
            *lane += value;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |total, value| total + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four steps, of which the first waits for everything: the source's picture in small.
    fn few_steps() -> Block {
        Block { load_s: vec![4.0, 0.0, 0.0, 0.0], compute_s: vec![0.5; 4], wall_s: 6.0 }
    }

    #[test]
    fn the_excluded_first_step_hides_the_load() {
        let dlio = dlio(&few_steps(), 7, 1, 0, 4);
        assert_eq!(dlio.au, 100.0);
        assert_eq!(dlio.samples_per_s, 2.0 / 1.5 * 7.0);
        assert_eq!(au_epoch(2.0, 6.0), Some(2.0 / 6.0));
        assert_eq!(au_epoch(0.0, 0.0), None);
    }

    #[test]
    fn two_steps_come_to_no_samples_and_one_to_fewer_than_none() {
        let block = Block { load_s: vec![0.5; 2], compute_s: vec![0.5; 2], wall_s: 2.0 };
        assert_eq!(dlio(&block, 7, 1, 0, 2).samples_per_s, 0.0);
        let block = Block { load_s: vec![0.5], compute_s: vec![0.5], wall_s: 2.0 };
        let one = dlio(&block, 7, 1, 0, 1);
        assert_eq!((one.au, one.samples_per_s), (0.0, -7.0));
    }

    #[test]
    fn steps_are_left_out_at_both_ends() {
        let block = Block { load_s: vec![1.0; 5], compute_s: vec![1.0, 2.0, 3.0, 4.0, 5.0], wall_s: 20.0 };
        // Without the first step and the last two: 2 + 3 of 20 - 2 - 5 - 6.
        let dlio = dlio(&block, 1, 1, 2, 5);
        assert_eq!(dlio.au, 100.0 * 5.0 / 7.0);
        assert_eq!(dlio.samples_per_s, 3.0 / 7.0);
    }

    #[test]
    fn a_block_of_an_epoch_of_several_leaves_out_its_own_first_step_and_none_at_its_end() {
        let block = Block { load_s: vec![0.0; 2], compute_s: vec![1.0, 3.0], wall_s: 5.0 };
        assert_eq!(dlio(&block, 1, 1, 1, 10).au, 75.0);
    }

    #[test]
    fn more_steps_left_out_than_there_are_cut_as_python_cuts() {
        let block = Block { load_s: vec![0.0; 3], compute_s: vec![1.0; 3], wall_s: 5.0 };
        // The end is at -1, which is the last step: 1 of 5 - 1 - 1.
        assert_eq!(dlio(&block, 1, 1, 4, 3).au, 100.0 * (1.0 / 3.0));
        assert_eq!(dlio(&block, 1, 5, 0, 3).au, 0.0);
    }

    #[test]
    fn version_2_0_counts_all_steps_for_samples() {
        let block = few_steps();
        let whole: Vec<f64> = vec![4.5, 0.5, 0.5, 0.5];
        let old = dlio_2_0(&block.compute_s, &whole, 6.0, 7);
        assert_eq!((old.au, old.samples_per_s), (100.0, 4.0 / 6.0 * 7.0));
    }

    #[test]
    fn blocks_weigh_by_their_steps_and_epochs_do_not() {
        let of = |au, samples_per_s| Dlio { au, samples_per_s };
        let epoch = dlio_epoch(&[(of(90.0, 10.0), 3), (of(50.0, 2.0), 1)]).unwrap();
        assert_eq!((epoch.au, epoch.samples_per_s), (80.0, 8.0));
        assert_eq!(dlio_epoch(&[]), None);
        let run = DlioRun::of(&[vec![of(80.0, 8.0), of(90.0, 9.0)], vec![of(60.0, 6.0), of(70.0, 7.0)]]).unwrap();
        assert_eq!((run.au.clone(), run.samples_per_s.clone()), (vec![70.0, 80.0], vec![14.0, 16.0]));
        assert_eq!(mean_and_stdev(&run.au), Some((75.0, 5.0)));
        assert_eq!(run.mib_per_s(f64::from(1 << 20)), Some((15.0, 1.0)));
        assert_eq!(DlioRun::of(&[vec![of(80.0, 8.0)], vec![]]), None);
    }

    #[test]
    fn accelerators_weigh_alike_however_long_they_took() {
        assert_eq!(au_mean([(1.0, 2.0), (1.0, 10.0)]), Some(0.3));
        assert_eq!(au_mean([(1.0, 2.0), (0.0, 0.0)]), None);
        assert_eq!(au_mean([]), None);
    }

    #[test]
    fn long_sums_are_the_same_but_for_rounding() {
        for n in [0usize, 7, 8, 100, 128, 129, 1000] {
            let values: Vec<f64> = (0..n).map(|i| (i as f64).sqrt()).collect();
            let plain: f64 = values.iter().sum();
            assert!((sum(&values) - plain).abs() <= 1e-9 * plain, "{n}");
        }
    }
}
