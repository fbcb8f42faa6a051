//! The result of a cell of a study, of any experiment.

use std::any::Any;

use serde::{Deserialize, Serialize};

use crate::cell::{AnyCell, Cell};
use crate::metric::{Better, Measurement, Metric, MetricInfo, Unit};
use crate::probe::BEST;
use crate::{CheckpointCell, IngestCell, Inspection, ProbeCell, Step, TraceCell, TrainCell, WorkloadCell};

/// Ratio of a metric to its value at the first level.
pub const SPEED_UP: MetricInfo = MetricInfo::derived("speed_up", "speed-up", Unit::Times, Better::Higher);
/// How many times shorter a checkpoint's stall is than that of a direct save to the same tier.
pub const STALL_SPEED_UP: MetricInfo =
    MetricInfo::derived("stall_speed_up", "stall, times shorter than direct", Unit::Times, Better::Higher);

/// The result of a cell, keyed by its experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Measured {
    Ingest(Box<IngestCell>),
    /// One entry per mode, size and depth.
    Probe(Vec<ProbeCell>),
    Train(Box<TrainCell>),
    Checkpoint(Box<CheckpointCell>),
    Workload(Box<WorkloadCell>),
    Trace(Box<TraceCell>),
    Inspect(Box<Inspection>),
}

impl Measured {
    /// One cell, except for a probe, which may have several.
    pub fn cells(&self) -> Vec<&dyn AnyCell> {
        match self {
            Self::Ingest(cell) => vec![&**cell],
            Self::Probe(cells) => cells.iter().map(|cell| cell as &dyn AnyCell).collect(),
            Self::Train(cell) => vec![&**cell],
            Self::Checkpoint(cell) => vec![&**cell],
            Self::Workload(cell) => vec![&**cell],
            Self::Trace(cell) => vec![&**cell],
            Self::Inspect(cell) => vec![&**cell],
        }
    }

    /// All cells if they are of this experiment, otherwise none.
    pub fn of<C: Cell>(&self) -> impl Iterator<Item = &C> {
        self.cells().into_iter().filter_map(|cell| (cell as &dyn Any).downcast_ref())
    }

    /// Metrics for the summary line of a cell.
    pub fn headlines(&self) -> Vec<(&'static MetricInfo, Measurement)> {
        let all = match self {
            Self::Probe(cells) => BEST.iter().filter_map(|best| Some((&best.info, best.of(cells)?))).collect(),
            other => other.cells().first().map(|cell| cell.measurements()).unwrap_or_default(),
        };
        all.into_iter().filter(|(info, _)| info.is_headline).collect()
    }

    /// Of a probe with several cells, the best value.
    pub fn metric(&self, name: &str) -> Option<Measurement> {
        match self {
            Self::Probe(cells) if cells.len() != 1 || BEST.iter().any(|best| best.info.name == name) => {
                BEST.iter().find(|best| best.info.name == name)?.of(cells)
            }
            other => other.cells().first()?.metric(name),
        }
    }
}

macro_rules! from_cell {
    ($($variant:ident: $cell:ty),*) => {$(
        impl From<$cell> for Measured {
            fn from(cell: $cell) -> Self {
                Self::$variant(Box::new(cell))
            }
        }
    )*};
}

from_cell!(Ingest: IngestCell, Train: TrainCell, Checkpoint: CheckpointCell, Workload: WorkloadCell, Trace: TraceCell, Inspect: Inspection);

impl From<ProbeCell> for Measured {
    fn from(cell: ProbeCell) -> Self {
        Self::Probe(vec![cell])
    }
}

impl Step {
    /// Every metric that a study may refer to, including those that compare cells.
    pub fn metrics(self) -> Vec<&'static MetricInfo> {
        fn infos<C: ?Sized>(metrics: &'static [Metric<C>]) -> Vec<&'static MetricInfo> {
            metrics.iter().map(|metric| &metric.info).collect()
        }
        let mut known = match self {
            Self::Ingest => infos(IngestCell::METRICS),
            Self::Probe => infos(BEST),
            Self::Train => infos(TrainCell::METRICS),
            Self::Checkpoint => infos(CheckpointCell::METRICS),
            Self::Workload => infos(WorkloadCell::METRICS),
            Self::Trace => return infos(TraceCell::METRICS),
            Self::Inspect => return infos(Inspection::METRICS),
        };
        known.push(&SPEED_UP);
        known.extend(known.iter().any(|info| info.name == TrainCell::STALL_S.info.name).then_some(&STALL_SPEED_UP));
        known
    }
}

/// The first experiment that has the metric.
pub fn metric_info(name: &str) -> Option<&'static MetricInfo> {
    let singles = ProbeCell::METRICS.iter().map(|metric| &metric.info);
    Step::ALL.into_iter().flat_map(Step::metrics).chain(singles).find(|info| info.name == name)
}
