//! `forebay checkpoint drain`: the burst buffer's checkpoints to where they belong, now.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;
use forebay_checkpoint::{Error, Options, Store, heeding};
use forebay_units::{Bytes, PathText, count};
use serde::Serialize;

use super::{FolderArgs, TierArgs, give_both};
use crate::output::{JsonArgs, Outcome, complain, in_words, remark};
use crate::values::parse_bytes_per_s;
use crate::{progress, stop};

/// How often Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(20);

/// The flags of `forebay checkpoint drain`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the checkpoints; created where it is missing
    dir: PathBuf,

    /// The burst buffer: the folder that they are saved to first
    #[arg(long, value_name = "DIR")]
    burst_dir: PathBuf,

    #[command(flatten)]
    tiers: TierArgs,

    /// The most that is copied a second, as 100MB; what was copied is read back as fast at the most
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes_per_s)]
    drain_rate: Option<Bytes>,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Drained {
    /// Copies made and read back.
    n_drained: u64,
    /// Checkpoints that the folder still lacks.
    n_undrained: usize,
    /// Why, each with its causes.
    errors: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let folders = FolderArgs { dir: args.dir.clone(), burst_dir: Some(args.burst_dir.clone()) };
    super::check_exists(&args.burst_dir)?;
    folders.check_usable()?;
    let json = args.json.target(folders.dirs())?;
    let tiers = folders.places(&args.tiers, usize::MAX)?.places.tiers();
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
    give_both(&format!("{}: {copies} drained and read back{left}\n", args.dir.escaped()), &drained, json.as_ref())?;
    let is_done = errors.is_empty() && drained.n_undrained == 0;
    for error in &errors {
        match error.downcast_ref() {
            Some(Error::Stopped) => remark("forebay: stopped before the end"),
            _ => complain(error),
        }
    }
    Ok(if is_done { Outcome::Met } else { Outcome::Missed })
}

/// Drains with a bar, until it is done or Ctrl-C.
fn watched(store: &Store) -> Result<usize, Error> {
    // What is copied is read back.
    let bar = progress::bytes(2 * store.undrained().n_bytes);
    bar.set_message("draining");
    let outcome = unless_stopped(store, || store.drain_with(&|bytes| bar.inc(bytes)));
    bar.finish_and_clear();
    outcome
}

/// Lets a store work until it is done or Ctrl-C.
pub(super) fn unless_stopped<T>(store: &Store, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // Before the work begins, so that no Ctrl-C finds nobody who hears it.
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
