//! The versioned result of a run: command, environment, raw samples.
//!
//! Running and reporting meet only here: experiments write a [`Record`], reports read one, also one of an older version. Raw repeats are
//! kept; the medians beside them can be derived again.
//!
//! What `forebay data` finds in a dataset ([`Inspection`], [`Verification`]) is here for the same reason.
//!
//! It is plain data and does no I/O. An unknown quantity is `None`, never a stand-in number.
//!
//! ```
//! use forebay_record::{Record, IngestCell};
//!
//! let text = r#"{"schema": "forebay-record/2", "command": "ingest", "cells": []}"#;
//! let record: Record<IngestCell> = Record::from_json(text)?;
//! assert_eq!(record.command, "ingest");
//! # Ok::<(), forebay_record::Error>(())
//! ```

// The comments of the record's types become docs/reference/record.md and the JSON schema: a missing one is a gap in that page.
#![warn(missing_docs)]

mod any;
mod cause;
mod cell;
mod check;
mod checkpoint;
mod checkpoint_place;
mod csv;
mod dataset;
mod disturbed;
mod environment;
mod ingest;
mod level;
mod lever;
mod measured;
mod medium;
mod metric;
mod probe;
#[cfg(feature = "schema")]
mod schema;
mod series;
mod study;
mod trace;
mod train;
mod tuning;
mod upgrade;
mod words;
mod workload;

use serde::{Deserialize, Serialize};

pub use any::AnyRecord;
pub use cause::{ByCause, Cause};
pub use cell::{AnyCell, Cell, Remarks};
pub use check::{Checked, Wrong};
pub use checkpoint::{
    CheckpointCell, CheckpointSample, InjectedFailures, SaveFate, TierTraffic, TrainCheckpoint, TrainCheckpoints,
    TrainFailure,
};
pub use checkpoint_place::CheckpointPlace;
pub use csv::{CsvLines, Row};
pub use dataset::{Bucket, Class, Fault, Form, Inspection, Verification};
pub use disturbed::{Disturbed, Taken};
pub use environment::Environment;
pub use ingest::{Failure, IngestCell, IngestRepeat, TriedThreads};
pub use lever::{Change, Lever, Limit, Rates};
pub use measured::{Measured, SPEED_UP, STALL_SPEED_UP, metric_info};
pub use medium::{CacheEvidence, CacheState, Medium, TierKind};
pub use metric::{Better, Measurement, Metric, MetricInfo, Unit};
pub use probe::{Engine, Latency, LatencyBucket, ProbeCell, ProbeMode, ProbeRepeat};
#[cfg(feature = "schema")]
pub use schema::{json_schema, study_schema};
pub use series::{Column, Mark, Reads, Series};
pub use study::{
    DatasetSpec, Design, ExperimentSpec, FigureKind, FigureSpec, Level, Levels, Reference, Rule, Scale, Scaled, Step,
    StepPoint, StudyCell, StudyHead, StudyLine, StudyResumed, StudyRun, StudySpec, TierNote, TierSpec, WorkloadSpec,
};
pub use trace::{
    TraceBytes, TraceCell, TraceFetch, TraceFile, TraceOperation, TracePhase, TraceProcess, TraceRule, TraceSave,
    TraceSize, TraceTotals,
};
pub use train::{
    Baseline, Epoch, Feed, NEED_ACCELERATORS, TrainCell, TrainRank, TrainStep, TrainTotals, Validation, au_dlio,
};
pub use tuning::{Tuning, TuningEnd, TuningOutcome};
pub use words::{WORDS, Word};
pub use workload::{Judged, Quantiles, WorkloadCell, WorkloadEpoch, WorkloadRank, WorkloadSave, WorkloadTotals};

/// The schema written now. Its number goes up when a field changes its meaning or is removed; new fields do not change it.
pub const SCHEMA: &str = "forebay-record/2";

