//! The data of a run, distributed to the accelerators of this process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use forebay_pipeline::Meter;
use forebay_storage::{Mode, Storage};
use forebay_workload::{Part, Workload};

use super::access::AccessLog;
use super::feed::{Feed, Piped, Supply};
use super::plan::Plan;
use super::read::{Access, Samples, Seeds};
use super::run::Error;

/// Bytes moved for training, readable during the run.
#[derive(Debug, Default)]
pub(super) struct Tally {
    ended: AtomicU64,
    next: AtomicU64,
    running: Mutex<BTreeMap<u64, Meter>>,
}

impl Tally {
    /// Returns the number to pass to [`Self::end`].
    pub(super) fn add(&self, meter: Meter) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.running.lock().expect("no holder of this lock panics").insert(number, meter);
        number
    }

    pub(super) fn end(&self, number: u64, bytes: u64) {
        let mut running = self.running.lock().expect("no holder of this lock panics");
        running.remove(&number);
        self.ended.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> u64 {
        let running = self.running.lock().expect("no holder of this lock panics");
        self.ended.load(Ordering::Relaxed) + running.values().map(Meter::bytes_read).sum::<u64>()
    }
}

/// The accelerators of this process among those of all processes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deal {
    /// The first accelerator of this process, and their number.
    pub(super) first: u64,
    pub(super) n: u64,
    /// Accelerators of all processes.
    pub(super) of: u64,
    pub(super) n_steps: u64,
    pub(super) n_steps_eval: u64,
    /// The same for all processes.
    pub(super) seeds: Seeds,
}

pub(super) struct BatchSource {
    deal: Deal,
    changes: bool,
    train: Samples,
    log: Option<Arc<AccessLog>>,
    eval: Option<Samples>,
    storage: Arc<dyn Storage>,
    tally: Arc<Tally>,
}

impl BatchSource {
    pub(super) fn open(plan: &Plan, deal: Deal, log: Option<&Arc<AccessLog>>) -> Result<Self, Error> {
        let workload = &plan.workload;
        let storage = storage(plan);
        let open = |part| {
            let access =
                Access { storage: Arc::clone(&storage), data: plan.data.clone(), verify: !plan.settings.no_verify };
            Samples::open(workload, part, access)
        };
        let train = open(Part::Train)?;
        let eval = evaluates(workload).then(|| open(Part::Eval)).transpose()?;
        Ok(Self {
            deal,
            changes: workload.train.seed_change_epoch,
            train,
            log: log.cloned(),
            eval,
            storage,
            tally: Arc::default(),
        })
    }

    /// For display.
    pub(super) fn storage(&self) -> String {
        self.storage.description()
    }

    pub(super) fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Every `every`-th evaluation file, from `first` on.
    pub(super) fn eval_files(&self, first: u64, every: u64) -> Vec<PathBuf> {
        let Some(eval) = &self.eval else { return Vec::new() };
        (first..eval.n_files()).step_by(every.max(1) as usize).map(|file| eval.path_of(file as u32)).collect()
    }

    /// Every `every`-th training file, from `first` on.
    pub(super) fn files(&self, first: u64, every: u64) -> Vec<PathBuf> {
        let n_files = self.train.n_files();
        (first..n_files).step_by(every.max(1) as usize).map(|file| self.train.path_of(file as u32)).collect()
    }
}

impl Supply for BatchSource {
    fn open(&self, part: Part, accelerator: u64, epoch: u64) -> Result<Box<dyn Feed>, Error> {
        let Deal { of, n_steps, n_steps_eval, seeds, .. } = self.deal;
        let seeds = if self.changes { seeds.plus(epoch) } else { seeds };
        let noted = self.log.as_ref().map(|log| log.of(part, accelerator, epoch));
        match (part, &self.eval) {
            (Part::Eval, Some(eval)) => {
                Ok(Box::new(Piped::new(eval.batches((accelerator, of), seeds, n_steps_eval, noted)?, None)))
            }
            _ => {
                let batches = self.train.batches((accelerator, of), seeds, n_steps, noted)?;
                Ok(Box::new(Piped::new(batches, Some(Arc::clone(&self.tally)))))
            }
        }
    }

    fn end(&self) {
        self.train.end();
        self.eval.iter().for_each(Samples::end);
    }
}

pub(super) fn evaluates(workload: &Workload) -> bool {
    workload.workflow.train && workload.workflow.evaluation && workload.dataset.n_files_eval > 0
}

pub(super) fn storage(plan: &Plan) -> Arc<dyn Storage> {
    let mode = if plan.workload.reader.odirect { Mode::Direct } else { Mode::Buffered };
    forebay_storage::files(mode, plan.tier.as_ref())
}
