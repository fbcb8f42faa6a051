//! A study: what was planned, and every cell that was measured.
//!
//! A study's record is a file of JSON lines: the [`StudyHead`], then a [`StudyCell`] for every finished combination, in running
//! order. A line is appended whole or, if the program was killed, torn; [`StudyRun::from_jsonl`] skips a torn last line and returns
//! the length of the intact part.

mod cell;
mod reference;
mod run;
mod spec;
mod written;

pub use cell::StudyCell;
pub use reference::Reference;
pub use run::{StudyHead, StudyLine, StudyResumed, StudyRun, TierNote};
pub use spec::{
    DatasetSpec, Design, ExperimentSpec, FigureKind, FigureSpec, Level, Levels, Rule, Scale, Scaled, Step, StepPoint,
    StudySpec, TierSpec, WorkloadSpec,
};
