//! Shows that a checkpoint that was reported durable is not lost: power cuts, kills, failing operations, full disks,
//! tiers that vanish, clocks that are wrong, files that rot, at every file-system operation of a history of saves, drains
//! and prunes, on real file systems and with real processes.
//!
//! ```text
//! crash [--short] [--in DIR] [--summary FILE]
//! ```
//! Exit 0: nothing was lost, and each sync left out was found. Exit 1: something was. Exit 2: it could not run. Disks
//! need root; without it the short form says what was not run, and the full one does not pass.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

mod campaign;
mod cases;
mod check;
mod clock;
mod disk;
mod history;
mod hook;
mod left_out;
mod place;
mod rot;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use campaign::Extent;
use disk::Image;
use forebay_testing::{Reason, not_run};
use summary::Summary;

type Error = Box<dyn std::error::Error>;

/// The full campaign has at least so many cases.
const CASES_MIN: usize = 2000;
/// The short one takes every so many operations.
const SHORT_STRIDE: u64 = 29;
const PREFIX: &str = "forebay-crash-";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["child", root, way, k] => child(Path::new(root), way, k).map(|()| true),
        _ => Options::parse(&words).and_then(|options| run(&options)),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("crash: {error}");
            ExitCode::from(2)
        }
    }
}

fn child(root: &Path, way: &str, k: &str) -> Result<(), Error> {
    cases::be_killed(root, way, k.parse()?)
}

struct Options {
    is_short: bool,
    parent: PathBuf,
    summary: Option<PathBuf>,
}

impl Options {
    fn parse(mut words: &[&str]) -> Result<Self, Error> {
        let mut options = Self { is_short: false, parent: std::env::temp_dir(), summary: None };
        while let [first, rest @ ..] = words {
            words = match (*first, rest) {
                ("--short", rest) => {
                    options.is_short = true;
                    rest
                }
                ("--in", [dir, rest @ ..]) => {
                    options.parent = PathBuf::from(dir);
                    rest
                }
                ("--summary", [file, rest @ ..]) => {
                    options.summary = Some(PathBuf::from(file));
                    rest
                }
                _ => return Err("usage: crash [--short] [--in DIR] [--summary FILE]".into()),
            };
        }
        Ok(options)
    }
}

/// Runs the campaign; whether all is well.
fn run(options: &Options) -> Result<bool, Error> {
    let work = Work::in_folder(&options.parent)?;
    let images = images(&work.dir);
    let stride = if options.is_short { SHORT_STRIDE } else { 1 };
    let n_images = images.len();
    let start = Instant::now();
    let extent = Extent { stride, images, dir: work.dir.clone() };
    let found = campaign::run(&extent, &|n, of| {
        if n.is_multiple_of(10) {
            eprintln!("{n} of {of} jobs, {:.0} s", start.elapsed().as_secs_f64());
        }
    })?;
    let summary = Summary::of(found, start.elapsed().as_secs_f64());
    println!("{}\n{}", summary.table(), summary.left_out());
    let (losses, needless) = (summary.losses(), summary.needless());
    losses.iter().for_each(|loss| println!("LOST: {loss}"));
    needless
        .iter()
        .for_each(|point| println!("the syncs of {point:?} can be left out, and the campaign does not notice"));
    println!("{} cases, {} losses, {:.1} s", summary.n_cases(), losses.len(), summary.seconds);
    if let Some(path) = &options.summary {
        fs::write(path, summary.page(&said_by("date", "-I")?, release(&said_by("uname", "-r")?), n_cores()))?;
    }
    let is_whole = options.is_short || n_images == KINDS.len() && summary.n_cases() >= CASES_MIN;
    if !is_whole {
        println!("this is not the full campaign");
    }
    Ok(losses.is_empty() && needless.is_empty() && is_whole)
}

fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn said_by(program: &str, flag: &str) -> Result<String, Error> {
    Ok(String::from_utf8(Command::new(program).arg(flag).output()?.stdout)?.trim().to_owned())
}

/// A kernel's version without what tells one build from another: "6.18".
fn release(version: &str) -> &str {
    let end = version.match_indices('.').nth(1).map_or(version.len(), |(at, _)| at);
    version[..end].split('-').next().unwrap_or_default()
}

const KINDS: [(&str, Reason); 2] = [("ext4", Reason::NoKernelTier), ("xfs", Reason::NoXfs)];

/// Empty file systems that can be mounted here; says which cannot.
fn images(dir: &Path) -> Vec<(&'static str, Image)> {
    if let Err(error) = disk::leave_mounts_of_others() {
        not_run(Reason::NoKernelTier, format!("everything on ext4 and xfs: {error}"));
        return Vec::new();
    }
    let mut images = Vec::new();
    for (kind, reason) in KINDS {
        match image(kind, &dir.join(kind)) {
            Ok(image) => images.push((kind, image)),
            Err(error) => not_run(reason, format!("everything on {kind}: {error}")),
        }
    }
    images
}

fn image(kind: &'static str, mount_point: &Path) -> Result<Image, Error> {
    fs::create_dir(mount_point)?;
    let image = Image::made(kind)?;
    image.disk()?.mount(mount_point)?.unmount()?;
    Ok(image)
}

/// The folder of this campaign, which goes with it.
struct Work {
    dir: PathBuf,
}

impl Work {
    /// Makes it, and removes those of campaigns that were killed.
    fn in_folder(parent: &Path) -> Result<Self, Error> {
        fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
        for entry in fs::read_dir(parent)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_left = |pid: &str| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists();
            if name.strip_prefix(PREFIX).is_some_and(is_left) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        let dir = fs::canonicalize(parent)?.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&dir)?;
        Ok(Self { dir })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}
