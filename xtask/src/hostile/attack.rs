//! What is done to the subjects, one file an attack.

mod disks;
mod environment;
mod foreign;
mod limits;
mod outputs;
mod signals;
mod vanish;

use forebay_testing::Reason;

use super::case::Case;
use super::subject::{SUBJECTS, Subject};
use crate::system::is_root;

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
    pub fn impossible(self) -> Option<Reason> {
        let needs_root = matches!(self, Self::Disks);
        (needs_root && !is_root()).then_some(Reason::NoKernelTier)
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

/// Subjects that read image data.
fn readers() -> impl Iterator<Item = &'static Subject> {
    SUBJECTS.iter().filter(|subject| subject.reads.contains(&"photos"))
}
