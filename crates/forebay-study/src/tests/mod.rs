//! Plans checked, and the engine run on a bench that answers at once.

mod checkpoint;
mod data;
mod engine;
mod plan;
mod resume;
mod workload;

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_measure::{Event, Observer};
use forebay_record::{Environment, Scale, StudyCell, StudyHead, StudyRun};

use super::{Bench, CellPlan, Failed, Folder, Outcome, Placement, Plan, RECORD, Remaining, StepResult, parse, run};

/// Two experiments, 2 × 3 and 1 + 1 + 1 cells.
const SMALL: &str = r#"
name = "small"
title = "a small study"
seed = 5

[[dataset]]
name = "set"
path = "set"

[[tier]]
name = "hdd"
profile = "hdd"

[[experiment]]
name = "all"
run = "ingest"
dataset = "set"
[experiment.factors]
threads = [1, 2, 4]
read_only = [false, true]

[[experiment]]
name = "one"
run = "probe"
design = "one-at-a-time"
[experiment.factors]
depth = [1, 8]
block = ["1MiB", "4KiB"]
"#;

fn plan_of(text: &str) -> Plan {
    Plan::new(parse(text).unwrap(), Scale::Quick).unwrap()
}

fn head_of(plan: &Plan) -> StudyHead {
    plan.head(vec!["forebay".to_owned()], Environment::default(), Path::new("data"), &|_| Placement::default())
}

/// A bench that notes what it is asked for, and fails or stops where it is told to.
#[derive(Default)]
struct Fake {
    asked: Vec<String>,
    failing: HashSet<String>,
    /// Sets the flag while measuring this cell, counted from 0.
    stop_at: Option<usize>,
}

impl Bench for Fake {
    fn measure(&mut self, cell: &CellPlan, observer: Observer<'_>) -> Result<StepResult, Failed> {
        observer.tell(Event::Moved { images: 1, bytes: 2 });
        if self.stop_at == Some(self.asked.len()) {
            observer.cancel.store(true, Ordering::Relaxed);
        }
        self.asked.push(cell.id.clone());
        match self.failing.contains(&cell.id) {
            true => Err("the device is gone".into()),
            false => Ok(StepResult { notes: vec![format!("time {}", self.asked.len())], ..StepResult::default() }),
        }
    }
}

/// Runs what is left of the plan in the folder.
fn go(plan: &Plan, rest: &Remaining, folder: &mut Folder, bench: &mut Fake) -> Outcome {
    let never = AtomicBool::new(false);
    run(plan, rest, folder, bench, &|_| Some(1.0), &|_| (), &never).unwrap()
}

fn ids_in_order(plan: &Plan) -> Vec<String> {
    plan.order().into_iter().map(|number| plan.cells[number].id.clone()).collect()
}

fn recorded(dir: &Path) -> StudyRun {
    let text = std::fs::read_to_string(dir.join(RECORD)).unwrap();
    let (run, sound) = StudyRun::from_jsonl(&text).unwrap();
    assert_eq!(sound, text.len(), "no torn line is left");
    run
}

fn ids(cells: &[StudyCell]) -> Vec<&str> {
    cells.iter().map(|cell| cell.id.as_str()).collect()
}
