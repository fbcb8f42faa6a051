//! One case of each kind: the history, something that goes wrong at operation k, and the check.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use forebay_checkpoint::{Cut, FaultyFs, Fs, LocalFs, SyncPoint};

use crate::Error;
use crate::check::check;
use crate::history::{Ledger, Short, Way, plain_tiers, resume, run, tiers};
use crate::hook::HookFs;
use crate::place::{Device, Folder, Fresh};

/// Whether the history came to operation k, and what was wrong afterwards.
pub(crate) type Outcome = Result<(bool, Result<(), String>), Error>;

fn local() -> Arc<dyn Fs> {
    Arc::new(LocalFs)
}

fn faulty(cut: Cut, without: Option<SyncPoint>) -> FaultyFs {
    match without {
        Some(point) => FaultyFs::without(local(), cut, point),
        None => FaultyFs::new(local(), cut),
    }
}

fn run_on(fs: Arc<dyn Fs>, fresh: &Fresh<'_>, way: Way, ledger: &mut Ledger) {
    run(tiers(&fs, &fresh.fast, &fresh.slow()), way, ledger);
}

/// Mounts again what is left, and checks it.
fn check_on(fresh: &Fresh<'_>, way: Way, ledger: &Ledger) -> Result<Result<(), String>, Error> {
    let mounted = fresh.mount()?;
    let outcome = check(&tiers(&local(), &fresh.fast, &fresh.slow()), way, ledger);
    mounted.unmount()?;
    Ok(outcome)
}

/// The history with this cut, and then the power goes.
pub(crate) fn power_cut(device: &Device, way: Way, cut: Cut, without: Option<SyncPoint>) -> Outcome {
    let (fresh, mut ledger) = (device.fresh()?, device.ledger.clone());
    let faulty = faulty(cut, without);
    let mounted = fresh.mount()?;
    run_on(Arc::new(faulty.clone()), &fresh, way, &mut ledger);
    mounted.cut()?;
    mounted.unmount()?;
    Ok((faulty.has_cut(), check_on(&fresh, way, &ledger)?))
}

/// The process is killed at operation k, and what it had not synced is only in memory; the next one finds room for one
/// checkpoint on its fast tier, saves, and the power of the slow one goes.
pub(crate) fn killed_then_cut(device: &Device, way: Way, k: u64, without: Option<SyncPoint>) -> Outcome {
    let (fresh, mut ledger) = (device.fresh()?, device.ledger.clone());
    let killed = faulty(Cut::Off(k), without);
    let mounted = fresh.mount()?;
    run_on(Arc::new(killed.clone()), &fresh, way, &mut ledger);
    let next: Arc<dyn Fs> = Arc::new(faulty(Cut::Never, without));
    resume(tiers(&next, &fresh.fast, &fresh.slow()), way, &mut ledger);
    mounted.cut()?;
    mounted.unmount()?;
    Ok((killed.has_cut(), check_on(&fresh, way, &ledger)?))
}

/// At operation k the disk is filled to its last block; later the power goes, and the filling is taken away.
pub(crate) fn filled_up(device: &Device, way: Way, k: u64) -> Outcome {
    let (fresh, mut ledger) = (device.fresh()?, device.ledger.clone());
    let filling = fresh.root().join("filling");
    let mounted = fresh.mount()?;
    let path = filling.clone();
    let hook = HookFs::new(local(), k, move || fill(&path).expect("a disk can be filled"));
    run_on(Arc::new(hook.clone()), &fresh, way, &mut ledger);
    ledger.short = Short::Both;
    mounted.cut()?;
    mounted.unmount()?;
    let mounted = fresh.mount()?;
    if filling.exists() {
        std::fs::remove_file(&filling)?;
    }
    mounted.unmount()?;
    Ok((hook.has_acted(), check_on(&fresh, way, &ledger)?))
}

/// Takes all the space that there is, and makes that durable.
fn fill(path: &Path) -> Result<(), Error> {
    let file = File::create(path)?;
    let (mut len, mut bytes) = (0, 64 << 20);
    while bytes >= 512 {
        // SAFETY: a valid descriptor and plain integers.
        let rc = unsafe { libc::fallocate(file.as_raw_fd(), 0, len, bytes) };
        if rc == 0 { len += bytes } else { bytes /= 2 }
    }
    Ok(file.sync_all()?)
}

/// At operation k the slow tier's disk is gone, while the fast one's lives; later it is there again, with what was
/// durable on it.
pub(crate) fn slow_vanishes(device: &Device, way: Way, k: u64) -> Outcome {
    let (fresh, mut ledger) = (device.fresh()?, device.ledger.clone());
    let mounted = Arc::new(fresh.mount()?);
    let disk = Arc::clone(&mounted);
    let hook = HookFs::new(local(), k, move || disk.cut().expect("a mounted disk can be cut off"));
    run_on(Arc::new(hook.clone()), &fresh, way, &mut ledger);
    let has_acted = hook.has_acted();
    drop(hook);
    Arc::into_inner(mounted).ok_or("a store is closed and has its file system still")?.unmount()?;
    Ok((has_acted, check_on(&fresh, way, &ledger)?))
}

/// In a plain folder, what the faulty file system can do: an operation fails, space runs out, a tier vanishes.
pub(crate) fn goes_wrong(folder: &Folder, way: Way, cut: impl FnOnce(&Path) -> Cut) -> Outcome {
    let (root, mut ledger) = (folder.fresh()?, folder.ledger.clone());
    let cut = cut(&root);
    if let Cut::Full(_) = cut {
        ledger.short = Short::Both;
    }
    let faulty = faulty(cut, None);
    let fs: Arc<dyn Fs> = Arc::new(faulty.clone());
    run(tiers(&fs, &root.join("fast"), &root.join("slow")), way, &mut ledger);
    Ok((faulty.has_cut(), check(&plain_tiers(&root), way, &ledger)))
}

/// A process of its own runs the history and is killed by the kernel at operation k.
pub(crate) fn killed(folder: &Folder, way: Way, k: u64) -> Outcome {
    let (root, mut ledger) = (folder.fresh()?, folder.ledger.clone());
    let mut child = Command::new(std::env::current_exe()?);
    let status = child.arg("child").arg(&root).args([way.name(), k.to_string()]).status()?;
    ledger.read(&root.join("ledger"))?;
    let outcome = check(&plain_tiers(&root), way, &ledger);
    match (status.signal(), status.code()) {
        (Some(libc::SIGKILL), _) => Ok((true, outcome)),
        (None, Some(0)) => Ok((false, outcome)),
        _ => Err(format!("a child of {} ended with {status} at {k}", way.name()).into()),
    }
}

/// Runs in the child process until it kills itself at operation `k`.
pub(crate) fn be_killed(root: &Path, way: &str, k: u64) -> Result<(), Error> {
    let way = Way::all().into_iter().find(|known| known.name() == way).ok_or("no such way to save")?;
    let mut ledger = Ledger::in_file(&root.join("ledger"))?;
    let kill = || loop {
        // SAFETY: plain integers. The signal cannot be caught, and nothing after it shall happen.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    };
    let fs: Arc<dyn Fs> = Arc::new(HookFs::new(local(), k, kill));
    run(tiers(&fs, &root.join("fast"), &root.join("slow")), way, &mut ledger);
    Ok(())
}
