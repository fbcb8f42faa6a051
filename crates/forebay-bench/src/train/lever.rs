//! Which change would help most, and by how much.
//!
//! The wait for the first batch is left out: nothing can hide it. Of the later waits, the largest cause is acted on. The pipeline's
//! own time is the workers' work over their number; removing a kind of work, or spreading it over more cores, shortens the run by
//! as much, but never by more than the accelerator waited.

use forebay_checkpoint::Mode;
use forebay_measure::stall::{Causes, Work};
use forebay_record::{Lever, TrainCheckpoint};

use super::plan::Plan;

/// Below this fraction of the run there is no lever.
const WORTH: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Saving {
    /// Training stood still.
    pub(super) seconds: f64,
    pub(super) every: u64,
    pub(super) mode: Mode,
    /// Earliest start of the last save if each is written before the next begins, whatever training does.
    pub(super) written_s: f64,
    /// Whether a save had to wait for the one before.
    pub(super) has_waited: bool,
}

impl Saving {
    pub(super) fn of(plan: &Plan, seconds: f64, saves: &[TrainCheckpoint]) -> Self {
        Self { every: plan.settings.every(), ..Self::from_saves(plan.mode(), seconds, saves) }
    }

    fn from_saves(mode: Mode, seconds: f64, saves: &[TrainCheckpoint]) -> Self {
        let write = |save: &TrainCheckpoint| match mode {
            Mode::Async => save.durable_fast_s.map_or(0.0, |durable| durable - save.stall_s),
            Mode::Direct | Mode::Burst => save.stall_s,
        };
        let before_last = saves.split_last().map_or(&[][..], |(_, before)| before);
        let first_s = saves.first().map_or(0.0, |first| first.at_s);
        let waits = |pair: &[TrainCheckpoint]| pair[0].durable_fast_s.is_some_and(|s| pair[0].at_s + s > pair[1].at_s);
        Self {
            seconds,
            every: 1,
            mode,
            written_s: first_s + before_last.iter().map(write).sum::<f64>(),
            has_waited: saves.windows(2).any(waits),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// In seconds, without validation.
    pub(super) wall_s: f64,
    /// No lever shortens it.
    pub(super) validate_s: f64,
    /// After the first batch.
    pub(super) causes: Causes,
    /// Of the whole run.
    pub(super) work: Work,
    pub(super) threads: usize,
    pub(super) cores: usize,
    pub(super) prefetch: usize,
    /// Whether the threads deliver more than is consumed: then waits come from steps and batches that take longer than others.
    pub(super) keeps_up: bool,
    /// Whether the network computes on the same cores.
    pub(super) shares_cores: bool,
    /// `false` for synthetic batches.
    pub(super) reads: bool,
    pub(super) saving: Option<Saving>,
}

impl Situation {
    /// Of equal causes, the one with a mere flag as its lever wins.
    pub(super) fn lever(&self) -> Lever {
        let waits: f64 = self.causes.by_cause().values().sum();
        if let Some(saving) = self.saving.filter(|saving| saving.seconds >= waits.max(WORTH * self.wall_s)) {
            return self.against(saving);
        }
        if waits < WORTH * self.wall_s {
            return self.none();
        }
        if self.keeps_up && self.prefetch > 0 {
            let advice = format!(
                "--prefetch {}: more batches ahead, since the threads are fast enough on average",
                2 * self.prefetch
            );
            return self.make("prefetch", &advice, waits, true);
        }
        let unexplained = "the workers do not explain the waits: check what else runs on the machine";
        let mut largest = (0.0, self.make("none", unexplained, 0.0, false));
        for (cause, lever) in self.candidates() {
            if cause > largest.0 {
                largest = (cause, lever);
            }
        }
        largest.1
    }

    fn candidates(&self) -> [(f64, Lever); 5] {
        let Self { causes, work, threads, cores, .. } = self;
        let waits: f64 = causes.by_cause().values().sum();
        // What prefetch would hide is not saved a second time.
        let rest = waits - causes.prefetch;
        let of_pipeline = |ns: f64| (ns / 1e9 / *threads as f64).min(rest);
        let unused = 1.0 - (*threads).min(*cores) as f64 / *cores as f64;
        let more_threads = format!("--threads {cores}: use all cores");
        let deeper =
            format!("--prefetch {}: more batches ahead, so a slow sample delays fewer others", self.prefetch + 1);
        let elsewhere = "faster storage, or fewer and larger files (forebay data pack)";
        let processors = "more or faster cores, smaller images, or shards decoded beforehand";
        [
            (
                causes.prefetch,
                self.make(
                    "prefetch",
                    "--prefetch 1: make the next batch while this one is computed",
                    causes.prefetch,
                    self.shares_cores,
                ),
            ),
            (causes.threads, self.make("threads", &more_threads, of_pipeline(work.decode * unused), self.shares_cores)),
            (causes.order, self.make("order", &deeper, causes.order, true)),
            (causes.storage, self.make("storage", elsewhere, of_pipeline(work.storage), true)),
            (causes.decode, self.make("decode", processors, of_pipeline(work.decode), true)),
        ]
    }

    /// For runs that checkpoints hold up most.
    fn against(&self, saving: Saving) -> Lever {
        let Saving { seconds, every, mode, written_s, has_waited } = saving;
        let fewer = format!("--checkpoint-every {}: half as many", 2 * every);
        let go_on = "--checkpoint-mode async: continue while checkpoints are written";
        // A run whose steps take less than its writes ends with the writes.
        let not_below = |written_s: f64| (self.wall_s - written_s).clamp(0.0, seconds);
        let is_too_many = not_below(written_s) < seconds - WORTH * self.wall_s;
        let (advice, saves_s, is_bound) = match mode {
            Mode::Direct if is_too_many => {
                let why = "checkpoints come too fast to be written in the background";
                (format!("--burst-dir on a faster device: {why}"), seconds, true)
            }
            Mode::Direct => (format!("{go_on}; or --burst-dir on a faster device"), seconds, true),
            Mode::Burst if not_below(written_s) < seconds / 2.0 => (fewer, seconds / 2.0, false),
            Mode::Burst => (go_on.to_owned(), not_below(written_s), true),
            // If saves wait for others, half as many wait less than half as long.
            Mode::Async if has_waited => (fewer, not_below(written_s / 2.0), true),
            Mode::Async => (fewer, seconds / 2.0, false),
        };
        self.make("checkpoint", &advice, saves_s, is_bound)
    }

    fn make(&self, name: &str, advice: &str, saves_s: f64, is_bound: bool) -> Lever {
        let wall_s = self.wall_s + self.validate_s - saves_s;
        Lever { name: name.to_owned(), advice: advice.to_owned(), saves_s, wall_s, is_bound }
    }

    fn none(&self) -> Lever {
        let advice = match self.reads {
            true => "the accelerator is the bottleneck: after its first batch it hardly waits",
            false => "nothing was read",
        };
        self.make("none", advice, 0.0, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_pipeline::Activity;
    use forebay_record::SaveFate;

    fn situation(causes: Causes, reading_s: f64, decoding_s: f64, threads: usize) -> Situation {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let times = [(Activity::Reading, ns(reading_s)), (Activity::Decoding, ns(decoding_s))].into_iter().collect();
        Situation {
            wall_s: 100.0,
            validate_s: 0.0,
            causes,
            work: Work::of(&times),
            threads,
            cores: 8,
            prefetch: 1,
            keeps_up: false,
            shares_cores: false,
            reads: true,
            saving: None,
        }
    }

    #[test]
    fn checkpoints_that_hold_up_most_are_acted_on() {
        let causes = Causes { storage: 4.0, ..Causes::default() };
        let lever = |seconds, mode| {
            let saving = Some(Saving { seconds, every: 20, mode, written_s: 60.0, has_waited: false });
            Situation { saving, ..situation(causes, 40.0, 0.0, 1) }.lever()
        };
        let direct = lever(30.0, Mode::Direct);
        assert_eq!((direct.name.as_str(), direct.saves_s, direct.wall_s), ("checkpoint", 30.0, 70.0));
        assert!(direct.is_bound && direct.advice.contains("--burst-dir"), "{direct:?}");
        assert!(!lever(30.0, Mode::Burst).advice.contains("--burst-dir"));
        let copied = lever(30.0, Mode::Async);
        assert_eq!((copied.saves_s, copied.is_bound), (15.0, false));
        assert!(copied.advice.starts_with("--checkpoint-every 40"), "{copied:?}");
        assert_eq!(lever(3.0, Mode::Direct).name, "storage", "the larger cause goes first");
    }

    #[test]
    fn what_writes_take_cannot_be_saved_by_waiting_for_them_elsewhere() {
        let save = |at_s, stall_s, durable| TrainCheckpoint {
            step: 1,
            at_s,
            stall_s,
            durable_fast_s: Some(durable),
            durable_slow_s: None,
            fate: SaveFate::Saved,
        };
        let lever = |mode, seconds, saves: &[TrainCheckpoint]| {
            let saving = Some(Saving { mode, every: 20, ..Saving::from_saves(mode, seconds, saves) });
            Situation { saving, validate_s: 7.0, ..situation(Causes::default(), 0.0, 0.0, 1) }.lever()
        };
        // Four steps of 5 s, each followed by a save of 20 s: written behind, the last begins after 65 s.
        let stalled = [5.0, 30.0, 55.0, 80.0].map(|at_s| save(at_s, 20.0, 20.0));
        let burst = lever(Mode::Burst, 80.0, &stalled);
        assert_eq!((burst.saves_s, burst.wall_s, burst.is_bound), (40.0, 67.0, false), "{burst:?}");
        let direct = lever(Mode::Direct, 80.0, &stalled);
        assert!(direct.advice.starts_with("--burst-dir on a faster device") && direct.is_bound, "{direct:?}");
        // The same behind training's back: a save waits for the one before it.
        let waited = [save(5.0, 1.0, 21.0), save(11.0, 16.0, 36.0), save(32.0, 15.0, 35.0)];
        let copied = lever(Mode::Async, 32.0, &waited);
        assert!(copied.is_bound && copied.saves_s == 32.0, "{copied:?}");
    }

    #[test]
    fn the_largest_cause_is_acted_on() {
        let causes = Causes { prefetch: 30.0, storage: 10.0, ..Causes::default() };
        let lever = situation(causes, 40.0, 0.0, 1).lever();
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.wall_s, lever.is_bound), ("prefetch", 30.0, 70.0, false));
        let causes = Causes { storage: 40.0, decode: 2.0, ..Causes::default() };
        let lever = situation(causes, 100.0, 5.0, 1).lever();
        assert_eq!(
            (lever.name.as_str(), lever.saves_s, lever.is_bound),
            ("storage", 42.0, true),
            "no more than the wait"
        );
    }

    #[test]
    fn more_threads_save_what_idle_cores_would_take_over() {
        let causes = Causes { threads: 30.0, decode: 10.0, ..Causes::default() };
        // Two threads decode for 40 s each; eight would for 10.
        let lever = situation(causes, 0.0, 80.0, 2).lever();
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.is_bound), ("threads", 30.0, false));
        let shared = Situation { shares_cores: true, ..situation(causes, 0.0, 80.0, 2) };
        assert!(shared.lever().is_bound, "threads on the network's cores slow it down");
        let causes = Causes { decode: 40.0, ..Causes::default() };
        assert_eq!(situation(causes, 0.0, 80.0, 8).lever().name, "decode", "all cores decode already");
    }

    #[test]
    fn where_nothing_waits_there_is_no_lever() {
        let causes = Causes { decode: 0.5, ..Causes::default() };
        let lever = situation(causes, 1.0, 90.0, 8).lever();
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.wall_s), ("none", 0.0, 100.0));
    }

    #[test]
    fn threads_that_give_enough_need_more_batches_ahead_and_no_others() {
        let causes = Causes { decode: 6.0, ..Causes::default() };
        let uneven = Situation { keeps_up: true, ..situation(causes, 1.0, 50.0, 1) };
        let lever = uneven.lever();
        assert_eq!((lever.name.as_str(), lever.saves_s, lever.is_bound), ("prefetch", 6.0, true));
        assert!(lever.advice.starts_with("--prefetch 2"));
    }
}
