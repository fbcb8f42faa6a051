//! The study file, as in TOML: what to run, over which levels, and published values to compare with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::reference::Reference;
use super::written::Written;

/// Settings or factors by name.
pub type Levels = BTreeMap<String, Level>;

/// A study file: data, tiers, experiments, published values and figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StudySpec {
    /// Name: letters, digits and hyphens.
    pub name: String,
    /// Heading of the report, one line.
    pub title: String,
    /// Citation of the publication it reproduces; `None` where there is none.
    #[serde(default)]
    pub source: Option<String>,
    /// What the study shows and how, for the report.
    #[serde(default)]
    pub about: String,
    /// Seed of the cell order and of every shuffle.
    #[serde(default)]
    pub seed: u64,
    /// Data that experiments read, by name.
    #[serde(default, rename = "dataset")]
    pub datasets: Vec<DatasetSpec>,
    /// Workloads that are not built in.
    #[serde(default, rename = "workload", skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<WorkloadSpec>,
    /// Places of data and checkpoints, by name.
    #[serde(default, rename = "tier")]
    pub tiers: Vec<TierSpec>,
    /// What to run, in order of the file.
    #[serde(default, rename = "experiment")]
    pub experiments: Vec<ExperimentSpec>,
    /// Values to compare the results with.
    #[serde(default, rename = "reference")]
    pub references: Vec<Reference>,
    /// Figures of the report, in order.
    #[serde(default, rename = "figure")]
    pub figures: Vec<FigureSpec>,
    /// What the study does not have or cannot show, each with the reason, for the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
}

/// Scale of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Little data, same structure.
    Quick,
    /// More data and repeats for every figure, in less than an hour.
    Standard,
    /// As large as in the publication.
    Full,
}

impl Scale {
    /// From the shortest to the longest.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Full];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }
}

/// A value for all scales, or one for each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(inline))]
#[serde(untagged)]
pub enum Scaled<T> {
    /// `{ quick = …, standard = …, full = … }` in the study file.
    Each {
        /// Used with `--scale quick`.
        quick: T,
        /// Used with `--scale standard`; the value of `quick` if missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        standard: Option<T>,
        /// Used with `--scale full`.
        full: T,
    },
    /// One value, used at all scales.
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
        #[serde(untagged, deny_unknown_fields)]
        enum Raw<T> {
            Each { quick: T, standard: Option<T>, full: T },
            Both(T),
        }
        match Raw::deserialize(deserializer) {
            Ok(Raw::Each { quick, standard, full }) => Ok(Self::Each { quick, standard, full }),
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
            (Self::Each { standard: Some(standard), .. }, Scale::Standard) => standard,
            (Self::Each { quick, .. }, Scale::Quick | Scale::Standard) => quick,
            (Self::Each { full, .. }, Scale::Full) => full,
        }
    }
}

/// A dataset: generated, packed from another, or existing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DatasetSpec {
    /// Name that experiments refer to.
    pub name: String,
    /// Profile to generate it from: `imagenet` or `caltech101`; `None` unless it is generated.
    #[serde(default)]
    pub make: Option<String>,
    /// Number of images to generate.
    #[serde(default)]
    pub count: Option<Scaled<u64>>,
    /// Seed of the generated images.
    #[serde(default)]
    pub seed: u64,
    /// Sizes of the generated files by powers of two, in per cent, such as `32K/13:64K/87`; the profile's if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<String>,
    /// Existing dataset, escaped; `None` where it is generated or packed.
    #[serde(default, with = "forebay_units::serde_path::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub path: Option<PathBuf>,
    /// Target packing of another dataset: `tfrecord`, `tar` or `tensor`; `None` unless it is packed.
    #[serde(default)]
    pub pack: Option<String>,
    /// Name of the dataset to pack.
    #[serde(default)]
    pub of: Option<String>,
    /// Maximum size of a packed shard, such as "8MiB"; 128 MiB if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard_size: Option<Scaled<Level>>,
}

/// A workload file, in YAML of DLIO or TOML of forebay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Name that the factor `workload` refers to.
    pub name: String,
    /// Path of the file, escaped.
    #[serde(with = "forebay_units::serde_path")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub path: PathBuf,
    /// Content of the file, kept in case the file changes.
    #[serde(default)]
    pub text: String,
}

/// A place for data or checkpoints: an emulated device, or a folder on a real one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TierSpec {
    /// Name that the factor `tier` refers to.
    pub name: String,
    /// Device to emulate: `hdd`, `ssd`, `optane`, `lustre` or `s3`; `None` for a real one.
    #[serde(default)]
    pub profile: Option<String>,
    /// Folder on a real device, escaped; `None` for an emulated one.
    #[serde(default, with = "forebay_units::serde_path::option")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub path: Option<PathBuf>,
}

/// Which command of forebay an experiment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Raw ceilings of the storage.
    Probe,
    /// Reading and decoding without training: the ingest micro-benchmark.
    Ingest,
    /// Training on a real or emulated accelerator.
    Train,
    /// Contents of a dataset: sizes, formats, and the request mix that imitates it.
    Inspect,
    /// Saving and restoring checkpoints.
    Checkpoint,
    /// A DLIO workload on emulated accelerators.
    Workload,
    /// A job of the user, seen from outside; a record of its own, not a step of studies.
    #[serde(skip_deserializing)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Trace,
}

impl Step {
    /// All steps of studies; each has a name in the study file.
    pub const ALL: [Self; 6] =
        [Self::Ingest, Self::Probe, Self::Train, Self::Checkpoint, Self::Workload, Self::Inspect];

