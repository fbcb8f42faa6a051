//! Studies that train, look at data and pack it, and that take their levels from the machine.

use forebay_testing::{Reason, not_run};
use serde_json::Value;

use crate::dir::Dir;
use crate::study::{cells, ids, lines, sorted};

/// Files and shards of them: looked at, read, and trained on by an accelerator that takes a millisecond.
const STUDY: &str = r#"
name = "trained"
title = "a study that trains"
seed = 3

[[dataset]]
name = "files"
make = "caltech101"
count = 24

[[dataset]]
name = "shards"
pack = "tfrecord"
of = "files"

[[tier]]
name = "disk"
profile = "ssd"

[[experiment]]
name = "look"
run = "inspect"
repeats = 1
warmups = 0
[experiment.factors]
dataset = ["files", "shards"]

[[experiment]]
name = "train"
run = "train"
repeats = 2
warmups = 0
[experiment.factors]
dataset = ["none", "files", "shards"]
prefetch = [0, 1]
[experiment.settings]
tier = "disk"
accelerator = "emulated:1ms"
batch = 4
steps = 5
threads = 2
least_time = "0s"
[[experiment.rule]]
when = { dataset = "none" }
set = { synthetic = true }

[[figure]]
id = "time"
title = "Where the time went"
kind = "time"
experiment = "train"
"#;

fn with_study(text: &str) -> Dir {
    let dir = Dir::new();
    dir.write("study.toml", text);
    dir
}

/// The study without what it trains.
fn looking() -> String {
    STUDY.split("[[experiment]]\nname = \"train\"").next().unwrap().to_owned()
}

fn cell<'a>(cells: &'a [Value], id: &str) -> &'a Value {
    cells.iter().find(|cell| cell["id"] == id).unwrap_or_else(|| panic!("{id}"))
}

#[test]
fn a_train_cell_has_what_training_measured() {
    let dir = with_study(STUDY);
    let done = dir.run("study run study.toml --out out");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let said = done.stderr.lines().find(|line| line.contains(" train/dataset=files/")).unwrap();
    assert!(said.contains(": wall clock ") && said.contains(" images/s, ") && said.contains(", wait "), "{said}");
    let cells = cells(&dir, "out");
    assert_eq!(cells.len(), 8);
    for cell in cells.iter().filter(|cell| cell["step"] == "train") {
        let train = &cell["measured"]["train"];
        assert!(cell["error"].is_null(), "{cell}");
        assert_eq!((&train["accelerator"], &train["batch"]), (&"emulated:1ms".into(), &4.into()), "{cell}");
        assert_eq!(train["samples"].as_array().unwrap().len(), 2);
        assert_eq!(train["steps"].as_array().unwrap().len(), 5);
        let is_synthetic = cell["factors"]["dataset"] == "none";
        assert_eq!(train["synthetic"], is_synthetic);
        assert_eq!(train["medium"]["tier"].is_null(), is_synthetic, "{cell}");
        if !is_synthetic {
            assert_eq!((&train["threads"], &train["prefetch"]), (&2.into(), &cell["factors"]["prefetch"]));
            assert!(train["bytes"].as_u64().unwrap() > 0 && train["baseline"]["n_steps"] == 5, "{cell}");
        }
    }
}

#[test]
fn where_there_is_no_gpu_an_auto_cell_says_that_it_is_emulated() {
    let study = STUDY.replace("accelerator = ", "device = \"auto\"\nmodel = \"alexnet-small\"\naccelerator = ");
    let dir = with_study(&study.replace("[\"none\", \"files\", \"shards\"]", "[\"none\"]").replace("[0, 1]", "[1]"));
    let done = dir.run("study run study.toml --out out");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let cells = cells(&dir, "out");
    let cell = cell(&cells, "train/dataset=none/prefetch=1");
    if cell["measured"]["train"]["accelerator"].is_null() {
        assert_eq!(cell["measured"]["train"]["model"], "alexnet-small", "{cell}");
        return not_run(Reason::Gpu, &cell["measured"]["train"]["model"]);
    }
    let note = cell["notes"][0].as_str().unwrap();
    assert!(note.starts_with("no CUDA device here ("), "{note}");
    assert!(note.ends_with("): emulating an accelerator with 1ms per step"), "{note}");
}

