//! What saves cost a run, and the change that would shorten it where they hold it up most.

use forebay_checkpoint::Mode;
use forebay_record::{Change, Level, Lever, Limit, TrainCheckpoint};

use super::plan::Plan;
use crate::checkpoint::mode_name;

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

/// A run without validation, in seconds, and what its saves and its waits took of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stalls {
    pub(super) wall_s: f64,
    /// Waits for batches after the first.
    pub(super) waits_s: f64,
}

impl Stalls {
    /// Whether saves hold the run up longer than waits do.
    pub(super) fn come_first(&self, saving: Saving) -> bool {
        saving.seconds >= self.waits_s
    }

    /// `None` where saves hardly hold the run up.
    pub(super) fn lever(&self, saving: Saving) -> Option<(Limit, Lever)> {
        (saving.seconds >= WORTH * self.wall_s).then(|| {
            let stall = format!("checkpoints stalled the run for {:.2} of {:.2} s", saving.seconds, self.wall_s);
            (Limit { name: "checkpoint".to_owned(), evidence: vec![stall], rates: None }, self.against(saving))
        })
    }

    /// For runs that checkpoints hold up most.
    fn against(&self, saving: Saving) -> Lever {
        let Saving { seconds, every, mode, written_s, has_waited } = saving;
        let fewer = format!("--checkpoint-every {}: half as many", 2 * every);
        let go_on = "--checkpoint-mode async: continue while checkpoints are written";
        let in_memory = || {
            let value = Level::Text(mode_name(Mode::Async).to_owned());
            Some(Change { setting: "checkpoint_mode".to_owned(), value })
        };
        // A run whose steps take less than its writes ends with the writes.
        let not_below = |written_s: f64| (self.wall_s - written_s).clamp(0.0, seconds);
        let is_too_many = not_below(written_s) < seconds - WORTH * self.wall_s;
        let (advice, setting, saves_s, is_bound) = match mode {
            Mode::Direct if is_too_many => {
                let why = "checkpoints come too fast to be written in the background";
                (format!("--burst-dir on a faster device: {why}"), None, seconds, true)
            }
            Mode::Direct => (format!("{go_on}; or --burst-dir on a faster device"), in_memory(), seconds, true),
            // An interval is for the user to choose: it is what a failure costs.
            Mode::Burst if not_below(written_s) < seconds / 2.0 => (fewer, None, seconds / 2.0, false),
            Mode::Burst => (go_on.to_owned(), in_memory(), not_below(written_s), true),
            // If saves wait for others, half as many wait less than half as long.
            Mode::Async if has_waited => (fewer, None, not_below(written_s / 2.0), true),
            Mode::Async => (fewer, None, seconds / 2.0, false),
        };
        let wall_s = self.wall_s - saves_s;
        Lever { name: "checkpoint".to_owned(), advice, setting, saves_s, wall_s, is_bound, ..Lever::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_record::SaveFate;

    const STALLS: Stalls = Stalls { wall_s: 100.0, waits_s: 4.0 };

    #[test]
    fn checkpoints_that_hold_up_most_are_acted_on() {
        let saving = |seconds, mode| Saving { seconds, every: 20, mode, written_s: 60.0, has_waited: false };
        let lever = |seconds, mode| STALLS.lever(saving(seconds, mode)).map(|(_, lever)| lever);
        let direct = lever(30.0, Mode::Direct).unwrap();
        assert_eq!((direct.name.as_str(), direct.saves_s, direct.wall_s), ("checkpoint", 30.0, 70.0));
        assert!(direct.is_bound && direct.advice.contains("--burst-dir"), "{direct:?}");
        let change = direct.setting.unwrap();
        assert_eq!((change.setting.as_str(), change.value), ("checkpoint_mode", Level::Text("async".to_owned())));
        assert!(!lever(30.0, Mode::Burst).unwrap().advice.contains("--burst-dir"));
        let copied = lever(30.0, Mode::Async).unwrap();
        assert_eq!((copied.saves_s, copied.is_bound, &copied.setting), (15.0, false, &None));
        assert!(copied.advice.starts_with("--checkpoint-every 40"));
        assert_eq!(lever(0.9, Mode::Direct), None, "less than a hundredth of the run");
        let first = |seconds| STALLS.come_first(saving(seconds, Mode::Direct));
        assert!(first(4.5) && !first(3.0), "the larger cause goes first");
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
            STALLS.lever(Saving { mode, every: 20, ..Saving::from_saves(mode, seconds, saves) }).unwrap().1
        };
        // Four steps of 5 s, each followed by a save of 20 s: written behind, the last begins after 65 s.
        let stalled = [5.0, 30.0, 55.0, 80.0].map(|at_s| save(at_s, 20.0, 20.0));
        let burst = lever(Mode::Burst, 80.0, &stalled);
        assert_eq!((burst.saves_s, burst.wall_s, burst.is_bound), (40.0, 60.0, false), "{burst:?}");
        let direct = lever(Mode::Direct, 80.0, &stalled);
        assert!(direct.advice.starts_with("--burst-dir on a faster device") && direct.is_bound, "{direct:?}");
        // The same behind training's back: a save waits for the one before it.
        let waited = [save(5.0, 1.0, 21.0), save(11.0, 16.0, 36.0), save(32.0, 15.0, 35.0)];
        let copied = lever(Mode::Async, 32.0, &waited);
        assert!(copied.is_bound && copied.saves_s == 32.0, "{copied:?}");
    }
}
