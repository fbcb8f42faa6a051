//! Compares the series with the kernel's counters, to the byte if the kernel counts bytes.

use std::time::{Duration, Instant};

use forebay_observe::source::disk;
use forebay_observe::{Options, Sampler};

use crate::load::{Load, alone};

fn every(milliseconds: u64) -> Options {
    Options { interval: Duration::from_millis(milliseconds), gpu: false, ..Options::default() }
}

/// Sectors read and written by a disk so far.
fn sectors(name: &str) -> (u64, u64) {
    let disks = disk::parse(&std::fs::read_to_string("/proc/diskstats").unwrap());
    let disk = disks.iter().find(|disk| disk.name == name).unwrap();
    (disk.reads.sectors, disk.writes.sectors)
}

#[test]
fn bytes_written_past_the_cache_are_those_of_the_process_and_among_those_of_the_disk() {
    let _alone = alone();
    let Some(load) = Load::new(16) else { return };
    let sampler = Sampler::start(every(20)).unwrap();
    load.write();
    let series = sampler.stop();
    let by_process = series.total("process.write_bytes_per_s").unwrap().round();
    assert!(by_process >= load.bytes(), "{by_process}");
    // The file system adds a page or two, for the file's modification time.
    assert!(by_process <= load.bytes() + 65_536.0, "{by_process}");
    let by_calls = series.total("process.wchar_bytes_per_s").unwrap().round();
    assert_eq!(by_calls, load.bytes());
    assert_eq!(series.total("process.write_calls_per_s").unwrap().round(), 16.0);
    let by_disk = series.total(&format!("disk.{}.write_bytes_per_s", load.disk)).unwrap();
    assert!(by_disk >= load.bytes() * 0.999_999, "{by_disk}");
}

#[test]
fn bytes_read_past_the_cache_are_those_of_the_process() {
    let _alone = alone();
    let Some(load) = Load::new(16) else { return };
    let sampler = Sampler::start(every(20)).unwrap();
    load.read();
    let series = sampler.stop();
    let total = |name: &str| series.total(name).unwrap().round();
    assert_eq!(total("process.read_bytes_per_s"), load.bytes());
    // The sampler's own reads of the kernel's files are excluded.
    assert_eq!(total("process.rchar_bytes_per_s"), load.bytes());
    assert_eq!(total("process.read_calls_per_s"), 16.0);
}

#[test]
fn the_disk_did_in_sum_what_its_counters_say() {
    let _alone = alone();
    let Some(load) = Load::new(8) else { return };
    let outer = sectors(&load.disk);
    let sampler = Sampler::start(every(10)).unwrap();
    let inner = sectors(&load.disk);
    // However fast the disk is, the load lasts for several samples.
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        load.write();
        load.read();
    }
    let inner = (sectors(&load.disk).0 - inner.0, sectors(&load.disk).1 - inner.1);
    let series = sampler.stop();
    let outer = (sectors(&load.disk).0 - outer.0, sectors(&load.disk).1 - outer.1);
    let total = |quantity: &str| series.total(&format!("disk.{}.{quantity}", load.disk)).unwrap() / 512.0;
    let between = |value: f64, low: u64, high: u64| {
        assert!((low as f64 - 0.5..=high as f64 + 0.5).contains(&value), "{value} is outside {low}..={high}");
    };
    between(total("read_bytes_per_s"), inner.0, outer.0);
    between(total("write_bytes_per_s"), inner.1, outer.1);
    assert!(series.time_s.len() > 2, "{:?}", series.time_s);
}

#[test]
fn a_busy_thread_is_one_core_of_this_process() {
    let _alone = alone();
    let sampler = Sampler::start(every(50)).unwrap();
    let cpu_s = || {
        // SAFETY: a zeroed time is valid and the call writes it.
        let time = unsafe {
            let mut time: libc::timespec = std::mem::zeroed();
            libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
            time
        };
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let start = cpu_s();
    while cpu_s() - start < 0.3 {
        std::hint::spin_loop();
    }
    let spent = cpu_s() - start;
    let series = sampler.stop();
    let of = |name: &str| series.total(name).unwrap() / 100.0;
    let counted = of("process.user_percent") + of("process.system_percent");
    // The kernel counts in hundredths of a second, and rounds user and system time separately.
    assert!((counted - spent).abs() < 0.05, "{counted} s counted, {spent} s spent");
    let busy = series.total("cpu.busy_cores").unwrap();
    assert!(busy > spent - 0.1, "{busy} s on all cores, {spent} s here");
}
