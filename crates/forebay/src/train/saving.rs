//! The flags of `forebay train` for the folders of its checkpoints.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use forebay_bench::checkpoint::mode_name;
use forebay_bench::train::{Plan, Saves, TrainSettings};
use forebay_measure::{Place, Places, spelled};
use forebay_record::{Level, Levels};
use forebay_storage::Profile;
use forebay_units::{PathText, group_digits};

use crate::flags::flag;
use crate::output::{Outputs, keep_apart};
use crate::tier;

#[derive(Debug, clap::Args)]
pub(super) struct Saving {
    #[command(flatten)]
    folders: CheckpointFolders,

    /// Resume from the newest good checkpoint, if there is one
    #[arg(long, requires = "checkpoint_dir")]
    resume: bool,
}

impl Saving {
    pub(super) fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.folders.dirs()
    }

    /// See [`CheckpointFolders::saves`].
    pub(super) fn saves(&self, settings: &TrainSettings, data: Option<&Path>) -> Result<Option<(Saves, Vec<String>)>> {
        let saves = self.folders.saves(settings, data)?;
        Ok(saves.map(|(saves, notes)| (Saves { resume: self.resume, ..saves }, notes)))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckpointFolders {
    /// Folder or URL for checkpoints
    #[arg(long, value_name = "DIR")]
    checkpoint_dir: Option<PathBuf>,

    /// Burst buffer: a folder on a faster device, drained in the background
    #[arg(long, value_name = "DIR", requires = "checkpoint_dir")]
    burst_dir: Option<PathBuf>,

    /// Emulate a device for --checkpoint-dir: hdd, ssd, optane, lustre or s3
    #[arg(long, value_name = "NAME", requires = "checkpoint_dir")]
    checkpoint_tier: Option<Profile>,

    /// Emulate a device for --burst-dir
    #[arg(long, value_name = "NAME", requires = "burst_dir")]
    burst_tier: Option<Profile>,
}

impl CheckpointFolders {
    pub(crate) fn dirs(&self) -> impl Iterator<Item = &Path> {
        self.burst_dir.iter().chain(&self.checkpoint_dir).map(PathBuf::as_path)
    }

    /// The flags that were given, for the record.
    pub(crate) fn given(&self) -> Levels {
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.escaped().into_owned());
        let name = |tier: &Option<Profile>| tier.as_ref().map(|tier| tier.name.clone());
        let all = [
            ("checkpoint_dir", path(&self.checkpoint_dir)),
            ("checkpoint_tier", name(&self.checkpoint_tier)),
            ("burst_dir", path(&self.burst_dir)),
            ("burst_tier", name(&self.burst_tier)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Level::Text(value?)))).collect()
    }

    /// Where checkpoints go, and notes on their tiers for the record; `None` if no flag asks for checkpoints.
    pub(crate) fn saves(&self, settings: &TrainSettings, data: Option<&Path>) -> Result<Option<(Saves, Vec<String>)>> {
        let has_burst = self.checkpoint_dir.as_ref().map(|_| self.burst_dir.is_some());
        settings.check_saves(has_burst).map_err(|refused| anyhow!(spelled(&refused, flag_of_place)))?;
        let Some(dir) = &self.checkpoint_dir else { return Ok(None) };
        self.check_folders(dir, data)?;
        let mut notes = Vec::new();
        let mut place = |dir: &Path, tier: &Option<Profile>, which: &str| -> Result<Place> {
            let (place, said) = tier::place(dir, tier.as_ref())?;
            notes.extend(said.iter().map(|note| of_folder(note, which)));
            Ok(place)
        };
        let fast = self.burst_dir.as_deref().map(|dir| place(dir, &self.burst_tier, "burst")).transpose()?;
        let slow = place(dir, &self.checkpoint_tier, "checkpoint")?;
        Ok(Some((Saves { places: Places { slow, fast, keep: settings.kept() }, resume: false }, notes)))
    }

    fn check_folders(&self, dir: &Path, data: Option<&Path>) -> Result<()> {
        // Each folder is checked alone; their relation is checked below.
        for (flag, dir) in [("--checkpoint-dir", Some(dir)), ("--burst-dir", self.burst_dir.as_deref())] {
            dir.map_or(Ok(()), |dir| Outputs::for_inputs(data, false).folder(flag, dir))?;
        }
        let fast = self.burst_dir.as_deref();
        fast.map_or(Ok(()), |fast| keep_apart(("--burst-dir", fast), ("--checkpoint-dir", dir)))
    }
}

/// The flag of a setting, or of a folder that a setting refers to.
fn flag_of_place(name: &str) -> String {
    match name {
        "checkpoint" | "burst" => format!("--{name}-dir"),
        setting => flag(setting),
    }
}

pub(super) fn describe(plan: &Plan) -> Option<String> {
    let (Places { slow, fast, keep }, settings) = (&plan.saves.as_ref()?.places, &plan.settings);
    let by_way = fast.as_ref().map(|fast| format!(" via {}", fast.dir.escaped())).unwrap_or_default();
    let (every, mode) = (group_digits(settings.checkpoint_every?), mode_name(plan.mode()));
    let (dir, format) = (slow.dir.escaped(), settings.format());
    let kept = match (fast.is_some() && keep.fast != keep.slow, keep.slow, keep.fast) {
        (true, slow, fast) => format!("{slow} kept, {fast} in the burst buffer"),
        (false, slow, _) => format!("{slow} kept"),
    };
    Some(format!("; a checkpoint every {every} to {dir}{by_way}, {mode}, {format}, {kept}"))
}

/// Rewords a note on the data's tier for a folder of checkpoints and its flags.
fn of_folder(note: &str, which: &str) -> String {
    let note = note.replacen("the data is", &format!("--{which}-dir is"), 1);
    note.replacen("--tier ", &format!("--{which}-tier "), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_flags_of_its_folder() {
        let both = "both limits apply: --tier hdd is shaped in this process, on top of the kernel's limits of tier ssd";
        assert!(of_folder(both, "checkpoint").starts_with("both limits apply: --checkpoint-tier hdd is shaped"));
        assert_eq!(of_folder("the data is on tier ssd", "burst"), "--burst-dir is on tier ssd");
    }
}
