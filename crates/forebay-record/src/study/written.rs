//! An experiment as in its file: repeats and warm-ups are optional, with defaults that depend on the step.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::spec::{Design, ExperimentSpec, Level, Rule, Scaled, Step};

#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename = "ExperimentSpec")]
pub(super) struct Written {
    name: String,
    run: Step,
    #[serde(default)]
    dataset: Option<String>,
    #[serde(default)]
    design: Design,
    #[serde(default)]
    repeats: Option<Scaled<u64>>,
    #[serde(default)]
    warmups: Option<Scaled<u64>>,
    #[serde(default)]
    factors: BTreeMap<String, Scaled<Vec<Level>>>,
    #[serde(default)]
    settings: BTreeMap<String, Scaled<Level>>,
    #[serde(default, rename = "rule")]
    rules: Vec<Rule>,
}

impl From<Written> for ExperimentSpec {
    fn from(written: Written) -> Self {
        // A dataset is the same however often it is inspected.
        let (repeats, warmups) = match written.run {
            Step::Inspect | Step::Workload | Step::Trace => (1, 0),
            Step::Probe | Step::Ingest | Step::Train | Step::Checkpoint => (5, 1),
        };
        Self {
            name: written.name,
            run: written.run,
            dataset: written.dataset,
            design: written.design,
            repeats: written.repeats.unwrap_or(Scaled::Both(repeats)),
            warmups: written.warmups.unwrap_or(Scaled::Both(warmups)),
            factors: written.factors,
            settings: written.settings,
            rules: written.rules,
        }
    }
}
