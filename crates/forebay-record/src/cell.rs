//! What all cells have, whatever they measured.

use std::any::Any;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::check::Checked;
use crate::metric::{Measurement, Metric, MetricInfo};
use crate::{Disturbed, Levels, Medium, Step};

/// Text columns of tables: name, heading, text.
pub type Remarks = Vec<(&'static str, &'static str, String)>;

/// A cell of one experiment, with its metrics and levels.
pub trait Cell: Clone + PartialEq + Serialize + DeserializeOwned + 'static {
    /// The experiment whose records hold such cells.
    const STEP: Step;
    /// In the order of tables.
    const METRICS: &'static [Metric<Self>];
    /// Levels shown even if all cells of a record share them.
    const ALWAYS: &'static [&'static str] = &[];

    /// What distinguishes it from other cells of its kind.
    fn levels(&self) -> Levels;

    /// The storage it read from, then the storage its checkpoints went to.
    fn media(&self) -> Vec<&Medium> {
        Vec::new()
    }

    /// Kept repeats, without warm-ups.
    fn n_repeats(&self) -> usize {
        1
    }

    /// Half the range of the repeats over their median; `None` for a single one.
    fn spread(&self) -> Option<f64> {
        None
    }

    /// Repeats that other processes disturbed; `None` if none was.
    fn disturbed(&self) -> Option<Disturbed> {
        None
    }

    /// Amount of work behind its times; `None` if it does not vary.
    fn work(&self) -> Option<u64> {
        None
    }

    /// Text columns for tables.
    fn remarks(&self) -> Remarks {
        Vec::new()
    }

    /// Compares every summary with the raw values beside it.
    #[doc(hidden)]
    fn check(&self) -> Checked;
}

/// A cell of any experiment.
pub trait AnyCell: Any {
    /// The metrics that have a value.
    fn measurements(&self) -> Vec<(&'static MetricInfo, Measurement)>;
    /// `None` if the experiment has no such metric, or the cell no value for it.
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
