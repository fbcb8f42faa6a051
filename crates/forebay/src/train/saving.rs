//! The flags of `forebay train` for its checkpoints.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use forebay_bench::checkpoint::{MODES, mode_name};
use forebay_bench::train::Checkpointing;
use forebay_checkpoint::{Mode, WhenBehind, format};
use forebay_measure::{Place, Places};
use forebay_storage::Profile;
use forebay_units::{Bytes, PathText, group_digits};

use crate::output::{Outputs, place};
use crate::tier;
use crate::values::{parse_bytes_per_s, parse_state};

const KEEP: u32 = 5;

/// Where and how a run saves its state.
#[derive(Debug, clap::Args)]
pub(crate) struct Saving {
    /// Save the state after every so many steps, for --resume to go on from
    #[arg(long, value_name = "N", requires = "checkpoint_dir", value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: Option<u64>,

    /// The folder that checkpoints go to, at last
    #[arg(long, value_name = "DIR", requires = "checkpoint_every")]
    checkpoint_dir: Option<PathBuf>,

    /// A folder on a faster device that they go to first; they are drained from there behind training's back
    #[arg(long, value_name = "DIR", requires = "checkpoint_dir")]
    burst_dir: Option<PathBuf>,

    /// When training goes on: once the checkpoint is durable (direct), durable in --burst-dir (burst), copied in memory (async)
    ///
    /// burst by default where there is a --burst-dir, direct otherwise.
    #[arg(
        long,
        value_name = "direct|burst|async",
        requires = "checkpoint_dir",
        value_parser = PossibleValuesParser::new(MODES.map(|(name, _)| name))
    )]
    checkpoint_mode: Option<String>,

    /// How checkpoints lie in files; safetensors by default
    #[arg(long, value_name = "safetensors|tensorflow", requires = "checkpoint_dir", value_parser = parse_format)]
    checkpoint_format: Option<&'static str>,

    /// Checkpoints that stay in each folder; 5 by default
    #[arg(long, value_name = "N", requires = "checkpoint_dir", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    keep: Option<u32>,

    /// Go on from the newest good checkpoint; begin anew where there is none
    #[arg(long, requires = "checkpoint_dir")]
    resume: bool,

    /// Emulate a device in this process for --checkpoint-dir: hdd, ssd, optane or lustre
    #[arg(long, value_name = "NAME", requires = "checkpoint_dir")]
    checkpoint_tier: Option<Profile>,

    /// Emulate a device in this process for --burst-dir
    #[arg(long, value_name = "NAME", requires = "burst_dir")]
    burst_tier: Option<Profile>,

    /// What a checkpoint does that finds those before it unfinished and no room: wait, be skipped, or take an older one's place
    #[arg(
        long,
        value_name = "wait|skip|coalesce",
        requires = "checkpoint_dir",
        value_parser = PossibleValuesParser::new(["wait", "skip", "coalesce"])
    )]
    checkpoint_behind: Option<String>,

    /// The most that draining copies, as 100MB/s; what it copied it reads back as fast at the most
    #[arg(long, value_name = "BYTES/s", requires = "burst_dir", value_parser = parse_bytes_per_s)]
    drain_rate: Option<Bytes>,

    /// Bytes of a checkpoint of an emulated accelerator, which has no state of its own
    #[arg(long, value_name = "BYTES", requires_all = ["checkpoint_dir", "accelerator"], value_parser = parse_state)]
    checkpoint_size: Option<Bytes>,
}

impl Saving {
    /// The checkpoints of the plan; none where no flag asks for any.
    pub(super) fn plan(&self, is_emulated: bool, data: Option<&Path>) -> Result<Option<Checkpointing>> {
        let (Some(every), Some(dir)) = (self.checkpoint_every, &self.checkpoint_dir) else { return Ok(None) };
        if is_emulated && self.checkpoint_size.is_none() {
            bail!("--checkpoint-every: an emulated accelerator has no state of its own; give --checkpoint-size 600MB");
        }
        let mode = self.mode()?;
        self.check_folders(dir, data)?;
        let place = |dir: &Path, tier: &Option<Profile>| -> Result<Place> {
            let placement = tier::placement(dir)?;
            Ok(Place { dir: dir.to_owned(), shaped: tier.clone().or(placement.shaped), kernel: placement.kernel })
        };
        let fast = self.burst_dir.as_deref().map(|dir| place(dir, &self.burst_tier)).transpose()?;
        let keep = self.keep.unwrap_or(KEEP) as usize;
        Ok(Some(Checkpointing {
            places: Places { slow: place(dir, &self.checkpoint_tier)?, fast, keep },
            every,
            mode,
            format: self.checkpoint_format.unwrap_or(format::FORMATS[0].name()),
            when_behind: self.when_behind(mode)?,
            drain_bytes_per_s: self.drain_rate.map(|rate| rate.0),
            resume: self.resume,
            size: self.checkpoint_size.map(|size| size.0),
        }))
    }

