//! A traced job as a workload: imported, shown, made, played again, with exactly its calls.

use serde_json::Value;

use crate::dir::{Dir, flat};

/// A loop of two epochs that fetches its batches itself and marks what the hook marks for PyTorch.
const JOB: &str = r#"
import ctypes, os, random, time
mark = ctypes.PyDLL(None).forebay_mark
mark.argtypes = [ctypes.c_uint, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64, ctypes.c_uint64]
mark.restype = None
now = time.monotonic_ns
WAIT, EPOCH, SAVE, FETCH, LOADER = 1, 3, 4, 6, 8
names = sorted(os.listdir("data"))
draw = random.Random(5)
for epoch in range(2):
    mark(EPOCH, now(), 0, 0, 0)
    mark(LOADER, now(), 0, 0, 4)
    order = draw.sample(names, len(names))
    for step in range(3):
        start = now()
        mark(FETCH, start, 0, -1, 0)
        for name in order[4 * step : 4 * step + 4]:
            os.stat("data/" + name)
            fd = os.open("data/" + name, os.O_RDONLY)
            while os.read(fd, 1000):
                pass
            os.close(fd)
        mark(FETCH, start, now() - start, 4, 0)
        mark(WAIT, start, now() - start, 0, 0)
        time.sleep(0.02)
    start = now()
    mark(WAIT, start, now() - start, -1, 0)
start = now()
fd = os.open("model.ckpt", os.O_CREAT | os.O_WRONLY)
os.write(fd, bytes(5000))
os.write(fd, bytes(5000))
os.fsync(fd)
os.close(fd)
mark(SAVE, start, now() - start, 0, 0)
"#;

/// Twelve files of 2,500 bytes, the traced job, and its workload in `mine.toml`.
fn with_job() -> Dir {
    let dir = Dir::new();
    for n in 0..12 {
        dir.write(format!("data/{n:02}.bin"), [7; 2_500]);
    }
    dir.write("job.py", JOB);
    let ran = dir.run("trace --out traced --no-python -- python3 job.py");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    dir.write("mine.toml", dir.met("workload import --from-trace traced"));
    dir
}

