//! From marks and calls to the numbers of the workload.

use std::collections::HashMap;

use forebay_units::random::Random;
use forebay_workload::replay::{FileOrder, Reading, ReplayFiles, ReplayLoader, ReplaySave};

use super::calls::{Found, Kind, Moved};
use super::marks::{Loop, Marks, Span, Thread};
use super::{Pass, Passes};

/// Longer lists of times become means of as many groups of similar times.
const MAX_TIMES: usize = 1_000;
const GROUPS: usize = 100;
/// Different sizes of files; more become means of 50 groups.
const MAX_SIZES: usize = 100;
/// Bytes within this share are those of whole files.
const WHOLE: f64 = 0.01;
/// Files in order of their names, apart from the returns to the first.
const MOSTLY: f64 = 0.9;

/// To the microsecond.
pub(super) fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// The common folder of all replayed files.
pub(super) fn root(found: &Found<'_, Passes>) -> String {
    let kinds = found.calls.iter().flat_map(|calls| calls.kinds.values());
    text(&common(kinds.flat_map(|kind| &kind.files).map(|path| folder(&found.paths[*path as usize]))))
}

fn folder(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |end| &path[..end])
}

/// The folder that all these lie in.
fn common<'a>(folders: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let join = |a: &[u8], b: &[u8]| {
        let parts = a.split(|byte| *byte == b'/').zip(b.split(|byte| *byte == b'/'));
        let same: Vec<&[u8]> = parts.take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
        same.join(&b'/')
    };
    folders
        .fold(None, |all: Option<Vec<u8>>, one| Some(all.map_or_else(|| one.to_vec(), |all| join(&all, one))))
        .unwrap_or_default()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The loaders, and the computation of the whole loop in nanoseconds.
pub(super) fn loaders(
    marks: &Marks,
    of: &Loop,
    passes: &Passes,
    found: &Found<'_, Passes>,
) -> (Vec<ReplayLoader>, u64) {
    let root = root(found);
    let mut all: Vec<Times> = (0..passes.n_loaders()).map(|_| Times::default()).collect();
    for (index, pass) in passes.0.iter().enumerate() {
        let times = &mut all[pass.loader];
        times.pass(marks, of, pass, passes.0.get(index + 1), &found.spent);
    }
    let compute_ns = all.iter().flat_map(|times| &times.compute).sum();
    let loaders = all.into_iter().zip(&found.calls).enumerate().map(|(index, (times, calls))| {
        let pass = passes.0.iter().find(|pass| pass.loader == index).expect("loaders are made of passes");
        let kinds = calls.kinds.iter().filter(|(_, kind)| kind.visits > 0);
        ReplayLoader {
            steps: pass.steps,
            samples: times.samples,
            workers: pass.setup.workers,
            prefetch: pass.setup.prefetch,
            start_s: mean(&times.start),
            end_s: mean(&times.end),
            after_s: mean(&times.after),
            handover_s: mean(&times.handover),
            compute_s: list(times.compute),
            decode_s: list(times.decode),
            stats: calls.stats,
            fstats: calls.fstats,
            files: kinds.map(|(ending, kind)| files(ending, kind, found, &root)).collect(),
        }
    });
    (loaders.collect(), compute_ns)
}

/// Nanoseconds of a loader's passes.
#[derive(Default)]
struct Times {
    start: Vec<u64>,
    end: Vec<u64>,
    after: Vec<u64>,
    handover: Vec<u64>,
    compute: Vec<u64>,
    decode: Vec<u64>,
    samples: u64,
}

