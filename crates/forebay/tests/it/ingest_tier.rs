//! Emulated devices: a request costs what the device's costs, and the record names the device.

use crate::dir::{Dir, flat};
use crate::process::once_in_ten;
use crate::record::{best_rate, cell_of, number};

/// Name, seconds a request, bytes a second of one stream, megabytes a second of all.
const TIERS: [(&str, f64, f64, f64); 4] = [
    ("hdd", 8e-3, 163e6, 163.0),
    ("ssd", 100e-6, 280e6, 280.0),
    ("optane", 12e-6, 1603e6, 1603.0),
    ("lustre", 4e-3, 600e6, 1969.0),
];

#[test]
fn every_tier_takes_its_time_and_is_named() {
    let dir = Dir::with_set();
    for (tier, latency_s, stream, ceiling) in TIERS {
        let takes_no_longer = |_| {
            let cell = cell_of(&dir, &format!("set --tier {tier} --threads 1 --read-only --repeats 3 --warmups 0"));
            assert_eq!((&cell["medium"]["tier"], &cell["ceiling_mb_per_s"]), (&tier.into(), &ceiling.into()));
            assert_eq!(cell["medium"]["storage"], format!("{tier} (shaped in process) over local, buffered"));
            let bytes = number(&cell["samples"][0], "bytes");
            let least = 24.0 * latency_s + bytes / stream;
            let wall = 24.0 / best_rate(&cell);
            assert!(wall >= least, "{tier}: {wall} s, and the device alone takes {least} s");
            // Short requests cannot be told from a busy machine's delays; long ones can.
            latency_s < 1e-3 || wall < 2.0 * least
        };
        assert!(once_in_ten(takes_no_longer), "{tier} takes twice the time of the device");
    }
}

#[test]
fn a_disk_gives_about_125_small_files_a_second() {
    let dir = Dir::new();
    dir.met("data make caltech101 set --count 24 --median-size 8KB --sigma 0");
    let keeps_up = |_| {
        let rate = best_rate(&cell_of(&dir, "set --tier hdd --threads 1 --read-only --repeats 3 --warmups 0"));
        assert!(rate <= 125.0, "{rate} images/s at 8 ms each");
        rate >= 90.0
    };
    assert!(once_in_ten(keeps_up), "fewer than 90 images/s at 8 ms each");
}

#[test]
fn a_parallel_file_system_serves_threads_side_by_side_and_a_disk_does_not() {
    let dir = Dir::with_set();
    let speed_up = |tier: &str| {
        let rate = |threads: u32| {
            let flags = format!("set --tier {tier} --threads {threads} --batch 8 --read-only --repeats 3 --warmups 0");
            best_rate(&cell_of(&dir, &flags))
        };
        rate(4) / rate(1)
    };
    assert!(once_in_ten(|_| speed_up("lustre") > 2.5), "four threads are no 2.5 times as fast as one");
    assert!(once_in_ten(|_| speed_up("hdd") < 2.4), "four threads are 2.4 times as fast as one");
}

#[test]
fn the_table_says_that_a_tier_is_emulated_and_no_tier_is_none() {
    let dir = Dir::with_set();
    let printed = dir.met("ingest set --tier ssd --threads 1 --repeats 1 --warmups 0");
    assert!(printed.contains("Emulated devices: ssd is shaped in this process.\n"), "{printed}");
    assert!(printed.contains("\nof ceiling ") && flat(&printed).contains(" ceiling, MB/s 280 "), "{printed}");
    let cell = cell_of(&dir, "set --threads 1 --repeats 1 --warmups 0");
    assert!(cell["medium"]["tier"].is_null() && cell["ceiling_mb_per_s"].is_null());
}
