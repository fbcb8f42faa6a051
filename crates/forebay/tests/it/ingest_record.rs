//! The record of `forebay ingest`: what scripts rely on, and sums that must come out.

use serde_json::Value;

use crate::dir::Dir;
use crate::process::more_threads_than_cores;
use crate::record::{self, cell_of, number, worker_seconds};

const CELL: [&str; 12] = [
    "threads",
    "batch",
    "read_only",
    "medium",
    "images_per_s",
    "mb_per_s",
    "samples",
    "cpu_s_per_1000",
    "failed_samples",
    "worker_time",
    "wait_s",
    "wall_s",
];

#[test]
fn the_record_has_the_fields_that_scripts_rely_on() {
    let dir = Dir::with_set();
    let record = record::of(&dir, "set --threads 1,2 --repeats 3");
    assert_eq!((&record["schema"], &record["command"]), (&"forebay-record/2".into(), &"ingest".into()));
    assert_eq!(record["command_line"][1], "ingest");
    assert_eq!(record["environment"]["n_cores"], std::thread::available_parallelism().unwrap().get());
    assert_eq!(
        record["dataset"],
        serde_json::json!({
            "path": "set", "packing": "files", "n_samples": 24, "n_files": 24
        })
    );
    let cells = record["cells"].as_array().unwrap();
    assert_eq!(cells.iter().map(|cell| &cell["threads"]).collect::<Vec<_>>(), [1, 2]);
    for cell in cells {
        assert!(CELL.iter().all(|name| !cell[name].is_null()), "{cell}");
        assert_eq!((&cell["batch"], &cell["read_only"]), (&64.into(), &false.into()));
        assert_eq!(cell["samples"].as_array().unwrap().len(), 3);
    }
}

#[test]
fn the_numbers_of_a_cell_are_those_of_its_samples() {
    let dir = Dir::with_set();
    let cell = cell_of(&dir, "set --threads 2 --repeats 3");
    let bytes: usize = dir.images("set").values().map(Vec::len).sum();
    let samples = cell["samples"].as_array().unwrap();
    let median = |value: &dyn Fn(&Value) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        values[1]
    };
    for sample in samples {
        assert_eq!((&sample["images"], &sample["bytes"], &sample["failed"]), (&24.into(), &bytes.into(), &0.into()));
    }
    // Numbers may lose their last bit on the way through text.
    let agree = |name: &str, value: f64| assert!((number(&cell, name) / value - 1.0).abs() < 1e-12, "{name}: {value}");
    agree("images_per_s", median(&|sample| 24.0 / number(sample, "wall_s")));
    agree("mb_per_s", median(&|sample| bytes as f64 / 1e6 / number(sample, "wall_s")));
    agree("cpu_s_per_1000", median(&|sample| number(sample, "cpu_s") / 24.0 * 1000.0));
    assert!(samples.iter().any(|sample| sample["wall_s"] == cell["wall_s"] && sample["wait_s"] == cell["wait_s"]));
}

#[test]
fn one_repeat_has_no_spread_and_several_have_one() {
    let dir = Dir::with_set();
    assert_eq!(cell_of(&dir, "set --threads 1 --repeats 1")["spread"], Value::Null);
    assert!(number(&cell_of(&dir, "set --threads 1 --repeats 2"), "spread") >= 0.0);
}

#[test]
fn waiting_is_part_of_the_wall_clock_and_every_thread_accounts_for_all_of_it() {
    let dir = Dir::with_set();
    // On a slow device the threads' starts and ends do not count.
    let record = record::of(&dir, "set --tier hdd --threads 1,3 --repeats 2 --warmups 0");
    for cell in record["cells"].as_array().unwrap() {
        for part in cell["samples"].as_array().unwrap().iter().chain([cell]) {
            let (wait, wall) = (number(part, "wait_s"), number(part, "wall_s"));
            assert!(0.0 < wait && wait <= wall, "waited {wait} of {wall}");
            let threads = number(cell, "threads");
            let accounted = worker_seconds(part) / (threads * wall);
            assert!((0.9..=1.001).contains(&accounted), "{threads} threads account for {accounted} of their time");
        }
    }
}

