//! `forebay checkpoint verify`: reads every copy from its device and compares every checksum.

use anyhow::Result;
use forebay_checkpoint::{Error, Name, Tier, list, look, verify_until};
use forebay_report::visible;
use forebay_units::{Bytes, PathText};
use serde::Serialize;

use super::PlaceArgs;
use crate::output::{JsonArgs, Outcome, Schema, remark};
use crate::{progress, stop};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) at: PlaceArgs,

    /// Verify only the checkpoints of this step
    #[arg(long, value_name = "N")]
    step: Option<u64>,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct Verified {
    n_good: usize,
    n_bad: usize,
    is_interrupted: bool,
    copies: Vec<Copy>,
}

#[derive(Debug, Serialize)]
struct Copy {
    name: String,
    step: u64,
    folder: String,
    bytes: Option<u64>,
    is_good: bool,
    damage: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let (tiers, json) = args.at.open(&args.json, usize::MAX)?;
    // A folder that cannot be listed is an error of the command, not damage of a checkpoint.
    tiers.iter().try_for_each(|tier| tier.names().map(drop))?;
    let found = list(&tiers, &mut Vec::new());
    let wanted: Vec<(Name, &Tier)> = found
        .iter()
        .filter(|(name, _)| args.step.is_none_or(|step| step == name.step))
        .flat_map(|(name, places)| places.iter().map(|place| (*name, &tiers[*place])))
        .collect();
    let verified = all_of(&wanted);
    json.give(Schema::CheckpointVerify, &verified.text(args.step), &verified)?;
    if verified.is_interrupted {
        remark("forebay: stopped before the end");
    }
    Ok(Outcome::of(verified.n_bad == 0 && verified.n_good > 0 && !verified.is_interrupted))
}

fn all_of(wanted: &[(Name, &Tier)]) -> Verified {
    let len = |(name, tier): &(Name, &Tier)| look(tier, *name).map_or(0, |manifest| manifest.n_bytes());
    let bar = progress::bytes(wanted.iter().map(len).sum());
    let mut copies = Vec::new();
    for (name, tier) in wanted {
        bar.set_message(tier.path_of(*name).escaped().into_owned());
        let read = match verify_until(tier, *name, &|bytes| bar.inc(bytes), stop::flag()) {
            Err(Error::Stopped) => break,
            Err(Error::Damaged { damage, .. }) => Err(damage.to_string()),
            other => other.map_err(|error| error.to_string()),
        };
        copies.push(Copy {
            name: name.to_string(),
            step: name.step,
            folder: tier.dir.escaped().into_owned(),
            bytes: read.as_ref().ok().map(|manifest| manifest.n_bytes()),
            is_good: read.is_ok(),
            damage: read.err(),
        });
    }
    bar.finish_and_clear();
    let n_good = copies.iter().filter(|copy| copy.is_good).count();
    let (n_bad, is_interrupted) = (copies.len() - n_good, copies.len() < wanted.len());
    Verified { n_good, n_bad, is_interrupted, copies }
}

impl Verified {
    fn text(&self, step: Option<u64>) -> String {
        let mut text = String::new();
        for copy in &self.copies {
            let path = visible(&format!("{}/{}", copy.folder, copy.name)).into_owned();
            text.push_str(&match &copy.damage {
                None => format!("good     {path}\n"),
                Some(damage) => format!("DAMAGED  {path}: {}\n", visible(damage)),
            });
        }
        if self.copies.is_empty() && !self.is_interrupted {
            let of_step = step.map_or(String::new(), |step| format!(" of step {step}"));
            return format!("no checkpoints{of_step} to verify\n");
        }
        let bytes: u64 = self.copies.iter().filter_map(|copy| copy.bytes).sum();
        text.push_str(&format!("{} good, {} damaged; {} verified\n", self.n_good, self.n_bad, Bytes(bytes)));
        text
    }
}
