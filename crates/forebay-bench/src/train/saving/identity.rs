//! What a run must have in common with the one it goes on from.

use std::collections::BTreeMap;

use super::super::trial::Trial;

const STEP: &str = "step";
const EPOCH: &str = "epoch";
const POSITION: &str = "position";
/// Told and not compared: who goes on may want to learn more slowly.
const LEARNING_RATE: &str = "learning_rate";

/// The settings that decide what the next step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    fixed: BTreeMap<&'static str, String>,
    learning_rate: Option<String>,
}

impl Identity {
    pub(super) fn of(trial: &Trial<'_>) -> Self {
        let (kind, plan) = (&trial.kind, trial.plan);
        let data = trial
            .stock
            .as_ref()
            .map_or("one batch in memory".to_owned(), |stock| format!("order {:016x}", stock.fingerprint()));
        let named = [
            ("model", kind.model()),
            ("accelerator", kind.emulation()),
            ("classes", kind.classes().map(|n| n.to_string())),
            ("optimizer", kind.optimizer()),
            ("batch", Some(plan.batch.to_string())),
            ("seed", Some(plan.seed.to_string())),
            ("data", Some(data)),
        ];
        let fixed = named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Self { fixed, learning_rate: kind.learning_rate().map(|rate| rate.to_string()) }
    }

    /// What a checkpoint says beside its tensors.
    pub(super) fn notes(&self, step: u64, epoch: u64, position: Option<u64>) -> BTreeMap<String, String> {
        let mut notes: BTreeMap<String, String> =
            self.fixed.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        notes.insert(STEP.to_owned(), step.to_string());
        notes.insert(EPOCH.to_owned(), epoch.to_string());
        notes.extend(position.map(|position| (POSITION.to_owned(), position.to_string())));
        notes.extend(self.learning_rate.clone().map(|rate| (LEARNING_RATE.to_owned(), rate)));
        notes
    }

    /// What a checkpoint's notes say otherwise; `None` when they are of the same run.
    pub(super) fn difference(&self, notes: &BTreeMap<String, String>) -> Option<String> {
        let mut differences = Vec::new();
        // Another seed is another order of the same data.
        let is_other_order = notes.get("seed") != self.fixed.get("seed");
        for (name, ours) in &self.fixed {
            match notes.get(*name) {
                Some(theirs) if theirs == ours => {}
                Some(_) if *name == "data" && is_other_order => {}
                Some(_) if *name == "data" => {
                    differences.push("its data, or the samples held out, are others".to_owned())
                }
                Some(theirs) => differences.push(format!("its {name} is {theirs}, not {ours}")),
                None => differences.push(format!("it has no {name}, and this one's is {ours}")),
            }
        }
        (!differences.is_empty()).then(|| differences.join("; "))
    }

    /// What to say when it learns at another rate.
    pub(super) fn other_rate(&self, notes: &BTreeMap<String, String>) -> Option<String> {
        let (ours, theirs) = (self.learning_rate.as_ref()?, notes.get(LEARNING_RATE)?);
        (ours != theirs).then(|| format!("the learning rate was {theirs} and is {ours} from now on"))
    }
}

/// Samples of the order that a checkpoint's steps used up.
pub(super) fn position(notes: &BTreeMap<String, String>) -> Option<u64> {
    notes.get(POSITION)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_and_a_learning_rate_may() {
        let of = |seed: &str, rate: &str| Identity {
            fixed: [("seed", seed.to_owned()), ("data", "order 7".to_owned())].into_iter().collect(),
            learning_rate: Some(rate.to_owned()),
        };
        let notes = of("1", "0.1").notes(60, 2, Some(480));
        assert_eq!(position(&notes), Some(480));
        assert_eq!((notes["step"].as_str(), notes["epoch"].as_str()), ("60", "2"));
        assert_eq!(of("1", "0.1").difference(&notes), None);
        assert_eq!(of("2", "0.1").difference(&notes).as_deref(), Some("its seed is 1, not 2"));
        assert_eq!(of("1", "0.01").difference(&notes), None);
        let told = of("1", "0.01").other_rate(&notes);
        assert_eq!(told.as_deref(), Some("the learning rate was 0.1 and is 0.01 from now on"));
        let mut other = notes.clone();
        other.insert("data".to_owned(), "order 8".to_owned());
        assert_eq!(of("1", "0.1").difference(&other).as_deref(), Some("its data, or the samples held out, are others"));
        other.remove("seed");
        assert!(of("1", "0.1").difference(&other).is_some_and(|said| said.contains("it has no seed")));
    }
}
