//! A published value, and what a study says about comparing with it.

use serde::{Deserialize, Serialize};

use super::spec::{Levels, Scale};

/// A value from a publication, to compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Experiment whose cells it applies to.
    pub experiment: String,
    /// Metric name; also `speed_up` of the figure's metric, or `stall_speed_up`: how many times shorter a checkpoint's stall is than
    /// that of a direct save to the same tier.
    pub metric: String,
    /// Levels it was measured at.
    pub at: Levels,
    /// In the unit of the metric; of a range, the lower end.
    pub value: f64,
    /// Upper end, where a range was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<f64>,
    /// What the publication says, where it gives no number; `value` and `to` are then how the study reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub says: Option<String>,
    /// Relative tolerance of agreement; without one, values are shown and not judged.
    #[serde(default)]
    pub within: Option<f64>,
    /// Relative tolerance above the value, where it differs from that below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// What the emulation was given that our value follows from. Such a value is labelled as calibrated and never counted as agreeing,
    /// except on real devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<String>,
    /// Why ours agrees or differs, for the report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Scale at which it is comparable; every scale if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<Scale>,
    /// Section, figure or table of the publication.
    pub source: String,
}

impl Reference {
    /// Whether our values at this scale are comparable.
    pub fn is_of(&self, scale: Scale) -> bool {
        self.scale.is_none_or(|own| own == scale)
    }

    /// The end of the published range that is nearest to our value.
    pub fn nearest(&self, ours: f64) -> f64 {
        match self.to {
            Some(to) if ours > to => to,
            Some(_) if ours > self.value => ours,
            _ => self.value,
        }
    }
}
