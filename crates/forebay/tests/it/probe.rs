//! `forebay probe`: what it measures, and how it says so.

use serde_json::{Value, json};

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, flat};
use crate::process::Load;
use crate::record::{notes, number};

/// Runs a probe of the test's folder and takes its record from stdout.
pub(crate) fn of(dir: &Dir, flags: &str) -> Value {
    let stdout = dir.met(&format!("probe . --json - {flags}"));
    let record = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("no pure JSON: {error}\n{stdout}"));
    assert_eq!(left_overs(dir), [] as [&str; 0], "nothing stays behind");
    record
}

pub(crate) fn cells(record: &Value) -> Vec<Value> {
    record["cells"].as_array().unwrap().clone()
}

/// Names in the test's folder that a probe gave.
pub(crate) fn left_overs(dir: &Dir) -> Vec<String> {
    let names = std::fs::read_dir(dir.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".forebay-probe-")).collect()
}

fn is_in_memory(record: &Value) -> bool {
    let in_memory = record["environment"]["data_file_system"].as_str().unwrap().starts_with("tmpfs");
    if in_memory {
        not_run(Reason::NoDisk, "nothing in memory is cold");
    }
    in_memory
}

/// The engines of this machine.
fn engines(dir: &Dir) -> &'static [&'static str] {
    let ring = dir.run("probe . --engine uring --size 1MiB --sequential --depth 1 --runs 2");
    if ring.code == Some(0) {
        return &["sync", "direct", "uring"];
    }
    not_run(Reason::NoIoUring, ring.stderr);
    &["sync", "direct"]
}

fn check_cell(cell: &Value) {
    let keys = ["mode", "engine", "block", "depth", "mb_per_s", "iops", "latency_us", "medium"];
    assert!(keys.iter().all(|key| cell.get(key).is_some()), "{cell}");
    let latency = cell["latency_us"].as_object().unwrap();
    let names: Vec<&str> = latency.keys().map(String::as_str).collect();
    assert_eq!(names, ["max", "p50", "p90", "p99", "p999"], "exactly these, sorted by name here");
    let of = |name: &str| number(&cell["latency_us"], name);
    let rising = [of("p50"), of("p90"), of("p99"), of("p999"), of("max")];
    assert!(rising[0] > 0.0 && rising.is_sorted(), "{rising:?}");
    let samples = cell["samples"].as_array().unwrap();
    let n_requests: f64 = samples.iter().map(|sample| number(sample, "n_requests")).sum();
    let buckets = cell["histogram"].as_array().unwrap();
    assert_eq!(buckets.iter().map(|bucket| number(bucket, "n")).sum::<f64>(), n_requests);
    assert!(number(buckets.last().unwrap(), "upto_us") >= of("max"));
    let mut rates: Vec<f64> = samples.iter().map(|s| number(s, "bytes") / 1e6 / number(s, "wall_s")).collect();
    rates.sort_by(f64::total_cmp);
    let middle = (rates[(rates.len() - 1) / 2] + rates[rates.len() / 2]) / 2.0;
    assert!((number(cell, "mb_per_s") / middle - 1.0).abs() < 1e-9, "the median: {cell}");
}

#[test]
fn every_engine_block_and_depth_is_a_cell_with_all_its_numbers() {
    let dir = Dir::new();
    let engines = engines(&dir);
    let record =
        of(&dir, &format!("--size 4MiB --runs 3 --block 64KiB,1MiB --depth 1,3 --engine {}", engines.join(",")));
    assert_eq!((&record["command"], &record["schema"]), (&json!("probe"), &json!("forebay-record/2")));
    let cells = cells(&record);
    let mut found: Vec<(String, String, u64, u64)> = Vec::new();
    for cell in &cells {
        check_cell(cell);
        let text = |name: &str| cell[name].as_str().unwrap().to_owned();
        let block = cell["block"].as_u64().unwrap();
        found.push((text("mode"), text("engine"), block, cell["depth"].as_u64().unwrap()));
        for sample in cell["samples"].as_array().unwrap() {
            assert_eq!(sample["bytes"], 4 << 20, "the whole file: {sample}");
            assert_eq!(sample["n_requests"], (4 << 20) / block);
        }
        assert_eq!(cell["samples"].as_array().unwrap().len(), 2, "the first run is not kept");
    }
    let mut wanted = Vec::new();
    for mode in ["sequential-write", "sequential-read", "random-read"] {
        for engine in engines {
            for block in [65_536, 1 << 20] {
                wanted.extend([1, 3].map(|depth| (mode.to_owned(), (*engine).to_owned(), block, depth)));
            }
        }
    }
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}