/// The cell of a run, and its notes.
fn played(dir: &Dir, flags: &str) -> (Value, String) {
    let ran = dir.run(&format!("workload run mine.toml {flags} --json played.json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let record = dir.json("played.json");
    (record["cells"][0].clone(), record["notes"].to_string())
}

#[test]
fn the_workload_has_the_files_calls_and_pauses_of_the_job() {
    let dir = with_job();
    let shown: Value = serde_json::from_str(&dir.met("workload show mine.toml --json -")).unwrap();
    let replay = &shown["replay"];
    assert_eq!(replay["job"], "python3 job.py");
    assert!(replay["root"].as_str().unwrap().ends_with("/data"), "{replay}");
    assert_eq!(replay["passes"].to_string(), "[0,0]");
    let loader = &replay["loader"][0];
    let numbers = |of: &Value, names: &[&str]| names.iter().map(|name| of[*name].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(loader, &["steps", "samples", "workers", "stats"]), [3, 24, 0, 24]);
    let compute = loader["compute_s"].as_array().unwrap();
    assert!(compute.len() == 6 && compute.iter().all(|s| (0.02..0.2).contains(&s.as_f64().unwrap())), "{compute:?}");
    let files = &loader["files"][0];
    let counts = ["files", "bytes", "visits", "opens", "reads", "empty_reads", "bytes_read"];
    assert_eq!(numbers(files, &counts), [12, 30_000, 24, 24, 96, 24, 60_000]);
    let words = ["folder", "ending", "order", "reading"].map(|name| files[name].as_str().unwrap());
    assert_eq!(words, ["", ".bin", "random", "whole"]);
    let save = &replay["checkpoint"][0];
    assert_eq!(numbers(save, &["after_step", "bytes", "calls"]), [6, 10_000, 2]);
    assert_eq!(save["is_synced"], true);
}

#[test]
fn a_played_job_makes_the_same_calls_and_keeps_its_times() {
    let dir = with_job();
    let (cell, notes) = played(&dir, "--data data --out results");
    assert_eq!((cell["bytes_moved"].as_u64(), cell["steps"].as_u64()), (Some(60_000), Some(6)));
    assert_eq!((cell["samples"].as_u64(), cell["epochs"].as_u64()), (Some(24), Some(2)));
    assert!(cell["compute_s"].as_f64().unwrap() >= 0.12, "{cell}");
    assert_eq!(cell["saves"][0]["bytes"], 10_000);
    assert_eq!(dir.read("results/checkpoints/checkpoint-0").len(), 10_000);
    assert!(
        notes.contains("24 opens, 96 reads of 60.0 KB, 24 of attributes; of the traced job: 24, 96 of 60.0 KB, 24")
    );
    // Seen from outside, it makes the reads that it counts.
    let forebay = env!("CARGO_BIN_EXE_forebay");
    let ran = dir.run(&format!("trace --out again -- {forebay} workload run mine.toml --data data"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let seen = dir.json("again/record.json")["cells"][0].clone();
    let data = seen["folders"].as_array().unwrap().iter().find(|row| row["name"].as_str().unwrap().ends_with("/data"));
    let data = data.unwrap_or_else(|| panic!("{}", seen["folders"]));
    assert_eq!((data["reads"].as_u64(), data["bytes_read"].as_u64()), (Some(96), Some(60_000)), "{data}");
    assert!(
        !std::fs::read_dir(dir.path("data"))
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with(".forebay") })
    );
}

#[test]
fn made_data_is_played_like_the_jobs_own() {
    let dir = with_job();
    let said = dir.refused("workload make mine.toml");
    assert!(said.contains("--data DIR"), "{said}");
    assert!(dir.met("workload make mine.toml --data made --dry-run").contains("12 files of 30.0 KB"));
    assert_eq!(dir.met("workload make mine.toml --data made"), "made: 12 files made, 30.0 KB\n");
    assert_eq!(dir.met("workload make mine.toml --data made"), "made: 0 files made, 0 B; 12 already there\n");
    let (cell, _) = played(&dir, "--data made --cold");
    assert_eq!(cell["bytes_moved"], 60_000);
    std::fs::remove_file(dir.path("made/0000000003.bin")).unwrap();
    let said = dir.refused("workload run mine.toml --data made");
    assert!(said.contains("made: found 11 of the 12 .bin files that the job read"), "{said}");
    assert!(
        said.contains("hint: name a copy of ") && said.contains("forebay workload make mine.toml --data DIR"),
        "{said}"
    );
    dir.write("made/0000000003.bin", [0; 9_000]);
    let (cell, _) = played(&dir, "--data made");
    assert!(cell["warnings"].to_string().contains("but those of the traced job had 30.0 KB"), "{}", cell["warnings"]);
}

#[test]
fn a_threshold_decides_the_exit_status() {
    let dir = with_job();
    let ran = dir.missed("workload run mine.toml --data data --threshold 1");
    assert!(ran.stderr.contains("below the required 100 %"), "{}", ran.stderr);
    dir.met("workload run mine.toml --data data --threshold 0.01 --checkpoint-dir saves");
    assert_eq!(dir.names("saves"), ["checkpoint-0"]);
}

#[test]
fn the_plan_is_shown_and_what_does_not_fit_is_refused() {
    let dir = with_job();
    for line in ["workload show mine.toml", "workload run mine.toml --data data --dry-run"] {
        let said = dir.met(line);
        assert!(said.contains("2 passes of 3 steps; the loop fetches its batches itself"), "{said}");
        assert!(
            said.contains("12 .bin files of 30.0 KB, visited at random, read whole: 24 opens, 96 reads of 60.0 KB")
        );
    }
    assert_eq!(dir.met("workload check mine.toml"), "mine.toml: a traced job, to be played again\n");
    for (line, said) in [
        ("workload run mine.toml --data data --tier hdd", "--tier: not for a traced job"),
        ("workload run mine.toml --data data --accelerators 2", "--accelerators: not for a traced job"),
        ("workload run mine.toml --data data --access-log --out x", "--access-log: not for a traced job"),
        ("workload run mine.toml ++workload.train.epochs=2", "a traced job has none of DLIO's keys"),
        ("workload make mine.toml --data made --shrink-bytes 2", "--shrink-bytes: not for a traced job"),
        ("workload show mine.toml --accelerators 2", "--accelerators: not for a traced job"),
        ("workload size mine.toml --accelerators 2 --host-memory 1GiB", "this is a traced job, which only"),
        ("workload slurm mine.toml --nodes 2 --ranks-per-node 2 --data data", "this is a traced job, which only"),
        ("workload import mine.toml", "this is a traced job, which only"),
        ("workload import --from-trace traced mine.toml", "cannot be used with"),
    ] {
        let refused = flat(&dir.refused(line));
        assert!(refused.contains(said), "{line}: {refused}");
    }
    dir.edit("mine.toml", |bytes| {
        let text = String::from_utf8_lossy(bytes).replace("steps = 3", "steps = 0");
        *bytes = text.into_bytes();
    });
    assert!(dir.refused("workload run mine.toml").contains("replay.loader 0.steps: give at least one step"));
    assert!(dir.missed("workload check mine.toml").stdout.contains("replay.loader 0.steps"));
}

#[test]
fn a_trace_that_cannot_be_played_says_why() {
    let dir = Dir::new();
    let ran = dir.run("trace --out traced -- cat /etc/hostname");
    assert_eq!(ran.code, Some(0));
    assert!(dir.refused("workload import --from-trace traced").contains("traced: no training loop was seen"));
    dir.write("empty/x", "");
    let said = dir.refused("workload import --from-trace empty");
    assert!(
        said.contains("empty: there is no trace.fbt\nhint: `forebay trace --out DIR -- COMMAND` makes one"),
        "{said}"
    );
    dir.write("job.py", JOB.replace("mark(FETCH, start, now() - start, 4, 0)", "pass"));
    dir.write("data/1.bin", "abc");
    dir.run("trace --out unmarked -- python3 job.py");
    let said = dir.refused("workload import --from-trace unmarked");
    assert!(said.contains("the loop's fetches were not seen") && said.contains("hint: "), "{said}");
}
