//! What would help most, and by how much.
//!
//! The wait for the first batch is left out: nothing can hide it. Of the waits after it, the largest cause is acted on. The
//! pipeline's own time is the workers' work over their number; taking a kind of work away, or spreading it over more cores,
//! shortens the run by so much, but never by more than the accelerator waited.

use forebay_checkpoint::Mode;
use forebay_record::Lever;

use super::stall::{Causes, Work};

/// A wait below this share of the run is not worth a lever.
const WORTH: f64 = 0.01;

/// What a run's checkpoints cost it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Saving {
    /// How long training stood still for them.
    pub(super) seconds: f64,
    /// Steps between two.
    pub(super) every: u64,
    pub(super) mode: Mode,
}

/// What a lever is chosen from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// The run's wall clock in seconds, validation left out.
    pub(super) wall_s: f64,
    /// The waits after the first batch.
    pub(super) causes: Causes,
    /// What the workers did in the whole run.
    pub(super) work: Work,
    pub(super) threads: usize,
    pub(super) cores: usize,
    pub(super) prefetch: usize,
    /// Whether the threads give more than is taken: waits then come from steps and batches that take longer than others.
    pub(super) keeps_up: bool,
    /// Whether the network is computed on the same cores.
    pub(super) shares_cores: bool,
    /// Whether batches were read at all.
    pub(super) reads: bool,
    pub(super) saving: Option<Saving>,
}

impl Situation {
    /// The lever against the largest cause; of equal ones, the one that is a mere flag.
    pub(super) fn lever(&self) -> Lever {
        let waits: f64 = self.causes.by_name().values().sum();
        if let Some(saving) = self.saving.filter(|saving| saving.seconds >= waits.max(WORTH * self.wall_s)) {
            return self.against(saving);
        }
        if waits < WORTH * self.wall_s {
            return self.none();
        }
        if self.keeps_up && self.prefetch > 0 {
            let advice = format!(
                "--prefetch {}: more batches ahead, since the threads give enough on the whole",
                2 * self.prefetch
            );
            return self.make("prefetch", &advice, waits, true);
        }
        let unexplained = "the waits come from nothing that the workers did: see what else the machine does";
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
        let waits: f64 = causes.by_name().values().sum();
        // What prefetch would hide is not saved a second time.
        let rest = waits - causes.prefetch;
        let of_pipeline = |ns: f64| (ns / 1e9 / *threads as f64).min(rest);
        let unused = 1.0 - (*threads).min(*cores) as f64 / *cores as f64;
        let more_threads = format!("--threads {cores}: use all cores");
        let deeper = format!(
            "--prefetch {}: more batches ahead, so that a slow sample holds up fewer others",
            self.prefetch + 1
        );
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

    /// What would shorten the checkpoints, where they hold up training most.
    fn against(&self, saving: Saving) -> Lever {
        let (advice, saves_s, is_bound) = match saving.mode {
            Mode::Direct => {
                let advice =
                    "--checkpoint-mode async: go on while checkpoints are written; or --burst-dir on a faster device";
                (advice.to_owned(), saving.seconds, true)
            }
            Mode::Burst => {
                ("--checkpoint-mode async: go on while checkpoints are written".to_owned(), saving.seconds, true)
            }
            // Half as many copies of the state cost half as much; those that had to wait for others, less.
            Mode::Async => {
                (format!("--checkpoint-every {}: half as many", 2 * saving.every), saving.seconds / 2.0, false)
            }
        };
        self.make("checkpoint", &advice, saves_s, is_bound)
    }

    fn make(&self, name: &str, advice: &str, saves_s: f64, is_bound: bool) -> Lever {
        Lever { name: name.to_owned(), advice: advice.to_owned(), saves_s, wall_s: self.wall_s - saves_s, is_bound }
    }

    fn none(&self) -> Lever {
        let advice = match self.reads {
            true => "the accelerator is the limit: after its first batch it hardly waits",
            false => "nothing was read",
        };
        self.make("none", advice, 0.0, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_pipeline::Activity;

    fn situation(causes: Causes, reading_s: f64, decoding_s: f64, threads: usize) -> Situation {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        let times = [(Activity::Reading, ns(reading_s)), (Activity::Decoding, ns(decoding_s))].into_iter().collect();
        Situation {
            wall_s: 100.0,
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
            let saving = Some(Saving { seconds, every: 20, mode });
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