#[test]
fn reads_are_proven_cold_and_writes_reach_the_device() {
    let dir = Dir::new();
    let record = of(&dir, "--size 4MiB --runs 2 --depth 1,2 --engine sync,direct");
    if is_in_memory(&record) {
        return;
    }
    for cell in cells(&record) {
        assert_eq!(cell["medium"]["cache"], "cold", "{cell}");
        let samples = cell["samples"].as_array().unwrap();
        for (sample, evidence) in samples.iter().zip(cell["medium"]["evidence"].as_array().unwrap()) {
            assert!(number(evidence, "block_bytes") >= 0.95 * number(sample, "bytes"), "{cell}");
            assert_eq!(evidence["bytes_read"], sample["bytes"]);
            let before = &evidence["resident_before"];
            assert!(cell["mode"] == "sequential-write" || *before == json!(0.0), "{cell}");
        }
    }
    assert_eq!(notes(&record), [] as [&str; 0]);
}

#[test]
fn without_flags_a_mode_is_sequential_and_random_with_the_mix_of_images_and_direct() {
    let dir = Dir::new();
    let record = of(&dir, "--size 4MiB");
    let found: Vec<Value> = cells(&record);
    let modes: Vec<&str> = found.iter().map(|cell| cell["mode"].as_str().unwrap()).collect();
    let pair = ["sequential-write", "sequential-read"];
    assert_eq!(modes, [&pair[..], &pair, &pair, &["random-read"; 3]].concat());
    for cell in &found {
        assert_eq!((&cell["engine"], cell["samples"].as_array().unwrap().len()), (&json!("direct"), 5), "{cell}");
        let random = cell["mode"] == "random-read";
        let mix = json!("2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1");
        assert_eq!((cell["mix"] == mix, cell["block"] == json!(1 << 20)), (random, !random), "{cell}");
    }
    let depths: Vec<u64> = found[6..].iter().map(|cell| cell["depth"].as_u64().unwrap()).collect();
    assert_eq!(depths, [1, 8, 32]);
}

#[test]
fn a_mix_is_read_in_its_shares_and_no_page_twice() {
    let dir = Dir::new();
    let record = of(&dir, "--random --size 16MiB --mix 4K/50:64K/50 --depth 2 --runs 2 --engine sync");
    let cell = &cells(&record)[0];
    assert_eq!(
        (&cell["mode"], &cell["mix"], &cell["block"]),
        (&json!("random-read"), &json!("4K/50:64K/50"), &Value::Null)
    );
    let sample = &cell["samples"][0];
    let mean = number(sample, "bytes") / number(sample, "n_requests");
    assert!((28_000.0..42_000.0).contains(&mean), "{mean} bytes a request, and 34,816 are expected");
    assert!(number(sample, "bytes") > 0.98 * f64::from(16 << 20), "all of the file: {sample}");
    if !is_in_memory(&record) {
        let block_bytes = number(&cell["medium"]["evidence"][0], "block_bytes");
        assert!(block_bytes < 1.02 * f64::from(16 << 20), "{block_bytes}: no readahead behind the requests");
    }
}

