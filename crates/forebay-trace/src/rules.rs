//! The verdict: rules over the sums of a trace, each with its evidence, or with the reason why it could not look.
//!
//! The training loop's wait is measured, not inferred. What it is charged to comes from what the fetching threads did: their calls, and
//! the rest, which is computation. A gain is an upper bound unless the arithmetic of the loop gives it.

use forebay_record::{Cause, Lever, Limit, TraceCell, TraceFetch};
use forebay_units::{Bytes, format_seconds};

use crate::cell::Facts;
use crate::evidence;
use crate::inside::{Inside, Steady};

/// Waits below this share of the loop are not worth a change; above the second, the input is the main problem.
pub(crate) const HARDLY: f64 = 0.05;
const STRONGLY: f64 = 0.20;
/// A disk or a set of cores that is busier than this has nothing left to give.
const BUSY: f64 = 0.70;
/// Shares of a whole above which a part dominates.
pub(crate) const MOST: f64 = 0.50;
/// Checkpoints that take more of the run than this are worth a change.
pub(crate) const CHECKPOINTS: f64 = 0.02;

/// What the rules look at beside the cell.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) facts: &'a Facts,
    /// Processes with a training loop.
    pub(crate) n_loops: u64,
    pub(crate) n_epochs: u64,
    /// Configured worker processes of the loader; `None` if no loader was seen.
    pub(crate) workers: Option<u64>,
    pub(crate) data_bytes: u64,
    pub(crate) data_files: u64,
    pub(crate) mapped_bytes: u64,
    pub(crate) inside: Inside,
    pub(crate) steady: Steady,
}

/// Fewer calls than this say nothing about when a loader reads.
const FEW: u64 = 20;
/// A loader that reads less than this share of the computing time's part while the loop computes does not read ahead.
const AHEAD: f64 = 0.2;

impl Case<'_> {
    /// What threads of the loop's process did during its waits; `None` if fetches are marked, or nothing was seen.
    pub(crate) fn threads(&self) -> Option<Inside> {
        let has_worked = self.inside.calls_ns > 0.0 && self.inside.cpu_ns > 0;
        (has_worked && self.workers.is_none()).then_some(self.inside)
    }

    /// Whether batches are prepared while the loop computes; `None` if that cannot be seen.
    pub(crate) fn prefetches(&self) -> Option<bool> {
        let Some(n) = self.workers else {
            let computing = 1.0 - self.steady.wait_ns as f64 / self.steady.span_ns as f64;
            let ahead = self.ahead()?;
            return (self.steady.n_calls >= FEW && computing > HARDLY).then_some(ahead >= AHEAD * computing);
        };
        Some(n > 0)
    }

    /// Of the calls on data after the first batch, the share of time that was spent while the loop computed.
    pub(crate) fn ahead(&self) -> Option<f64> {
        let Steady { waiting_ns, computing_ns, .. } = self.steady;
        let share = computing_ns / (waiting_ns + computing_ns);
        share.is_finite().then_some(share)
    }

    /// Whether threads that work during waits could be more.
    fn can_add_threads(&self) -> bool {
        has_idle_cores(self) == Some(true) && (self.workers.is_some_and(|n| n > 0) || self.threads().is_some())
    }

    /// What the loader's users call its parallel readers.
    pub(crate) fn more_readers(&self) -> &'static str {
        if self.workers.is_some() { "a larger num_workers" } else { "num_parallel_calls, interleave, num_threads" }
    }

    pub(crate) fn how_to_prefetch(&self) -> &'static str {
        if self.workers.is_some() {
            "num_workers=1 or more"
        } else {
            "prefetch(tf.data.AUTOTUNE), prefetch_queue_depth"
        }
    }
}

/// What the loop and its fetches took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loop {
    pub(crate) wait_s: f64,
    pub(crate) loop_s: f64,
    pub(crate) share: f64,
    /// Calls as a share of the fetches' time, or of what threads did during waits; `None` where neither was seen.
    pub(crate) io_share: Option<f64>,
    /// Time of all fetches, over all workers.
    pub(crate) fetch_s: Option<f64>,
    /// Of the calls' time, opening and metadata.
    pub(crate) meta_share: Option<f64>,
}

impl Loop {
    /// What the share of calls is a share of.
    pub(crate) fn of_what(&self) -> &'static str {
        if self.fetch_s.is_some() { "the fetches' time" } else { "the threads' work during waits" }
    }
}

