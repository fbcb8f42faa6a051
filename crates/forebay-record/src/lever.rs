//! What limits a run and which change would help most: the same words for every experiment.

use serde::{Deserialize, Serialize};

use crate::Level;

/// The change that would help most among those that cost the user least: flags before hardware.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lever {
    /// `prefetch`, `threads`, `io`, `shuffle` (shards read in order), `pack`, `decode`, `storage`, `order`,
    /// `cores`, `checkpoint`, `none` when the accelerator is the limit, or `unknown` when it cannot be told; empty in old records.
    pub name: String,
    /// What to change, with the flag if there is one.
    pub advice: String,
    /// The setting to change, where one does it.
    #[serde(default)]
    pub setting: Option<Change>,
    /// Seconds this run would save.
    pub saves_s: f64,
    /// Predicted wall clock in seconds.
    pub wall_s: f64,
    /// Half the width of the prediction's interval, in seconds; `None` where only a bound is known.
    #[serde(default)]
    pub error_s: Option<f64>,
    /// Whether `saves_s` is an upper bound rather than a prediction.
    #[serde(default)]
    pub is_bound: bool,
    /// The next best change of another kind, which has its own runner-up, and so on.
    #[serde(default)]
    pub runner_up: Option<Box<Lever>>,
}

impl Lever {
    /// The change in a few words, for a column of a table; a cause that no known change removes is named as one.
    pub fn short(&self) -> String {
        match (self.name.as_str(), &self.setting) {
            ("none" | "unknown" | "", _) => self.name.clone(),
            (_, Some(change)) => format!("{}={}", change.setting, change.value),
            ("storage", None) => "faster storage".to_owned(),
            ("cores", None) => "more cores".to_owned(),
            ("decode", None) => "faster decoding".to_owned(),
            ("checkpoint", None) => "fewer or faster checkpoints".to_owned(),
            ("preprocess", None) => "cheaper preprocessing".to_owned(),
            ("start", None) => "longer epochs".to_owned(),
            ("barrier", None) => "no change known (barrier)".to_owned(),
            (name, None) => name.to_owned(),
        }
    }
}

/// A setting with the value to give it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Name of the setting, as in a study file; `dataset` for the same samples in another format.
    pub setting: String,
    /// Its new value.
    pub value: Level,
}

impl Change {
    /// The setting that stands for the same samples in another format, as the factor of a study.
    pub const DATASET: &str = "dataset";
    /// The setting of the order of the samples.
    pub const SHUFFLE: &str = "shuffle";
}

/// What limits a run, cross-checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// `accelerator`, `latency` (too few requests in flight), `storage`, `decode`, `threads`, `prefetch`, `order`, `cores` (other programs
    /// used them), `checkpoint`, or `unknown` when it cannot be told.
    pub name: String,
    /// Measured facts it rests on, each a phrase.
    pub evidence: Vec<String>,
    /// The same in numbers; `None` where there is no model of the run.
    #[serde(default)]
    pub rates: Option<Rates>,
}

/// What the parts of a run could deliver, each without the others, in samples per second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// Consumed by an accelerator that never waits.
    pub consumes_per_s: Option<f64>,
    /// Delivered by the storage with as many requests in flight as the run had threads; `None` for samples from memory.
    pub storage_per_s: Option<f64>,
    /// Delivered by the storage with as many requests in flight as were measured.
    pub storage_most_per_s: Option<f64>,
    /// Processed by all cores; `None` where the time on a core was not measured.
    pub cores_per_s: Option<f64>,
    /// Number of these cores.
    pub cores: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_no_change_removes_is_no_change() {
        let lever = |name: &str, setting: Option<Change>| Lever { name: name.to_owned(), setting, ..Lever::default() };
        let change = Change { setting: "reader.read_threads".to_owned(), value: Level::Integer(8) };
        assert_eq!(lever("threads", Some(change)).short(), "reader.read_threads=8");
        let names = ["cores", "barrier", "storage", "none"].map(|name| lever(name, None).short());
        assert_eq!(names, ["more cores", "no change known (barrier)", "faster storage", "none"]);
    }
}
