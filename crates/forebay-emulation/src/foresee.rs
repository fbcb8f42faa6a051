//! A dry run: finds errors of a run in advance, without making, saving, evicting or measuring anything.
//!
//! It lists files as a run does and reads the first sample of each part, which detects files of another format. Only
//! the run itself finds out whether every file is intact.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use forebay_workload::{Part, Time, Workload};

use super::batch_source::{evaluates, storage};
use super::plan::Plan;
use super::prepare::together;
use super::read::{Access, Samples, refused};
use super::run::Error;
use super::saving;
use forebay_ranks::Ranks;

/// Finds errors in advance. Every rank must call it, as for a run.
///
/// # Errors
/// The first error that the run would have, on any rank.
pub fn foresee(plan: &Plan, ranks: &dyn Ranks) -> Result<(), Error> {
    let totals = forebay_workload::Plan::new(&plan.workload, plan.settings.all_accelerators() * ranks.size());
    let totals = together(ranks, totals.map_err(Error::Plan))?;
    let workflow = plan.workload.workflow;
    let data = match (workflow.generate_data, workflow.train) {
        (true, _) => can_make(plan),
        (false, true) => can_read(plan),
        (false, false) => Ok(()),
    };
    together(ranks, data)?;
    let out = plan.out.as_deref().filter(|_| ranks.rank() == 0);
    together(ranks, out.map_or(Ok(()), can_write))?;
    if workflow.checkpoint {
        together(ranks, can_write(&plan.checkpoints.dir))?;
        saving::check_room(plan, ranks, totals.checkpoints)?;
    }
    Ok(())
}

fn has_hdf5(workload: &Workload) -> Result<(), Error> {
    let is_built_in = forebay_dataset::is_built_in(workload.dataset.format);
    if is_built_in { Ok(()) } else { Err(refused(forebay_dataset::NO_HDF5.to_owned())) }
}

/// Checks that there is enough space for the data, and no other data in its place.
fn can_make(plan: &Plan) -> Result<(), Error> {
    has_hdf5(&plan.workload)?;
    can_write(&plan.data)?;
    Ok(forebay_dataset::foresee_records(&plan.workload, &plan.data)?)
}

fn can_read(plan: &Plan) -> Result<(), Error> {
    let mut one = plan.workload.clone();
    one.reader.preprocess_time = Time::default();
    (one.reader.batch_size, one.reader.batch_size_eval, one.reader.prefetch_size) = (1, 1, 0);
    let parts = [Part::Train, Part::Eval].into_iter().filter(|part| *part == Part::Train || evaluates(&plan.workload));
    for part in parts {
        let access = Access { storage: storage(plan), data: plan.data.clone(), verify: !plan.settings.no_verify };
        let samples = Samples::open(&one, part, access)?;
        samples.batches((0, 1), plan.workload.train.seed, 1, None)?.next().transpose()?;
    }
    Ok(())
}

fn can_write(dir: &Path) -> Result<(), Error> {
    let failed = |path: &Path, source| {
        Error::Shared(forebay_measure::Error::Io { what: "writing to", path: path.to_owned(), source })
    };
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let there = dir.ancestors().filter(|path| !path.as_os_str().is_empty()).find(is_there).unwrap_or(Path::new("."));
    if !there.is_dir() {
        return Err(failed(there, io::ErrorKind::NotADirectory.into()));
    }
    let name =
        CString::new(there.as_os_str().as_bytes()).map_err(|_| failed(there, io::ErrorKind::InvalidInput.into()))?;
    let mode = libc::W_OK | libc::X_OK;
    // SAFETY: the path ends with a zero, and the call writes nothing.
    match unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), mode, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(failed(there, io::Error::last_os_error())),
    }
}
