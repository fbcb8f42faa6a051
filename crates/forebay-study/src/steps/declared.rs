//! What each step can be given, as the reference page of study files lists it.

use forebay_bench::checkpoint::CheckpointSettings;
use forebay_bench::ingest::IngestSettings;
use forebay_bench::train::TrainSettings;
use forebay_emulation::WorkloadSettings;
use forebay_measure::{Settings, Takes};
use forebay_probe::ProbeSettings;
use forebay_record::Step;

/// A setting or factor of a step.
#[derive(Debug, Clone)]
pub struct Declared {
    pub name: &'static str,
    /// One line; details follow after an empty one.
    pub help: &'static str,
    /// Placeholder for the value, such as `N`.
    pub value: &'static str,
    /// As in the command line; `None` if the help says it, or there is none.
    pub default: Option<&'static str>,
    pub takes: Takes,
    /// The allowed words, if the values are a fixed list.
    pub choices: Vec<&'static str>,
}

/// Of a step: its dataset and tiers first, then its settings in the order of the command's help.
pub fn declared(step: Step) -> Vec<Declared> {
    let settings = match step {
        Step::Ingest => of::<IngestSettings>(),
        Step::Probe => of::<ProbeSettings>(),
        Step::Train => of::<TrainSettings>(),
        Step::Inspect | Step::Trace => Vec::new(),
        Step::Checkpoint => of::<CheckpointSettings>(),
        Step::Workload => [vec![named(&WORKLOAD)], of::<WorkloadSettings>()].concat(),
    };
    places(step).iter().map(named).chain(settings).collect()
}

fn of<S: Settings>() -> Vec<Declared> {
    let declared = S::TABLE.iter().map(|setting| Declared {
        name: setting.name,
        help: setting.help,
        value: setting.value,
        default: setting.default,
        takes: setting.takes,
        choices: (setting.choices)(),
    });
    declared.collect()
}

fn named((name, help): &(&'static str, &'static str)) -> Declared {
    Declared { name, help, value: "NAME", default: None, takes: Takes::One, choices: Vec::new() }
}

const WORKLOAD: (&str, &str) = ("workload", "A built-in workload, or a `[[workload]]` of the file [default: required]");
const DATASET: (&str, &str) = ("dataset", "Dataset to read, in place of the experiment's `dataset`");
const TIER: (&str, &str) = ("tier", "Tier of the data [default: where the dataset lies]");
const BURST: (&str, &str) = ("burst", "Tier used as a burst buffer for checkpoints, or `none` [default: none]");

/// Names of a dataset, a workload and tiers, which the commands take as paths.
pub(super) fn places(step: Step) -> &'static [(&'static str, &'static str)] {
    match step {
        Step::Ingest | Step::Inspect => &[DATASET, TIER],
        Step::Workload => &[
            (
                "dataset",
                "Dataset to read; its name must be that of existing data [default: generated for the workload]",
            ),
            TIER,
        ],
        Step::Probe => &[
            ("like", "Dataset whose sizes the random requests and small files imitate"),
            ("tier", "Tier to probe [default: the folder of the study's data]"),
        ],
        Step::Train => &[
            DATASET,
            TIER,
            (
                "checkpoint",
                "Tier of the checkpoints, `FAST → SLOW` with a burst buffer, or `none` [default: no checkpoints]",
            ),
            BURST,
        ],
        Step::Trace => &[],
        Step::Checkpoint => {
            &[("tier", "Tier to save to, or `FAST → SLOW` with a burst buffer [default: required]"), BURST]
        }
    }
}
