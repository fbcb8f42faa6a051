//! What every cell of every experiment has, whatever it measured.

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::check::Checked;
use crate::metric::{Measurement, Metric, MetricInfo};
use crate::{Disturbed, Levels, Medium, Step};

/// What tables say of a cell in words: column, heading, text.
pub type Remarks = Vec<(&'static str, &'static str, String)>;

/// A cell of one experiment, with the declaration of what can be asked of it.
pub trait Cell: Clone + PartialEq + Serialize + DeserializeOwned + 'static {
    /// The experiment.
    const STEP: Step;
    /// Its quantities, in the order in which tables show them.
    const METRICS: &'static [Metric<Self>];
    /// Levels that are named even where all cells of a record share them.
    const ALWAYS: &'static [&'static str] = &[];

    /// What tells it from other cells of its kind.
    fn levels(&self) -> Levels;

    /// The storage it read from, then the storage its checkpoints went to.
    fn media(&self) -> Vec<&Medium> {
        Vec::new()
    }

    /// Repeats that were kept.
    fn n_repeats(&self) -> usize {
        1
    }

    /// Half the range of the repeats over their median; `None` of a single one.
    fn spread(&self) -> Option<f64> {
        None
    }

    /// What other processes did to its repeats; `None` when nothing did.
    fn disturbed(&self) -> Option<Disturbed> {
        None
    }

    /// How much work its times are for; `None` where that does not vary.
    fn work(&self) -> Option<u64> {
        None
    }

    /// What tables say of it in words.
    fn remarks(&self) -> Remarks {
        Vec::new()
    }

    /// Compares every summary with the raw values beside it.
    #[doc(hidden)]
    fn check(&self) -> Checked;
}

/// A cell of whichever experiment.
pub trait AnyCell: Any {
    /// Its quantities that have a value.
    fn measurements(&self) -> Vec<(&'static MetricInfo, Measurement)>;
    /// One of them.
    fn metric(&self, name: &str) -> Option<Measurement>;
    #[allow(missing_docs)]
    fn levels(&self) -> Levels;
    #[allow(missing_docs)]
    fn media(&self) -> Vec<&Medium>;
    #[allow(missing_docs)]
    fn n_repeats(&self) -> usize;
    #[allow(missing_docs)]
    fn spread(&self) -> Option<f64>;
    #[allow(missing_docs)]
    fn disturbed(&self) -> Option<Disturbed>;
    #[allow(missing_docs)]
    fn work(&self) -> Option<u64>;
    #[allow(missing_docs)]
    fn remarks(&self) -> Remarks;
    #[doc(hidden)]
    fn check(&self) -> Checked;
}

impl<C: Cell> AnyCell for C {
    fn measurements(&self) -> Vec<(&'static MetricInfo, Measurement)> {
        C::METRICS.iter().filter_map(|metric| Some((&metric.info, metric.of(self)?))).collect()
    }

    fn metric(&self, name: &str) -> Option<Measurement> {
        C::METRICS.iter().find(|metric| metric.info.name == name)?.of(self)
    }

    fn levels(&self) -> Levels {
        Cell::levels(self)
    }

    fn media(&self) -> Vec<&Medium> {
        Cell::media(self)
    }

    fn n_repeats(&self) -> usize {
        Cell::n_repeats(self)
    }

    fn spread(&self) -> Option<f64> {
        Cell::spread(self)
    }

    fn disturbed(&self) -> Option<Disturbed> {
        Cell::disturbed(self)
    }

    fn work(&self) -> Option<u64> {
        Cell::work(self)
    }

    fn remarks(&self) -> Remarks {
        Cell::remarks(self)
    }

    fn check(&self) -> Checked {
        Cell::check(self)
    }
}
