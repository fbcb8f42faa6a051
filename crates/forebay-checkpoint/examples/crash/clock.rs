//! A clock that is set back or goes wild: every file and folder gets other times after each call, and nothing may go by
//! them. The kernel's own clock stays as it is; no file has a time of it that anything could read.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use forebay_checkpoint::{Name, Tier, restore};

use crate::Error;
use crate::cases::Outcome;
use crate::check::check;
use crate::history::{Way, go_on, plain_tiers};
use crate::place::Folder;

/// How the clock misbehaves: seconds since 1970 that the n-th thing on a tier gets, in the order of their names.
pub(crate) const CLOCKS: [fn(u64) -> u64; 4] = [
    // Each newer one is a day older than the one before.
    |n| 2_000_000_000 - n * 86_400,
    // All at the beginning.
    |_| 0,
    // All in the year 2100.
    |_| 4_102_444_800,
    // In no order.
    |n| n * 48_271 % 65_537 * 10_000,
];

pub(crate) fn wrong_clock(folder: &Folder, way: Way, clock: fn(u64) -> u64) -> Outcome {
    let (root, mut ledger) = (folder.fresh()?, folder.ledger.clone());
    let set = || set_times(&root, clock, &mut 0).expect("the times of our own files can be set");
    set();
    let tiers = plain_tiers(&root);
    go_on(way.open(tiers.clone())?, way, &[30, 40], &mut ledger, &set);
    set();
    let outcome = goes_by_step(&tiers).and_then(|()| check(&tiers, way, &ledger));
    Ok((true, outcome))
}

/// The newest two by their steps are those that stayed, and the newest of them is restored.
fn goes_by_step(tiers: &[Tier]) -> Result<(), String> {
    let steps: Vec<u64> = tiers[1].names().map_err(|e| e.to_string())?.into_iter().map(|name| name.step).collect();
    if steps != [30, 40] {
        return Err(format!("the slow tier has {steps:?}"));
    }
    match restore(tiers).map_err(|error| error.to_string())?.name {
        Name { step: 40, take: 0 } => Ok(()),
        other => Err(format!("{other} was restored")),
    }
}

fn set_times(dir: &Path, clock: fn(u64) -> u64, n: &mut u64) -> Result<(), Error> {
    let mut paths = fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            set_times(&path, clock, n)?;
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(clock(*n));
        fs::File::open(&path)?.set_times(fs::FileTimes::new().set_modified(time).set_accessed(time))?;
        *n += 1;
    }
    Ok(())
}
