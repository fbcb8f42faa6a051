//! The location of checkpoints, and the scratch folder of those that are not kept.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use forebay_measure::file_system_of;
use forebay_measure::{Scratch, remove_left_overs};
use forebay_record::{CheckpointPlace, Medium, TierKind};
use forebay_units::PathText;
use forebay_workload::Format;

use super::plan::Plan;
use super::prepare::together;
use super::run::Error;
use forebay_ranks::Ranks;

pub(super) const PREFIX: &str = ".forebay-checkpoints-";

/// Where checkpoints go; `None` if the plan saves none. The folder need not exist yet.
pub fn checkpoint_place(plan: &Plan) -> Option<CheckpointPlace> {
    let place = &plan.checkpoints;
    let profile = place.shaped.as_ref().or(place.kernel.as_ref());
    let kind = if place.shaped.is_some() { TierKind::Shaped } else { TierKind::Kernel };
    let reads = plan.workload.workflow.train && plan.workload.dataset.format != Format::Synthetic;
    plan.workload.workflow.checkpoint.then(|| CheckpointPlace {
        path: place.dir.escaped().into_owned(),
        medium: Medium::new(
            file_system_of(there(&place.dir)).map(|(system, _)| system).unwrap_or_default(),
            profile.map(|profile| (profile.name.as_str(), kind)),
            Vec::new(),
        ),
        is_with_data: device_of(&place.dir).zip(device_of(&plan.data)).filter(|_| reads).map(|(a, b)| a == b),
        is_removed: !plan.keeps_checkpoints,
    })
}

/// A warning if checkpoints are on another device than the data.
pub fn checkpoint_warning(plan: &Plan) -> Option<String> {
    let place = checkpoint_place(plan)?;
    let of_data = plan.tier.as_ref().filter(|_| plan.workload.workflow.train).map(|profile| profile.name.as_str());
    let device = place.device().unwrap_or_else(|| "an unknown file system".to_owned());
    if place.is_with_data == Some(false) {
        let system = file_system_of(&plan.data).map_or("another file system".to_owned(), |(system, _)| system);
        return Some(format!(
            "checkpoints and data are on different file systems: {} is on {device}, {} on {system}; times and rates of \
             checkpoints are those of the former, times and rates of reads those of the latter",
            place.path,
            plan.data.escaped()
        ));
    }
    of_data.filter(|tier| place.medium.tier.as_deref() != Some(tier)).map(|tier| {
        format!(
            "the emulated {tier} applies to the data only: checkpoints go to {} ({device}), which determines their times \
             and rates",
            place.path
        )
    })
}

/// The path, or the nearest existing folder above it.
pub(super) fn there(path: &Path) -> &Path {
    let is_there = |path: &&Path| !path.as_os_str().is_empty() && path.exists();
    path.ancestors().find(is_there).unwrap_or(Path::new("."))
}

fn device_of(path: &Path) -> Option<u64> {
    std::fs::metadata(there(path)).ok().map(|found| found.dev())
}

/// A folder for checkpoints. A scratch folder is removed on drop, so drop it only when no rank uses it any more.
pub(super) struct Folder {
    pub(super) dir: PathBuf,
    is_removed: bool,
    /// Held by the first rank; its lock keeps other runs from removing the folder.
    _scratch: Option<Scratch>,
}

impl Folder {
    /// The plan's own folder, or a scratch folder in it that all ranks share.
    pub(super) fn open(plan: &Plan, ranks: &dyn Ranks) -> Result<Self, Error> {
        let dir = &plan.checkpoints.dir;
        if plan.keeps_checkpoints {
            return Ok(Self { dir: dir.clone(), is_removed: false, _scratch: None });
        }
        let scratch = (ranks.rank() == 0).then(|| {
            remove_left_overs(dir, PREFIX);
            Scratch::create(dir, PREFIX)
                .map_err(|source| Error::Scratch { path: dir.clone(), source: Box::new(source) })
        });
        let scratch = together(ranks, scratch.transpose())?;
        let mine = scratch.as_ref().map(|scratch| scratch.path().as_os_str().as_bytes().to_vec());
        let dir = OsString::from_vec(ranks.broadcast(mine.unwrap_or_default())?).into();
        Ok(Self { dir, is_removed: true, _scratch: scratch })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_removed {
            // Hosts need not share the folder, so every rank removes its view of it. If that fails, the next run tries
            // again.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