impl Times {
    fn pass(
        &mut self,
        marks: &Marks,
        of: &Loop,
        pass: &Pass,
        next: Option<&Pass>,
        spent: &HashMap<(Thread, usize), u64>,
    ) {
        let fetches = fetches(marks, pass, spent);
        let firsts: Vec<u64> = fetches.iter().filter_map(|of| of.first()).map(|first| first.span.start_ns).collect();
        self.start.extend(firsts.iter().map(|at| (at - pass.start_ns) / firsts.len() as u64).reduce(|a, b| a + b));
        let within = |at_ns: u64| at_ns >= pass.start_ns && next.is_none_or(|next| at_ns < next.start_ns);
        let waits: Vec<_> = of.waits.iter().filter(|wait| within(wait.span.start_ns)).collect();
        let last_ns =
            waits.iter().filter(|wait| wait.brought).map(|wait| wait.span.end_ns).max().unwrap_or(pass.start_ns);
        let (mut end_ns, mut done_ns) = (0, last_ns);
        for (index, wait) in waits.iter().enumerate() {
            if !wait.brought {
                // The wait that makes the workers is in the wait for the first batch.
                if wait.span.start_ns >= last_ns {
                    end_ns += wait.span.ns();
                    done_ns = done_ns.max(wait.span.end_ns);
                }
                continue;
            }
            let got_ns = wait.span.end_ns;
            let until_ns = waits[index + 1..].first().map(|wait| wait.span.start_ns);
            let until_ns = until_ns.unwrap_or_else(|| {
                let steps = of.steps.iter().filter(|at| within(**at) && **at >= got_ns);
                steps.copied().max().unwrap_or(got_ns)
            });
            done_ns = done_ns.max(until_ns);
            self.compute.push((until_ns - got_ns.min(until_ns)).saturating_sub(of.saved_ns(got_ns, until_ns)));
        }
        self.end.push(end_ns);
        self.after.extend(next.map(|next| {
            let gap_ns = next.start_ns.saturating_sub(done_ns);
            gap_ns.saturating_sub(of.saved_ns(done_ns, next.start_ns))
        }));
        let brought: Vec<Span> = waits.iter().filter(|wait| wait.brought).map(|wait| wait.span).collect();
        let dealt = dealt(&fetches, pass);
        if let Some(dealt) = &dealt {
            let starved = brought.iter().zip(dealt).filter(|(wait, fetch)| fetch.span.end_ns > wait.start_ns);
            self.handover.extend(starved.map(|(wait, fetch)| wait.end_ns.saturating_sub(fetch.span.end_ns)));
        }
        let in_order = dealt.unwrap_or_else(|| fetches.concat());
        self.decode.extend(in_order.iter().map(|fetch| fetch.decode_ns));
        self.samples += in_order.iter().take(pass.steps as usize).map(|fetch| fetch.samples).sum::<u64>();
    }
}

#[derive(Debug, Clone, Copy)]
struct Fetched {
    span: Span,
    samples: u64,
    decode_ns: u64,
}

/// The fetches of a pass by worker, in the order in which the workers were made.
fn fetches(marks: &Marks, pass: &Pass, spent: &HashMap<(Thread, usize), u64>) -> Vec<Vec<Fetched>> {
    let mut all: Vec<(u64, Thread, Vec<Fetched>)> = Vec::new();
    for (thread, of) in &marks.fetches {
        let within =
            of.iter().enumerate().filter(|(_, fetch)| (pass.start_ns..pass.end_ns).contains(&fetch.span.start_ns));
        let fetched = within.map(|(index, fetch)| {
            let calls_ns = spent.get(&(*thread, index)).copied().unwrap_or(0);
            let decode_ns = fetch.span.ns().saturating_sub(calls_ns);
            Fetched { span: fetch.span, samples: fetch.samples, decode_ns }
        });
        let fetched: Vec<Fetched> = fetched.collect();
        if !fetched.is_empty() {
            let made_ns = marks.processes.get(&thread.0).map_or(0, |note| note.start_ns);
            all.push((made_ns, *thread, fetched));
        }
    }
    all.sort_by_key(|(made_ns, thread, _)| (*made_ns, *thread));
    all.into_iter().map(|(_, _, fetched)| fetched).collect()
}

/// The fetch of each batch: PyTorch deals them to its workers in turn. `None` if it did otherwise.
fn dealt(fetches: &[Vec<Fetched>], pass: &Pass) -> Option<Vec<Fetched>> {
    let n = fetches.len() as u64;
    let batch = |step: u64| fetches.get((step % n) as usize)?.get((step / n) as usize).copied();
    (n == pass.setup.workers.max(1)).then(|| (0..pass.steps).map(batch).collect())?
}

fn mean(all: &[u64]) -> f64 {
    rounded(all.iter().sum::<u64>() as f64 / all.len().max(1) as f64 / 1e9)
}

/// Times in seconds; of many, the means of groups of similar ones, shuffled.
fn list(mut all: Vec<u64>) -> Vec<f64> {
    let seconds = |ns: &u64| rounded(*ns as f64 / 1e9);
    match all.len() {
        0 => vec![0.0],
        1..=MAX_TIMES => all.iter().map(seconds).collect(),
        n => {
            all.sort_unstable();
            let mut means: Vec<f64> = (0..GROUPS).map(|i| mean(&all[i * n / GROUPS..(i + 1) * n / GROUPS])).collect();
            Random::new(n as u64).shuffle(&mut means);
            means
        }
    }
}

