//! What is done to the subjects, one file an attack.

mod disks;
mod environment;
mod foreign;
mod limits;
mod outputs;
mod signals;
mod vanish;

use std::process::Command;

use super::case::Case;
use super::subject::{SUBJECTS, Subject};
use crate::shell::output;

/// A kind of hostile use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attack {
    Limits,
    Disks,
    Foreign,
    Outputs,
    Environment,
    Signals,
    Vanish,
}

impl Attack {
    pub const ALL: [Self; 7] =
        [Self::Limits, Self::Disks, Self::Foreign, Self::Outputs, Self::Environment, Self::Signals, Self::Vanish];

    pub fn name(self) -> &'static str {
        match self {
            Self::Limits => "limits",
            Self::Disks => "disks",
            Self::Foreign => "foreign",
            Self::Outputs => "outputs",
            Self::Environment => "environment",
            Self::Signals => "signals",
            Self::Vanish => "vanish",
        }
    }

    /// Why it cannot be run on this machine.
    pub fn impossible(self) -> Option<&'static str> {
        let needs_root = matches!(self, Self::Disks);
        (needs_root && !is_root()).then_some("no root")
    }

    /// Its cases; the short form has a few of each kind.
    pub fn cases(self, is_short: bool) -> Vec<Case> {
        match self {
            Self::Limits => limits::cases(is_short),
            Self::Disks => disks::cases(is_short),
            Self::Foreign => foreign::cases(is_short),
            Self::Outputs => outputs::cases(is_short),
            Self::Environment => environment::cases(is_short),
            Self::Signals => signals::cases(is_short),
            Self::Vanish => vanish::cases(is_short),
        }
    }
}

/// Whether limits on processes and rights hold for somebody else only.
fn is_root() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Subjects that read image data.
fn readers() -> impl Iterator<Item = &'static Subject> {
    SUBJECTS.iter().filter(|subject| subject.reads.contains(&"photos"))
}