#[test]
fn like_takes_the_sizes_of_a_dataset_and_adds_files_of_its_lengths() {
    let dir = Dir::with_set();
    let mix = dir.met("data inspect set --json -");
    let mix = serde_json::from_str::<Value>(&mix).unwrap()["bssplit"].clone();
    let before = dir.tree("set");
    let record = of(&dir, "--like set --size 4MiB --depth 2 --runs 2 --block 1MiB");
    assert_eq!(dir.tree("set"), before, "the data is only looked at");
    let cells = cells(&record);
    let modes: Vec<&str> = cells.iter().map(|cell| cell["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["sequential-write", "sequential-read", "random-read", "files"]);
    assert_eq!(cells[2]["mix"], mix);
    let files = &cells[3];
    check_cell(files);
    assert_eq!((&files["block"], &files["mix"]), (&Value::Null, &json!("24 of 24 files as in set")));
    let bytes: usize = dir.images("set").values().map(Vec::len).sum();
    assert_eq!((&files["samples"][0]["bytes"], &files["samples"][0]["n_requests"]), (&json!(bytes), &json!(24)));
    let iops = 24.0 / number(&files["samples"][0], "wall_s");
    assert!((number(files, "iops") / iops - 1.0).abs() < 1e-9, "files a second");
    let shards = of_shards(&dir);
    let modes: Vec<&str> = shards.iter().map(|cell| cell["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["sequential-write", "sequential-read", "random-read"], "shards are not many files");
}

fn of_shards(dir: &Dir) -> Vec<Value> {
    dir.met("data pack set shards --to tar");
    cells(&of(dir, "--like shards --size 1MiB --depth 1 --runs 2"))
}

#[test]
fn files_are_read_by_every_engine_and_are_as_many_as_fit() {
    let dir = Dir::new();
    let engines = engines(&dir).join(",");
    let record = of(&dir, &format!("--files --block 10KB,100KB --size 1MB --depth 1,4 --runs 2 --engine {engines}"));
    let found = cells(&record);
    assert_eq!(found.len(), 4 * (engines.matches(',').count() + 1));
    for cell in &found {
        check_cell(cell);
        let n = if cell["mix"] == "100 files of 10.0 KB" { 100 } else { 10 };
        assert_eq!(cell["block"], 1_000_000 / n);
        assert_eq!(cell["mix"], if n == 100 { "100 files of 10.0 KB" } else { "10 files of 100.0 KB" });
        assert_eq!((&cell["samples"][0]["n_requests"], &cell["samples"][0]["bytes"]), (&json!(n), &json!(1_000_000)));
        assert!(is_in_memory(&record) || cell["medium"]["cache"] == "cold", "{cell}");
    }
    let mixed = cells(&of(&dir, "--files --mix 4K/50:8K/50 --size 600000 --depth 1 --runs 2")).remove(0);
    let n = number(&mixed["samples"][0], "n_requests");
    assert_eq!(mixed["mix"], format!("{n} files, 4K/50:8K/50"));
    assert!((80.0..120.0).contains(&n), "{n} files of 6 KiB on average");
}

#[test]
fn a_file_in_place_of_a_folder_is_read_and_stays_as_it_is() {
    let dir = Dir::new();
    let bytes: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 / 3) as u8).collect();
    dir.write("big", &bytes);
    let read = |flags: &str| -> Vec<Value> {
        let stdout = dir.met(&format!("probe big --runs 2 --depth 1 --json - {flags}"));
        cells(&serde_json::from_str(&stdout).unwrap())
    };
    let found = read("");
    let modes: Vec<&str> = found.iter().map(|cell| cell["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["sequential-read", "random-read"]);
    assert_eq!(found[0]["samples"][0]["bytes"], 2_998_272, "whole pages of it");
    assert_eq!(read("--sequential --size 2MiB")[0]["samples"][0]["bytes"], 2 << 20);
    assert!(dir.read("big") == bytes && left_overs(&dir).is_empty());
    assert_eq!(dir.names(""), ["big"]);
    assert_eq!(dir.refused("probe big --files"), "forebay: big: --files needs a folder to make files in\n");
    assert_eq!(dir.refused("probe big --size 4MB"), "forebay: big: its size of 3.0 MB is less than --size 4.0 MB\n");
}

#[test]
fn an_emulated_disk_gives_its_rated_bandwidth() {
    let dir = Dir::new();
    let record = of(&dir, "--tier hdd --sequential --size 64MiB --block 8MiB --depth 1,2 --runs 3");
    let found = cells(&record);
    let modes: Vec<(&str, u64)> =
        found.iter().map(|cell| (cell["mode"].as_str().unwrap(), cell["depth"].as_u64().unwrap())).collect();
    assert_eq!(modes, [("sequential-write", 1), ("sequential-read", 1), ("sequential-read", 2)], "one write at a time");
    let fastest = |cell: &Value| {
        let samples = cell["samples"].as_array().unwrap().iter();
        samples.map(|sample| number(sample, "bytes") / 1e6 / number(sample, "wall_s")).fold(0.0, f64::max)
    };
    let (write, read) = (fastest(&found[0]), fastest(&found[1]));
    assert!((146.7..=163.5).contains(&read), "{read} MB/s, and the disk has 163");
    assert!((100.0..=133.5).contains(&write), "{write} MB/s, and the disk has 133");
    for cell in &found {
        assert_eq!((&cell["medium"]["tier"], &cell["medium"]["kind"]), (&json!("hdd"), &json!("shaped")));
    }
    let latency = json!({"p50": null, "p90": null, "p99": null, "p999": null, "max": null});
    assert_eq!(
        (&found[0]["latency_us"], &found[0]["histogram"]),
        (&latency, &json!([])),
        "the disk's below, not its own"
    );
    check_cell(&found[1]);
    let note = "an emulated device serializes writes, so they are measured only at depth 1";
    assert_eq!(record["notes"][0], note);
    let files = cells(&of(&dir, "--tier lustre --files --block 8KB --size 200KB --depth 1 --runs 2 --engine sync"));
    let rate = number(&files[0], "iops");
    assert!((60.0..=250.0).contains(&rate), "{rate} files a second at 4 ms each");
}

#[test]
fn the_table_shows_every_cell_and_the_best_of_each_mode() {
    let dir = Dir::new();
    let printed = dir.met("probe . --size 4MiB --depth 1,2 --runs 2 --engine sync --json record.json");
    let record = dir.json("record.json");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "Probe of .", "{printed}");
    let table = lines.iter().skip_while(|line| !line.starts_with("cell ")).take_while(|line| !line.is_empty());
    assert_eq!(table.filter(|line| line.contains(", sync, ")).count(), 6, "{printed}");
    for mode in ["sequential write", "sequential read", "random read"] {
        assert!(lines.iter().any(|line| line.starts_with(&format!("  Fastest: {mode}, "))), "{printed}");
        let headline = flat(&printed);
        let best = headline.split_once("Best rates: ").unwrap().1.split_once(&format!("{mode} ")).unwrap().1;
        let of_mode = cells(&record).into_iter().filter(|cell| cell["mode"] == mode.replace(' ', "-"));
        let rate = of_mode.map(|cell| number(&cell, "mb_per_s")).fold(0.0, f64::max);
        let said: f64 = best.split(' ').next().unwrap().replace(',', "").parse().unwrap();
        assert!((said - rate).abs() <= 0.5, "{best}, and {rate}");
    }
}

#[test]
fn a_block_is_read_as_fio_reads_it_and_nothing_is_measured_twice() {
    let dir = Dir::new();
    let blocks = |flags: &str| -> Vec<u64> {
        cells(&of(&dir, &format!("--random --engine sync,sync --depth 1,1 --size 4MiB --runs 2 --block {flags}")))
            .iter()
            .map(|cell| cell["block"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(blocks("64K,64KiB,64KB,0.5m,1536"), [65_536, 64_000, 524_288, 1_536]);
    let said = dir.refused("probe . --block xK");
    assert!(said.contains("\"xK\" is not a size"), "{said}");
}

#[test]
fn a_dry_run_says_what_it_would_do_and_does_nothing() {
    let dir = Dir::new();
    let said = dir.met("probe . --size 1GiB --tier hdd --dry-run --save never --json never.json");
    let (first, second) = said.split_once('\n').unwrap();
    assert!(
        first.starts_with(".: 7 cells of 6 runs: 6.44 GB written and at most 38.65 GB read; 1.07 GB of "),
        "{said}"
    );
    assert!(first.ends_with(" free on disk during the run, 33.7 MB of memory"), "{said}");
    assert_eq!(second, "estimated time: about 4 min 44 s at 133 MB/s, the slower rate of hdd\n");
    for random in ["--random", "--mode random", "--mode random --random"] {
        let said = dir.met(&format!("probe . --size 1GiB {random} --block 4KiB --depth 1 --dry-run"));
        assert!(said.contains("1 cells of 6 runs: 1.07 GB written and at most 6.44 GB read;"), "{said}");
    }
    let said = dir.met("probe . --size 1GiB --mode random --sequential --mix 4K --block 4K --depth 1 --dry-run");
    assert!(said.contains(": 3 cells of 6 runs:"), "a short form adds to the modes: {said}");
    assert!(said.contains("\nestimated time: about ") && said.contains(" at 150 MB/s, about "), "{said}");
    assert!(left_overs(&dir).is_empty() && dir.names("").is_empty() && !dir.path(".home").exists());
}

#[test]
fn a_run_beside_other_processes_is_run_again_as_often_as_is_said() {
    let (dir, load) = (Dir::new(), Load::start());
    let line = "probe . --json - --tier hdd --random --size 1MiB --block 64KiB --depth 1 --runs 3 --extra-repeats";
    let runs = |extra: usize| load.repeats(&dir, &format!("{line} {extra}"));
    assert_eq!((runs(0), runs(1)), ((2, 2), (3, 2)));
}