    /// Refuses folders that would be taken for each other.
    fn check_folders(&self, dir: &Path, data: Option<&Path>) -> Result<()> {
        // Each for itself: how the two lie to each other is said below.
        for (flag, dir) in [("--checkpoint-dir", Some(dir)), ("--burst-dir", self.burst_dir.as_deref())] {
            dir.map_or(Ok(()), |dir| Outputs::beside(data, false).folder(flag, dir))?;
        }
        let Some(burst) = &self.burst_dir else { return Ok(()) };
        let (fast, slow) = (place(burst), place(dir));
        if fast == slow {
            bail!("--burst-dir {}: it is the folder of --checkpoint-dir", burst.escaped());
        }
        if fast.starts_with(&slow) {
            bail!("--burst-dir {}: it lies in the folder of --checkpoint-dir", burst.escaped());
        }
        if slow.starts_with(&fast) {
            bail!("--checkpoint-dir {}: it lies in the folder of --burst-dir", dir.escaped());
        }
        Ok(())
    }

    fn mode(&self) -> Result<Mode> {
        Ok(match (self.checkpoint_mode.as_deref(), &self.burst_dir) {
            (Some("direct"), Some(_)) => bail!("--burst-dir: nothing goes there with --checkpoint-mode direct"),
            (Some("burst"), None) => bail!("--checkpoint-mode burst: give --burst-dir, which checkpoints go to first"),
            (Some("async"), _) => Mode::Async,
            (_, Some(_)) => Mode::Burst,
            (_, None) => Mode::Direct,
        })
    }

    fn when_behind(&self, mode: Mode) -> Result<WhenBehind> {
        Ok(match self.checkpoint_behind.as_deref() {
            Some(behind) if mode == Mode::Direct => {
                bail!(
                    "--checkpoint-behind {behind}: with --checkpoint-mode direct none is unfinished when the next one comes"
                )
            }
            Some("skip") => WhenBehind::Skip,
            Some("coalesce") => WhenBehind::Coalesce,
            _ => WhenBehind::Wait,
        })
    }

    /// What the record should say of the tiers below the folders.
    pub(super) fn notes(&self) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for (dir, tier, which) in
            [(&self.burst_dir, &self.burst_tier, "burst"), (&self.checkpoint_dir, &self.checkpoint_tier, "checkpoint")]
        {
            let Some(dir) = dir else { continue };
            let said = tier::placement(dir)?.notes_beside(tier.as_ref());
            notes.extend(said.iter().map(|note| of_folder(note, which)));
        }
        Ok(notes)
    }
}

/// The checkpoints of a plan in words, for a dry run.
pub(super) fn describe(saving: &Checkpointing) -> String {
    let Places { slow, fast, keep } = &saving.places;
    let by_way = fast.as_ref().map(|fast| format!(" by way of {}", fast.dir.escaped())).unwrap_or_default();
    let mode = mode_name(saving.mode);
    let (every, dir) = (group_digits(saving.every), slow.dir.escaped());
    format!("; a checkpoint every {every} to {dir}{by_way}, {mode}, {}, {keep} kept", saving.format)
}

/// A note on the data's place, said of a folder of checkpoints and by its own flags.
fn of_folder(note: &str, which: &str) -> String {
    let note = note.replacen("the data lies", &format!("--{which}-dir lies"), 1);
    note.replacen("--tier ", &format!("--{which}-tier "), 1)
}

fn parse_format(text: &str) -> Result<&'static str, String> {
    let known = || format::FORMATS.map(|format| format.name()).join(" or ");
    format::named(text).map(|format| format.name()).ok_or_else(|| format!("give {}", known()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_flags_of_its_folder() {
        let both =
            "both limits act: --tier hdd is shaped in this process, on top of what the kernel allows the tier ssd";
        assert!(of_folder(both, "checkpoint").starts_with("both limits act: --checkpoint-tier hdd is shaped"));
        assert_eq!(of_folder("the data lies on the tier ssd", "burst"), "--burst-dir lies on the tier ssd");
    }
}
