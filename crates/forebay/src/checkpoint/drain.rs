//! `forebay checkpoint drain`: copies the burst buffer's checkpoints to the last tier.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use forebay_checkpoint::{Error, Options, Store, heeding};
use forebay_measure::value;
use forebay_units::{Bytes, PathText, count};
use serde::Serialize;

use super::PlaceArgs;
use crate::output::{JsonArgs, Outcome, Schema, complain, in_words, remark};
use crate::values::of;
use crate::{progress, stop};

/// How often the stop flag is checked.
const TICK: Duration = Duration::from_millis(20);

#[derive(Debug, clap::Args)]
#[command(mut_arg("burst_dir", |arg| arg.required(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) at: PlaceArgs,

    /// Limit of bytes copied per second, for example 100MB; reading back the copy has the same limit
    #[arg(long, value_name = "SIZE", value_parser = of(value::bytes_per_s))]
    drain_rate: Option<Bytes>,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Drained {
    /// Copies that were written and read back.
    n_drained: u64,
    /// Checkpoints that are not drained yet.
    n_undrained: usize,
    /// The reasons, each with its causes.
    errors: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let folders = &args.at.folders;
    folders.burst_dir.as_deref().map_or(Ok(()), super::check_exists)?;
    folders.check_usable()?;
    let json = args.json.target(folders.dirs())?;
    let tiers = args.at.places()?.0.tiers();
    let drain_bytes_per_s = args.drain_rate.map(|rate| rate.0);
    let options = Options { drain_bytes_per_s, drains_behind: false, ..Options::default() };
    let store = Store::open(tiers, options)?;
    let outcome = watched(&store);
    let closed = store.close();
    let errors = outcome.err().into_iter().chain(closed.errors);
    let errors: Vec<anyhow::Error> = errors.map(anyhow::Error::from).collect();
    let drained = Drained {
        n_drained: closed.counts.drained,
        n_undrained: closed.n_undrained,
        errors: errors.iter().map(in_words).collect(),
    };
    let left = match drained.n_undrained {
        0 => String::new(),
        n => format!("; {n} still to be drained"),
    };
    let copies = count(drained.n_drained, "checkpoint");
    json.give(
        Schema::CheckpointDrain,
        &format!("{}: {copies} drained and read back{left}\n", args.at.folders.dir.escaped()),
        &drained,
    )?;
    errors.iter().for_each(complain_unless_stopped);
    Ok(Outcome::of(errors.is_empty() && drained.n_undrained == 0))
}

pub(super) fn complain_unless_stopped(error: &anyhow::Error) {
    match error.downcast_ref() {
        Some(Error::Stopped) => remark("forebay: stopped before the end"),
        _ => complain(error),
    }
}

fn watched(store: &Store) -> Result<usize, Error> {
    // Every copy is also read back.
    let bar = progress::bytes(2 * store.undrained().n_bytes);
    bar.set_message("draining");
    let outcome = unless_stopped(store, || store.drain_with(&|bytes| bar.inc(bytes)));
    bar.finish_and_clear();
    outcome
}

/// Waits until a store has finished its work, or for Ctrl-C.
pub(super) fn unless_stopped<T>(store: &Store, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // Installed before the work starts: no Ctrl-C is missed.
    let stop = stop::flag();
    let look = || {
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped {
            store.stop_draining();
        }
        is_stopped
    };
    heeding(TICK, look, work)
}