#[test]
fn what_a_dataset_consists_of_is_in_its_cell() {
    let dir = with_study(&looking());
    let done = dir.run("study run study.toml --out out");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    assert!(done.stderr.contains(" look/dataset=files: 24 samples, "), "{}", done.stderr);
    let cells = cells(&dir, "out");
    assert_eq!(sorted(ids(&cells)), ["look/dataset=files", "look/dataset=shards"]);
    for (name, n_files, format) in [("files", 24, "jpeg"), ("shards", 1, "tfrecord")] {
        let found = &cell(&cells, &format!("look/dataset={name}"))["measured"]["inspect"];
        assert_eq!((&found["n_files"], &found["n_samples"]), (&n_files.into(), &24.into()), "{found}");
        assert_eq!(found["file_formats"][format], n_files, "{found}");
        assert!(found["bssplit"].as_str().unwrap().contains("K/"), "{found}");
    }
    let manifest = dir.json("out/data/caltech101-24-seed0-tfrecord/manifest.json");
    assert_eq!((&manifest["format"], &manifest["n_samples"]), (&"tfrecord".into(), &24.into()));
}

#[test]
fn packed_data_is_planned_kept_and_can_be_ones_own() {
    let dir = with_study(&looking());
    let preview = dir.met("study run study.toml --dry-run --out out --data shared");
    for wanted in [
        "look (inspect): 2 cells × 0+1  ",
        "dataset files: 24 images, about ",
        "dataset shards: 24 images, about ",
        ", in shared/caltech101-24-seed0-tfrecord, to be packed from files as tfrecord\n",
    ] {
        assert!(preview.contains(wanted), "{wanted}\n{preview}");
    }
    assert!(dir.met("study show study.toml").contains("\ndataset shards: files, packed as tfrecord\n"));
    assert_eq!(dir.run("study run study.toml --out a --data shared").code, Some(0));
    let made = dir.tree("shared");
    assert_eq!(dir.run("study run study.toml --out b --data shared").code, Some(0));
    assert_eq!(dir.tree("shared"), made);
    assert!(dir.met("study run study.toml --dry-run --data shared").contains("-tfrecord, exists\n"));
    let own = dir.path("shared/caltech101-24-seed0-tfrecord");
    let line = format!("study run study.toml --dataset shards={} --out c", own.display());
    assert_eq!(dir.run(&line).code, Some(0));
    let found = cell(&cells(&dir, "c"), "look/dataset=shards")["measured"]["inspect"]["path"].clone();
    assert_eq!(found, own.to_str().unwrap());
    assert!(!dir.path("c/data/caltech101-24-seed0-tfrecord").exists());
}

#[test]
fn a_run_environment_of_another_machine_goes_on_with_its_own_cells() {
    let study = STUDY
        .replace("run = \"train\"", "run = \"ingest\"")
        .replace("dataset = [\"none\", \"files\", \"shards\"]\nprefetch = [0, 1]", "threads = [\"1..cores*2\"]")
        .replace("tier = \"disk\"\naccelerator = \"emulated:1ms\"", "dataset = \"files\"")
        .replace("steps = 5\nthreads = 2\n", "");
    let study = study.split("[[experiment.rule]]").next().unwrap();
    let dir = with_study(study);
    assert_eq!(dir.run("study run study.toml --out out").code, Some(0));
    let here = cells(&dir, "out").len();
    // The same run, as if it had been begun on a machine of 21 cores and killed before its first cell.
    let plan = String::from_utf8(dir.read("out/plan.toml")).unwrap();
    let n_cores = lines(&dir, "out")[0]["environment"]["n_cores"].as_u64().unwrap();
    assert!(!plan.contains("cores"), "{plan}");
    let there = study.replace("\"1..cores*2\"", "1, 2, 4, 8, 16, 32, 42");
    dir.write("there.toml", there);
    assert_eq!(dir.run("study run there.toml --out moved").code, Some(0));
    let record = String::from_utf8(dir.read("moved/record.jsonl")).unwrap();
    dir.write("moved/record.jsonl", format!("{}\n", record.lines().next().unwrap()));
    let machine = String::from_utf8(dir.read("moved/environment.json")).unwrap();
    dir.write("moved/environment.json", machine.replace(&format!("\"n_cores\": {n_cores}"), "\"n_cores\": 21"));
    let done = dir.run("study run study.toml --out moved --resume");
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let moved = cells(&dir, "moved");
    assert_eq!(moved.len(), 9, "two looked at, seven numbers of threads; here there are {here}");
    assert!(ids(&moved).contains(&"train/threads=42"));
}

