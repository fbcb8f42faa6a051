//! The answer first, in words: what limits the rate, how it scales, whether it agrees with what was published, and what
//! keeps one from trusting it blindly.
//!
//! Rules over the record make every sentence; where the record does not hold what a sentence needs, it is not said.

mod agreement;
mod alike;
mod caveat;
mod checkpoint;
mod probe;
mod trace;
mod train;
mod workload;

pub(crate) use checkpoint::shorter as shorter_stalls;
pub(crate) use train::limit_name;
pub(crate) use workload::of_group as of_processes;

use forebay_record::{CheckpointCell, IngestCell, Inspection, ProbeCell, SPEED_UP, StudyCell, TrainCell, WorkloadCell};
use forebay_units::count;

use crate::answer;
use crate::limit::{Limit, Place, places};
use crate::number::{capital, given, listed, percent, quantity, times};
use crate::published::{self, Published};
use crate::run::Run;
use crate::tuned;

const MAX_PLACES: usize = 4;

/// A rate beyond its ceiling by more than repeats vary shows that the ceiling was measured too low.
const ABOVE_CEILING: f64 = 1.1;

/// Repeats that vary by more than this leave open which cell is the best.
const FAR_APART: f64 = 0.20;

#[derive(Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Verdict {
    pub(crate) headline: String,
    pub(crate) findings: Vec<String>,
    pub(crate) caveats: Vec<String>,
}

/// The verdict on a run: sentences rest on what nothing disturbed, and caveats are of all of it.
pub(crate) fn verdict(run: &Run<'_>, published: &[Published<'_>]) -> Verdict {
    let Some(sound) = run.sound() else { return judged(run, run, (published, published)) };
    judged(run, &sound, (published, &published::published(&sound)))
}

fn judged(whole: &Run<'_>, run: &Run<'_>, (all, published): (&[Published<'_>], &[Published<'_>])) -> Verdict {
    let places = places(run);
    let mut findings = Vec::new();
    findings.extend(fastest(run, &places));
    findings.extend(scaling(&places, published));
    findings.extend(decoding(run, &places));
    findings.extend(ceilings(&places));
    findings.extend(answer::answers(run));
    findings.extend(tuned::findings(whole));
    findings.extend(train::findings(run));
    findings.extend(checkpoint::findings(run, published));
    findings.extend(workload::findings(run));
    findings.extend(trace::findings(run));
    let others = run.cells_of::<TrainCell>().next().is_some()
        || run.cells_of::<CheckpointCell>().next().is_some()
        || run.cells_of::<WorkloadCell>().next().is_some();
    findings.extend(probe::findings(run, places.is_empty() && !others));
    findings.extend(agreement::explained(published));
    findings.extend(agreement::agreement(all));
    Verdict { headline: headline(whole, run, &places), findings, caveats: caveat::caveats(whole, &places) }
}

