//! Batches, repeats and warm-ups: how much is run and how much of it is kept.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::AsRawFd;

use forebay_testing::{Reason, not_run};

use crate::dir::Dir;
use crate::process::{Load, Running};
use crate::record::{self, best_rate, cell_of, number};

#[test]
fn batch_times_batches_are_the_images_of_a_repeat() {
    let dir = Dir::with_set();
    let images = |flags: &str| {
        let cell = cell_of(&dir, &format!("set --threads 2 --repeats 1 --warmups 0 {flags}"));
        (cell["batch"].as_u64().unwrap(), cell["samples"][0]["images"].as_u64().unwrap())
    };
    assert_eq!(images("--batch 5 --batches 3"), (5, 15));
    assert_eq!(images("--batch 3 --batches 3"), (3, 9));
    assert_eq!(images("--batch 5"), (5, 24), "one pass over the data");
    assert_eq!(images("--batch 10 --batches 6"), (10, 60), "more than one pass");
}

#[test]
fn a_smaller_batch_has_its_first_batch_earlier() {
    let dir = Dir::with_set();
    let first = |batch: u32| {
        let flags = format!("set --tier hdd --threads 1 --read-only --repeats 3 --warmups 0 --batch {batch}");
        let cell = cell_of(&dir, &flags);
        let samples = cell["samples"].as_array().unwrap().iter();
        samples.map(|sample| number(sample, "first_batch_s")).fold(f64::INFINITY, f64::min)
    };
    let (one, twelve) = (first(1), first(12));
    // A request takes 8 ms.
    assert!(one >= 0.008 && twelve >= 0.096 && one < twelve, "{one} s for one image, {twelve} s for twelve");
}

#[test]
fn prefetch_keeps_threads_busy_beyond_the_batch_that_is_waited_for() {
    let dir = Dir::with_set();
    let rate = |prefetch: u32| {
        let flags = format!("set --tier lustre --threads 8 --batch 2 --read-only --repeats 3 --prefetch {prefetch}");
        let cell = cell_of(&dir, &flags);
        assert_eq!(cell["prefetch"], prefetch);
        best_rate(&cell)
    };
    // A request takes 4 ms, and any number of them go on at a time.
    let (none, seven) = (rate(0), rate(7));
    assert!(none <= 500.0, "{none} images/s with two in the works");
    assert!(seven > 2.0 * none, "{seven} images/s with sixteen in the works, {none} with two");
}

#[test]
fn short_repeats_go_on_until_they_took_long_enough_and_a_number_of_repeats_is_kept() {
    let dir = Dir::with_set();
    let walls = |flags: &str| -> Vec<f64> {
        let cell =
            cell_of(&dir, &format!("set --tier hdd --threads 1 --batch 2 --batches 1 --warmups 0 --read-only {flags}"));
        cell["samples"].as_array().unwrap().iter().map(|sample| number(sample, "wall_s")).collect()
    };
    // A repeat takes 16 ms.
    assert_eq!(walls("--repeats 3").len(), 3);
    let long = walls("--repeats 2 --least-time 60s");
    assert_eq!(long.len(), 42, "{long:?}");
    let usual = walls("");
    assert!(usual.len() >= 5 && (usual.len() == 45 || usual.iter().sum::<f64>() >= 1.0), "{usual:?}");
    let known = walls("--repeats 2 --least-time 20ms --interval 0.001%");
    assert!(known.len() == 42 || known.iter().sum::<f64>() >= 0.1, "five times the least time: {known:?}");
    let refused = dir.refused("ingest set --interval 0%");
    assert!(refused.contains("give a share above 0 and at most 100 %"), "{refused}");
}

#[test]
fn repeats_are_the_samples_of_a_cell_and_the_table_says_how_many() {
    let dir = Dir::with_set();
    for (repeats, words) in [(1, "repeats 1;"), (4, "repeats 4;")] {
        let printed = dir.met(&format!("ingest set --threads 1,2 --repeats {repeats} --warmups 0 --json record.json"));
        let cells = dir.json("record.json")["cells"].take();
        let counts: Vec<usize> =
            cells.as_array().unwrap().iter().map(|c| c["samples"].as_array().unwrap().len()).collect();
        assert_eq!(counts, [repeats, repeats]);
        assert!(printed.lines().any(|line| line.starts_with("In every row: ") && line.contains(words)), "{printed}");
    }
    let usual = record::of(&dir, "set --threads 1 --least-time 0s");
    assert_eq!(usual["cells"][0]["samples"].as_array().unwrap().len(), 5);
}

#[test]
fn a_dry_run_says_what_would_be_measured_and_measures_nothing() {
    let dir = Dir::with_set();
    let line = "ingest set --threads 1,2,4 --batch 5 --batches 3 --repeats 7 --warmups 2 --dry-run --json record.json";
    let said = dir.met(line);
    assert_eq!(said, "set: 24 samples in 24 files (batch 5): 27 repeats of 15 images, warm-ups included\n");
    assert!(!dir.path("record.json").exists());
    let said = dir.refused("ingest gone --dry-run");
    assert_eq!(said, "forebay: listing gone: no such file or folder\n");
}

/// Makes the kernel forget the files' pages.
fn forget(dir: &Dir, folder: &str) {
    for name in dir.images(folder).keys() {
        let file = File::open(dir.path(folder).join(name)).unwrap();
        file.sync_all().unwrap();
        // SAFETY: a valid descriptor and plain integers.
        assert_eq!(unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) }, 0);
    }
}

#[test]
fn a_warm_up_takes_the_cold_start_away_from_what_is_kept() {
    let dir = Dir::with_set();
    let evidence = |warmups: u32| {
        forget(&dir, "set");
        let record = record::of(&dir, &format!("set --threads 1 --repeats 1 --read-only --warmups {warmups}"));
        let in_memory = record["environment"]["data_file_system"].as_str().unwrap().starts_with("tmpfs");
        (in_memory, record["cells"][0]["medium"]["evidence"][0]["resident_before"].as_f64())
    };
    let (in_memory, without) = evidence(0);
    if in_memory {
        return not_run(Reason::NoDisk, "nothing in memory is cold");
    }
    assert_eq!((without, evidence(1).1), (Some(0.0), Some(1.0)));
}

#[test]
fn every_warm_up_is_a_round_of_its_own() {
    let dir = Dir::with_set();
    let mut running = Running::start(&dir, "ingest set --threads 1 --warmups 1000000 --repeats 1");
    let mut seen = BTreeSet::new();
    // A round has a thread of its own; without warm-ups there would be one.
    running.wait_until("the third round", |running| {
        seen.extend(running.threads("forebay:map"));
        seen.len() >= 3
    });
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert!(ran.stdout.contains("Nothing was measured.\n"), "a warm-up is not kept: {}", ran.stdout);
}

#[test]
fn a_repeat_beside_other_processes_is_run_again_as_often_as_is_said() {
    let (dir, load) = (Dir::with_set(), Load::start());
    let line = "ingest set --tier hdd --threads 1 --read-only --warmups 1 --repeats 3 --json - --extra-repeats";
    let repeats = |extra: usize| load.repeats(&dir, &format!("{line} {extra}"));
    assert_eq!((repeats(0), repeats(2)), ((3, 3), (5, 3)));
}
