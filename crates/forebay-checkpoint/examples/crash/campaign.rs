//! All jobs of a campaign, and the threads that work through them. A job is one kind of accident at one place in one way
//! of saving, at every operation of the history; the short form takes some of the operations.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_checkpoint::{Cut, Mode, SyncPoint};

use crate::Error;
use crate::cases::{self, Outcome};
use crate::clock::{CLOCKS, wrong_clock};
use crate::disk::Image;
use crate::history::Way;
use crate::left_out::{self, Search};
use crate::place::{Device, Folder};
use crate::rot;

/// How much is done, and on what.
pub(crate) struct Extent {
    /// Only every `stride`-th operation is cut, to bound the time of a campaign.
    pub(crate) stride: u64,
    /// Empty file systems; none where that cannot be had.
    pub(crate) images: Vec<(&'static str, Image)>,
    pub(crate) dir: PathBuf,
}

pub(crate) struct Done {
    pub(crate) kind: &'static str,
    pub(crate) place: &'static str,
    pub(crate) way: Way,
    pub(crate) n_cases: usize,
    pub(crate) losses: Vec<String>,
}

/// What came of leaving out the syncs of a place.
pub(crate) struct Tried {
    pub(crate) point: SyncPoint,
    pub(crate) place: &'static str,
    pub(crate) search: Search,
}

type Run<'a> = Box<dyn Fn(&Path) -> Result<(), Error> + Send + Sync + 'a>;

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) done: Mutex<Vec<Done>>,
    pub(crate) tried: Mutex<Vec<Tried>>,
}

const FOLDER: &str = "folder";
const MODEL: &str = "model";

/// Runs everything, and tells how many jobs of all are done; an error is something that kept a case from being run.
pub(crate) fn run(extent: &Extent, told: &(dyn Fn(usize, usize) + Sync)) -> Result<Found, Error> {
    let found = Found::default();
    let all = jobs(extent, &found);
    let (next, n_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let errors: Mutex<Vec<String>> = Mutex::default();
    let jobs = &all;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((index, job)) = take(jobs, &next) {
                    if let Err(error) = job(&extent.dir.join(format!("job-{index}"))) {
                        errors.lock().expect(WHOLE).push(error.to_string());
                    }
                    told(n_done.fetch_add(1, Ordering::SeqCst) + 1, jobs.len());
                }
            });
        }
    });
    drop(all);
    match errors.into_inner().expect(WHOLE) {
        errors if errors.is_empty() => Ok(found),
        errors => Err(errors.join("\n").into()),
    }
}

const WHOLE: &str = "no holder of this lock panics";

fn take<'a, 'b>(jobs: &'a [Run<'b>], next: &AtomicUsize) -> Option<(usize, &'a Run<'b>)> {
    let index = next.fetch_add(1, Ordering::SeqCst);
    jobs.get(index).map(|job| (index, job))
}

fn jobs<'a>(extent: &'a Extent, found: &'a Found) -> Vec<Run<'a>> {
    let mut jobs = Vec::new();
    for (place, image) in &extent.images {
        on_disk(extent, found, place, image, &mut jobs);
    }
    for way in Way::all() {
        in_folder(extent, found, way, &mut jobs);
    }
    for way in Way::of_mode(Mode::Burst) {
        jobs.push(rotting(found, way));
    }
    for point in SyncPoint::ALL {
        jobs.push(Box::new(move |_| {
            // The model costs next to nothing.
            note(found, point, MODEL, left_out::on_model(Way::of_mode(Mode::Burst)[0], point, 1)?);
            Ok(())
        }));
    }
    jobs
}

fn note(found: &Found, point: SyncPoint, place: &'static str, search: Search) {
    found.tried.lock().expect(WHOLE).push(Tried { point, place, search });
}

type OnDevice = fn(&Device, Way, u64) -> Outcome;

