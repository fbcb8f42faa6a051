//! The campaign would prove nothing if it found nothing wrong with a wrong protocol: the same cases with the syncs of
//! one place left out. A loss is looked for, and one is enough.
//!
//! A journal keeps the order of what it writes, so some places are needed only where there is none: those losses are
//! shown on the library's model of a file system, which promises no more than its laws.

use std::path::Path;
use std::sync::Arc;

use forebay_checkpoint::{Crash, Cut, FaultyFs, Fs, ModelFs, SyncPoint};

use crate::Error;
use crate::cases::{Outcome, killed_then_cut, power_cut};
use crate::check::check;
use crate::disk::Image;
use crate::history::{Ledger, Way, prepare, resume, run, tiers};
use crate::place::Device;

/// What was found, and after how many cases.
#[derive(Default)]
pub(crate) struct Search {
    pub(crate) n_cases: usize,
    pub(crate) loss: Option<String>,
}

impl Search {
    /// Tries every operation until one loses something: a single loss shows that the sync is needed.
    fn every(&mut self, stride: u64, mut case: impl FnMut(u64) -> Outcome) -> Result<(), Error> {
        for k in (0..).step_by(stride as usize) {
            let (has_cut, outcome) = case(k)?;
            self.n_cases += 1;
            self.loss = outcome.err().map(|loss| format!("operation {k}: {loss}"));
            if self.loss.is_some() || !has_cut {
                break;
            }
        }
        Ok(())
    }
}

/// On a real file system: power cuts, and then kills followed by a power cut of the slow tier.
pub(crate) fn on_disk(dir: &Path, empty: &Image, way: Way, point: SyncPoint, stride: u64) -> Result<Search, Error> {
    let mut search = Search::default();
    let both = Device::with_both(&dir.join("both"), empty, way)?;
    search.every(stride, |k| power_cut(&both, way, Cut::Off(k), Some(point)))?;
    if search.loss.is_none() {
        let slow = Device::with_slow(&dir.join("slow"), empty, way)?;
        search.every(stride, |k| killed_then_cut(&slow, way, k, Some(point)))?;
    }
    Ok(search)
}

/// On the model: every kind of crash, and kills.
pub(crate) fn on_model(way: Way, point: SyncPoint, stride: u64) -> Result<Search, Error> {
    let mut search = Search::default();
    let base = ModelFs::with_dirs(&["fast", "slow"]);
    let ledger = prepare(on(Arc::new(base.clone())), way)?;
    let crashes = [Crash::Nothing, Crash::All, Crash::Lengths, Crash::Some(1), Crash::Some(2), Crash::Some(3)];
    for crash in crashes {
        if search.loss.is_none() {
            search.every(stride, |k| crashed(&base, &ledger, way, (k, point), &|left, _| left.crash(crash)))?;
        }
    }
    if search.loss.is_none() {
        let then: Then<'_> = &|left, ledger| resume_and_crash(left, way, point, ledger);
        search.every(stride, |k| crashed(&base, &ledger, way, (k, point), then))?;
    }
    Ok(search)
}

fn on(fs: Arc<dyn Fs>) -> Vec<forebay_checkpoint::Tier> {
    tiers(&fs, Path::new("/fast"), Path::new("/slow"))
}

type Then<'a> = &'a dyn Fn(&ModelFs, &mut Ledger);

fn crashed(base: &ModelFs, ledger: &Ledger, way: Way, at: (u64, SyncPoint), then: Then<'_>) -> Outcome {
    let (model, mut ledger) = (base.fork(), ledger.clone());
    let faulty = FaultyFs::without(Arc::new(model.clone()), Cut::Off(at.0), at.1);
    run(on(Arc::new(faulty.clone())), way, &mut ledger);
    then(&model, &mut ledger);
    Ok((faulty.has_cut(), check(&on(Arc::new(model)), way, &ledger)))
}

/// The next process goes on with what it sees, and then the power goes.
fn resume_and_crash(model: &ModelFs, way: Way, point: SyncPoint, ledger: &mut Ledger) {
    let faulty = FaultyFs::without(Arc::new(model.clone()), Cut::Never, point);
    resume(on(Arc::new(faulty)), way, ledger);
    model.crash(Crash::Nothing);
}
