//! Records whose command is not known before they are read.

use serde::Deserialize;

use crate::{
    CheckpointCell, DatasetNote, Error, IngestCell, ProbeCell, Record, StudyRun, TraceCell, TrainCell, WorkloadCell,
};

/// A record whose command is known only after reading it.
#[derive(Debug, Clone, PartialEq)]
pub enum AnyRecord {
    /// Written by `forebay ingest --json`.
    Ingest(Record<IngestCell>),
    /// Written by `forebay probe --json`.
    Probe(Record<ProbeCell>),
    /// Written by `forebay train --json`.
    Train(Record<TrainCell>),
    /// Written by `forebay checkpoint bench --json`.
    Checkpoint(Record<CheckpointCell>),
    /// Written by `forebay workload run --json`.
    Workload(Record<WorkloadCell>),
    /// Written by `forebay trace` into its folder.
    Trace(Record<TraceCell>),
    /// The `record.jsonl` of `forebay study run`.
    Study(Box<StudyRun>),
}

impl AnyRecord {
    /// Reads a JSON object, or the JSON lines of a study.
    ///
    /// # Errors
    /// When the text is not a record, or one of an unknown schema or command.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Head {
            command: String,
        }
        let first_line = text.lines().next().unwrap_or_default();
        let head: Head = serde_json::from_str(first_line).or_else(|_| serde_json::from_str(text))?;
        match head.command.as_str() {
            "ingest" => Record::from_json(text).map(Self::Ingest),
            "probe" => Record::from_json(text).map(Self::Probe),
            "train" => Record::from_json(text).map(Self::Train),
            "checkpoint" => Record::from_json(text).map(Self::Checkpoint),
            "workload" => Record::from_json(text).map(Self::Workload),
            "trace" => Record::from_json(text).map(Self::Trace),
            "study" => StudyRun::from_jsonl(text).map(|(run, _)| Self::Study(Box::new(run))),
            _ => Err(Error::Command {
                found: head.command,
                expected: "ingest, probe, train, checkpoint, workload, trace or study",
            }),
        }
    }
}

impl AnyRecord {
    /// `None` for a study, which names its datasets itself.
    pub fn dataset(&self) -> Option<&DatasetNote> {
        match self {
            Self::Ingest(record) => Some(&record.dataset),
            Self::Probe(record) => Some(&record.dataset),
            Self::Train(record) => Some(&record.dataset),
            Self::Checkpoint(record) => Some(&record.dataset),
            Self::Workload(record) => Some(&record.dataset),
            Self::Trace(record) => Some(&record.dataset),
            Self::Study(_) => None,
        }
    }
}

macro_rules! from_record {
    ($($variant:ident: $cell:ty),*) => {$(
        impl From<Record<$cell>> for AnyRecord {
            fn from(record: Record<$cell>) -> Self {
                Self::$variant(record)
            }
        }
    )*};
}

from_record!(
    Ingest: IngestCell,
    Probe: ProbeCell,
    Train: TrainCell,
    Checkpoint: CheckpointCell,
    Workload: WorkloadCell,
    Trace: TraceCell
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_other_fields_may_come_from_another_version() {
        let text = r#"{"schema": "forebay-record/1", "command": "train", "cells": [{"model": null}]}"#;
        let error = AnyRecord::from_text(text).unwrap_err();
        assert!(matches!(error, Error::Fields(_)), "{error:?}");
        assert!(error.to_string().ends_with("it may come from another version"), "{error}");
        let torn = AnyRecord::from_text(&text[..text.len() - 2]).unwrap_err();
        assert!(matches!(torn, Error::Json(_)), "{torn:?}");
    }
}