/// Fills verdict, limit, lever, causes and rules.
pub(crate) fn judge(cell: &mut TraceCell, case: &Case<'_>) {
    let seen = cell.wait_share().zip(cell.totals.wait_s.zip(cell.totals.loop_s)).map(|(share, (wait_s, loop_s))| {
        let fetch = cell.fetch.as_ref().filter(|fetch| fetch.seconds > 0.0);
        let io_s = |fetch: &TraceFetch| fetch.open_s + fetch.read_s + fetch.meta_s;
        let threads = case.threads().filter(|_| fetch.is_none());
        Loop {
            wait_s,
            loop_s,
            share,
            fetch_s: fetch.map(|fetch| fetch.seconds),
            io_share: fetch
                .map(|fetch| io_s(fetch) / fetch.seconds)
                .or(threads.map(|of| of.calls_ns / (of.calls_ns + of.cpu_ns as f64))),
            meta_share: fetch
                .filter(|fetch| io_s(fetch) > 0.0)
                .map(|fetch| (fetch.open_s + fetch.meta_s) / io_s(fetch))
                .or(threads.map(|of| of.meta_ns / of.calls_ns)),
        }
    });
    cell.rules = evidence::rules(cell, case, seen);
    cell.stall_by_cause = seen.map(|seen| causes(case, seen)).unwrap_or_default();
    gains(cell, case, seen);
    (cell.limit, cell.lever) = limit(cell, case, seen);
    cell.verdict = verdict(cell, case, seen);
}

/// Charges the wait: first what computing meanwhile would have hidden, then calls and computation of the fetches.
fn causes(case: &Case<'_>, seen: Loop) -> forebay_record::ByCause {
    let mut causes = forebay_record::ByCause::new();
    let mut rest = seen.wait_s;
    if case.prefetches() == Some(false) {
        let hideable = rest.min((seen.loop_s - seen.wait_s).max(0.0));
        causes.insert(Cause::Prefetch, hideable);
        rest -= hideable;
    }
    // Waiting for longer than all fetches took is waiting for something else: workers that start, batches that are handed over.
    let fetched = rest.min(seen.fetch_s.unwrap_or(rest));
    if rest > fetched {
        causes.insert(Cause::Other, rest - fetched);
        rest = fetched;
    }
    match seen.io_share {
        Some(io) => {
            causes.insert(Cause::Storage, rest * io);
            let computing = if case.can_add_threads() { Cause::Threads } else { Cause::Decode };
            causes.insert(computing, rest * (1.0 - io));
        }
        None => *causes.entry(Cause::Other).or_default() += rest,
    }
    causes.retain(|_, seconds| *seconds > 0.0);
    causes
}

/// The most that each rule that applies could save: the share of the wait that is charged to its cause.
fn gains(cell: &mut TraceCell, case: &Case<'_>, seen: Option<Loop>) {
    let n_loops = case.n_loops.max(1) as f64;
    let part = |cause: Cause| cell.stall_by_cause.get(&cause).copied().map(|seconds| seconds / n_loops);
    let saved_s: f64 = cell.saves.iter().filter(|save| !save.is_restore).map(|save| save.seconds).sum();
    for rule in cell.rules.iter_mut().filter(|rule| rule.applies == Some(true)) {
        let gain_s = match rule.id.as_str() {
            "R0" => seen.map(|seen| seen.wait_s / n_loops),
            "R1" => part(Cause::Storage),
            "R2" => part(Cause::Threads).or(part(Cause::Storage)),
            "R3" => part(Cause::Prefetch),
            "R4" => part(Cause::Decode).or(part(Cause::Threads)),
            "R5" => part(Cause::Storage).zip(seen.and_then(|seen| seen.meta_share)).map(|(io, share)| io * share),
            "R10" => Some(saved_s),
            _ => None,
        };
        rule.gain_s = gain_s.map(|seconds| seconds.min(cell.wall_s));
    }
}

pub(crate) fn cpu_share(case: &Case<'_>) -> Option<f64> {
    let share = case.facts.cpu_s? / (case.facts.wall_s * case.facts.n_cores as f64);
    share.is_finite().then_some(share)
}

