//! Cuts a real file system off before every operation of a save, a drain and a prune, and looks at what is left.
//!
//! A file with a file system on it is mounted, a history runs on it and stops before operation k, the file system is
//! shut down without writing anything more (what a power cut does), mounted again, and checked: what was reported
//! durable is there and verifies, nothing else has a checkpoint's name, the next save works. Needs root. The model of
//! the library's own tests promises less than a real file system does; this shows that it does not promise more.
//!
//! ```text
//! crash ext4|xfs FOLDER [SITE]
//! ```
//! FOLDER is an empty one for images and mounts. With SITE (data, manifest, staging, commit, trash, open) the syncs of
//! that place are left out, and losses are to be found.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use forebay_checkpoint::format::Layout;
use forebay_checkpoint::{
    Cut, Dtype, FaultyFs, FilePlan, Fs, Header, Keep, Level, LocalFs, Mode, Name, Options, Piece, Restored, Site,
    Snapshot, Store, Tensor, Tier, restore, verify,
};

type Error = Box<dyn std::error::Error>;

/// Bytes of a state: a few chunks and a bit.
const STATE: usize = 200_003;
/// `FS_IOC_SHUTDOWN`, and its flag for writing neither data nor journal.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
const WITHOUT_FLUSHING: u32 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let run = || -> Result<usize, Error> {
        let [kind, folder, rest @ ..] = &args[..] else { return Err("usage: crash ext4|xfs FOLDER [SITE]".into()) };
        let place = Place { kind: kind.clone(), folder: PathBuf::from(folder) };
        campaign(&place, rest.first().map(|name| site(name)).transpose()?)
    };
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn site(name: &str) -> Result<Site, Error> {
    let named = Site::ALL.into_iter().find(|site| format!("{site:?}").to_lowercase() == name);
    named.ok_or_else(|| format!("{name} is no place of the protocol").into())
}

/// Every operation of the history in each mode; returns how many losses there were.
fn campaign(place: &Place, without: Option<Site>) -> Result<usize, Error> {
    let (mut n_cases, mut n_losses) = (0, 0);
    for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
        place.make()?;
        let durable = place.mounted("base", |tiers| {
            let store = Store::open(tiers(Arc::new(LocalFs)), options(mode))?;
            let durable = [10, 20].map(|step| save(&store, step)).into_iter().collect::<Result<Vec<Name>, Error>>()?;
            store.drain()?;
            Ok(durable)
        })?;
        for k in 0.. {
            place.copy("base", "cut")?;
            let (durable, has_cut) = place.cut_off(mode, Cut::Off(k), without, durable.clone())?;
            n_cases += 1;
            place.copy("cut", "left")?;
            if let Err(loss) = place.mounted("left", |tiers| check(&tiers(Arc::new(LocalFs)), mode, &durable)) {
                n_losses += 1;
                println!("{} {mode:?}, off at {k}: {loss}", place.kind);
            }
            if !has_cut {
                break;
            }
        }
    }
    println!("{}: {n_losses} losses in {n_cases} cases", place.kind);
    Ok(n_losses)
}

/// Where images and mounts are.
struct Place {
    kind: String,
    folder: PathBuf,
}

type Tiers<'a> = &'a dyn Fn(Arc<dyn Fs>) -> Vec<Tier>;

impl Place {
    fn mount_point(&self) -> PathBuf {
        self.folder.join("mount")
    }

    fn make(&self) -> Result<(), Error> {
        std::fs::create_dir_all(self.mount_point())?;
        let size = if self.kind == "xfs" { 320 << 20 } else { 64 << 20 };
        let image = self.folder.join("base");
        File::create(&image)?.set_len(size)?;
        let force = if self.kind == "xfs" { "-f" } else { "-F" };
        run(Command::new(format!("mkfs.{}", self.kind)).arg("-q").arg(force).arg(image))
    }

    /// Another image with the same content. A new file each time: a mount that somebody else's name space still has
    /// would otherwise be found again, shut down as it is.
    fn copy(&self, from: &str, to: &str) -> Result<(), Error> {
        let to = self.folder.join(to);
        if to.exists() {
            std::fs::remove_file(&to)?;
        }
        run(Command::new("cp").arg("--sparse=always").arg(self.folder.join(from)).arg(to))
    }

