//! An experiment as its file has it: how often it measures may be left out, and then depends on what it does.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::spec::{Design, ExperimentSpec, Level, Rule, Scaled, Step};

/// An experiment with what may be left out.
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
        // A dataset is the same however often one looks at it.
        let (repeats, warmups) = match written.run {
            Step::Inspect | Step::Workload => (1, 0),
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