/// During waits where their processor time is known, otherwise during the whole job.
pub(crate) fn has_idle_cores(case: &Case<'_>) -> Option<bool> {
    let n_cores = case.facts.n_cores;
    if let Some(of) = case.threads().filter(|of| of.wait_ns > 0 && n_cores > 0) {
        return Some((of.cpu_ns as f64) < BUSY * of.wait_ns as f64 * n_cores as f64);
    }
    cpu_share(case).map(|share| share < BUSY)
}

/// The limit, and the change that would help most.
fn limit(cell: &TraceCell, case: &Case<'_>, seen: Option<Loop>) -> (Limit, Lever) {
    let named = |name: &str, evidence: Vec<String>| Limit { name: name.to_owned(), evidence, ..Limit::default() };
    let saved_s: f64 = cell.saves.iter().filter(|save| !save.is_restore).map(|save| save.seconds).sum();
    let saving = saved_s / cell.wall_s;
    let Some(seen) = seen else {
        let evidence = vec!["no training loop was seen".to_owned()];
        return (named("unknown", evidence), lever(cell, "unknown", String::new(), 0.0));
    };
    let waiting = format!("waited for data {} of its loop", percent(seen.share));
    if seen.share < HARDLY {
        if saving > CHECKPOINTS {
            let evidence = vec![waiting, format!("checkpoints took {} of the run", percent(saving))];
            let advice = "save asynchronously, or to a faster device and drain from there".to_owned();
            return (named("checkpoint", evidence), lever(cell, "checkpoint", advice, saved_s));
        }
        return (
            named("accelerator", vec![waiting]),
            lever(cell, "none", "nothing: the training itself takes the time".to_owned(), 0.0),
        );
    }
    let wait_s = seen.wait_s / case.n_loops.max(1) as f64;
    let mut evidence = vec![waiting];
    let cause = cell.stall_by_cause.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(cause, _)| *cause);
    if let Some(io) = seen.io_share {
        evidence.push(format!("{} of {} is calls on files", percent(io), seen.of_what()));
    }
    let part = |cause: Cause| cell.stall_by_cause.get(&cause).copied().unwrap_or(0.0) / case.n_loops.max(1) as f64;
    match cause {
        Some(Cause::Prefetch) => {
            let advice =
                format!("let the loader prepare batches while the accelerator computes: {}", case.how_to_prefetch());
            evidence.push(match case.workers {
                Some(_) => "the loop fetched its batches itself".to_owned(),
                None => "the loader did next to nothing while the loop computed".to_owned(),
            });
            (named("prefetch", evidence), lever(cell, "prefetch", advice, part(Cause::Prefetch)))
        }
        Some(Cause::Storage) if seen.meta_share.is_some_and(|meta| meta > MOST) => {
            let meta = seen.meta_share.unwrap_or(0.0);
            evidence.push(format!("{} of that opens files and asks for attributes", percent(meta)));
            let advice = "pack the samples into few large files (TFRecord, tar shards)".to_owned();
            (named("storage", evidence), lever(cell, "pack", advice, part(Cause::Storage) * meta))
        }
        Some(Cause::Storage) => {
            let is_idle = case.facts.disk_busy.is_some_and(|busy| busy < 1.0 - BUSY);
            if is_idle && comes_from_devices(case) {
                evidence.push(
                    "the disks were mostly idle although they delivered the bytes: a limit before them, such as that of \
                     a cgroup or a volume, holds requests back"
                        .to_owned(),
                );
            } else if is_idle && (case.workers.is_some() || case.threads().is_some()) {
                evidence.push("the disks were mostly idle".to_owned());
                let advice = format!("more requests in flight: {}", case.more_readers());
                return (named("latency", evidence), lever(cell, "threads", advice, part(Cause::Storage)));
            }
            let advice = "faster storage, a copy of the data on a faster device, or fewer bytes per sample".to_owned();
            (named("storage", evidence), lever(cell, "storage", advice, part(Cause::Storage)))
        }
        Some(Cause::Threads) => {
            evidence.push("cores were idle meanwhile".to_owned());
            let wanted =
                workers_wanted(cell, case).map_or(case.more_readers().to_owned(), |n| format!("num_workers={n}"));
            (
                named("threads", evidence),
                lever(cell, "threads", format!("more workers: {wanted}"), part(Cause::Threads)),
            )
        }
        Some(Cause::Decode) => {
            evidence.extend(cpu_share(case).map(|share| format!("the cores were {} busy", percent(share))));
            let advice = "cheaper decoding: smaller or decoded data, a faster decoder, decoding on the GPU, more cores"
                .to_owned();
            (named("decode", evidence), lever(cell, "decode", advice, part(Cause::Decode)))
        }
        Some(Cause::Other) if seen.io_share.is_some() => {
            evidence.push(
                "most of the wait is outside fetches: workers that start, batches that are handed over".to_owned(),
            );
            let advice = "keep the workers from epoch to epoch: persistent_workers=True".to_owned();
            (named("unknown", evidence), lever(cell, "unknown", advice, part(Cause::Other)))
        }
        _ => {
            evidence.push("what fetched the batches was not seen".to_owned());
            (named("unknown", evidence), lever(cell, "unknown", String::new(), wait_s))
        }
    }
}

