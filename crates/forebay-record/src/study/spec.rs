//! The study file, as TOML has it: what to run, over which levels, and what others published.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::written::Written;

/// Settings or factors by name.
pub type Levels = BTreeMap<String, Level>;

/// A study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StudySpec {
    /// Its name: letters, digits and hyphens.
    pub name: String,
    /// What it is, in a line.
    pub title: String,
    /// What it reproduces, as one cites it.
    #[serde(default)]
    pub source: Option<String>,
    /// What it asks, in a few sentences.
    #[serde(default)]
    pub about: String,
    /// Seed of the cells' order and of every shuffle.
    #[serde(default)]
    pub seed: u64,
    /// The data.
    #[serde(default, rename = "dataset")]
    pub datasets: Vec<DatasetSpec>,
    /// Workloads that are not built in.
    #[serde(default, rename = "workload", skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadSpec>,
    /// Where it lies.
    #[serde(default, rename = "tier")]
    pub tiers: Vec<TierSpec>,
    /// What is run.
    #[serde(default, rename = "experiment")]
    pub experiments: Vec<ExperimentSpec>,
    /// What others published.
    #[serde(default, rename = "reference")]
    pub references: Vec<Reference>,
    /// What the report shows, in this order.
    #[serde(default, rename = "figure")]
    pub figures: Vec<FigureSpec>,
}

/// How much of a study is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Few bytes, the same structure.
    Quick,
    /// As published.
    Full,
}

impl Scale {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }
}

/// A value for both scales, or one for each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(untagged)]
pub enum Scaled<T> {
    /// One for each.
    Each {
        /// At the quick scale.
        quick: T,
        /// At the full scale.
        full: T,
    },
    /// The same for both.
    Both(T),
}

/// What can have a value for each scale, as errors name it: one, and some.
trait Wanted {
    const ONE: &'static str;
    const SOME: &'static str;
}

impl Wanted for u64 {
    const ONE: &'static str = "a whole number";
    const SOME: &'static str = "whole numbers";
}

impl Wanted for Level {
    const ONE: &'static str = "true or false, a number or a text";
    const SOME: &'static str = "these";
}

impl Wanted for Vec<Level> {
    const ONE: &'static str = "a list of levels";
    const SOME: &'static str = "lists";
}

impl<'de, T: Deserialize<'de> + Wanted> Deserialize<'de> for Scaled<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw<T> {
            Each { quick: T, full: T },
            Both(T),
        }
        match Raw::deserialize(deserializer) {
            Ok(Raw::Each { quick, full }) => Ok(Self::Each { quick, full }),
            Ok(Raw::Both(value)) => Ok(Self::Both(value)),
            // The words of an untagged value name no type.
            Err(_) => Err(D::Error::custom(format!("must be {}, or {{ quick = …, full = … }} of {}", T::ONE, T::SOME))),
        }
    }
}

impl<T> Scaled<T> {
    /// The value at a scale.
    pub fn at(&self, scale: Scale) -> &T {
        match (self, scale) {
            (Self::Both(value), _) => value,
            (Self::Each { quick, .. }, Scale::Quick) => quick,
            (Self::Each { full, .. }, Scale::Full) => full,
        }
    }
}

/// A dataset: one that is made, packed from another, or there.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DatasetSpec {
    /// What experiments call it.
    pub name: String,
    /// The profile to make it by: `imagenet` or `caltech101`.
    #[serde(default)]
    pub make: Option<String>,
    /// How many images to make.
    #[serde(default)]
    pub count: Option<Scaled<u64>>,
    /// Seed of what is made.
    #[serde(default)]
    pub seed: u64,
    /// Where it lies, instead of making one.
    #[serde(default, with = "forebay_units::serde_path::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub path: Option<PathBuf>,
    /// The form to pack another dataset into, instead: `tfrecord`, `tar` or `tensor`.
    #[serde(default)]
    pub pack: Option<String>,
    /// The dataset that is packed.
    #[serde(default)]
    pub of: Option<String>,
}

/// A workload of a file, in DLIO's YAML or our TOML.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// What the factor `workload` calls it.
    pub name: String,
    /// The file.
    #[serde(with = "forebay_units::serde_path")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// What the file says, kept with the plan so that it means the same when the file has changed or is elsewhere.
    #[serde(default)]
    pub text: String,
}

/// A place for the data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TierSpec {
    /// What the factor `tier` calls it.
    pub name: String,
    /// The device to emulate: `hdd`, `ssd`, `optane` or `lustre`.
    #[serde(default)]
    pub profile: Option<String>,
    /// A folder on a real device, instead of emulating one.
    #[serde(default, with = "forebay_units::serde_path::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub path: Option<PathBuf>,
}

/// What an experiment does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// The raw ceilings of the storage.
    Probe,
    /// The ingest micro-benchmark.
    Ingest,
    /// Training, or an emulated accelerator in its place.
    Train,
    /// What a dataset consists of: sizes, forms, and the mix of requests that imitates it.
    Inspect,
    /// Saving and restoring a state.
    Checkpoint,
    /// A workload in the manner of DLIO.
    Workload,
}

