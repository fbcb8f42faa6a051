//! Ticks: when they are taken, how late ones are marked, and what they cost.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use forebay_observe::{CsvSink, Options, Sampler, observe};
use forebay_record::{Row, Series};

use crate::load::alone;

fn options(interval_ms: u64) -> Options {
    Options { interval: Duration::from_millis(interval_ms), gpu: false, ..Options::default() }
}

/// Samples until `n_rows` rows have arrived.
fn rows(interval_ms: u64, n_rows: usize, mut at_row: impl FnMut(&Row<'_>) + Send + 'static) -> Series {
    let (tell, told) = channel();
    let sink = move |row: &Row<'_>| {
        at_row(row);
        let _ = tell.send(());
    };
    let sampler = Sampler::start(Options { sink: Some(Box::new(sink)), ..options(interval_ms) }).unwrap();
    for _ in 0..n_rows {
        told.recv().unwrap();
    }
    sampler.stop()
}

#[test]
fn ticks_keep_to_their_grid() {
    let _alone = alone();
    let series = rows(50, 6, |_| {});
    assert!(series.time_s.len() >= 6);
    for (time_s, late_s) in series.time_s.iter().zip(&series.late_s).take(6) {
        let ticks = (time_s - late_s) / 0.05;
        assert!((ticks - ticks.round()).abs() < 1e-6 && ticks > 0.5, "{time_s} s, {late_s} s late");
    }
    assert!(series.time_s.is_sorted_by(|a, b| a < b));
    assert_eq!(series.interval_s, 0.05);
    assert!(series.notes.iter().any(|note| note.starts_with("rows are shorter than 100 ms")), "{:?}", series.notes);
}

#[test]
fn a_tick_that_comes_late_says_so_and_those_missed_are_left_out() {
    let _alone = alone();
    let mut is_first = true;
    let series = rows(100, 3, move |_| {
        if std::mem::take(&mut is_first) {
            std::thread::sleep(Duration::from_millis(430));
        }
    });
    assert!(!series.notes.iter().any(|note| note.starts_with("rows are shorter")), "{:?}", series.notes);
    // The second tick is due at 200 ms, but the sink is busy until 530 ms.
    assert!(series.late_s[1] >= 0.3, "{:?}", series.late_s);
    assert!(series.is_late(1));
    let third = ((series.time_s[2] - series.late_s[2]) / 0.1).round();
    assert!(third >= 6.0, "missed ticks are skipped: {:?}", series.time_s);
}

#[test]
fn a_short_run_has_one_row_over_its_true_time() {
    let _alone = alone();
    let start = Instant::now();
    let (done, series) = observe(options(3_600_000), |sampler| {
        sampler.unwrap().mark("begin");
        std::fs::read("/proc/self/maps").unwrap().len()
    });
    let (series, most_s) = (series.unwrap(), start.elapsed().as_secs_f64());
    assert_eq!((series.time_s.len(), series.late_s[0]), (1, 0.0));
    assert!(series.time_s[0] > 0.0 && series.time_s[0] <= most_s, "{:?}", series.time_s);
    assert!(series.total("process.rchar_bytes_per_s").unwrap() >= done as f64 - 1.0);
    let marks: Vec<&str> = series.marks.iter().map(|mark| mark.what.as_str()).collect();
    assert_eq!(marks, ["begin"]);
    assert!(series.marks[0].time_s <= series.time_s[0]);
}

#[test]
fn every_column_has_a_value_a_row_and_a_name_with_subject_and_quantity() {
    let _alone = alone();
    let series = rows(20, 4, |_| {});
    for column in &series.columns {
        assert_eq!(column.values.len(), series.time_s.len(), "{}", column.name);
        assert!(column.name.split('.').count() >= 2, "{}", column.name);
        assert!(column.values.iter().flatten().all(|value| value.is_finite()), "{}", column.name);
    }
    let subjects = ["cpu.", "memory.", "paging.", "disk.", "process."];
    for subject in subjects {
        assert!(series.columns.iter().any(|column| column.name.starts_with(subject)), "{subject}");
    }
    let has_pressure = std::path::Path::new("/proc/pressure/io").exists();
    assert_eq!(series.values("psi.io.some_percent").is_some(), has_pressure);
    assert_eq!(series.notes.iter().any(|note| note.starts_with("/proc/pressure/io: ")), !has_pressure);
}

#[test]
fn a_sampler_that_is_dropped_ends_its_thread() {
    let _alone = alone();
    let names = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let comms = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        comms.filter(|comm| comm.trim() == "forebay:observe").count()
    };
    let before = names();
    let sampler = Sampler::start(options(3_600_000)).unwrap();
    assert_eq!(names(), before + 1);
    drop(sampler);
    // The thread has been joined; the kernel may list it a moment longer.
    let start = Instant::now();
    while names() != before {
        assert!(start.elapsed() < Duration::from_secs(10), "the thread still exists");
    }
}

#[test]
fn rows_written_as_they_come_are_the_series() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.csv");
    let sink = CsvSink::create(&path, |error| panic!("{error}")).unwrap();
    let sampler = Sampler::start(Options { sink: Some(Box::new(sink)), ..options(20) }).unwrap();
    sampler.mark("a, \"b\"");
    let start = Instant::now();
    while std::fs::read_to_string(&path).unwrap().lines().count() < 4 {
        assert!(start.elapsed() < Duration::from_secs(30), "no rows");
        std::thread::sleep(Duration::from_millis(1));
    }
    let series = sampler.stop();
    let written = Series::from_csv(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&written.time_s, &written.late_s), (&series.time_s, &series.late_s));
    assert_eq!(written.columns, series.columns[..written.columns.len()]);
    assert_eq!(written.started_at, series.started_at);
    assert_eq!(written.marks[0].what, "a, \"b\"");
}

#[test]
fn a_tick_costs_less_than_five_milliseconds_of_a_core() {
    let _alone = alone();
    let spent = Arc::new(Mutex::new(Vec::new()));
    let theirs = Arc::clone(&spent);
    // The sink runs in the sampler's thread, whose own clock it reads.
    rows(10, 40, move |_| theirs.lock().unwrap().push(thread_cpu_s()));
    let spent = spent.lock().unwrap();
    let n_ticks = spent.len() - 1;
    let per_tick_s = (spent[n_ticks] - spent[0]) / n_ticks as f64;
    // At one tick per second, half a percent of a core.
    assert!(per_tick_s > 0.0 && per_tick_s < 0.005, "{per_tick_s} s");
}

fn thread_cpu_s() -> f64 {
    // SAFETY: a zeroed time is valid and the call writes it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time);
        time
    };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
