//! The order of cells: as the study file names its experiments and levels, whatever the order in which they were run.

use std::cmp::Ordering;
use std::collections::HashMap;

use forebay_record::{Level, StudyCell};

use crate::level;
use crate::run::Run;

#[derive(Debug)]
pub(crate) struct Order<'a> {
    experiments: HashMap<&'a str, usize>,
    /// By experiment and factor; without an experiment, all of the study's in a row.
    levels: HashMap<(Option<&'a str>, &'a str), HashMap<String, usize>>,
}

impl<'a> Order<'a> {
    pub(crate) fn of(run: &'a Run<'a>) -> Self {
        let (spec, scale) = (run.spec(), run.head().scale);
        let experiments = spec.experiments.iter().enumerate().map(|(i, experiment)| (experiment.name.as_str(), i));
        let mut levels: HashMap<(Option<&str>, &str), HashMap<String, usize>> = HashMap::new();
        let all =
            spec.experiments.iter().flat_map(|of| of.factors.iter().map(move |factor| (of.name.as_str(), factor)));
        for (experiment, (factor, named)) in all {
            for of in [Some(experiment), None] {
                let ranks = levels.entry((of, factor)).or_default();
                for level in named.at(scale) {
                    let next = ranks.len();
                    ranks.entry(level.to_string()).or_insert(next);
                }
            }
        }
        Self { experiments: experiments.collect(), levels }
    }

    /// The place of a level among those of its factor in an experiment, or in the study; after all others when that does
    /// not name it.
    pub(crate) fn rank(&self, experiment: Option<&str>, factor: &str, level: &Level) -> usize {
        let ranks = self.levels.get(&(experiment, factor));
        ranks.and_then(|ranks| ranks.get(&level.to_string())).copied().unwrap_or(usize::MAX)
    }

    /// By experiment, then by the levels: places first, threads last.
    pub(crate) fn compare(&self, a: &StudyCell, b: &StudyCell) -> Ordering {
        let experiment =
            |cell: &StudyCell| self.experiments.get(cell.experiment.as_str()).copied().unwrap_or(usize::MAX);
        let mut order = experiment(a).cmp(&experiment(b)).then_with(|| a.experiment.cmp(&b.experiment));
        let mut factors: Vec<&String> = a.factors.keys().collect();
        factors.sort_by_key(|factor| level::place(factor));
        for factor in factors {
            order = order.then_with(|| match (a.level(factor), b.level(factor)) {
                (Some(x), Some(y)) => {
                    let rank = |level: &Level| self.rank(Some(&a.experiment), factor, level);
                    rank(x).cmp(&rank(y)).then_with(|| level::order(x, y))
                }
                (x, y) => x.is_none().cmp(&y.is_none()),
            });
        }
        order
    }
}