/// Whether most bytes that calls read came from devices.
fn comes_from_devices(case: &Case<'_>) -> bool {
    case.facts.kernel.is_some_and(|[(read, from_devices), _]| from_devices as f64 > MOST * read as f64)
}

/// Workers that would make a batch in the time of a step: at most as many as there are cores.
pub(crate) fn workers_wanted(cell: &TraceCell, case: &Case<'_>) -> Option<u64> {
    let fetch = cell.fetch.as_ref()?;
    let (steps, loop_s) = (cell.totals.steps?, cell.totals.loop_s?);
    let compute_s = (loop_s - cell.totals.wait_s?) / steps as f64;
    let fetch_s = fetch.seconds / fetch.batches as f64;
    let wanted = (fetch_s / compute_s).ceil();
    let most = case.facts.n_cores.max(1);
    (wanted.is_finite() && wanted >= 1.0).then(|| (wanted as u64).min(most)).filter(|n| Some(*n) > case.workers)
}

/// Every gain is an upper bound: the change may meet the next limit first.
fn lever(cell: &TraceCell, name: &str, advice: String, saves_s: f64) -> Lever {
    let saves_s = saves_s.min(cell.wall_s);
    Lever { name: name.to_owned(), advice, saves_s, wall_s: cell.wall_s - saves_s, is_bound: true, ..Lever::default() }
}

fn verdict(cell: &TraceCell, case: &Case<'_>, seen: Option<Loop>) -> String {
    let Some(seen) = seen else {
        return format!(
            "The job read {} and wrote {} of files; its training loop was not seen, so how long it waited is not known.",
            Bytes(cell.totals.bytes_read),
            Bytes(cell.totals.bytes_written)
        );
    };
    let strength = match seen.share {
        share if share < HARDLY => "hardly waits for data",
        share if share < STRONGLY => "waits for data",
        share if share < MOST => "waits for data a lot",
        _ => "waits for data most of all",
    };
    let limit = match cell.limit.name.as_str() {
        "accelerator" => format!("less than {}, so the training itself is the limit", percent(HARDLY)),
        "unknown" if seen.io_share.is_some() => "mostly outside the fetches of batches".to_owned(),
        "unknown" => "what it waited for was not seen".to_owned(),
        name => format!("limit: {name}"),
    };
    let gain = match cell.lever.saves_s {
        saves if saves > 0.0 && !cell.lever.advice.is_empty() => format!(
            " Change first: {}; at most {} of {} less.",
            cell.lever.advice,
            format_seconds(saves),
            format_seconds(cell.wall_s)
        ),
        _ => String::new(),
    };
    let (wait, whole) = (format_seconds(seen.wait_s), format_seconds(seen.loop_s));
    let over = if case.n_loops > 1 { format!(" over {} ranks", case.n_loops) } else { String::new() };
    format!("The training loop {strength}: {wait} of its {whole}{over}, {} ({limit}).{gain}", percent(seen.share))
}

/// With a decimal below a tenth, and with as many as tell it from the threshold of waits.
pub(crate) fn percent(share: f64) -> String {
    let value = share * 100.0;
    let near = |digits: usize| format!("{value:.digits$}").parse() == Ok(HARDLY * 100.0) && share != HARDLY;
    let digits = match value {
        value if value == 0.0 || share == HARDLY || value >= 9.95 => 0,
        _ => (1..6).find(|digits| !near(*digits)).unwrap_or(6),
    };
    format!("{value:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn shares_are_written_apart_from_the_threshold() {
        let said = [0.0, 0.0471, 0.0502, 0.049_98, 0.05, 0.123, 1.0].map(percent);
        assert_eq!(said, ["0 %", "4.7 %", "5.02 %", "4.998 %", "5 %", "12 %", "100 %"]);
    }
}
