//! The settings that a run must share with the one it resumes.

use std::collections::BTreeMap;

use super::super::data::TrainingData;
use super::super::trial::Trial;

const STEP: &str = "step";
const EPOCH: &str = "epoch";
const POSITION: &str = "position";
const SAMPLES: &str = "samples";
const HELD_OUT: &str = "held out";
const NAMES: &str = "names";
const SIZES: &str = "sizes";
/// Empty, or missing in older checkpoints, if images are only resized.
const AUGMENTATION: &str = "augmentation";
/// Missing in older checkpoints, which one process saved.
const RANKS: &str = "ranks";
/// Recorded but not compared, because the user may want to continue with another rate.
const LEARNING_RATE: &str = "learning_rate";

/// The settings that determine the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    fixed: BTreeMap<&'static str, String>,
    learning_rate: Option<String>,
}

impl Identity {
    pub(super) fn of(trial: &Trial<'_>) -> Self {
        let (kind, settings) = (&trial.kind, &trial.plan.settings);
        let data = trial.data.as_ref();
        let packing = data.map_or("one batch in memory", |data| data.source.packing());
        let named = [
            ("model", kind.model()),
            ("accelerator", kind.emulation()),
            ("classes", kind.classes().map(|n| n.to_string())),
            ("optimizer", kind.optimizer()),
            ("batch", Some(settings.batch.to_string())),
            (RANKS, Some(trial.site.ranks.size().to_string())),
            ("seed", Some(settings.seed.to_string())),
            ("data", Some(packing.to_owned())),
            (SAMPLES, data.map(|data| data.source.n_samples().to_string())),
            (HELD_OUT, data.map(|data| data.n_held_out().to_string())),
            (NAMES, data.map(|data| format!("{:016x}", data.names()))),
            (SIZES, data.map(|data| format!("{:016x}", data.sizes()))),
            (AUGMENTATION, data.map(TrainingData::change)),
        ];
        let fixed = named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Self { fixed, learning_rate: kind.learning_rate().map(|rate| rate.to_string()) }
    }

    /// Stored beside the tensors of a checkpoint.
    pub(super) fn notes(&self, step: u64, epoch: u64, positions: &[u64]) -> BTreeMap<String, String> {
        let mut notes: BTreeMap<String, String> =
            self.fixed.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        notes.insert(STEP.to_owned(), step.to_string());
        notes.insert(EPOCH.to_owned(), epoch.to_string());
        if !positions.is_empty() {
            let positions: Vec<String> = positions.iter().map(ToString::to_string).collect();
            notes.insert(POSITION.to_owned(), positions.join(","));
        }
        notes.extend(self.learning_rate.clone().map(|rate| (LEARNING_RATE.to_owned(), rate)));
        notes
    }

    /// `None` if the checkpoint is of the same run.
    pub(super) fn difference(&self, notes: &BTreeMap<String, String>) -> Option<String> {
        let (none, one) = (String::new(), "1".to_owned());
        let older = |name: &str| match name {
            AUGMENTATION => Some(&none),
            RANKS => Some(&one),
            _ => None,
        };
        let theirs = |name: &str| notes.get(name).or_else(|| older(name));
        let differs = |name: &str| theirs(name) != self.fixed.get(name);
        // If the number of samples differs, names and sizes need no mention.
        let is_said = |name: &str| match name {
            NAMES => differs("data") || differs(SAMPLES),
            SIZES => differs("data") || differs(SAMPLES) || differs(NAMES),
            _ => false,
        };
        let differences: Vec<String> = self
            .fixed
            .iter()
            .filter(|(name, _)| differs(name) && !is_said(name))
            .map(|(name, ours)| difference(name, theirs(name), ours))
            .collect();
        (!differences.is_empty()).then(|| differences.join("; "))
    }

    /// Note on another learning rate.
    pub(super) fn other_rate(&self, notes: &BTreeMap<String, String>) -> Option<String> {
        let (ours, theirs) = (self.learning_rate.as_ref()?, notes.get(LEARNING_RATE)?);
        (ours != theirs).then(|| format!("the learning rate changes from {theirs} to {ours}"))
    }
}

fn difference(name: &str, theirs: Option<&String>, ours: &str) -> String {
    let Some(theirs) = theirs else { return format!("the checkpoint records no {name}; this run's is {ours}") };
    match name {
        SAMPLES => format!("the data had {}, now {ours}", counted(theirs, "sample")),
        HELD_OUT => format!("{} were held out, now {ours}", counted(theirs, "sample")),
        RANKS => format!("it was saved by {}, now {ours}", counted(theirs, "rank")),
        AUGMENTATION => format!("augmentation was {}, now {}", or_none(theirs), or_none(ours)),
        "classes" => format!("it had {}, now {ours}", counted(theirs, "class")),
        NAMES => "the names, labels or order of the samples changed".to_owned(),
        SIZES => "the file sizes of the samples changed".to_owned(),
        _ => format!("{name} was {theirs}, now {ours}"),
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// "1 sample", "22 classes".
fn counted(n: &str, what: &str) -> String {
    let plural = if what.ends_with('s') { "es" } else { "s" };
    if n == "1" { format!("1 {what}") } else { format!("{n} {what}{plural}") }
}

/// Samples of the order that the checkpoint's steps used, by rank.
pub(super) fn positions(notes: &BTreeMap<String, String>) -> Vec<u64> {
    let all = notes.get(POSITION).map(|all| all.split(',').map(str::parse).collect());
    all.and_then(Result::ok).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_a_learning_rate_may() {
        let of = |seed: &str, rate: &str| Identity {
            fixed: [("seed", seed), (SAMPLES, "24"), (NAMES, "7"), (SIZES, "70"), ("classes", "4")]
                .map(|(name, value)| (name, value.to_owned()))
                .into_iter()
                .collect(),
            learning_rate: Some(rate.to_owned()),
        };
        let notes = of("1", "0.1").notes(60, 2, &[480, 479]);
        assert_eq!(positions(&notes), [480, 479]);
        assert_eq!((notes["step"].as_str(), notes["epoch"].as_str()), ("60", "2"));
        assert_eq!(of("1", "0.1").difference(&notes), None);
        assert_eq!(of("2", "0.1").difference(&notes).as_deref(), Some("seed was 1, now 2"));
        assert_eq!(of("1", "0.01").difference(&notes), None);
        let told = of("1", "0.01").other_rate(&notes);
        assert_eq!(told.as_deref(), Some("the learning rate changes from 0.1 to 0.01"));
        let mut other = notes.clone();
        for (name, value, wanted) in [
            (SIZES, "71", "the file sizes of the samples changed"),
            (NAMES, "8", "the names, labels or order of the samples changed"),
            (SAMPLES, "23", "the data had 23 samples, now 24"),
            ("classes", "1", "it had 1 class, now 4; the data had 23 samples, now 24"),
        ] {
            other.insert(name.to_owned(), value.to_owned());
            assert_eq!(of("1", "0.1").difference(&other).as_deref(), Some(wanted));
        }
        let flipped = Identity {
            fixed: of("1", "0.1").fixed.into_iter().chain([(AUGMENTATION, "half mirrored".to_owned())]).collect(),
            ..of("1", "0.1")
        };
        assert_eq!(flipped.difference(&notes).as_deref(), Some("augmentation was none, now half mirrored"));
        other.remove("seed");
        assert!(of("1", "0.1").difference(&other).is_some_and(|said| said.contains("the checkpoint records no seed")));
    }
}
