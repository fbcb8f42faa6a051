//! The end of a run that saves: the remaining drain, and the fate of every save.

use forebay_checkpoint::Mode;
use forebay_measure::{Event, Observer};
use forebay_record::{SaveFate, TrainCheckpoint, TrainCheckpoints};
use forebay_units::Summary;

use super::super::run::Error;
use super::traffic::Traffic;
use super::{Saved, Saver, TELL, left_to_drain};

impl Saver {
    /// Waits until everything is drained, unless the run was or is being stopped.
    pub(in super::super) fn finish(self, is_cut: bool, observer: Observer<'_>) -> Saved {
        let (described, drain_after_s) = (self.described(), self.drained(is_cut, observer));
        let closed = self.store.close();
        // The rest was abandoned, not drained.
        let drain_after_s = drain_after_s.filter(|_| closed.n_undrained == 0);
        let mode = self.mode;
        let mut saves: Vec<TrainCheckpoint> = self.ledger.conclude().into_iter().map(|save| told(mode, save)).collect();
        leave(&mut saves, closed.n_undrained);
        let mut notes: Vec<String> = newest(&saves, self.reached, is_cut, self.every).into_iter().collect();
        if closed.n_undrained > 0 && self.scratch.is_empty() {
            notes.push(left_to_drain(&self.places, closed.n_undrained));
        }
        notes.iter().for_each(|text| observer.tell(Event::Remark { text: text.clone() }));
        notes.extend(self.doubt.into_inner());
        let mut errors = closed.errors.into_iter();
        let error = errors.next().map(Error::from);
        notes.extend(self.troubles);
        notes.extend(errors.map(|error| forebay_units::chain(&error)));
        let mut checkpoints = TrainCheckpoints {
            drain_after_s,
            saves,
            traffic: self.traffic.map(Traffic::finish).unwrap_or_default(),
            ..described
        };
        let stalls: Vec<f64> = checkpoints.stalls().collect();
        checkpoints.median_stall_s = Summary::of(&stalls).map(|stalls| stalls.median);
        Saved { checkpoints, notes, error }
    }

    /// Ends a run without a step; returns background failures.
    pub(in super::super) fn abandon(self) -> Vec<String> {
        self.store.close().errors.iter().map(|error| forebay_units::chain(error)).collect()
    }

    /// Time spent waiting for the drain; `None` if saves are complete when they return, or the wait was stopped.
    fn drained(&self, is_cut: bool, observer: Observer<'_>) -> Option<f64> {
        let ended_ns = self.clock.now_ns();
        let mut after_s = 0.0;
        loop {
            let n_left = self.ledger.n_open();
            if n_left == 0 {
                return (!is_cut && self.mode != Mode::Direct).then_some(after_s);
            }
            if is_cut || observer.is_cancelled() {
                return None;
            }
            observer.tell(Event::Draining { n_left });
            self.ledger.wait(TELL);
            after_s = (self.clock.now_ns() - ended_ns) as f64 / 1e9;
        }
    }
}

/// Of the saves that are only on the first tier, the newest still have to be drained; the last tier needs no older
/// ones.
fn leave(saves: &mut [TrainCheckpoint], n_undrained: usize) {
    let on_fast = saves.iter_mut().rev().filter(|save| save.fate == SaveFate::OnFast);
    on_fast.skip(n_undrained).for_each(|save| save.fate = SaveFate::Superseded);
}

/// The note on the newest durable state, if the run was stopped or its last save was skipped.
fn newest(saves: &[TrainCheckpoint], reached: u64, is_cut: bool, every: u64) -> Option<String> {
    let safe = saves.iter().filter(|save| save.durable_fast_s.is_some()).map(|save| save.step).max();
    match safe {
        Some(step) if step == reached => {
            is_cut.then(|| format!("the state after step {step} is saved; --resume continues from there"))
        }
        Some(step) if is_cut || step + every <= reached => Some(format!(
            "the state after step {reached} is not saved; --resume continues from the newest checkpoint, of step {step}"
        )),
        None if reached > 0 && (is_cut || !saves.is_empty()) => {
            Some(format!("the run ended after step {reached} without a checkpoint"))
        }
        _ => None,
    }
}

/// What the mode guarantees when a save returns, before the waiting threads report it.
fn told(mode: Mode, save: TrainCheckpoint) -> TrainCheckpoint {
    let at_return = |found: Option<f64>| found.map(|_| save.stall_s);
    match mode {
        Mode::Direct => TrainCheckpoint {
            durable_fast_s: at_return(save.durable_fast_s),
            durable_slow_s: at_return(save.durable_slow_s),
            ..save
        },
        Mode::Burst => TrainCheckpoint { durable_fast_s: at_return(save.durable_fast_s), ..save },
        Mode::Async => save,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn save(step: u64, durable_fast_s: Option<f64>, fate: SaveFate) -> TrainCheckpoint {
        TrainCheckpoint { step, at_s: 1.0, stall_s: 0.1, durable_fast_s, durable_slow_s: None, fate }
    }

    #[test]
    fn the_newest_state_that_is_safe_is_named_where_it_is_not_the_last() {
        let saves = [save(10, Some(0.2), SaveFate::OnFast), save(20, None, SaveFate::Skipped)];
        let said = |reached, is_cut| newest(&saves, reached, is_cut, 10).unwrap_or_default();
        assert!(said(20, false).contains("the newest checkpoint, of step 10"), "{}", said(20, false));
        assert!(said(15, true).contains("the newest checkpoint, of step 10"));
        assert!(said(10, true).starts_with("the state after step 10 is saved"));
        assert_eq!((said(10, false), said(15, false)), (String::new(), String::new()));
        assert_eq!(newest(&[], 12, false, 10), None, "no checkpoint was due");
        assert!(newest(&saves[1..], 20, false, 10).is_some_and(|said| said.starts_with("the run ended after step")));
        assert_eq!(newest(&[], 0, true, 10), None);
    }

    #[test]
    fn as_many_are_left_to_be_drained_as_the_store_says() {
        let mut saves = [1, 2, 3].map(|step| save(step, Some(0.2), SaveFate::OnFast));
        leave(&mut saves, 2);
        assert_eq!(saves.map(|save| save.fate), [SaveFate::Superseded, SaveFate::OnFast, SaveFate::OnFast]);
    }
}
