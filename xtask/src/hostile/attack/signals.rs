//! Signals at every phase of a run that would take longer.

use std::time::Duration;

use super::SUBJECTS;
use crate::hostile::case::{Blow, Case, Deed};

const MOMENTS_MS: &[u64] = &[0, 2, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560];
const MOMENTS_SHORT_MS: &[u64] = &[10, 700];
const SIGNALS: &[&str] = &["INT", "TERM", "HUP", "PIPE", "KILL"];

pub fn cases(is_short: bool) -> Vec<Case> {
    let (moments, signals) = if is_short { (MOMENTS_SHORT_MS, &SIGNALS[..2]) } else { (MOMENTS_MS, SIGNALS) };
    let mut cases = Vec::new();
    for subject in SUBJECTS {
        let Some(line) = subject.long else { continue };
        for signal in signals {
            for after in moments {
                let mut case = Case::new(subject, format!("SIG{signal} after {after} ms"));
                case.line = line.to_owned();
                case.blow = Some(Blow { deed: Deed::Signal(signal), after: Duration::from_millis(*after) });
                case.limit = Duration::from_secs(30);
                cases.push(case);
            }
        }
    }
    cases
}