fn files(ending: &[u8], kind: &Kind, found: &Found<'_, Passes>, root: &str) -> ReplayFiles {
    let paths = || kind.files.iter().map(|path| found.paths[*path as usize].as_slice());
    let in_folder = common(paths().map(folder));
    let below = text(&in_folder);
    let below = below.strip_prefix(root).unwrap_or(&below).trim_start_matches('/').to_owned();
    let mut folders: Vec<&[u8]> = paths().map(folder).collect();
    folders.sort_unstable();
    folders.dedup();
    let all = kind.files.iter().map(|path| found.sizes[*path as usize]).collect::<Vec<_>>();
    let is_whole = kind.opens as f64 >= (1.0 - WHOLE) * kind.visits as f64
        && kind.bytes.abs_diff(kind.visited_bytes) as f64 <= WHOLE * kind.visited_bytes as f64;
    let reading = match kind.continued as f64 > MOSTLY * kind.visits as f64 {
        _ if is_whole => Reading::Whole,
        true => Reading::Sequential,
        false => Reading::Random,
    };
    let in_order = kind.later as f64 >= MOSTLY * (kind.later + kind.earlier) as f64;
    ReplayFiles {
        folder: below,
        ending: text(ending),
        files: all.len() as u64,
        folders: folders.len() as u64,
        bytes: all.iter().sum(),
        sizes: sizes(all),
        visits: kind.visits,
        opens: kind.opens,
        reads: kind.reads,
        empty_reads: kind.empty_reads,
        bytes_read: kind.bytes,
        order: if in_order { FileOrder::Sequential } else { FileOrder::Random },
        reading,
    }
}

/// Sizes with their numbers. Of many, two neighbouring ones for each group, so that their sum stays.
fn sizes(mut all: Vec<u64>) -> Vec<(u64, u64)> {
    all.sort_unstable();
    let mut counted: Vec<(u64, u64)> = Vec::new();
    for size in &all {
        match counted.last_mut() {
            Some((last, n)) if last == size => *n += 1,
            _ => counted.push((*size, 1)),
        }
    }
    if counted.len() <= MAX_SIZES {
        return counted;
    }
    let groups = MAX_SIZES / 2;
    let group = |i: usize| {
        let of = &all[i * all.len() / groups..(i + 1) * all.len() / groups];
        let (sum, n) = (of.iter().sum::<u64>(), of.len() as u64);
        [(sum / n, n - sum % n), (sum / n + 1, sum % n)]
    };
    (0..groups).flat_map(group).filter(|(_, n)| *n > 0).collect()
}

/// Checkpoints in order; those that cannot be played become notes.
pub(super) fn checkpoints(of: &Loop, moved: &[Moved], notes: &mut Vec<String>) -> Vec<ReplaySave> {
    let mut all: Vec<_> = of.saves.iter().zip(moved).collect();
    all.sort_by_key(|(save, _)| save.span.start_ns);
    let mut played: Vec<ReplaySave> = Vec::new();
    for (save, moved) in all {
        let after_step =
            of.waits.iter().filter(|wait| wait.brought && wait.span.end_ns <= save.span.start_ns).count() as u64;
        let what = if save.is_restore { "restore" } else { "save" };
        if moved.calls == 0 {
            notes.push(format!("Left out: a {what} after step {after_step}, whose calls were not seen."));
        } else if save.is_restore && !played.iter().any(|save| !save.is_restore) {
            notes.push(format!(
                "Left out: a restore after step {after_step} of a checkpoint that this job had not saved."
            ));
        } else {
            played.push(ReplaySave {
                after_step,
                bytes: moved.bytes,
                calls: moved.calls,
                is_synced: moved.syncs > 0,
                is_restore: save.is_restore,
                traced_s: rounded(save.span.ns() as f64 / 1e9),
            });
        }
    }
    played
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_folder_ends_between_names() {
        let of = |all: &[&str]| text(&common(all.iter().map(|path| folder(path.as_bytes()))));
        assert_eq!(of(&["/a/train/x/1.jpg", "/a/train/y/2.jpg"]), "/a/train");
        assert_eq!(of(&["/a/train1/1.jpg", "/a/train2/2.jpg"]), "/a");
        assert_eq!(of(&["/a/b/1.jpg"]), "/a/b");
    }

    #[test]
    fn many_sizes_and_times_keep_their_sums() {
        let all: Vec<u64> = (0..5_003).map(|i| i * i % 7_919).collect();
        let found = sizes(all.clone());
        assert!(found.len() <= MAX_SIZES);
        assert_eq!(found.iter().map(|(_, n)| n).sum::<u64>(), 5_003);
        assert_eq!(found.iter().map(|(bytes, n)| bytes * n).sum::<u64>(), all.iter().sum::<u64>());
        assert_eq!(sizes(vec![5, 9, 5]), [(5, 2), (9, 1)]);
        let times = list(all.iter().map(|ns| ns * 1_000_000).collect());
        let mean = |sum: f64, n: usize| sum / n as f64;
        let (is, was) = (mean(times.iter().sum(), times.len()), mean(all.iter().sum::<u64>() as f64 / 1e3, all.len()));
        assert!((is / was - 1.0).abs() < 1e-2, "{is} {was}");
    }
}