#[test]
fn threads_are_swept_in_the_order_given_and_one_two_four_eight_by_default() {
    let dir = Dir::with_set();
    let threads = |flags: &str| {
        let record = record::of(&dir, &format!("set --repeats 1 --warmups 0 {flags}"));
        let cells = record["cells"].as_array().unwrap().iter();
        cells.map(|cell| cell["threads"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(threads("--threads 3,1"), [3, 1]);
    assert_eq!(threads(""), [1, 2, 4, 8]);
}

#[test]
fn auto_finds_a_number_of_threads_and_says_which() {
    let dir = Dir::with_set();
    let cell = cell_of(&dir, "set --threads auto --repeats 1 --warmups 0");
    assert_eq!(cell["threads_auto"], true);
    assert!((1..=1024).contains(&cell["threads"].as_u64().unwrap()));
    let printed = dir.met("ingest set --threads auto --repeats 1 --warmups 0");
    assert!(printed.contains("; auto; ") && printed.contains("threads tried "), "{printed}");
}

#[test]
fn readers_are_threads_of_their_own_that_decoders_wait_for() {
    let dir = Dir::with_set();
    let flags = "set --tier hdd --threads 2 --repeats 1 --warmups 0";
    let (without, with) = (cell_of(&dir, flags), cell_of(&dir, &format!("{flags} --readers 3")));
    assert_eq!((&without["readers"], &with["readers"]), (&0.into(), &3.into()));
    let waited = |cell: &Value| number(&cell["worker_time"], "waiting_for_bytes");
    assert_eq!(waited(&without), 0.0);
    assert!(waited(&with) > number(&with, "wall_s"), "two decoders on a slow disk mostly wait");
    let accounted = worker_seconds(&with) / number(&with, "wall_s");
    assert!((4.5..=5.01).contains(&accounted), "five threads account for {accounted} times the wall clock");
}

#[test]
fn read_only_reads_what_could_not_be_decoded_and_decodes_nothing() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "no image at all");
    let flags = "set --threads 1 --repeats 1 --warmups 0";
    let (decoded, read) = (cell_of(&dir, flags), cell_of(&dir, &format!("{flags} --read-only")));
    assert_eq!((&decoded["read_only"], &decoded["failed_samples"]), (&false.into(), &1.into()));
    assert_eq!((&read["read_only"], &read["failed_samples"]), (&true.into(), &0.into()));
    assert_eq!((&read["samples"][0]["images"], &decoded["samples"][0]["images"]), (&24.into(), &23.into()));
    assert_eq!(number(&read["worker_time"], "resizing"), 0.0);
    assert!(number(&decoded["worker_time"], "resizing") > 0.0);
}

#[test]
fn json_goes_to_a_file_beside_the_table_and_to_stdout_alone() {
    let dir = Dir::with_set();
    dir.write("record.json", r#"{"schema": "forebay-record/2"}"#);
    let printed = dir.met("ingest set --threads 1 --repeats 1 --json record.json");
    assert!(printed.starts_with("Ingest of set\ndata         set: 24 samples in 24 files (files)\n"), "{printed}");
    assert!(printed.contains("\nsettings     decode; batch 64; prefetch 1; local, buffered; "), "{printed}");
    assert!(printed.contains(" 224x224 f32 nhwc\n"), "{printed}");
    assert_eq!(dir.json("record.json")["command"], "ingest");
    assert_eq!(record::of(&dir, "set --threads 1 --repeats 1")["command"], "ingest");
}

#[test]
fn a_run_that_fails_leaves_a_former_record_as_it_was() {
    let dir = Dir::new();
    dir.write("record.json", "a former record");
    dir.refused("ingest gone --json record.json");
    assert_eq!(dir.read("record.json"), b"a former record");
}

#[test]
fn a_rate_below_the_one_asked_for_is_status_one() {
    let dir = Dir::with_set();
    let line = "ingest set --threads 1 --repeats 1 --warmups 0 --json record.json";
    dir.met(&format!("{line} --min-images-per-s 0.5"));
    let ran = dir.missed(&format!("{line} --min-images-per-s 1e9"));
    let rate = number(&dir.json("record.json")["cells"][0], "images_per_s");
    assert_eq!(ran.stderr, format!("forebay: {rate:.1} images/s, below the required 1000000000\n"));
    assert!(ran.stdout.starts_with("Ingest of set\n"), "the table is shown all the same");
}

#[test]
fn more_threads_than_cores_or_samples_are_no_trouble() {
    let dir = Dir::with_set();
    let n = more_threads_than_cores().max(30);
    let cell = cell_of(&dir, &format!("set --threads {n} --repeats 1 --warmups 0"));
    assert_eq!((&cell["threads"], &cell["samples"][0]["images"]), (&n.into(), &24.into()));
}

#[test]
fn the_record_holds_what_the_machine_did_meanwhile_with_a_mark_a_repeat() {
    let dir = Dir::with_set();
    let record = record::of(&dir, "set --threads 1,2 --warmups 1 --repeats 2 --extra-repeats 0");
    let series: forebay_record::Series = serde_json::from_value(record["series"].clone()).unwrap();
    let marks: Vec<&str> = series.marks.iter().map(|mark| mark.what.as_str()).collect();
    assert_eq!(marks.len(), 2 * 3, "{marks:?}");
    assert!(marks[0].starts_with("1 thread") && marks[1].starts_with("2 threads"), "{marks:?}");
    assert!(series.marks.is_sorted_by_key(|mark| mark.time_s));
    assert!(!series.is_empty(), "even a short run has a row");
    assert!(series.columns.iter().any(|column| column.name.starts_with("disk.")));
    let samples = record["cells"].as_array().unwrap().iter().flat_map(|cell| cell["samples"].as_array().unwrap());
    let read: f64 = samples.map(|sample| number(sample, "bytes")).sum();
    assert!(read > 0.0 && series.total("process.rchar_bytes_per_s").unwrap() >= read, "{series:?}");
}