impl Step {
    /// Every experiment.
    pub const ALL: [Self; 6] =
        [Self::Ingest, Self::Probe, Self::Train, Self::Checkpoint, Self::Workload, Self::Inspect];

    /// As the file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Ingest => "ingest",
            Self::Train => "train",
            Self::Inspect => "inspect",
            Self::Checkpoint => "checkpoint",
            Self::Workload => "workload",
        }
    }
}

/// Which combinations of levels are cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// All of them.
    #[default]
    Factorial,
    /// The first level of each factor, and from there one factor at a time.
    OneAtATime,
}

/// One experiment over some factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Written")]
pub struct ExperimentSpec {
    /// Its name.
    pub name: String,
    /// What it does.
    pub run: Step,
    /// The dataset it reads.
    pub dataset: Option<String>,
    /// Which combinations are cells.
    pub design: Design,
    /// Measurements of a cell that are kept; five when the file does not say, and one look at a dataset.
    pub repeats: Scaled<u64>,
    /// Measurements before them that are not; one when the file does not say, and none before a look at a dataset.
    pub warmups: Scaled<u64>,
    /// What is varied.
    pub factors: BTreeMap<String, Scaled<Vec<Level>>>,
    /// What is not.
    pub settings: BTreeMap<String, Scaled<Level>>,
    /// Settings of some cells only; a later rule wins.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Settings of the cells that have certain levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The levels a cell must have.
    pub when: Levels,
    /// What holds for it.
    pub set: BTreeMap<String, Scaled<Level>>,
}

/// A level of a factor, or the value of a setting.
#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "give true or false, a number or a text")]
pub enum Level {
    /// Yes or no.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// A name, or a quantity with its unit.
    Text(String),
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

/// A published value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The experiment whose cells it belongs to.
    pub experiment: String,
    /// The quantity, as [`StudyCell::metric`](crate::StudyCell::metric) names it, or `speed_up` of the figure's metric, or
    /// `stall_speed_up`: how many times shorter a checkpoint's stall is than that of a direct save to the same tier.
    pub metric: String,
    /// The levels it was measured at.
    pub at: Levels,
    /// The value.
    pub value: f64,
    /// How far ours may be away, relatively, to agree; without it the two are shown and not judged.
    #[serde(default)]
    pub within: Option<f64>,
    /// How far ours may be above, where that is not as far as below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The scale at which ours can be set beside it; without one, at each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Where it was published: section, figure or table.
    pub source: String,
}

impl Reference {
    /// Whether ours can be set beside it at a scale.
    pub fn is_of(&self, scale: Scale) -> bool {
        self.scale.is_none_or(|own| own == scale)
    }
}

/// What a figure looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Ours beside the published values.
    Table,
    /// Bars in groups: a group a level of `x`, a bar a level of `series`.
    Bars,
    /// The metric over its value at the first level of `x`, a line a level of `series`.
    SpeedUp,
    /// The share of the storage's ceiling, a group a level of `x`, a bar a level of `series`.
    Efficiency,
    /// Where the workers' time went: a stacked bar a cell.
    Workers,
    /// The per-second series of the disks.
    Trace,
    /// Percentiles of single requests' latencies, a line a probe cell.
    Percentiles,
    /// The share of requests below a latency, a line a probe cell.
    Distribution,
    /// Run times of training: a bar with prefetch, and on it what the run without takes longer.
    Excess,
    /// Where the accelerator's time went: a stacked bar a train cell.
    Time,
    /// Megabytes read over time, one panel a level of `x`, one area a level of `series`.
    Reads,
    /// How many samples of a dataset have which size.
    Sizes,
    /// The busiest disk in the columns of collectl.
    Disk,
    /// The disk throughput that keeps so many accelerators busy.
    Need,
    /// Wait, computing and loss, step by step.
    Steps,
    /// Run times with checkpoints, a bar a level of `x`, the time without them marked, and the median stall below; without
    /// `x`, the stall of every save.
    Checkpoints,
    /// What went to and from the tiers of checkpoints over time, the draining after the end included: a panel a tier.
    Traffic,
    /// Accelerator utilisation over a level of `x`: whole epoch and DLIO's as two lines, the published values beside them.
    Utilisation,
}

/// A figure of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Its name in links: "fig-4".
    pub id: String,
    /// Its heading.
    pub title: String,
    /// How it is drawn.
    pub kind: FigureKind,
    /// The experiment it shows; a trace shows all.
    #[serde(default)]
    pub experiment: Option<String>,
    /// The quantities shown; the first is drawn, a second has its scale on the right.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// The factor along the axis.
    #[serde(default)]
    pub x: Option<String>,
    /// The factor told apart by colour.
    #[serde(default)]
    pub series: Option<String>,
    /// Only cells with these levels.
    #[serde(default)]
    pub at: Levels,
    /// What to see in it.
    #[serde(default)]
    pub caption: String,
}
