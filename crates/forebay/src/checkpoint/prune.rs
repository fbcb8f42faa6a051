//! `forebay checkpoint prune`: removes all but the newest checkpoints, and never the only good copy.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use forebay_checkpoint::{Damage, Error, Name, Options, Store, Tier, left_over, look};
use forebay_units::{Bytes, PathText, count};
use serde::Serialize;

use super::PlaceArgs;
use super::drain::{complain_unless_stopped, unless_stopped};
use super::dry::DryFs;
use super::ls::why_foreign;
use crate::output::{JsonArgs, Outcome, Schema};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) at: PlaceArgs,

    /// Checkpoints to keep in each folder
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keep: u32,

    /// Show what would be removed, without removing it
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
    /// Checkpoints that stay although the rules do not keep them, or that are damaged.
    stays: Vec<Stays>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Removed {
    folder: String,
    name: String,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Stays {
    folder: String,
    name: String,
    why: String,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let (mut tiers, json) = args.at.open(&args.json, args.keep as usize)?;
    if args.dry_run {
        // A dry run removes from a file system that does not change.
        tiers.iter_mut().for_each(|tier| tier.fs = Arc::new(DryFs::new(Arc::clone(&tier.fs))));
    }
    let before = survey(&tiers)?;
    let mut errors = Vec::new();
    // Without anything to remove, not even a lock is created.
    if !is_nothing(&tiers, &before)? {
        let store = Store::open(tiers.clone(), Options { drains_behind: false, ..Options::default() })?;
        errors.extend(unless_stopped(&store, || store.prune()).err());
        errors.extend(store.close().errors);
    }
    let after = survey(&tiers)?;
    let removed = gone(&before, &after);
    let n_kept = after.iter().map(BTreeMap::len).sum();
    let is_stopped = errors.iter().any(|error| matches!(error, Error::Stopped));
    let stays = if is_stopped { Vec::new() } else { stays(&tiers, &after) };
    let pruned = Pruned { is_dry_run: args.dry_run, n_kept, removed, stays };
    json.give(Schema::CheckpointPrune, &pruned.text(), &pruned)?;
    let errors: Vec<anyhow::Error> = errors.into_iter().map(anyhow::Error::from).collect();
    errors.iter().for_each(complain_unless_stopped);
    Ok(Outcome::of(errors.is_empty()))
}

fn is_nothing(tiers: &[Tier], before: &Survey) -> Result<bool> {
    let mut is_nothing = before.iter().all(BTreeMap::is_empty);
    for tier in tiers {
        is_nothing &= left_over(tier)?.is_empty();
    }
    Ok(is_nothing)
}

type Survey = Vec<BTreeMap<Name, Found>>;

#[derive(Debug, Clone)]
struct Found {
    folder: String,
    bytes: u64,
    /// Its metric, or the damage visible in the manifest and the file lengths.
    look: std::result::Result<Option<f64>, Damage>,
}

/// The checkpoints on the tiers, without entries that only have the name of one.
fn survey(tiers: &[Tier]) -> Result<Survey> {
    let of = |tier: &Tier| -> Result<BTreeMap<Name, Found>> {
        let ours = tier.names()?.into_iter().filter(|name| why_foreign(tier, *name).is_none());
        let found = ours.map(|name| {
            let manifest = look(tier, name);
            let bytes = manifest.as_ref().map_or(0, |manifest| manifest.n_bytes());
            let folder = tier.dir.escaped().into_owned();
            (name, Found { folder, bytes, look: manifest.map(|manifest| manifest.metric) })
        });
        Ok(found.collect())
    };
    tiers.iter().map(of).collect()
}

/// The checkpoints that stay although the rules do not keep them, and why.
fn stays(tiers: &[Tier], after: &Survey) -> Vec<Stays> {
    let mut stays = Vec::new();
    for (index, (tier, here)) in tiers.iter().zip(after).enumerate() {
        let sound = here.iter().filter_map(|(name, found)| Some((*name, *found.look.as_ref().ok()?)));
        let kept = tier.keep.kept(&sound.collect());
        let waits = |name: &Name| after.get(index + 1).is_some_and(|behind| !behind.contains_key(name));
        for (name, found) in here.iter().filter(|(name, _)| !kept.contains(name)) {
            let why = match &found.look {
                Err(damage) => {
                    format!("damaged: {damage}; prune keeps it; if unwanted, remove its folder by hand")
                }
                Ok(_) if waits(name) => "not drained yet; run `forebay checkpoint drain`".to_owned(),
                Ok(_) => {
                    "the newest good copy here; `forebay checkpoint verify` lists the damage of newer ones".to_owned()
                }
            };
            stays.push(Stays { folder: found.folder.clone(), name: name.to_string(), why });
        }
    }
    stays
}

fn gone(before: &Survey, after: &Survey) -> Vec<Removed> {
    let of_tier = |(before, after): (&BTreeMap<Name, Found>, &BTreeMap<Name, Found>)| {
        let gone = before.iter().filter(|(name, _)| !after.contains_key(name));
        let of = |(name, found): (&Name, &Found)| (found.folder.clone(), name.to_string(), found.bytes);
        gone.map(of).map(|(folder, name, bytes)| Removed { folder, name, bytes }).collect::<Vec<_>>()
    };
    before.iter().zip(after).flat_map(of_tier).collect()
}

impl Pruned {
    fn text(&self) -> String {
        let verb = if self.is_dry_run { "would be removed" } else { "removed" };
        let mut text = String::new();
        for one in &self.removed {
            text.push_str(&format!("{verb}: {}/{}\n", one.folder, one.name));
        }
        for one in &self.stays {
            text.push_str(&format!("stays: {}/{}: {}\n", one.folder, one.name, one.why));
        }
        let bytes = Bytes(self.removed.iter().map(|one| one.bytes).sum());
        let n = count(self.removed.len() as u64, "checkpoint");
        text.push_str(&format!("{n} {verb}, {bytes}; {} kept\n", self.n_kept));
        text
    }
}
