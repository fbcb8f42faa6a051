//! Ingest from a tier that is up: it is shaped without being told, and the record says by whom.

use crate::dir::Dir;
use crate::record::{best_rate, cell_of, number, of};

const FLAGS: &str = "--threads 1 --read-only --repeats 3 --warmups 0";

/// A folder with a shaped tier and 24 images on it.
fn shaped(flags: &str) -> Dir {
    let dir = Dir::new();
    dir.met(&format!("tier up {flags} --shaped"));
    let name = flags.split(' ').next().unwrap();
    dir.met(&format!("data make caltech101 .home/tiers/{name}/data/set --count 24 --median-size 4KB"));
    dir
}

#[test]
fn data_on_a_shaped_tier_is_read_at_its_pace_and_the_record_says_so() {
    let dir = shaped("lustre");
    let record = of(&dir, &format!(".home/tiers/lustre/data/set {FLAGS}"));
    let cell = &record["cells"][0];
    assert_eq!((&cell["medium"]["tier"], &cell["medium"]["kind"]), (&"lustre".into(), &"shaped".into()));
    assert_eq!(number(cell, "ceiling_mb_per_s"), 1969.0);
    let note = "the data is on tier lustre: shaped in process to 1.97 GB/s read, 992.0 MB/s write, 4000 µs per request, \
                64 at a time";
    assert_eq!(record["notes"].as_array().unwrap().last().unwrap(), note);
    let rate = best_rate(cell);
    assert!((120.0..=250.0).contains(&rate), "{rate} images/s at 4 ms each");
}

#[test]
fn requests_a_second_are_kept() {
    let dir = shaped("slow --read 100MB/s --write 100MB/s --iops 100");
    let cell = cell_of(&dir, &format!(".home/tiers/slow/data/set {FLAGS}"));
    let rate = best_rate(&cell);
    assert!((60.0..=100.0).contains(&rate), "{rate} images/s at 100 requests/s");
    assert_eq!(cell["medium"]["tier"], "slow");
}

#[test]
fn a_tier_on_the_command_line_comes_before_the_one_below_the_data() {
    let dir = shaped("hdd");
    let record = of(&dir, &format!(".home/tiers/hdd/data/set --tier optane {FLAGS}"));
    let note = record["notes"].as_array().unwrap().last().unwrap().as_str().unwrap();
    assert!(note.starts_with("the data is on tier hdd: ") && note.ends_with("; --tier optane is used instead"));
    let cell = record["cells"][0].clone();
    assert_eq!((&cell["medium"]["tier"], number(&cell, "ceiling_mb_per_s")), (&"optane".into(), 1603.0));
    let rate = best_rate(&cell);
    assert!(rate > 125.0, "{rate} images/s, no more than a disk gives");
}

#[test]
fn a_map_would_go_past_the_shaper_and_is_refused() {
    let dir = shaped("ssd");
    dir.met("data pack .home/tiers/ssd/data/set .home/tiers/ssd/data/packed --to tensor --size 32");
    let said = dir.refused("ingest .home/tiers/ssd/data/packed --mmap");
    assert_eq!(said, "forebay: --mmap bypasses the emulated tier ssd of this data\n");
}

#[test]
fn data_beside_a_tier_is_not_on_it() {
    let dir = shaped("hdd");
    dir.met("data make caltech101 set --count 24 --median-size 4KB");
    let record = of(&dir, &format!("set {FLAGS}"));
    assert!(record["cells"][0]["medium"]["tier"].is_null() && record["cells"][0]["medium"]["kind"].is_null());
    dir.met("tier down");
}
