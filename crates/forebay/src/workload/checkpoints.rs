//! Where the checkpoints of a run go.
//!
//! A folder from the command line, or an absolute folder of the workload, is used as given. A relative folder of the workload,
//! as in all of DLIO's files, is a subfolder of the results. Without results, checkpoints go to a scratch folder in the data
//! folder, which the run removes.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use forebay_emulation::{Plan, checkpoint_place};
use forebay_measure::Place;
use forebay_storage::is_url;
use forebay_units::PathText;
use forebay_workload::Workload;

use crate::output::remark;
use crate::tier;

/// The parts of the command line and the workload that determine the folder.
pub(super) struct CheckpointFlags<'a> {
    pub(super) dir: Option<&'a Path>,
    pub(super) overrides: &'a [String],
    pub(super) workload: &'a Workload,
    pub(super) data: &'a Path,
    pub(super) out: Option<&'a Path>,
}

/// The folder, whether checkpoints stay there, and notes on its tier for the record.
pub(super) struct Chosen {
    pub(super) place: Place,
    pub(super) stays: bool,
    pub(super) notes: Vec<String>,
}

impl CheckpointFlags<'_> {
    pub(super) fn choose(&self) -> Result<Chosen> {
        let named = self.named();
        let stays = named.is_some();
        let dir = named.unwrap_or_else(|| self.data.to_owned());
        if !self.workload.workflow.checkpoint {
            return Ok(Chosen { place: Place::new(dir), stays: true, notes: Vec::new() });
        }
        if !stays {
            self.check_scratch()?;
        }
        if is_url(&dir) {
            bail!("{}: workload run saves checkpoints to local folders, not to object stores", dir.escaped());
        }
        let (place, notes) = tier::place(&dir, None)?;
        let notes = notes.iter().map(|note| note.replacen("the data is", "checkpoints are", 1)).collect();
        Ok(Chosen { place, stays, notes })
    }

    /// The folder given by the user or the workload, or the one in the results.
    fn named(&self) -> Option<PathBuf> {
        let folder = Path::new(&self.workload.checkpoint.folder);
        let plain = |path: PathBuf| path.components().collect::<PathBuf>();
        match (self.dir, self.out) {
            (Some(dir), _) => Some(dir.to_owned()),
            (None, _) if folder.is_absolute() || self.is_overridden() => Some(plain(folder.to_owned())),
            (None, Some(out)) => Some(plain(out.join(folder))),
            (None, None) => None,
        }
    }

    fn is_overridden(&self) -> bool {
        let key = "workload.checkpoint.checkpoint_folder=";
        self.overrides.iter().any(|words| words.trim_start_matches('+').starts_with(key))
    }

    /// Refuses a scratch folder if there is no data folder, or if checkpoints of another run are to be read.
    fn check_scratch(&self) -> Result<()> {
        let Workload { workflow, checkpoint, .. } = self.workload;
        if !workflow.train && checkpoint.n_read > checkpoint.n_write {
            bail!(
                "this workload reads checkpoints that another run saved\nhint: name their folder with --checkpoint-dir DIR"
            );
        }
        if !self.data.is_dir() && !workflow.generate_data {
            let data = self.data.escaped();
            if workflow.train {
                bail!(
                    "{data}: no data for this workload\n\
                     hint: make it with `forebay workload make`, or name its folder with --data DIR"
                );
            }
            bail!(
                "this workload saves checkpoints, but there is no data folder {data} to keep them in during the run\n\
                 hint: name a folder with --checkpoint-dir DIR, or keep them with the results of --out DIR"
            );
        }
        Ok(())
    }
}

/// Says where checkpoints go, if the run saves or restores any.
pub(super) fn announce(plan: &Plan, accelerators: u64) {
    let Some(place) = checkpoint_place(plan) else { return };
    let n_saves = forebay_workload::Plan::new(&plan.workload, accelerators).map_or(0, |totals| totals.checkpoints);
    if n_saves == 0 && plan.workload.checkpoint.n_read == 0 {
        return;
    }
    let hint = if place.is_removed { "; keep them with --out DIR or --checkpoint-dir DIR" } else { "" };
    remark(&format!("forebay: checkpoints go to {}{hint}", place.describe()));
}

/// Removes the checkpoints of a failed run from its results folder.
pub(super) fn remove_with(plan: &Plan, out: &Path) {
    let dir = &plan.checkpoints.dir;
    if plan.workload.workflow.checkpoint && dir.starts_with(out) && dir != out {
        // The run also created the folders in between.
        let below = dir.strip_prefix(out).ok().and_then(|rest| rest.components().next());
        let _ = below.map(|first| std::fs::remove_dir_all(out.join(first)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folder for a workload's own one, and whether it stays.
    fn chosen(folder: &str, dir: Option<&str>, overrides: &[&str], out: Option<&str>) -> (PathBuf, bool) {
        let mut workload = Workload::default();
        workload.checkpoint.folder = folder.to_owned();
        let overrides: Vec<String> = overrides.iter().map(|word| (*word).to_owned()).collect();
        let asked = CheckpointFlags {
            dir: dir.map(Path::new),
            overrides: &overrides,
            workload: &workload,
            data: Path::new("set"),
            out: out.map(Path::new),
        };
        let chosen = asked.choose().unwrap();
        (chosen.place.dir, asked.named().is_some())
    }

    #[test]
    fn a_relative_folder_of_the_workload_lies_in_the_results_and_what_the_user_names_where_it_says() {
        let default = "./checkpoints/";
        assert_eq!(chosen(default, None, &[], Some("out")), ("out/checkpoints".into(), true));
        assert_eq!(chosen("checkpoints/unet3d", None, &[], Some("out")), ("out/checkpoints/unet3d".into(), true));
        assert_eq!(chosen("/mnt/saves", None, &[], Some("out")), ("/mnt/saves".into(), true));
        assert_eq!(chosen("/mnt/saves", Some("here"), &[], Some("out")), ("here".into(), true));
        let overridden = ["++workload.checkpoint.checkpoint_folder=saves"];
        assert_eq!(chosen("saves", None, &overridden, Some("out")), ("saves".into(), true));
        assert_eq!(chosen(default, None, &[], None), ("set".into(), false), "for the time of the run");
    }
}
