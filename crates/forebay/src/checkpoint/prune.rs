//! `forebay checkpoint prune`: all but the newest go, and never the only good copy.

use std::collections::BTreeMap;

use anyhow::Result;
use forebay_checkpoint::{Error, Keep, Name, Options, Store, Tier, look};
use forebay_units::{Bytes, count};
use serde::Serialize;

use super::drain::unless_stopped;
use super::{FolderArgs, JsonArgs, TierArgs, give_both};
use crate::output::{Outcome, remark};

/// The flags of `forebay checkpoint prune`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,

    #[command(flatten)]
    tiers: TierArgs,

    /// Checkpoints that stay in each folder
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keep: u32,

    /// Say what would go if it is good, and remove nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Pruned {
    is_dry_run: bool,
    n_kept: usize,
    removed: Vec<Removed>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Removed {
    folder: String,
    name: String,
    bytes: u64,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    args.folders.check()?;
    let json = args.json.target()?;
    let tiers = args.folders.places(&args.tiers, args.keep as usize)?.places.tiers();
    let before = survey(&tiers)?;
    let mut is_stopped = false;
    let removed = if args.dry_run {
        expected(&tiers, &before)
    } else {
        let store = Store::open(tiers.clone(), Options { drains_behind: false, ..Options::default() })?;
        let outcome = unless_stopped(&store, || store.prune());
        let closed = store.close();
        is_stopped = matches!(outcome, Err(Error::Stopped));
        outcome.or_else(|error| if is_stopped { Ok(()) } else { Err(error) })?;
        closed.errors.into_iter().next().map_or(Ok(()), Err)?;
        gone(&before, &survey(&tiers)?)
    };
    let n_kept = before.iter().map(BTreeMap::len).sum::<usize>() - removed.len();
    let pruned = Pruned { is_dry_run: args.dry_run, n_kept, removed };
    give_both(&pruned.text(), &pruned, json.as_ref())?;
    if is_stopped {
        remark("forebay: stopped before the end");
    }
    Ok(if is_stopped { Outcome::Missed } else { Outcome::Met })
}

/// The checkpoints of each tier with what they take and their metric.
type Survey = Vec<BTreeMap<Name, Found>>;

#[derive(Debug, Clone, PartialEq)]
struct Found {
    folder: String,
    bytes: u64,
    /// `None` when it is not whole.
    metric: Option<Option<f64>>,
}

fn survey(tiers: &[Tier]) -> Result<Survey> {
    let of = |tier: &Tier| -> Result<BTreeMap<Name, Found>> {
        let found = |name: Name| {
            let manifest = look(tier, name).ok();
            let bytes = manifest.as_ref().map_or(0, |manifest| manifest.n_bytes());
            let metric = manifest.map(|manifest| manifest.metric);
            (name, Found { folder: tier.dir.display().to_string(), bytes, metric })
        };
        Ok(tier.names()?.into_iter().map(found).collect())
    };
    tiers.iter().map(of).collect()
}

/// What the rules do not keep, and what the burst buffer need not keep because the folder behind it has it or does not
/// want it. Whether what stays is good is seen only when it is read, which a removal does first.
fn expected(tiers: &[Tier], before: &Survey) -> Vec<Removed> {
    let whole = |here: &BTreeMap<Name, Found>| -> BTreeMap<Name, Option<f64>> {
        here.iter().filter_map(|(name, found)| Some((*name, found.metric?))).collect()
    };
    let kept = |keep: &Keep, all: &BTreeMap<Name, Option<f64>>| keep.kept(all);
    let mut removed = Vec::new();
    for (index, (tier, here)) in tiers.iter().zip(before).enumerate() {
        let stays = kept(&tier.keep, &whole(here));
        let wanted_behind = tiers.get(index + 1).map(|behind| {
            let mut all = whole(&before[index + 1]);
            all.extend(whole(here));
            kept(&behind.keep, &all)
        });
        let is_waiting = |name: &Name| {
            let is_wanted = wanted_behind.as_ref().is_some_and(|wanted| wanted.contains(name));
            is_wanted && !before.get(index + 1).is_some_and(|behind| behind.contains_key(name))
        };
        let goes = here.iter().filter(|(name, _)| !stays.contains(name) && !is_waiting(name));
        removed.extend(goes.map(|(name, found)| of(*name, found)));
    }
    removed
}

fn gone(before: &Survey, after: &Survey) -> Vec<Removed> {
    let of_tier = |(before, after): (&BTreeMap<Name, Found>, &BTreeMap<Name, Found>)| {
        let gone = before.iter().filter(|(name, _)| !after.contains_key(name));
        gone.map(|(name, found)| of(*name, found)).collect::<Vec<_>>()
    };
    before.iter().zip(after).flat_map(of_tier).collect()
}

fn of(name: Name, found: &Found) -> Removed {
    Removed { folder: found.folder.clone(), name: name.to_string(), bytes: found.bytes }
}

impl Pruned {
    fn text(&self) -> String {
        let verb = if self.is_dry_run { "would be removed" } else { "removed" };
        let mut text = String::new();
        for one in &self.removed {
            text.push_str(&format!("{verb}: {}/{}\n", one.folder, one.name));
        }
        let bytes = Bytes(self.removed.iter().map(|one| one.bytes).sum());
        let n = count(self.removed.len() as u64, "checkpoint");
        text.push_str(&format!("{n} {verb}, {bytes}; {} kept\n", self.n_kept));
        text
    }
}
