//! A study: what was planned, and every cell that was measured.
//!
//! A study's record is a file of JSON lines. The first is the [`StudyHead`], then comes a [`StudyCell`] for every
//! combination when it is done, in the order in which they were run. A line is appended whole or, when the program was
//! killed in the middle, torn; [`StudyRun::from_jsonl`] leaves a torn last line out and says how long the sound part is.

mod cell;
mod run;
mod spec;
mod written;

pub use cell::StudyCell;
pub use run::{StudyHead, StudyLine, StudyResumed, StudyRun, TierNote};
pub use spec::{
    DatasetSpec, Design, ExperimentSpec, FigureKind, FigureSpec, Level, Levels, Reference, Rule, Scale, Scaled, Step,
    StudySpec, TierSpec, WorkloadSpec,
};