fn on_disk<'a>(extent: &'a Extent, found: &'a Found, place: &'static str, image: &'a Image, jobs: &mut Vec<Run<'a>>) {
    let both: [(&'static str, OnDevice); 3] = [
        ("power cut", |device, way, k| cases::power_cut(device, way, Cut::Off(k), None)),
        ("EIO, then a power cut", |device, way, k| cases::power_cut(device, way, Cut::Fail(k), None)),
        ("disk full, then a power cut", cases::filled_up),
    ];
    let slow: [(&'static str, OnDevice); 2] = [
        ("slow tier shut down", cases::slow_vanishes),
        ("killed, resumed, then a power cut", |device, way, k| cases::killed_then_cut(device, way, k, None)),
    ];
    for way in Way::all() {
        for (kind, case) in both {
            jobs.push(every_operation(extent, found, (kind, place, way), move |dir| {
                let device = Device::with_both(dir, image, way)?;
                Ok(Box::new(move |k| case(&device, way, k)))
            }));
        }
        for (kind, case) in slow {
            jobs.push(every_operation(extent, found, (kind, place, way), move |dir| {
                let device = Device::with_slow(dir, image, way)?;
                Ok(Box::new(move |k| case(&device, way, k)))
            }));
        }
    }
    let burst = Way::of_mode(Mode::Burst).into_iter();
    let syncing_all = burst.map(|way| ("power cut, syncfs", Way { syncs_all: true, ..way }));
    let behind = Way::of_mode(Mode::Async).into_iter();
    let behind = behind.map(|way| ("power cut, draining behind", Way { drains_behind: true, ..way }));
    for (kind, way) in syncing_all.chain(behind) {
        jobs.push(every_operation(extent, found, (kind, place, way), move |dir| {
            let device = Device::with_both(dir, image, way)?;
            Ok(Box::new(move |k| cases::power_cut(&device, way, Cut::Off(k), None)))
        }));
    }
    for point in SyncPoint::ALL {
        jobs.push(Box::new(move |dir| {
            let search = left_out::on_disk(dir, image, Way::of_mode(Mode::Burst)[0], point, extent.stride)?;
            note(found, point, place, search);
            Ok(())
        }));
    }
}

type InFolder = fn(&Folder, Way, u64) -> Outcome;

fn in_folder<'a>(extent: &'a Extent, found: &'a Found, way: Way, jobs: &mut Vec<Run<'a>>) {
    let kinds: [(&'static str, InFolder); 5] = [
        ("SIGKILL", cases::killed),
        ("EIO", |folder, way, k| cases::goes_wrong(folder, way, |_| Cut::Fail(k))),
        ("ENOSPC", |folder, way, k| cases::goes_wrong(folder, way, |_| Cut::Full(k))),
        ("slow tier gone", |folder, way, k| cases::goes_wrong(folder, way, |root| Cut::Gone(k, root.join("slow")))),
        ("fast tier gone", |folder, way, k| cases::goes_wrong(folder, way, |root| Cut::Gone(k, root.join("fast")))),
    ];
    for (kind, case) in kinds {
        jobs.push(every_operation(extent, found, (kind, FOLDER, way), move |dir| {
            let folder = Folder::prepared(dir, way)?;
            Ok(Box::new(move |k| case(&folder, way, k)))
        }));
    }
    jobs.push(Box::new(move |dir| {
        let folder = Folder::prepared(dir, way)?;
        let mut done = Done { kind: "clock set wrong", place: FOLDER, way, n_cases: 0, losses: Vec::new() };
        for (n, clock) in CLOCKS.into_iter().enumerate() {
            done.count(&format!("clock {n}"), wrong_clock(&folder, way, clock)?.1);
        }
        found.done.lock().expect(WHOLE).push(done);
        Ok(())
    }));
}

fn rotting(found: &Found, way: Way) -> Run<'_> {
    Box::new(move |dir| {
        let folder = Folder::prepared(dir, way)?;
        let mut done = Done { kind: "rot", place: FOLDER, way, n_cases: 0, losses: Vec::new() };
        for rot in rot::all(&folder)? {
            done.count(&rot.label, rot.happens(&folder, way)?);
        }
        found.done.lock().expect(WHOLE).push(done);
        Ok(())
    })
}

type Case<'a> = Box<dyn FnMut(u64) -> Outcome + 'a>;

/// A case for every operation, until the history ends before it.
fn every_operation<'a>(
    extent: &'a Extent,
    found: &'a Found,
    (kind, place, way): (&'static str, &'static str, Way),
    prepare: impl Fn(&Path) -> Result<Case<'a>, Error> + Send + Sync + 'a,
) -> Run<'a> {
    Box::new(move |dir| {
        let mut case = prepare(dir)?;
        let mut done = Done { kind, place, way, n_cases: 0, losses: Vec::new() };
        // Each job of the short form starts elsewhere, so that together they meet more operations.
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let first = name.bytes().fold(0, |sum, byte| sum * 10 + u64::from(byte)) % extent.stride;
        for k in (first..).step_by(extent.stride as usize) {
            let (has_cut, outcome) =
                case(k).map_err(|error| format!("{kind}, {place}, {}, {k}: {error}", way.name()))?;
            done.count(&format!("operation {k}"), outcome);
            if !has_cut {
                break;
            }
        }
        drop(case);
        found.done.lock().expect(WHOLE).push(done);
        Ok(())
    })
}

impl Done {
    fn count(&mut self, at: &str, outcome: Result<(), String>) {
        self.n_cases += 1;
        if let Err(loss) = outcome {
            self.losses.push(format!("{}, {}, {}, {at}: {loss}", self.kind, self.place, self.way.name()));
        }
    }
}