fn headline(whole: &Run<'_>, run: &Run<'_>, places: &[Place<'_>]) -> String {
    let cells = &whole.study.cells;
    if cells.is_empty() {
        return "Nothing was measured.".to_owned();
    }
    if cells.iter().all(|cell| cell.left_out.is_some()) {
        return "Every cell was left out: there is no result.".to_owned();
    }
    if cells.iter().all(|cell| cell.error.is_some()) {
        return "Every cell failed: there is no result.".to_owned();
    }
    // Also of disturbed runs, which it names: a path without some of its runs is none.
    if let Some(said) = tuned::headline(whole) {
        return said;
    }
    if run.study.cells.iter().all(|cell| !cell.is_measured()) {
        return match cells.len() {
            1 => "Other processes used the machine meanwhile: no conclusion. Run it again when it is quiet.".to_owned(),
            _ => {
                "Other processes disturbed every measured cell: no conclusion. Run it again when the machine is quiet."
                    .to_owned()
            }
        };
    }
    if let Some(answer) = answer::answers(run).first() {
        return answer.split_inclusive(". ").next().unwrap_or(answer).trim_end().to_owned();
    }
    if places.is_empty() {
        let said = trace::headline(run)
            .or_else(|| workload::headline(run))
            .or_else(|| train::headline(run))
            .or_else(|| checkpoint::headline(run));
        if let Some(said) = said.or_else(|| inspected(run)) {
            return said;
        }
        return probe::headline(run).unwrap_or("No measurement supports a conclusion.".to_owned());
    }
    let decoding: Vec<&Place<'_>> = places.iter().filter(|place| !place.read_only).collect();
    let said = if decoding.is_empty() { of_reading(places) } else { of_decoding(&decoding) };
    [Some(said), train::of_prefetch(run), checkpoint::brief(run)].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// What a dataset holds, where nothing else was measured.
fn inspected(run: &Run<'_>) -> Option<String> {
    if run.cells_of::<ProbeCell>().next().is_some() {
        return None;
    }
    let found = run
        .study
        .cells
        .iter()
        .filter(|cell| cell.error.is_none())
        .find_map(|cell| cell.measured_one::<Inspection>())?;
    let size = found.sizes.as_ref().map(|sizes| crate::number::bytes(sizes.median.round() as u64));
    let size = size.map(|size| format!("; their median size is {size}")).unwrap_or_default();
    Some(format!("{} hold {}{size}.", count(found.n_samples, "sample"), found.total_bytes))
}

fn of_decoding(places: &[&Place<'_>]) -> String {
    let named = |limit: Limit| -> Vec<String> {
        let mut names: Vec<String> =
            places.iter().filter(|place| place.limit == limit).map(|place| place.name.clone()).collect();
        names.dedup();
        names
    };
    let (storage, decoding, both) = (named(Limit::Storage), named(Limit::Decoding), named(Limit::Both));
    let requests = named(Limit::Requests);
    if !requests.is_empty() && storage.is_empty() && decoding.is_empty() && both.is_empty() {
        return "Too few requests in flight are the limit, not the storage: more threads would read faster.".to_owned();
    }
    match (storage.is_empty() && requests.is_empty(), decoding.is_empty(), both.is_empty() && requests.is_empty()) {
        (false, true, true) => "Storage is the limit: the workers spend most of their time reading.".to_owned(),
        (true, false, true) => "Decoding is the limit, not storage.".to_owned(),
        (true, true, false) => "Storage and decoding limit the rate equally.".to_owned(),
        (true, true, true) => "This record does not show what limits the rate.".to_owned(),
        _ => {
            let mut parts = Vec::new();
            for (names, what) in [
                (storage, "storage limits"),
                (requests, "too few requests in flight limit"),
                (decoding, "decoding limits"),
                (both, "storage and decoding together limit"),
            ] {
                if !names.is_empty() {
                    parts.push(format!("{what} {}", few(&names)));
                }
            }
            capital(&parts.join("; ")) + "."
        }
    }
}

fn of_reading(places: &[Place<'_>]) -> String {
    let best = places.iter().max_by(|a, b| a.best.1.images_per_s.total_cmp(&b.best.1.images_per_s));
    best.map_or(String::new(), |place| {
        let cell = place.best.1;
        let what = if place.limit == Limit::Memory { " from memory" } else { "" };
        format!(
            "Reading without decoding reaches {} images/s ({} MB/s){what}.",
            quantity(cell.images_per_s),
            quantity(cell.mb_per_s)
        )
    })
}

fn few(names: &[String]) -> String {
    if names.len() <= 6 {
        return listed(names);
    }
    format!("{} and {} more", names[..5].join(", "), names.len() - 5)
}

fn threads(n: u64) -> String {
    count(n, "thread")
}

fn fastest(run: &Run<'_>, places: &[Place<'_>]) -> Option<String> {
    let decoding = places.iter().filter(|place| !place.read_only);
    let place = decoding.max_by(|a, b| a.best.1.images_per_s.total_cmp(&b.best.1.images_per_s))?;
    let cell = place.best.1;
    let is_near = |(of, other): (&StudyCell, &IngestCell)| {
        let is_other = !std::ptr::eq(of, place.best.0) && !other.read_only;
        is_other && !run.differ(&[of, place.best.0], cell.images_per_s / other.images_per_s)
    };
    let doubt =
        if run.cells_of::<IngestCell>().any(is_near) { "; measured once, so another cell may be faster" } else { "" };
    let spread = cell.spread.filter(|spread| spread.is_finite());
    let shown = spread.map(|spread| format!(" ± {}", percent(spread))).unwrap_or_default();
    let is_wide = spread.is_some_and(|spread| spread > FAR_APART);
    Some(format!(
        "Training would get at most {}{}{shown} images/s ({} MB/s), from {} with {}{}.",
        if is_wide { "roughly " } else { "" },
        quantity(cell.images_per_s),
        quantity(cell.mb_per_s),
        place.full_name(),
        threads(cell.threads),
        if is_wide { "; its repeats vary so much that another cell may be faster" } else { doubt }
    ))
}

/// How places scale with threads; those that something is published of come first.
fn scaling(places: &[Place<'_>], published: &[Published<'_>]) -> Vec<String> {
    let theirs = |place: &Place<'_>| {
        let of = |row: &&Published<'_>| {
            row.reference.metric == SPEED_UP.name && row.cell.is_some_and(|cell| std::ptr::eq(cell, place.best.0))
        };
        published.iter().find(of)
    };
    let mut scaled: Vec<(&Place<'_>, f64, Option<&Published<'_>>)> =
        places.iter().filter_map(|place| Some((place, place.speed_up()?, theirs(place)))).collect();
    // What could have come out otherwise comes before what was put in.
    let rank = |theirs: Option<&Published<'_>>| theirs.map_or(2, |row| u8::from(row.is_calibrated));
    scaled.sort_by_key(|(place, _, theirs)| (rank(*theirs), !place.read_only));
    let judged = |theirs: &Option<&Published<'_>>| theirs.is_some_and(|row| row.reference.within.is_some());
    if scaled.iter().any(|(_, _, theirs)| judged(theirs)) {
        scaled.retain(|(_, _, theirs)| judged(theirs));
    }
    let sentence = |(place, speed_up, theirs): (&Place<'_>, f64, Option<&Published<'_>>)| {
        let (first, best) = (place.first.1, place.best.1);
        let what = if place.read_only { "read only" } else { "decoded" };
        let theirs =
            theirs.map(|row| format!(" ({}: {}×)", row.word(), given(row.reference.value))).unwrap_or_default();
        let (with, over) = (threads(best.threads), threads(first.threads));
        let fed = format!("{} fed {} images/s {what}", place.full_name(), quantity(best.images_per_s));
        match place.speed_up_interval().filter(|interval| interval.includes_one()) {
            _ if !place.is_gain => {
                format!("With {with}, {fed}, no clear gain over {over} ({}, measured once){theirs}.", times(speed_up))
            }
            Some(noise) => {
                let range = format!("{}–{}", times(noise.low).trim_end_matches('×'), times(noise.high));
                format!("With {with}, {fed}, no clear gain over {over} ({}, {range}){theirs}.", times(speed_up))
            }
            None => format!("With {with}, {fed}, {} the rate of {over}{theirs}.", times(speed_up)),
        }
    };
    scaled.into_iter().take(MAX_PLACES).map(sentence).collect()
}

/// Places whose storage could give more than decoding takes.
fn decoding(run: &Run<'_>, places: &[Place<'_>]) -> Option<String> {
    let mut names = Vec::new();
    let mut rates = Vec::new();
    for place in places.iter().filter(|place| !place.read_only && place.limit == Limit::Decoding) {
        let mut same = place.levels.clone();
        same.insert("read_only".to_owned(), forebay_record::Level::Flag(true));
        let read_only = places.iter().find(|other| other.read_only && other.levels == same);
        let Some(read_only) = read_only else { continue };
        let ratio = read_only.best.1.images_per_s / place.best.1.images_per_s;
        if ratio > 1.1 && run.differ(&[read_only.best.0, place.best.0], ratio) {
            names.push(place.name.clone());
            rates.push(quantity(read_only.best.1.images_per_s));
        }
    }
    if names.is_empty() || names.len() > MAX_PLACES {
        return None;
    }
    let cores = match run.environment().n_cores {
        0 => String::new(),
        1 => " on this one core".to_owned(),
        n => format!(" on these {n} cores"),
    };
    let would =
        if rates.len() == 1 { format!("{} images/s", rates[0]) } else { format!("{} images/s", listed(&rates)) };
    Some(format!("Decoding, not storage, limits {}{cores}: reading alone gave {would}.", listed(&names)))
}