    fn mounted<T>(&self, image: &str, work: impl FnOnce(Tiers<'_>) -> Result<T, Error>) -> Result<T, Error> {
        // Copies of an image have one name, which xfs minds.
        let options = if self.kind == "xfs" { "loop,nouuid" } else { "loop" };
        run(Command::new("mount").args(["-o", options]).arg(self.folder.join(image)).arg(self.mount_point()))?;
        let keeping = |fs: &Arc<dyn Fs>, name: &str, last| Tier {
            keep: Keep::last(last),
            ..Tier::new(Arc::clone(fs), self.mount_point().join(name))
        };
        let outcome = work(&|fs| vec![keeping(&fs, "fast", 1), keeping(&fs, "slow", 2)]);
        run(Command::new("umount").arg(self.mount_point()))?;
        outcome
    }

    /// Runs the history up to the cut, and the power goes. Returns what was durable, and whether it came to the cut.
    fn cut_off(
        &self,
        mode: Mode,
        cut: Cut,
        without: Option<Site>,
        mut durable: Vec<Name>,
    ) -> Result<(Vec<Name>, bool), Error> {
        self.mounted("cut", |tiers| {
            let fs = Arc::new(LocalFs);
            let faulty = match without {
                Some(site) => FaultyFs::without(fs, cut, site),
                None => FaultyFs::new(fs, cut),
            };
            if let Ok(store) = Store::open(tiers(Arc::new(faulty.clone())), options(mode)) {
                durable.extend([30, 40].into_iter().filter_map(|step| save(&store, step).ok()));
                let _ = store.drain();
                let _ = store.close();
            }
            shut_down(&self.mount_point())?;
            Ok((durable, faulty.has_cut()))
        })
    }
}

fn shut_down(mount_point: &Path) -> Result<(), Error> {
    let folder = File::open(mount_point)?;
    // SAFETY: a valid descriptor, and a valid place that holds the flag which this request reads.
    let rc = unsafe { libc::ioctl(folder.as_raw_fd(), SHUTDOWN, &WITHOUT_FLUSHING) };
    if rc == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

fn run(command: &mut Command) -> Result<(), Error> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(())
}

fn options(mode: Mode) -> Options {
    Options { mode, chunk_bytes: 64 << 10, drains_behind: false, ..Options::default() }
}

fn values(step: u64) -> Vec<u8> {
    (0..STATE as u64).map(|i| (step * 131 + i * i % 251) as u8 | 1).collect()
}

/// Saves the state of a step, and returns its name once it is durable.
fn save(store: &Store, step: u64) -> Result<Name, Error> {
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![STATE as u64] };
    let values = values(step);
    let snapshot = Snapshot { tensors: vec![Tensor::new(&header, &values)], ..Snapshot::default() };
    let piece = |range| Piece::Tensor { index: 0, range };
    let cut = STATE as u64 / 3;
    let plans = vec![FilePlan::new("a", vec![piece(0..cut)]), FilePlan::new("b", vec![piece(cut..STATE as u64)])];
    let handle = store.save(step, None, &snapshot, &Layout::from_plans(plans))?;
    handle.wait(Level::DurableFast)?;
    Ok(handle.name())
}

fn holds(restored: &Restored, step: u64) -> bool {
    let values = values(step);
    restored.file("a") == Some(&values[..STATE / 3]) && restored.file("b") == Some(&values[STATE / 3..])
}

/// What is wrong with what is left, and with the next save.
fn check(tiers: &[Tier], mode: Mode, durable: &[Name]) -> Result<(), Error> {
    let mut all = durable.to_vec();
    for tier in tiers {
        for name in tier.names()? {
            verify(tier, name).map_err(|damage| format!("{name} in {}: {damage}", tier.dir.display()))?;
            all.push(name);
        }
    }
    all.sort();
    all.dedup();
    for name in all.iter().rev().take(2).filter(|name| durable.contains(name)) {
        if !tiers.iter().any(|tier| verify(tier, *name).is_ok()) {
            return Err(format!("{name} was durable, and is on no tier").into());
        }
    }
    let restored = restore(tiers)?;
    if durable.iter().any(|name| *name > restored.name) || !holds(&restored, restored.name.step) {
        return Err(format!("{} was restored", restored.name).into());
    }
    let store = Store::open(tiers.to_vec(), options(mode))?;
    save(&store, 1000)?;
    store.drain()?;
    let restored = store.restore()?;
    if restored.name.step != 1000 || !holds(&restored, 1000) {
        return Err(format!("{} was restored after the next save", restored.name).into());
    }
    Ok(())
}