/// A text that is not a readable record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not JSON at all.
    #[error("not a record")]
    Json(#[from] serde_json::Error),
    /// JSON of a record, but not with the expected fields.
    #[error("this record has other fields than this version reads; it may come from another version")]
    Fields(#[source] serde_json::Error),
    /// A record of an unknown version.
    #[error("this record has the schema {found:?}; this version reads \"{SCHEMA}\"")]
    Schema {
        /// As in the record.
        found: String,
    },
    /// A record of another command.
    #[error("this is a record of {found:?}, not of \"{expected}\"")]
    Command {
        /// As in the record.
        found: String,
        /// What the caller wanted to read.
        expected: &'static str,
    },
    /// A damaged line in a study's record.
    #[error("line {line} of the record, at byte {offset}, is damaged: {reason}")]
    Line {
        /// Line of the record, from 1.
        line: usize,
        /// Byte at which the line begins.
        offset: usize,
        /// From the JSON parser.
        reason: String,
    },
    /// A summary contradicts the raw values beside it.
    #[error(
        "cell {}: summary disagrees with its raw values: {} {written}, {from} {derived}",
        cell.escape_debug(),
        field.escape_debug()
    )]
    Disagrees {
        /// Id of the cell, or its index.
        cell: Box<str>,
        /// Name of the summary in the record.
        field: Box<str>,
        /// Value in the record.
        written: Box<str>,
        /// Value that the raw values give.
        derived: Box<str>,
        /// Which raw values, with a verb: "repeats give".
        from: &'static str,
    },
    /// A text that is not the CSV of a series.
    #[error("line {line} of the CSV: {what}")]
    Csv {
        /// Line of the text, from 1.
        line: usize,
        /// The rule that the line breaks.
        what: &'static str,
    },
}

/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetNote {
    /// Dataset path as the user gave it, escaped.
    pub path: String,
    /// Packing of the samples: "files", "tfrecord", "tar" or "tensor".
    pub packing: String,
    /// Samples found by listing; some may have failed when read.
    pub n_samples: u64,
    /// Number of files or shards.
    pub n_files: u64,
}

/// The result of one run of one command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(bound = "C: Cell + schemars::JsonSchema"))]
#[serde(bound = "C: Cell")]
pub struct Record<C> {
    /// Name and version of the record format.
    pub schema: String,
    /// Command that wrote the record: "ingest", "probe", "train", "checkpoint", "workload" or "trace".
    pub command: String,
    /// Command line of the run, one word per entry.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// Machine and forebay version.
    #[serde(default)]
    pub environment: Environment,
    /// Dataset that was read.
    #[serde(default)]
    pub dataset: DatasetNote,
    /// One entry per combination of settings that was measured.
    pub cells: Vec<C>,
    /// Remarks that limit what the numbers mean: interruptions, damage, anything that could not be verified.
    #[serde(default)]
    pub notes: Vec<String>,
    /// System activity during the run, sampled at a fixed interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<Series>,
}

impl<C: Cell> Record<C> {
    /// An empty record of the cell's command.
    pub fn new(command_line: Vec<String>, environment: Environment) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            command: C::STEP.name().to_owned(),
            command_line,
            environment,
            dataset: DatasetNote::default(),
            cells: Vec::new(),
            notes: Vec::new(),
            series: None,
        }
    }

    /// One object over several lines.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self)
            .expect("a record has no keys but strings and no number that JSON cannot hold")
    }

    /// # Errors
    /// When the text is not a record, or one of an unknown schema or another command.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
            command: String,
        }
        let head: Head = serde_json::from_str(text)?;
        if !upgrade::is_known(&head.schema) {
            return Err(Error::Schema { found: head.schema });
        }
        if head.command != C::STEP.name() {
            return Err(Error::Command { found: head.command, expected: C::STEP.name() });
        }
        upgrade::from_record(&head.schema, C::STEP, text)
            .map_err(|error| if error.is_data() { Error::Fields(error) } else { Error::Json(error) })
    }
}