fn ceilings(places: &[Place<'_>]) -> Option<String> {
    let with = places.iter().filter(|place| place.read_only || place.limit == Limit::Storage);
    let mut shares: Vec<(String, f64)> = Vec::new();
    for (place, share) in with.filter_map(|place| Some((place, place.efficiency()?))) {
        match shares.iter_mut().find(|(name, _)| *name == place.name) {
            Some((_, best)) => *best = best.max(share),
            None => shares.push((place.name.clone(), share)),
        }
    }
    if shares.is_empty() || shares.len() > 6 {
        return None;
    }
    let (valid, above): (Vec<_>, Vec<_>) = shares.into_iter().partition(|(_, share)| *share <= ABOVE_CEILING);
    let said: Vec<String> = valid.iter().map(|(name, share)| format!("{} on {name}", percent(*share))).collect();
    let names: Vec<String> = above.into_iter().map(|(name, _)| name).collect();
    let reached =
        (!said.is_empty()).then(|| format!("Ingest reached this share of the storage's ceiling: {}.", listed(&said)));
    let exceeded = (!names.is_empty()).then(|| {
        format!(
            "Ingest exceeded the storage's ceiling on {}, so that ceiling is no upper bound: probe again, with as many \
             requests in flight as ingest has threads.",
            listed(&names)
        )
    });
    Some([reached, exceeded].into_iter().flatten().collect::<Vec<_>>().join(" "))
}