#[test]
fn levels_that_name_nothing_are_refused() {
    let dir = with_study(&STUDY.replace("threads = 2", "threads = \"cpus\""));
    assert_eq!(
        dir.refused("study show study.toml"),
        "forebay: study.toml: experiment \"train\", settings.threads: \"cpus\": give a number from 1 to 1,024, or auto\n"
    );
    dir.write("study.toml", STUDY.replace("threads = 2", "threads = \"1..cores\""));
    let said = "settings.threads: \"1..cores\": only a factor can have a range; give one value\n";
    assert!(dir.refused("study show study.toml").ends_with(said));
}

#[test]
fn the_built_in_studies_train_and_pack() {
    let dir = Dir::new();
    let shown = dir.met("study show chien-2018");
    for wanted in [
        "dataset caltech101: caltech101 images, made: 800 quick, 1600 standard, 9144 full\n",
        "experiment mini-app (train): 32 cells quick, 32 full, all combinations; \
         1 repeat after 0 warm-ups quick, 5 repeats after 1 warm-up standard, 5 repeats after 1 warm-up full\n  dataset = caltech101\n",
        "  accelerator = emulated:90ms quick, emulated:1s full\n",
        "experiment batch-size (train): 10 cells quick, 10 full, ",
        "experiment reads (train): 4 cells quick, 4 full, ",
        "experiment checkpoints (train): 6 cells quick, 6 full, ",
        "  checkpoint: none, hdd, ssd, optane, optane → hdd, lustre\n",
        "  checkpoints checkpoint=optane → hdd stall_speed_up: 2.6 (Section VII, ",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    let shown = dir.met("study show nelson-2022");
    for wanted in [
        "dataset imagenet: imagenet images, made: 1024 quick, 25600 standard, 25600 full, sizes 2K/1:4K/2:8K/4:",
        "dataset tfrecord: imagenet, packed as tfrecord\n",
        "experiment ranks (train): 8 cells quick, 8 full, all combinations; ",
        "experiment images (inspect): 1 cell quick, 1 full, all combinations; 1 repeat after 0 warm-ups\n",
        "  threads: 1..cores*2\n",
        "  train  need_mb_per_s: 1300 (Conclusion 2, eight V100 in fp16, at most; not judged)\n",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    for scale in ["quick", "standard", "full"] {
        for study in ["chien-2018", "nelson-2022"] {
            let preview = dir.met(&format!("study run {study} --scale {scale} --dry-run"));
            assert!(preview.contains(" (train): ") && preview.contains("together "), "{preview}");
            let last = preview.lines().last().unwrap();
            assert!(last.starts_with("A network counts with the step time of its emulated accelerator"), "{last}");
            let sum = preview.lines().find(|line| line.starts_with("together ")).unwrap();
            let without = ", without the random and file probes of storage, blocks, whose bytes are unknown";
            assert_eq!(sum.ends_with(without), study == "nelson-2022", "{sum}");
            assert_eq!(preview.contains("  bytes and time unknown\n"), study == "nelson-2022", "{preview}");
        }
    }
}
