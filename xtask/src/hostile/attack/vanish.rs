//! Data that is removed while it is read.

use std::time::Duration;

use super::readers;
use crate::hostile::case::{Blow, Case, Deed};

const MOMENTS_MS: &[u64] = &[0, 10, 20, 40, 80, 160, 320, 640];
const MOMENTS_SHORT_MS: &[u64] = &[20, 150];

pub fn cases(is_short: bool) -> Vec<Case> {
    let moments = if is_short { MOMENTS_SHORT_MS } else { MOMENTS_MS };
    let mut cases = Vec::new();
    for subject in readers() {
        for after in moments {
            let mut case = Case::new(subject, format!("all files removed after {after} ms"));
            // Long enough to be in the midst of it, short enough to end by itself.
            case.line = case.line.replace("--repeats 1 ", "--repeats 40 ").replace("--steps 4 ", "--steps 300 ");
            case.blow = Some(Blow { deed: Deed::Remove("photos"), after: Duration::from_millis(*after) });
            cases.push(case);
        }
    }
    cases
}
