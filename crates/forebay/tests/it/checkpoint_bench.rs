//! `forebay checkpoint bench`: the cells, what stands beside them, and what stays behind: nothing.

use forebay_testing::{Reason, not_run};
use serde_json::Value;

use crate::dir::Dir;
use crate::process::{Load, Running};
use crate::record::number;

fn folders() -> Dir {
    let dir = Dir::new();
    for name in ["slow", "fast"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    dir
}

fn cells(dir: &Dir, flags: &str) -> Vec<Value> {
    let printed = dir.met(&format!("checkpoint bench slow --json - {flags}"));
    let record: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(record["command"], "checkpoint");
    assert_empty(dir);
    record["cells"].as_array().unwrap().clone()
}

fn assert_empty(dir: &Dir) {
    for name in ["slow", "fast"] {
        let left: Vec<_> = std::fs::read_dir(dir.path(name)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [] as [&str; 0], "{name}");
    }
}

fn kinds(cells: &[Value]) -> Vec<[&str; 2]> {
    cells.iter().map(|cell| ["mode", "format"].map(|name| cell[name].as_str().unwrap())).collect()
}

#[test]
fn without_a_burst_buffer_direct_saves_of_both_formats_are_measured() {
    let dir = folders();
    let cells = cells(&dir, "--size 3MB --saves 2");
    assert_eq!(kinds(&cells), [["direct", "safetensors"], ["direct", "tensorflow"]]);
    for cell in &cells {
        assert_eq!((&cell["bytes"], cell["samples"].as_array().unwrap().len()), (&3_000_000.into(), 2));
        let times =
            ["stall_s", "durable_fast_s", "durable_slow_s", "restore_s", "copy_s"].map(|name| number(cell, name));
        assert!(times.iter().all(|seconds| *seconds > 0.0), "{cell}");
        assert!(number(cell, "ceiling_mb_per_s") > 0.0 && number(cell, "read_ceiling_mb_per_s") > 0.0);
        assert!(cell["medium"]["storage"].as_str().unwrap().starts_with("slow: local files"), "{cell}");
        assert!(cell["burst"]["storage"].is_null() && cell["medium"]["tier"].is_null());
    }
}

#[test]
fn with_a_burst_buffer_all_modes_are_measured_and_modes_and_formats_can_be_chosen() {
    let dir = folders();
    let all = cells(&dir, "--burst-dir fast --size 1MB --saves 1");
    assert_eq!(all.len(), 6);
    let some = cells(&dir, "--burst-dir fast --size 1MB --saves 1 --mode burst,async --format tensorflow --no-ceiling");
    assert_eq!(kinds(&some), [["burst", "tensorflow"], ["async", "tensorflow"]]);
    assert!(some.iter().all(|cell| cell["ceiling_mb_per_s"].is_null() && cell["copy_s"].is_null()));
    assert!(some.iter().all(|cell| number(cell, "durable_slow_s") > number(cell, "durable_fast_s")));
}

#[test]
fn emulated_devices_take_their_time_and_are_named() {
    let dir = folders();
    let flags = "--burst-dir fast --tier hdd --burst-tier optane --size 20MB --saves 1 --format safetensors";
    let cells = cells(&dir, flags);
    let [direct, burst, _] = &cells[..] else { panic!("{cells:?}") };
    for cell in [direct, burst] {
        assert_eq!((&cell["medium"]["tier"], &cell["burst"]["tier"]), (&"hdd".into(), &"optane".into()));
        assert_eq!(cell["medium"]["kind"], "shaped");
    }
    assert!(number(direct, "stall_s") >= 20.0 / 133.0, "{direct}");
    assert!(number(burst, "stall_s") >= 20.0 / 512.0, "{burst}");
    assert!(number(burst, "durable_slow_s") - number(burst, "durable_fast_s") >= 20.0 / 133.0, "{burst}");
    assert_eq!((number(direct, "rated_mb_per_s"), number(burst, "rated_mb_per_s")), (133.0, 512.0));
    assert_eq!((number(direct, "ceiling_mb_per_s"), number(burst, "ceiling_mb_per_s")), (133.0, 512.0));
}

#[test]
fn a_drain_rate_slows_the_drain_and_not_the_save() {
    let dir = folders();
    let flags = "--burst-dir fast --size 10MB --saves 1 --mode burst --format safetensors --drain-rate 40MB";
    let cell = cells(&dir, flags).remove(0);
    // Ten megabytes are copied and read back, after they are safe on the burst buffer.
    let drain_s = number(&cell, "durable_slow_s") - number(&cell, "durable_fast_s");
    assert!(drain_s >= 0.4, "{drain_s} s: {cell}");
}

#[test]
fn a_networks_state_is_its_weights_and_two_moments_of_each() {
    let dir = folders();
    let cells = cells(&dir, "--model alexnet-small --saves 1 --format safetensors --no-ceiling");
    assert!(cells[0]["state"].as_str().unwrap().starts_with("alexnet-small with adam, "), "{cells:?}");
    let [bytes, tensors] = ["bytes", "n_tensors"].map(|name| cells[0][name].as_u64().unwrap());
    assert!(bytes > 0 && bytes % 12 == 0 && tensors >= 12 && tensors % 3 == 0, "{cells:?}");
}

#[test]
fn a_state_lies_on_the_device_that_was_asked_for_or_it_is_said_that_there_is_none() {
    let dir = folders();
    let of = |device: &str| format!("checkpoint bench slow --model alexnet-small --device {device} --saves 1");
    let printed = dir.met(&format!("{} --json -", of("cpu")));
    let record: Value = serde_json::from_str(&printed).unwrap();
    assert!(record["cells"][0]["device"].is_null(), "{record}");
    let gone = dir.refused(&of("cuda:1000"));
    assert!(gone.to_lowercase().contains("cuda"), "{gone}");
    assert_eq!(gone, dir.refused("train --synthetic --device cuda:1000 --steps 1"));
    for line in ["checkpoint bench slow --device cuda", "checkpoint bench slow --size 1MB --device cuda"] {
        let said = dir.refused(line);
        assert!(said.contains("--device applies only to a network's state: give --model"), "{said}");
    }
    let said = dir.refused("checkpoint bench slow --size 1MB --model alexnet-small");
    assert!(said.contains("give --size or --model, not both"), "{said}");
    assert_empty(&dir);
}

#[test]
fn an_async_save_takes_the_memory_of_one_state_and_hardly_more() {
    let dir = folders();
    let cells = cells(&dir, "--mode async --size 60MB --saves 2 --no-ceiling");
    for cell in &cells {
        let Some(memory_bytes) = cell["memory_bytes"].as_u64() else {
            return not_run(Reason::NoPeakMemory, cell);
        };
        assert!((60_000_000..66_000_000).contains(&memory_bytes), "{memory_bytes} bytes, {}", cell["format"]);
    }
}

#[test]
fn a_mode_that_is_named_twice_is_measured_once_and_in_the_order_given() {
    let dir = folders();
    let cells =
        cells(&dir, "--mode async,direct --mode async --size 1MB --saves 1 --format safetensors --no-ceiling --seed 3");
    let modes: Vec<&str> = cells.iter().map(|cell| cell["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["async", "direct"]);
}

#[test]
fn the_table_has_a_line_for_each_cell() {
    let dir = folders();
    let printed = dir.met("checkpoint bench slow --burst-dir fast --size 1MB --saves 1");
    for mode in ["direct", "burst", "async"] {
        let table = printed.lines().skip_while(|line| !line.starts_with("cell ")).take_while(|line| !line.is_empty());
        assert_eq!(table.filter(|line| line.starts_with(mode)).count(), 2, "{printed}");
    }
    assert!(printed.contains("1.0 MB in "), "{printed}");
}

#[test]
fn what_cannot_be_measured_is_refused_with_what_to_do() {
    let dir = folders();
    let said = dir.refused("checkpoint bench /proc --size 1MB");
    assert_eq!(said, "forebay: /proc: nothing can be created there; name another folder\n");
    let said = dir.refused("checkpoint bench slow --mode burst");
    assert_eq!(said, "forebay: --mode burst needs a burst buffer\nhint: give its folder with --burst-dir DIR\n");
    let said = dir.refused("checkpoint bench slow --burst-dir slow/../slow");
    assert!(said.contains("must not contain one another"), "{said}");
    let said = dir.refused("checkpoint bench slow --size 900TB");
    assert!(
        said.contains("the benchmark needs 1800.00 TB, but only ") && said.contains("give a smaller --size"),
        "{said}"
    );
    let said = dir.refused("checkpoint bench slow --size 3");
    assert!(said.contains("give a size from 4 B to 1000.00 TB"), "{said}");
    let said = dir.refused("checkpoint bench slow --drain-rate 1MB");
    assert_eq!(said, "forebay: --drain-rate needs a burst buffer\nhint: give its folder with --burst-dir DIR\n");
    assert_empty(&dir);
}

#[test]
fn an_interrupted_benchmark_leaves_nothing_and_a_killed_one_is_cleared_by_the_next() {
    let dir = folders();
    let line = "checkpoint bench slow --tier hdd --size 20MB --saves 1000 --format safetensors --no-ceiling";
    let begin = || {
        let mut running = Running::start(&dir, line);
        running.wait_until("a checkpoint", |_| {
            let mut found = std::fs::read_dir(dir.path("slow")).unwrap().flatten();
            found.any(|own| {
                let saved = std::fs::read_dir(own.path().join("checkpoints")).into_iter().flatten().flatten();
                saved.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("step-"))
            })
        });
        running
    };
    let running = begin();
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("note: interrupted"), "{}", ran.stdout);
    assert_empty(&dir);
    let running = begin();
    running.signal(libc::SIGKILL);
    running.finish();
    assert_eq!(std::fs::read_dir(dir.path("slow")).unwrap().count(), 1);
    let printed = dir.met("checkpoint bench slow --size 1MB --saves 1 --no-ceiling");
    assert!(printed.contains("note: removed leftovers of a killed benchmark: "), "{printed}");
    assert_empty(&dir);
}

#[test]
fn a_save_beside_other_processes_is_made_again_as_often_as_is_said() {
    let (dir, load) = (folders(), Load::start());
    let line = "checkpoint bench slow --tier hdd --size 20MB --saves 2 --format safetensors --no-ceiling --json -";
    let saves = |extra: usize| load.repeats(&dir, &format!("{line} --extra-repeats {extra}"));
    assert_eq!((saves(0), saves(2)), ((2, 2), (4, 2)));
    assert_empty(&dir);
}
