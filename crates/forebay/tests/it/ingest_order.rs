//! The order of samples, as the order of those that fail shows it.

use crate::dir::Dir;
use crate::record::{cell_of, failures};

/// A set with twenty bad files and one good one.
fn set_of_bad_files() -> Dir {
    let dir = Dir::with_set();
    for (number, name) in dir.images("set").keys().enumerate().skip(1) {
        dir.write(format!("set/{name}"), format!("bad {number}"));
    }
    dir
}

fn order(dir: &Dir, flags: &str) -> Vec<String> {
    let cell = cell_of(dir, &format!("set --repeats 1 --warmups 0 --batch 4 {flags}"));
    failures(&cell).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn the_seed_decides_the_order_whatever_the_number_of_threads() {
    let dir = set_of_bad_files();
    let one = order(&dir, "--threads 1 --seed 3");
    assert_eq!(one.len(), 23);
    for flags in ["--threads 5", "--threads 2 --readers 3", "--threads 3 --prefetch 4"] {
        assert_eq!(order(&dir, &format!("{flags} --seed 3")), one, "{flags}");
    }
    let other = order(&dir, "--threads 1 --seed 4");
    assert_ne!(other, one);
    let sorted = |mut names: Vec<String>| {
        names.sort_unstable();
        names
    };
    assert_eq!(sorted(other), sorted(one));
}

#[test]
fn first_come_does_not_wait_for_a_slow_sample() {
    let dir = set_of_bad_files();
    let usual = order(&dir, "--threads 4");
    // The first in the order becomes a file of holes that takes the emulated device 100 ms; the others take 4 ms.
    let slow = std::fs::File::create(dir.path(&usual[0])).unwrap();
    slow.set_len(60_000_000).unwrap();
    let flags = "--threads 4 --tier lustre --prefetch 16";
    assert_eq!(order(&dir, flags), usual, "by default it is waited for");
    let came = order(&dir, &format!("{flags} --first-come"));
    let place = came.iter().position(|name| *name == usual[0]).unwrap();
    assert!(place > 3, "the slow one came as number {place} of 23");
}
