//! What the figures of a study answer that ask one question: frontier, contention and interval.

use forebay_record::FigureKind;

use crate::run::Run;
use crate::{contention, frontier, interval};

/// One text per figure that answers a question, in the order of the study; figures without an answer have none.
pub(crate) fn answers(run: &Run<'_>) -> Vec<String> {
    let answer = |spec| {
        let spec: &forebay_record::FigureSpec = spec;
        match spec.kind {
            FigureKind::Frontier => frontier::of(run, spec).map(|found| found.said()),
            FigureKind::Contention => Some(contention::said(run, spec)),
            FigureKind::Interval => Some(interval::said(&interval::of(run, spec))),
            _ => None,
        }
    };
    run.spec().figures.iter().filter_map(answer).filter(|said| !said.is_empty()).collect()
}
