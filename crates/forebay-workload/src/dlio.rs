//! DLIO's own result files: `summary.json`, `<rank>_output.json`, `<rank>_per_epoch_stats.json`, written and read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `<rank>_output.json`: per epoch, per block, the times of the steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Output {
    /// The host's name.
    #[serde(default)]
    pub hostname: Option<String>,
    /// By epoch, "1" first; other keys of the file are in `rest`.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}
