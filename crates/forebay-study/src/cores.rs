//! Levels that depend on the machine: `"cores"`, `"cores*2"`, and `"1..cores*2"` for powers of two up to that.
//!
//! The plan replaces them with numbers, so a run resumed on another machine keeps its cells.

use forebay_record::{ExperimentSpec, Level, Levels, Scaled, StudySpec};

use super::check::place_of;
use super::error::{Error, Result};

/// The settings that count threads, requests, samples or steps; only these may depend on the machine.
pub const NUMBERS: &[&str] =
    &["batch", "batches", "depth", "device_prefetch", "epochs", "prefetch", "readers", "steps", "threads"];
const WANTED: &str = "expected a number, \"cores\", \"cores*N\" or a range of powers of two, as in \"1..cores*2\"";
const MAX: u64 = 1_000_000;

pub(super) fn expand(spec: &mut StudySpec, n_cores: u64) -> Result<()> {
    let cores = Cores(n_cores);
    for experiment in &mut spec.experiments {
        let place = place_of(experiment);
        cores.experiment(experiment).map_err(|(key, reason)| Error::plan(format!("{place}, {key}"), reason))?;
    }
    for (i, reference) in spec.references.iter_mut().enumerate() {
        let refused = |(key, reason)| Error::plan(format!("reference {}, {key}", i + 1), reason);
        cores.levels(&mut reference.at).map_err(refused)?;
    }
    for figure in &mut spec.figures {
        let refused = |(key, reason)| Error::plan(format!("figure \"{}\", {key}", figure.id), reason);
        cores.levels(&mut figure.at).map_err(refused)?;
    }
    Ok(())
}

/// A key and the problem with its value.
type KeyProblem = (String, String);

struct Cores(u64);

impl Cores {
    fn experiment(&self, experiment: &mut ExperimentSpec) -> Result<(), KeyProblem> {
        for (name, scaled) in &mut experiment.factors {
            for levels in each(scaled) {
                *levels = self.list(name, levels).map_err(|reason| (format!("factors.{name}"), reason))?;
            }
        }
        for (name, scaled) in &mut experiment.settings {
            for level in each(scaled) {
                *level = self.one(name, level).map_err(|reason| (format!("settings.{name}"), reason))?;
            }
        }
        for (i, rule) in experiment.rules.iter_mut().enumerate() {
            let at = |(key, reason)| (format!("rule {}, {key}", i + 1), reason);
            self.levels(&mut rule.when).map_err(at)?;
            for (name, scaled) in &mut rule.set {
                for level in each(scaled) {
                    *level = self.one(name, level).map_err(|reason| at((format!("set.{name}"), reason)))?;
                }
            }
        }
        Ok(())
    }

    fn levels(&self, levels: &mut Levels) -> Result<(), KeyProblem> {
        for (name, level) in levels {
            *level = self.one(name, level).map_err(|reason| (name.clone(), reason))?;
        }
        Ok(())
    }

    /// Levels that are equal on this machine are merged.
    fn list(&self, name: &str, levels: &[Level]) -> Result<Vec<Level>, String> {
        if !levels.iter().any(|level| word(name, level).is_some()) {
            return Ok(levels.to_vec());
        }
        let mut all = Vec::new();
        for level in levels {
            let these = match word(name, level) {
                Some(text) => self.numbers(text)?.into_iter().map(|n| Level::Integer(n as i64)).collect(),
                None => vec![level.clone()],
            };
            for level in these {
                if !all.contains(&level) {
                    all.push(level);
                }
            }
        }
        Ok(all)
    }

    fn one(&self, name: &str, level: &Level) -> Result<Level, String> {
        match word(name, level) {
            None => Ok(level.clone()),
            Some(text) if text.contains("..") => {
                Err(format!("\"{text}\": only a factor can have a range; give one value"))
            }
            Some(text) => Ok(Level::Integer(self.number(text, text)? as i64)),
        }
    }

