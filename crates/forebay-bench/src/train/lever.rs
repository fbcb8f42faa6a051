//! What would help most, and by how much.
//!
//! The pipeline's own time is the workers' work over their number. Taking a kind of work away, or spreading it over more
//! cores, shortens the pipeline by so much; the run becomes shorter by that, but never by more than the accelerator waited.

use forebay_record::Lever;

use super::stall::{Causes, Work};

/// A wait below this share of the run is not worth a lever.
const WORTH: f64 = 0.01;

/// What a lever is chosen from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// The run's wall clock, validation left out, in seconds.
    pub(super) wall_s: f64,
    pub(super) wait_s: f64,
    pub(super) causes: Causes,
    /// What the workers did in the whole run.
    pub(super) work: Work,
    pub(super) threads: usize,
    pub(super) cores: usize,
    /// Whether batches were read at all.
    pub(super) reads: bool,
}

impl Situation {
    /// The lever that saves most. A flag of the command line comes before other hardware where it saves half as much.
    pub(super) fn lever(&self) -> Lever {
        let best = |levers: Vec<Lever>| levers.into_iter().max_by(|a, b| a.saves_s.total_cmp(&b.saves_s));
        let (bounds, predictions): (Vec<_>, Vec<_>) = self.candidates().into_iter().partition(|lever| lever.is_bound);
        let chosen = match (best(predictions), best(bounds)) {
            (Some(here), Some(elsewhere)) if 2.0 * here.saves_s < elsewhere.saves_s => Some(elsewhere),
            (here, elsewhere) => here.or(elsewhere),
        };
        chosen.filter(|lever| lever.saves_s >= WORTH * self.wall_s).unwrap_or_else(|| self.none())
    }

    fn candidates(&self) -> Vec<Lever> {
        let Self { causes, work, threads, cores, .. } = self;
        // What prefetch would hide is not saved a second time.
        let rest = self.wait_s - causes.prefetch;
        let of_pipeline = |ns: f64| (ns / 1e9 / *threads as f64).min(rest);
        let unused = 1.0 - threads.min(cores).to_owned() as f64 / *cores as f64;
        let bounds = [
            ("storage", work.storage, "faster storage, or fewer and larger files (forebay data pack)"),
            ("decode", work.decode, "more or faster cores, smaller images, or shards decoded beforehand"),
        ];
        let mut levers = vec![
            self.make(
                "prefetch",
                "--prefetch 1: make the next batch while this one is computed",
                causes.prefetch,
                false,
            ),
            self.make(
                "threads",
                &format!("--threads {cores}: use all cores"),
                of_pipeline(work.decode * unused),
                false,
            ),
            self.make("order", "more prefetch, so that a slow sample holds up fewer others", causes.order, true),
        ];
        levers.extend(bounds.map(|(name, ns, advice)| self.make(name, advice, of_pipeline(ns), true)));
        levers
    }

    fn make(&self, name: &str, advice: &str, saves_s: f64, is_bound: bool) -> Lever {
        Lever { name: name.to_owned(), advice: advice.to_owned(), saves_s, wall_s: self.wall_s - saves_s, is_bound }
    }

    fn none(&self) -> Lever {
        let advice = if self.reads { "the accelerator is the limit: it hardly waits" } else { "nothing was read" };
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
        let wait_s = causes.by_name().values().sum();
        Situation { wall_s: 100.0, wait_s, causes, work: Work::of(&times), threads, cores: 8, reads: true }
    }

    #[test]
    fn the_lever_that_saves_most_is_chosen() {
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
        assert_eq!(situation(causes, 0.0, 80.0, 8).lever().name, "decode", "all cores decode already");
    }

    #[test]
    fn where_nothing_waits_there_is_no_lever() {
        let causes = Causes { decode: 0.5, ..Causes::default() };
        let lever = situation(causes, 1.0, 90.0, 8).lever();
        assert_eq!((lever.name.as_str(), lever.saves_s), ("none", 0.0));
    }
}