    /// As in the study file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Ingest => "ingest",
            Self::Train => "train",
            Self::Inspect => "inspect",
            Self::Checkpoint => "checkpoint",
            Self::Workload => "workload",
            Self::Trace => "trace",
        }
    }
}

/// Which combinations of levels are cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every combination of all levels.
    #[default]
    Factorial,
    /// The first level of each factor, and from there one factor at a time.
    OneAtATime,
}

/// An experiment and its factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(from = "Written")]
pub struct ExperimentSpec {
    /// Name of the experiment.
    pub name: String,
    /// Which command of forebay it runs.
    pub run: Step,
    /// Name of the dataset it reads; `None` where it reads none.
    pub dataset: Option<String>,
    /// Which combinations of levels are cells.
    pub design: Design,
    /// Kept measurements per cell.
    pub repeats: Scaled<u64>,
    /// Dropped measurements before them.
    pub warmups: Scaled<u64>,
    /// Levels of each factor.
    pub factors: BTreeMap<String, Scaled<Vec<Level>>>,
    /// Settings with one value for all cells.
    pub settings: BTreeMap<String, Scaled<Level>>,
    /// Settings of some cells only; a later rule wins.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
}

/// Settings for cells with certain levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Levels that a cell must have.
    pub when: Levels,
    /// Settings of such cells.
    pub set: BTreeMap<String, Scaled<Level>>,
}

/// A level of a factor, or the value of a setting.
#[derive(Debug, Clone, PartialEq, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged, expecting = "give true or false, a number or a text")]
pub enum Level {
    /// `true` or `false`, as for a switch.
    Flag(bool),
    /// A whole number, such as a thread count.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// A name, or a quantity with its unit.
    Text(String),
}

impl Level {
    /// Parses a value of the command line: a number if it reads as one, else a text.
    pub fn of_text(text: &str) -> Self {
        let number = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Number);
        let found = text.parse().ok().map(Self::Integer).or_else(number);
        found.unwrap_or_else(|| Self::Text(text.to_owned()))
    }
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

/// How a figure presents its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Our values beside the published ones.
    Table,
    /// Grouped bars: one group per level of `x`, one bar per level of `series`.
    Bars,
    /// The metric over its value at the first level of `x`, one line per level of `series`.
    SpeedUp,
    /// Fraction of the storage's ceiling: one group per level of `x`, one bar per level of `series`.
    Efficiency,
    /// Time of the workers by activity: one stacked bar per cell.
    Workers,
    /// Activity of the disks, second by second.
    Trace,
    /// Latency percentiles of single requests, one line per probe cell.
    Percentiles,
    /// Fraction of requests below a latency, one line per probe cell.
    Distribution,
    /// Run times of training: one bar with prefetch, and on it the excess of the run without.
    Excess,
    /// Time of the accelerator by part: one stacked bar per train cell.
    Time,
    /// Megabytes read over time: one panel per level of `x`, one area per level of `series`.
    Reads,
    /// Histogram of the sample sizes of a dataset.
    Sizes,
    /// The busiest disk, with the columns of collectl.
    Disk,
    /// Disk throughput that keeps a number of accelerators busy.
    Need,
    /// Wait, computation and loss, step by step.
    Steps,
    /// Run times with checkpoints: one bar per level of `x`, the time without them marked, and the median stall below; without `x`,
    /// the stall of every save.
    Checkpoints,
    /// Bytes to and from the tiers of checkpoints over time, including the drain after the end: one panel per tier.
    Traffic,
    /// Accelerator utilisation over the levels of `x`: whole epochs and DLIO's as two lines, with the published values.
    Utilisation,
    /// Advice of training cells beside what it gave: predicted over measured run times of the named changes, and whether another
    /// free change that was tried was faster.
    Advice,
    /// The shortest step whose input is hidden by prefetching, over `x`, with one line per level of `series`, and published step times
    /// (`step_s`) beside them.
    Frontier,
    /// Time of the accelerator by part, and what checkpoints and their drain add to its waiting.
    Contention,
    /// Run time over the interval between checkpoints where failures strike, with the best interval: one line per level of `series`.
    Interval,
    /// Predicted and measured run times of `forebay tune`, run by run, with the settings that it found.
    Tuning,
}

/// A figure of the report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// Name in links, such as "fig-4".
    pub id: String,
    /// Heading above the figure.
    pub title: String,
    /// How it presents its cells.
    pub kind: FigureKind,
    /// Experiment it shows; a trace shows all.
    #[serde(default)]
    pub experiment: Option<String>,
    /// Metrics shown; the first is drawn, a second has its scale on the right.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Factor along the axis.
    #[serde(default)]
    pub x: Option<String>,
    /// Factor distinguished by color.
    #[serde(default)]
    pub series: Option<String>,
    /// Restricts the cells to these levels.
    #[serde(default)]
    pub at: Levels,
    /// Text below the figure.
    #[serde(default)]
    pub caption: String,
    /// Step times of accelerators that a frontier marks.
    #[serde(default, rename = "point", skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<StepPoint>,
}

/// The step time of an accelerator, as somebody measured it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepPoint {
    /// Of the accelerator, and what it trained.
    pub name: String,
    /// Seconds per step; of a range, the shortest.
    pub step_s: f64,
    /// The longest, where a range is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_s: Option<f64>,
    /// Who measured it, and how the value follows from that.
    pub source: String,
}
