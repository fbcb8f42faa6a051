//! A traced job as a workload that `forebay workload run` plays again.
//!
//! The trace is read twice: first its marks, which say when which thread fetched for which pass, then its calls, which are counted for
//! the fetch they lie in. What cannot be played is counted too and becomes a comment. A job whose fetches were not marked cannot be
//! played: what its reads belong to, and what was done between them, is not known.

mod calls;
mod marks;
mod sheet;

use forebay_workload::replay::{Replay, Traced};

use crate::file::{Error, Reader};
use calls::{Found, LeftOut, Places};
use marks::{Loop, Marks, Setup};

/// The workload of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// What is played.
    pub replay: Replay,
    /// What is not, and what was not known: a sentence each.
    pub notes: Vec<String>,
}

/// Why a trace cannot be played again.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotPlayable {
    /// It is no trace.
    #[error(transparent)]
    Unreadable(#[from] Error),
    /// Nothing says what a step is.
    #[error("no training loop was seen, so there are no steps to play again")]
    NoLoop,
    /// Ranks that train together.
    #[error("{0} processes trained; one can be played again\nhint: trace a single rank")]
    SeveralLoops(usize),
    /// Loaders other than PyTorch's.
    #[error(
        "the loop's fetches were not seen, so which reads belong to a step is not known\nhint: they are marked for PyTorch's DataLoader"
    )]
    NoFetches,
    /// A trace that reached its limit.
    #[error("the trace keeps only every {0}th call\nhint: trace again with a larger --max-trace")]
    Thinned(u32),
}

/// A pass over the data.
#[derive(Debug, Clone, Copy)]
struct Pass {
    start_ns: u64,
    /// Start of the next one, or the end of the loop.
    end_ns: u64,
    steps: u64,
    setup: Setup,
    loader: usize,
}

/// The passes in order.
struct Passes(Vec<Pass>);

impl Passes {
    /// Passes with the same setup and number of steps are of one loader.
    fn of(the_loop: &Loop) -> Self {
        let last_ns = the_loop.span().end_ns;
        let ends = the_loop.passes.iter().skip(1).map(|(start_ns, _)| *start_ns).chain([u64::MAX]);
        let mut kinds: Vec<(Setup, u64)> = Vec::new();
        let passes = the_loop.passes.iter().zip(ends).filter_map(|((start_ns, setup), end_ns)| {
            let within = |at_ns: u64| (*start_ns..end_ns).contains(&at_ns);
            let steps = the_loop.waits.iter().filter(|wait| wait.brought && within(wait.span.start_ns)).count() as u64;
            if steps == 0 {
                return None;
            }
            let loader = kinds.iter().position(|kind| *kind == (*setup, steps)).unwrap_or_else(|| {
                kinds.push((*setup, steps));
                kinds.len() - 1
            });
            Some(Pass { start_ns: *start_ns, end_ns: end_ns.min(last_ns.max(*start_ns)), steps, setup: *setup, loader })
        });
        Self(passes.collect())
    }

    fn at(&self, at_ns: u64) -> Option<(usize, &Pass)> {
        let index = self.0.partition_point(|pass| pass.start_ns <= at_ns).checked_sub(1)?;
        Some((index, &self.0[index]))
    }

    fn n_loaders(&self) -> usize {
        self.0.iter().map(|pass| pass.loader + 1).max().unwrap_or(0)
    }
}

impl Places for Passes {
    fn loader_at(&self, at_ns: u64) -> Option<usize> {
        self.at(at_ns).map(|(_, pass)| pass.loader)
    }
}

/// Makes a workload of a trace.
///
/// # Errors
/// If the trace lacks what a replay needs.
pub fn import(bytes: &[u8]) -> Result<Imported, NotPlayable> {
    let marks = Marks::read(Reader::new(bytes)?);
    if marks.every > 1 {
        return Err(NotPlayable::Thinned(marks.every));
    }
    let mut loops = marks.loops.iter();
    let of = match (loops.next(), loops.len()) {
        (None, _) => return Err(NotPlayable::NoLoop),
        (Some((process, of)), 0) => (*process, of),
        (Some(_), more) => return Err(NotPlayable::SeveralLoops(more + 1)),
    };
    let passes = Passes::of(of.1);
    if marks.fetches.is_empty() || passes.0.is_empty() {
        return Err(NotPlayable::NoFetches);
    }
    let found = Found::read(Reader::new(bytes)?, &marks, of, &passes, passes.n_loaders());
    let mut notes = left_out(&found.left_out);
    if marks.is_prefetch_unknown {
        notes
            .push("How far workers prefetch is not in this trace; 2 batches each, as is PyTorch's default.".to_owned());
    }
    let (loader, compute_ns) = sheet::loaders(&marks, of.1, &passes, &found);
    let root = sheet::root(&found);
    let checkpoint = sheet::checkpoints(of.1, &found.moved, &mut notes);
    let wait_ns: u64 = of.1.waits.iter().map(|wait| wait.span.ns()).sum();
    // Checkpoints after the last step are played too.
    let span = of.1.span();
    let loop_ns = span.ns() + of.1.saved_ns(span.end_ns, u64::MAX);
    let seconds = |ns: u64| sheet::rounded(ns as f64 / 1e9);
    let traced = Traced { wait_s: seconds(wait_ns), compute_s: seconds(compute_ns), loop_s: seconds(loop_ns) };
    let job = marks.command.iter().skip_while(|word| *word != "--").skip(1).cloned().collect::<Vec<_>>().join(" ");
    let passes = passes.0.iter().map(|pass| pass.loader).collect();
    Ok(Imported { replay: Replay { job, root, passes, traced, loader, checkpoint }, notes })
}

fn left_out(of: &LeftOut) -> Vec<String> {
    use forebay_units::{Bytes, count};
    let mut notes = Vec::new();
    if of.reads > 0 {
        let (n, bytes) = (count(of.reads, "read"), Bytes(of.bytes_read));
        notes.push(format!("Left out: {n} of {bytes} outside fetches and checkpoints."));
    }
    if of.writes > 0 {
        notes.push(format!("Left out: {} outside checkpoints.", count(of.writes, "write")));
    }
    if of.bytes_mapped > 0 {
        let bytes = Bytes(of.bytes_mapped);
        notes.push(format!("Left out: {bytes} of mapped files; what of them was read is not known."));
    }
    notes
}
