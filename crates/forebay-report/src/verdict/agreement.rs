//! Ours beside what was published: how many values agree, and why single ones do or do not.
//!
//! A value that the emulation was built from says nothing about the source's finding. It is counted apart.

use crate::number::listed;
use crate::published::{Agreement, Published};

/// Sentences of the study on single values.
const MAX_EXPLAINED: usize = 8;
const MAX_NAMED: usize = 3;

/// Each published value once, with its agreement; one that differs in any cell differs.
fn each_once<'a>(published: &'a [Published<'a>]) -> Vec<(&'a Published<'a>, Agreement)> {
    let mut rows: Vec<(&Published<'_>, Agreement)> = Vec::new();
    for row in published {
        let is_worse = [Agreement::Differs, Agreement::Missed].contains(&row.agreement());
        match rows.iter_mut().find(|(known, _)| std::ptr::eq(known.reference, row.reference)) {
            Some(known) if is_worse => *known = (row, row.agreement()),
            Some(_) => {}
            None => rows.push((row, row.agreement())),
        }
    }
    rows
}

/// Why single values agree or differ, where the study says so.
pub(super) fn explained(published: &[Published<'_>]) -> Vec<String> {
    let mut said: Vec<String> = each_once(published).into_iter().filter_map(|(row, _)| row.explained()).collect();
    said.truncate(MAX_EXPLAINED);
    said
}

/// How many published values agree, of those that could have come out otherwise.
pub(super) fn agreement(published: &[Published<'_>]) -> Option<String> {
    let rows = each_once(published);
    let n = |wanted: Agreement| rows.iter().filter(|(_, agreement)| *agreement == wanted).count();
    let judged = n(Agreement::Agrees) + n(Agreement::Differs);
    if rows.is_empty() {
        return None;
    }
    let calibrated = calibrated(&rows);
    let free = if calibrated.is_some() { " and is not calibrated" } else { "" };
    let mut text = match (judged, n(Agreement::Agrees)) {
        (0, _) if calibrated.is_some() => "No published value could be judged that is not calibrated".to_owned(),
        (0, _) => "No published value could be judged".to_owned(),
        (1, 1) => format!("The one published value that was judged{free} agrees within its tolerance"),
        (1, _) => format!("The one published value that was judged{free} differs: "),
        (_, agree) if calibrated.is_some() => {
            format!(
                "{agree} of {judged} published values that could have come out otherwise agree within their tolerance"
            )
        }
        (_, agree) => format!("{agree} of {judged} published values agree within their tolerance"),
    };
    let apart = named(&rows, Agreement::Differs);
    if !apart.is_empty() {
        text.push_str(match n(Agreement::Differs) {
            _ if judged == 1 => "",
            1 => "; this one differs: ",
            _ => "; these differ: ",
        });
        text.push_str(&apart);
    }
    for (wanted, word) in [
        (Agreement::NotJudged, "not judged"),
        (Agreement::NotMeasured, "not measured"),
        (Agreement::Disturbed, "disturbed"),
        (Agreement::CannotTell, "measured once (inconclusive)"),
    ] {
        if n(wanted) > 0 {
            text.push_str(&format!("; {} {word}", n(wanted)));
        }
    }
    text.push('.');
    text.extend(calibrated);
    if published.len() != rows.len() {
        text.push_str(&format!(
            " The table has {} rows, one for each cell that is compared with a value.",
            published.len()
        ));
    }
    Some(text)
}

/// The sentence on values that the emulation was built from.
fn calibrated(rows: &[(&Published<'_>, Agreement)]) -> Option<String> {
    let n = |wanted: Agreement| rows.iter().filter(|(_, agreement)| *agreement == wanted).count();
    let (reached, missed) = (n(Agreement::Calibrated), n(Agreement::Missed));
    let (is, follow) = if reached + missed == 1 { ("is", "value follows") } else { ("are", "values follow") };
    let missed_ones = match missed {
        0 => String::new(),
        1 => format!("; this one was not reached: {}", named(rows, Agreement::Missed)),
        _ => format!("; these were not reached: {}", named(rows, Agreement::Missed)),
    };
    (reached + missed > 0).then(|| {
        format!(
            " {} {is} calibrated: our {follow} from what the emulation was given and prove nothing{missed_ones}.",
            reached + missed
        )
    })
}

/// The first of those with an agreement: "hdd (speed-up: 1.2× against 1.65×)".
fn named(rows: &[(&Published<'_>, Agreement)], wanted: Agreement) -> String {
    let all: Vec<String> =
        rows.iter().filter(|(_, agreement)| *agreement == wanted).map(|(row, _)| apart(row)).collect();
    let more = all.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    listed(&all[..all.len().min(MAX_NAMED)]) + &more
}

fn apart(row: &Published<'_>) -> String {
    let metric = &row.reference.metric;
    let ours = row.ours.map_or("–".to_owned(), crate::metric::show(metric));
    format!("{} ({}: {ours} against {})", row.name, crate::metric::name(metric), row.theirs())
}
