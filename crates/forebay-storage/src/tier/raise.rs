//! Bringing a tier up, step by step. The state file names each step before it is done.
//!
//! A step whose work is already done does nothing. The same sequence therefore serves a new tier, an interrupted one,
//! one whose image survived a reboot, and one whose limits change.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

use super::error::Attempt;
use super::plan::whole_mebibytes;
use super::registry::{refuse_strangers, strangers};
use super::state::boot;
use super::throttle::{self, Controller, Limits, Line};
use super::{
    Condition, Error, Kind, Moment, Plan, Registry, Result, Stage, Tier, Watch, image, loop_device, lower, mounts, tell,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    New,
    /// It existed but was not up: after a reboot or an interrupted run.
    Again,
    Limits,
    Nothing,
}

#[derive(Debug, Clone)]
pub struct Raised {
    pub tier: Tier,
    pub change: Change,
    /// For the user: which processes the limits do not apply to.
    pub notes: Vec<String>,
}

impl Registry {
    /// Brings a tier up. If it is already up, new rates are applied; another size, file system, kind or place is an error.
    /// A new tier that fails to come up leaves nothing behind.
    ///
    /// # Errors
    /// See [`Error`], and [`Error::hint`] for the fix.
    pub fn up(&self, plan: &Plan, watch: Watch<'_>) -> Result<Raised> {
        plan.check(self.tier(&plan.name)?.as_ref())?;
        let lock = self.lock()?;
        let home = lock.dir.join(&plan.name);
        match Tier::read(&home)? {
            Some(tier) => again(plan, home, tier, watch),
            None => afresh(plan, home, watch),
        }
    }
}

fn afresh(plan: &Plan, home: PathBuf, watch: Watch<'_>) -> Result<Raised> {
    let place = match &plan.dir {
        Some(dir) => {
            let dir = dir.canonicalize().attempt("finding the folder", dir)?;
            check_writable(&dir).attempt("writing to", &dir)?;
            dir.join(&plan.name)
        }
        None => home.clone(),
    };
    for folder in [&home, &place] {
        if !strangers(folder, &[])?.is_empty() {
            return Err(Error::Occupied { path: folder.clone() });
        }
    }
    let (profile, iops) = plan.profile(None)?;
    let is_kernel = plan.kind == Kind::Kernel;
    let tier = Tier {
        name: plan.name.clone(),
        kind: plan.kind,
        place,
        profile,
        iops,
        size: if is_kernel { Some(plan.new_size()?) } else { None },
        fs: is_kernel.then(|| plan.fs.unwrap_or_default()),
        stage: Stage::Folders,
        device: None,
        limited_at_ns: None,
        boot: boot(),
        lines: Vec::new(),
    };
    if is_kernel {
        // Before gigabytes are reserved: can there be limits at all?
        Controller::of_this_machine()?.setting("7:0", Limits::of(&tier))?;
    }
    let mut raising = Raising { home, tier, watch, notes: Vec::new(), owner: plan.owner };
    match raising.make() {
        Ok(()) => Ok(Raised { tier: raising.tier, change: Change::New, notes: raising.notes }),
        Err(error @ Error::Stopped { .. }) => Err(error),
        Err(error) => {
            // If cleaning up fails too, the tier stays in the list, and `down` can be retried.
            let _ = lower::lower(&raising.home, &mut raising.tier, &mut |_| std::ops::ControlFlow::Continue(()));
            Err(error)
        }
    }
}

fn again(plan: &Plan, home: PathBuf, mut tier: Tier, watch: Watch<'_>) -> Result<Raised> {
    if tier.stage == Stage::Removal {
        return Err(Error::HalfRemoved { name: tier.name });
    }
    refuse_differences(plan, &tier, &home)?;
    let (profile, iops) = plan.profile(Some(&tier))?;
    let condition = tier.status()?.condition;
    if condition == Condition::Up && (&profile, iops) == (&tier.profile, tier.iops) {
        return Ok(Raised { tier, change: Change::Nothing, notes: Vec::new() });
    }
    let change = if matches!(condition, Condition::Up | Condition::Unlimited) { Change::Limits } else { Change::Again };
    (tier.profile, tier.iops) = (profile, iops);
    if tier.boot != boot() {
        // Neither devices nor limits outlive a boot.
        (tier.boot, tier.device, tier.lines) = (boot(), None, Vec::new());
    }
    let mut raising = Raising { home, tier, watch, notes: Vec::new(), owner: plan.owner };
    // An image without a complete file system never held data; any other may.
    if raising.tier.stage <= Stage::Format || raising.tier.kind == Kind::Shaped {
        raising.make()?;
    } else {
        raising.revive()?;
    }
    Ok(Raised { tier: raising.tier, change, notes: raising.notes })
}

/// Rejects changes that would lose the data.
fn refuse_differences(plan: &Plan, tier: &Tier, home: &Path) -> Result<()> {
    let differs = |has: String, wanted: String| Err(Error::Differs { name: tier.name.clone(), has, wanted });
    if plan.kind != tier.kind {
        return Err(Error::OtherKind { name: tier.name.clone(), has: tier.kind, wanted: plan.kind });
    }
    let wanted_place = match &plan.dir {
        Some(dir) => dir.canonicalize().attempt("finding the folder", dir)?.join(&plan.name),
        None => tier.place.clone(),
    };
    if wanted_place != tier.place {
        return differs(format!("folder {}", tier.place.escaped()), format!("folder {}", wanted_place.escaped()));
    }
    debug_assert!(tier.place.ends_with(&plan.name) && home.ends_with(&plan.name));
    if let (Some(wanted), Some(has)) = (plan.size.map(whole_mebibytes), tier.size)
        && wanted != has
    {
        return differs(format!("image size {} MiB", has >> 20), format!("{} MiB", wanted >> 20));
    }
    match (plan.fs, tier.fs) {
        (Some(wanted), Some(has)) if wanted != has => differs(has.to_string(), wanted.to_string()),
        _ => Ok(()),
    }
}