    /// "cores*2", or "1..cores*2": 1, 2, 4, … and the end.
    fn numbers(&self, text: &str) -> Result<Vec<u64>, String> {
        let Some((from, to)) = text.split_once("..") else { return Ok(vec![self.number(text, text)?]) };
        let (from, to) = (self.number(from, text)?, self.number(to, text)?);
        if from > to {
            return Err(format!("\"{text}\": {from} to {to} is an empty range; {WANTED}"));
        }
        let mut all: Vec<u64> = std::iter::successors(Some(from), |n| Some(n * 2)).take_while(|n| *n < to).collect();
        all.push(to);
        Ok(all)
    }

    /// A number, "cores" or "cores*N"; `text` is the whole level, for the error.
    fn number(&self, part: &str, text: &str) -> Result<u64, String> {
        let part = part.trim();
        let number = match part.strip_prefix("cores").map(str::trim) {
            Some("") => Some(self.0),
            Some(times) => {
                times.strip_prefix('*').and_then(|n| n.trim().parse().ok()).and_then(|n| self.0.checked_mul(n))
            }
            None => part.parse().ok(),
        };
        number.filter(|n| (1..=MAX).contains(n)).ok_or_else(|| format!("\"{text}\": {WANTED}"))
    }
}

/// `None` if the level does not depend on the machine.
fn word<'a>(name: &str, level: &'a Level) -> Option<&'a str> {
    match level {
        Level::Text(text) if NUMBERS.contains(&name) && (text.contains("cores") || text.contains("..")) => Some(text),
        _ => None,
    }
}

fn each<T>(scaled: &mut Scaled<T>) -> Vec<&mut T> {
    match scaled {
        Scaled::Both(value) => vec![value],
        Scaled::Each { quick, standard, full } => [quick].into_iter().chain(standard).chain([full]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(n_cores: u64, levels: &[Level]) -> Result<Vec<i64>, String> {
        let levels = Cores(n_cores).list("threads", levels)?;
        Ok(levels.iter().map(|level| if let Level::Integer(n) = level { *n } else { panic!("{level}") }).collect())
    }

    fn word(text: &str) -> Level {
        Level::Text(text.to_owned())
    }

    #[test]
    fn a_range_has_the_powers_of_two_and_always_its_end() {
        for (n_cores, wanted) in
            [(1, vec![1, 2]), (2, vec![1, 2, 4]), (3, vec![1, 2, 4, 6]), (16, vec![1, 2, 4, 8, 16, 32])]
        {
            assert_eq!(list(n_cores, &[word("1..cores*2")]), Ok(wanted), "{n_cores} cores");
        }
        assert_eq!(list(8, &[word("3 .. cores")]), Ok(vec![3, 6, 8]));
        assert_eq!(list(8, &[word("8..8")]), Ok(vec![8]));
    }

    #[test]
    fn levels_that_are_equal_on_this_machine_are_merged() {
        assert_eq!(list(2, &[Level::Integer(1), word("cores"), Level::Integer(2), word("cores*2")]), Ok(vec![1, 2, 4]));
        assert_eq!(list(2, &[Level::Integer(1), Level::Integer(1)]), Ok(vec![1, 1]), "duplicates in the file stay");
    }

    #[test]
    fn unknown_words_are_refused_with_what_is_allowed() {
        for text in ["1..cpus", "cores*x", "cores+1", "cores*0", "0..cores", "1..", "cores*99999999999"] {
            assert_eq!(list(4, &[word(text)]).unwrap_err(), format!("\"{text}\": {WANTED}"));
        }
        let said = list(4, &[word("cores*2..cores")]).unwrap_err();
        assert_eq!(said, format!("\"cores*2..cores\": 8 to 4 is an empty range; {WANTED}"));
        let said = Cores(4).one("threads", &word("1..cores")).unwrap_err();
        assert_eq!(said, "\"1..cores\": only a factor can have a range; give one value");
    }

    #[test]
    fn names_are_unchanged() {
        let name = word("my..cores");
        assert_eq!(Cores(4).list("dataset", std::slice::from_ref(&name)), Ok(vec![name]));
        assert_eq!(Cores(4).one("threads", &word("auto")), Ok(word("auto")));
        assert_eq!(Cores(4).one("threads", &word("cores")), Ok(Level::Integer(4)));
    }
}