struct Raising<'a> {
    home: PathBuf,
    tier: Tier,
    watch: Watch<'a>,
    notes: Vec<String>,
    owner: Option<(u32, u32)>,
}

impl Raising<'_> {
    /// Writes the state, does the step, and reports both to the watcher.
    fn step(&mut self, stage: Stage, act: impl FnOnce(&mut Tier) -> Result<()>) -> Result<()> {
        self.tier.stage = stage;
        self.tier.write(&self.home)?;
        tell(self.watch, Moment::Before(stage))?;
        act(&mut self.tier)?;
        tell(self.watch, Moment::After(stage))
    }

    fn make(&mut self) -> Result<()> {
        self.step(Stage::Folders, |tier| make_folder(&tier.data()))?;
        if self.tier.kind == Kind::Shaped {
            self.give_to_owner()?;
            self.tier.limited_at_ns = file_time_ns();
            return self.step(Stage::Up, |_| Ok(()));
        }
        self.step(Stage::Image, |tier| image::reserve(&tier.image(), tier.size.unwrap_or(Plan::DEFAULT_SIZE)))?;
        self.step(Stage::Format, |tier| image::format(&tier.image(), tier.fs.unwrap_or_default()))?;
        self.revive()
    }

    /// The steps that a reboot undoes.
    fn revive(&mut self) -> Result<()> {
        self.step(Stage::Loop, attach)?;
        self.step(Stage::Mount, mount)?;
        self.tidy_new_file_system()?;
        self.prepare_limits()?;
        self.step(Stage::Throttle, |tier| throttle::apply(&tier.lines))?;
        self.step(Stage::Up, |_| Ok(()))
    }

    /// Writes the limits to the state file before setting the first, so that they can always be undone.
    fn prepare_limits(&mut self) -> Result<()> {
        let device = self.tier.device.as_ref().expect("the step before has attached it");
        if !loop_device::is_direct(device) {
            self.notes.push(format!(
                "the file system under {} has no direct I/O: data is cached twice, and syncing is slower than the limit",
                self.tier.place.escaped()
            ));
        }
        let setting = Controller::of_this_machine()?.setting(&device.number, Limits::of(&self.tier))?;
        let is_replaced = |line: &Line| setting.lines.iter().any(|new| new.file == line.file && new.off == line.off);
        let (ours, stale): (Vec<Line>, Vec<Line>) = self
            .tier
            .lines
            .drain(..)
            .filter(|line| !is_replaced(line))
            .partition(|line| line.number() == device.number);
        // The tier got another device; the old one would keep its limits until they are removed.
        let free: Vec<Line> = stale.into_iter().filter(|line| !loop_device::is_bound(line.number())).collect();
        throttle::clear(&free)?;
        // `down` also removes limits from groups that were limited earlier and are not any more.
        self.tier.lines = setting.lines.into_iter().chain(ours).collect();
        self.tier.limited_at_ns = file_time_ns();
        self.notes.extend(setting.notes);
        Ok(())
    }

    /// Gives a new file system to its owner, as an empty folder.
    fn tidy_new_file_system(&self) -> Result<()> {
        // lost+found: fsck recreates it when needed, and it holds no data.
        const FOUND: &str = "lost+found";
        let data = self.tier.data();
        if !strangers(&data, &[FOUND])?.is_empty() {
            return Ok(());
        }
        let _ = fs::remove_dir(data.join(FOUND));
        self.give_to_owner()
    }

    fn give_to_owner(&self) -> Result<()> {
        match self.owner {
            Some((user, group)) => {
                let data = self.tier.data();
                chown(&data, Some(user), Some(group)).attempt("giving to its owner", &data)
            }
            None => Ok(()),
        }
    }
}

/// The timestamp a file written now would get. The usual clock is some milliseconds ahead of it.
fn file_time_ns() -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is written by the call alone.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_REALTIME_COARSE, &raw mut time) };
    let (seconds, rest) = (u64::try_from(time.tv_sec).ok()?, u64::try_from(time.tv_nsec).ok()?);
    (code == 0).then_some(seconds * 1_000_000_000 + rest)
}

/// Checks whether a folder can be created here, without creating one.
fn check_writable(dir: &Path) -> io::Result<()> {
    let path = CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: the string ends with a zero byte and lives through the call.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK | libc::X_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).attempt("creating", path)
}

fn attach(tier: &mut Tier) -> Result<()> {
    let image = tier.image();
    if !image.exists() {
        return Err(Error::ImageGone { path: image, name: tier.name.clone() });
    }
    let known = loop_device::attached(&image)?.into_iter().next();
    tier.device = Some(match known {
        Some(device) => device,
        None => loop_device::attach(&image)?,
    });
    Ok(())
}

fn mount(tier: &mut Tier) -> Result<()> {
    let data = tier.data();
    let device = tier.device.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let device = device.attempt("finding the loop device of", &data)?;
    if mounts::is_mounted(&mounts::table()?, device, &data) {
        return Ok(());
    }
    make_folder(&data)?;
    // The mount would hide files written there while nothing was mounted.
    refuse_strangers(&data, &[])?;
    mounts::mount(&device.path, tier.fs.unwrap_or_default(), &data)
}
