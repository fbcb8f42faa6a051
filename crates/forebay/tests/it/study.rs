//! `forebay study`: what a run leaves behind, and what every flag does.

use std::path::Path;

use serde_json::Value;

use crate::dir::Dir;
use crate::record;

/// Four cells on an emulated disk.
pub(crate) const TINY: &str = r#"
name = "tiny"
title = "a tiny study"
seed = 3

[[dataset]]
name = "set"
make = "caltech101"
count = { quick = 12, full = 16 }

[[tier]]
name = "disk"
profile = "hdd"

[[experiment]]
name = "read"
run = "ingest"
dataset = "set"
repeats = 2
warmups = 0

[experiment.factors]
threads = [1, 2]
read_only = [false, true]

[experiment.settings]
tier = "disk"
batch = 4
least_time = "0s"

[[reference]]
experiment = "read"
metric = "speed_up"
at = { threads = 2, read_only = true }
value = 1.65
source = "Section VII"
"#;

/// A folder with the tiny study in `tiny.toml`.
pub(crate) fn with_tiny() -> Dir {
    let dir = Dir::new();
    dir.write("tiny.toml", TINY);
    dir
}

/// The lines of a run's record.
pub(crate) fn lines(dir: &Dir, run: &str) -> Vec<Value> {
    let text = String::from_utf8(dir.read(&format!("{run}/record.jsonl"))).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The cells of a run's record, in the order in which they were done.
pub(crate) fn cells(dir: &Dir, run: &str) -> Vec<Value> {
    lines(dir, run).into_iter().filter(|line| line["line"] == "cell").collect()
}

pub(crate) fn ids(cells: &[Value]) -> Vec<&str> {
    cells.iter().map(|cell| cell["id"].as_str().unwrap()).collect()
}

/// The cells of the tiny study.
pub(crate) const IDS: [&str; 4] = [
    "read/read_only=false/threads=1",
    "read/read_only=false/threads=2",
    "read/read_only=true/threads=1",
    "read/read_only=true/threads=2",
];

pub(crate) fn sorted(mut ids: Vec<&str>) -> Vec<&str> {
    ids.sort_unstable();
    ids
}

/// Runs a line of `study run` that must end with status 0; its stderr.
fn ran(dir: &Dir, line: &str) -> String {
    let ran = dir.run(&format!("study run {line}"));
    assert_eq!(ran.code, Some(0), "{line}\n{}{}", ran.stdout, ran.stderr);
    ran.stderr
}

#[test]
fn a_run_leaves_its_plan_its_machine_and_a_line_a_cell() {
    let dir = with_tiny();
    let done = dir.run("study run tiny.toml --out out");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("\ntiny (quick): 4 of 4 cells done, 0 failed; out/"), "{}", done.stdout);
    let said: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(said.len(), 4, "a line a cell: {}", done.stderr);
    assert!(said[0].starts_with("[1/4] read/") && said[0].contains(" images/s, ") && said[0].contains(" left"));
    assert!(said[3].starts_with("[4/4] read/") && said[3].ends_with("; all done"), "{}", said[3]);
    let record = lines(&dir, "out");
    let head = &record[0];
    assert_eq!((&head["line"], &head["command"], &head["n_cells"]), (&"head".into(), &"study".into(), &4.into()));
    assert_eq!((&head["scale"], &head["spec"]["name"]), (&"quick".into(), &"tiny".into()));
    assert_eq!(head["command_line"].as_array().unwrap()[1..3], ["study", "run"]);
    assert_eq!(head["tiers"][0]["kind"], "shaped");
    assert_eq!(dir.json("out/environment.json"), head["environment"]);
    let cells = cells(&dir, "out");
    assert_eq!(sorted(ids(&cells)), IDS);
    for cell in &cells {
        let ingest = &cell["measured"]["ingest"];
        assert_eq!(
            (&ingest["threads"], &ingest["read_only"]),
            (&cell["factors"]["threads"], &cell["factors"]["read_only"])
        );
        assert_eq!((&ingest["batch"], &ingest["medium"]["tier"]), (&4.into(), &"hdd".into()));
        let samples = ingest["samples"].as_array().unwrap();
        assert!(samples.len() == 2 && samples.iter().all(|sample| sample["images"] == 12), "{samples:?}");
        assert!(cell["elapsed_s"].as_f64().unwrap() > 0.0 && cell["error"].is_null());
    }
    assert_eq!(dir.images("out/data/caltech101-12-seed0").len(), 12);
}

#[test]
fn a_run_leaves_a_report_and_what_the_machine_did() {
    let dir = with_tiny();
    let done = dir.run("study run tiny.toml --out out");
    assert!(done.stdout.ends_with("; out/report.html\n"), "{}", done.stdout);
    let page = String::from_utf8(dir.read("out/report.html")).unwrap();
    assert!(page.starts_with("<!") && page.contains("a tiny study"), "{}", &page[..200]);
    let text = String::from_utf8(dir.read("out/samples.csv")).unwrap();
    let series = forebay_record::Series::from_csv(&text).unwrap();
    let marks = series.marks.iter().map(|mark| mark.what.as_str()).collect();
    assert_eq!(sorted(marks), IDS, "the beginning of every cell is marked");
}

#[test]
fn a_probe_cell_has_what_the_probe_measured() {
    let dir = Dir::new();
    let study = TINY
        .replace("run = \"ingest\"\ndataset = \"set\"", "run = \"probe\"")
        .replace("warmups = 0", "warmups = 1")
        .replace("threads = [1, 2]\nread_only = [false, true]", "depth = [1, 2]")
        .replace("batch = 4\nleast_time = \"0s\"", "mode = \"sequential\"\nsize = \"1MiB\"\nblock = \"128K\"");
    dir.write("tiny.toml", study.split("[[reference]]").next().unwrap());
    ran(&dir, "tiny.toml --out out");
    let cells = cells(&dir, "out");
    assert_eq!(sorted(ids(&cells)), ["read/depth=1", "read/depth=2"]);
    for cell in &cells {
        let probe = cell["measured"]["probe"].as_array().unwrap();
        let modes: Vec<&Value> = probe.iter().map(|cell| &cell["mode"]).collect();
        assert_eq!(modes, ["sequential-write", "sequential-read"], "{cell}");
        let (write, read) = (&probe[0], &probe[1]);
        assert_eq!((&read["depth"], &read["block"]), (&cell["factors"]["depth"], &131_072.into()));
        assert!(
            [write, read]
                .iter()
                .all(|cell| cell["samples"].as_array().unwrap().len() == 2 && cell["medium"]["tier"] == "hdd")
        );
        // Never faster than the device: 163 MB/s read, 133 MB/s written.
        let rate = |cell: &Value| cell["mb_per_s"].as_f64().unwrap();
        assert!(rate(read) <= 163.0 && rate(write) <= 133.0, "{cell}");
    }
    assert!(!dir.path("out/data").exists(), "what was written is gone");
}

#[test]
fn the_same_seed_gives_the_same_order_and_the_plan_can_be_run_again() {
    let dir = with_tiny();
    ran(&dir, "tiny.toml --out a");
    ran(&dir, "a/plan.toml --out b");
    dir.write("other.toml", TINY.replace("seed = 3", "seed = 4"));
    ran(&dir, "other.toml --out c");
    let order = |run: &str| ids(&cells(&dir, run)).into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(order("a"), order("b"));
    assert_ne!(order("a"), order("c"));
}

#[test]
fn the_scale_decides_how_much_is_run() {
    let dir = with_tiny();
    ran(&dir, "tiny.toml --scale full --out out");
    assert_eq!(lines(&dir, "out")[0]["scale"], "full");
    assert!(cells(&dir, "out").iter().all(|cell| cell["measured"]["ingest"]["samples"][0]["images"] == 16));
    let said = dir.refused("study run tiny.toml --scale huge");
    assert!(said.contains("[possible values: quick, standard, full]"), "{said}");
}

#[test]
fn without_a_folder_a_run_lies_under_its_name_and_time() {
    let dir = with_tiny();
    ran(&dir, "tiny.toml");
    let runs: Vec<_> = std::fs::read_dir(dir.path("runs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let [name] = runs.as_slice() else { panic!("{runs:?}") };
    let name = name.to_str().unwrap();
    let stamp = name.strip_prefix("tiny-").unwrap();
    assert!(stamp.len() == 16 && stamp.ends_with('Z') && stamp.contains('T'), "{name}");
    assert_eq!(cells(&dir, &format!("runs/{name}")).len(), 4);
}

#[test]
fn runs_can_share_their_data() {
    let dir = with_tiny();
    ran(&dir, "tiny.toml --out a --data shared");
    let made = dir.tree("shared");
    assert_eq!(dir.images("shared/caltech101-12-seed0").len(), 12);
    ran(&dir, "tiny.toml --out b --data shared");
    assert_eq!(dir.tree("shared"), made);
    assert!(!dir.path("a/data").exists() && !dir.path("b/data").exists());
}

#[test]
fn a_tier_that_is_not_up_is_refused_before_anything_is_measured() {
    let dir = with_tiny();
    dir.met("tier up ssd --shaped");
    let state = dir.read(".home/tiers/ssd/tier.json");
    let state = String::from_utf8(state).unwrap().replace("\"stage\": \"up\"", "\"stage\": \"folders\"");
    dir.write(".home/tiers/ssd/tier.json", state);
    let said = dir.refused("study run tiny.toml --out out --tier disk=.home/tiers/ssd/data");
    assert!(
        said.contains("tier ssd, which is not up: partly up\nhint: run `forebay tier up ssd` to bring it up"),
        "{said}"
    );
    assert!(!dir.path("out").exists());
}

#[test]
fn a_tier_can_be_a_folder_on_a_real_device() {
    let dir = with_tiny();
    std::fs::create_dir(dir.path("mnt")).unwrap();
    let said = ran(&dir, "tiny.toml --out out --tier disk=mnt");
    let made = dir.path("mnt/forebay-data/caltech101-12-seed0");
    let wanted = format!("forebay: data for the next run is kept in {}, about ", made.display());
    assert!(said.lines().last().unwrap().starts_with(&wanted), "{said}");
    assert_eq!(dir.images("mnt/forebay-data/caltech101-12-seed0").len(), 12);
    assert!(!dir.path("out/data").exists());
    let tier = &lines(&dir, "out")[0]["tiers"][0];
    assert_eq!(tier["kind"], "device");
    assert!(tier["description"].as_str().unwrap().ends_with("/mnt"), "{tier}");
    assert!(
        cells(&dir, "out").iter().all(|cell| cell["measured"]["ingest"]["medium"]["tier"].is_null()),
        "nothing is emulated"
    );
    let said = dir.refused("study run tiny.toml --tier disc=mnt");
    assert_eq!(said, "forebay: --tier disc: unknown tier; the study has disk\n");
    let said = dir.refused("study run tiny.toml --tier disk=gone");
    assert!(
        said.starts_with("forebay: tiny.toml: tier \"disk\": ") && said.ends_with("/gone is not an existing folder\n")
    );
    assert!(dir.refused("study run tiny.toml --tier disk").contains("give NAME=PATH"));
}

#[test]
fn a_tier_that_was_brought_up_is_recognised() {
    let dir = with_tiny();
    assert_eq!(dir.run("tier up ssd --shaped").code, Some(0));
    let listed: Value = serde_json::from_str(&dir.met("tier list --json -")).unwrap();
    let path = listed["tiers"][0]["data"].as_str().unwrap();
    ran(&dir, &format!("tiny.toml --out out --tier disk={path}"));
    let tier = &lines(&dir, "out")[0]["tiers"][0];
    assert_eq!(tier["kind"], "shaped");
    assert!(tier["description"].as_str().unwrap().starts_with("ssd: 280.0 MB/s read, "), "{tier}");
    for cell in cells(&dir, "out") {
        assert_eq!(
            (&cell["measured"]["ingest"]["medium"]["tier"], &cell["measured"]["ingest"]["medium"]["kind"]),
            (&"ssd".into(), &"shaped".into())
        );
        assert!(record::notes(&cell)[0].starts_with("the data is on tier ssd: "), "{cell}");
    }
}

#[test]
fn a_dataset_can_be_ones_own() {
    let dir = with_tiny();
    dir.met("data make caltech101 mine --count 7 --median-size 4KB");
    ran(&dir, "tiny.toml --out out --dataset set=mine");
    assert!(cells(&dir, "out").iter().all(|cell| cell["measured"]["ingest"]["samples"][0]["images"] == 7));
    assert!(!dir.path("out/data").exists());
    let said = dir.refused("study run tiny.toml --dataset sets=mine");
    assert_eq!(said, "forebay: --dataset sets: unknown dataset; the study has set\n");
}

#[test]
fn data_that_is_not_there_is_refused_before_anything_is_run() {
    let dir = with_tiny();
    for line in ["--out out", "--dry-run"] {
        let said = dir.refused(&format!("study run tiny.toml --dataset set=/gone/set {line}"));
        let hint = "hint: --dataset set=PATH uses data elsewhere";
        assert_eq!(said, format!("forebay: tiny.toml: dataset \"set\": /gone/set does not exist\n{hint}\n"));
    }
    assert_eq!(dir.names(""), ["tiny.toml"], "nothing was begun");
    std::fs::create_dir(dir.path("none")).unwrap();
    for line in ["--out out", "--dry-run"] {
        let said = dir.refused(&format!("study run tiny.toml --dataset set=none {line}"));
        assert!(said.starts_with("forebay: tiny.toml: dataset \"set\": "), "a folder with nothing in it: {said}");
        assert!(said.contains("/none"), "{said}");
    }
    assert!(!dir.path("out").exists(), "nothing was begun");
    let said = dir.refused("study run tiny.toml --dataset set");
    assert!(said.contains("--dataset <NAME=PATH>") && said.contains("give NAME=PATH"), "{said}");
}

#[test]
fn a_name_is_put_elsewhere_once() {
    let dir = Dir::with_set();
    dir.write("tiny.toml", TINY);
    let said = dir.refused("study run tiny.toml --dataset set=set --dataset set=set");
    assert_eq!(said, "forebay: --dataset set given twice\n");
    let said = dir.refused("study run tiny.toml --tier disk=set --tier disk=set");
    assert_eq!(said, "forebay: --tier disk given twice\n");
    let done = dir.run("study run tiny.toml --dataset set=set --dry-run");
    assert_eq!((done.code, done.stderr), (Some(0), format!("listing {}\n", dir.path("set").display())));
}

#[test]
fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
    let dir = with_tiny();
    let said = dir.met("study run tiny.toml --dry-run --out out");
    for wanted in [
        "tiny at the quick scale: 4 cells\n",
        "read (ingest): 4 cells × 0+2  96 images, ",
        " to read, about ",
        "dataset set: 12 images, about ",
        ", in out/data/caltech101-12-seed0, to be generated in about ",
        "tier disk: shaped in this process, hdd: 163.0 MB/s read, ",
        "space: ",
        " free\n",
        "Times are estimated from the tiers' profiles and ",
    ] {
        assert!(said.contains(wanted), "{wanted}\n{said}");
    }
    assert_eq!(dir.names(""), ["tiny.toml"]);
    let full = dir.met("study run tiny.toml --dry-run --scale full");
    assert!(full.contains("read (ingest): 4 cells × 0+2  128 images, "), "{full}");
    // The disk's own time: 12 reads of 8 ms, twice a cell, and a little more than half of that with two threads.
    let line = said.lines().find(|line| line.starts_with("read ")).unwrap();
    assert!(line.ends_with(", about 1 s"), "{line}");
}

#[test]
fn a_failing_cell_is_recorded_and_can_be_tried_again() {
    let dir = Dir::with_set();
    let study = TINY
        .replace("make = \"caltech101\"\ncount = { quick = 12, full = 16 }", "path = \"set\"")
        .replace("[[tier]]", "[[dataset]]\nname = \"late\"\npath = \"late\"\n[[tier]]")
        .replace("dataset = \"set\"\n", "")
        .replace("read_only = [false, true]", "dataset = [\"set\", \"late\"]")
        .replace(", read_only = true", "");
    dir.write("tiny.toml", study);
    dir.write("late/1.jpg", "no picture");
    let preview = dir.run("study run tiny.toml --dry-run").stdout;
    assert!(preview.contains("/late, 2 cells\n"), "{preview}");
    let done = dir.missed("study run tiny.toml --out out");
    assert!(done.stdout.contains("\ntiny (quick): 4 of 4 cells done, 2 failed; "), "{}", done.stdout);
    let again = "forebay: rerun failed cells with: forebay study run tiny.toml --scale quick --out out --resume --retry-failed\n";
    assert!(done.stderr.ends_with(again), "{}", done.stderr);
    let failed = |cells: &[Value]| -> Vec<String> {
        let failed = cells.iter().filter(|cell| !cell["error"].is_null());
        failed.map(|cell| cell["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = cells(&dir, "out");
    let mut ids_failed = failed(&first);
    ids_failed.sort_unstable();
    assert_eq!(ids_failed, ["read/dataset=late/threads=1", "read/dataset=late/threads=2"]);
    let error = first.iter().find_map(|cell| cell["error"].as_str()).unwrap();
    assert!(error.starts_with("the only sample could not be used: ") && error.contains("1.jpg: "), "{error}");
    let kept = dir.missed("study run tiny.toml --out out --resume");
    assert!(kept.stdout.contains("\ntiny (quick): 4 of 4 cells done, 2 failed; "), "failed is done: {}", kept.stdout);
    assert_eq!(cells(&dir, "out"), first);
    std::fs::remove_file(dir.path("late/1.jpg")).unwrap();
    dir.met("data make caltech101 late --count 7 --median-size 4KB");
    let done = dir.run("study run tiny.toml --out out --resume --retry-failed");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("\ntiny (quick): 4 of 4 cells done, 0 failed; "), "{}", done.stdout);
    let all = cells(&dir, "out");
    assert_eq!((all.len(), &all[..4]), (6, first.as_slice()), "two more lines, and the first four as they were");
    assert_eq!(failed(&all[4..]), [] as [&str; 0]);
    assert!(dir.refused("study run tiny.toml --out x --retry-failed").contains("--resume"));
}

#[test]
fn built_in_studies_are_listed_shown_and_copied() {
    let dir = Dir::new();
    let list = dir.met("study list");
    assert!(list.starts_with("advice: Is the advice right? "), "{list}");
    assert!(list.contains("\nchien-2018: Characterizing deep-learning I/O workloads in TensorFlow"), "{list}");
    assert!(
        list.contains("\n  quick     100 cells, 2,848 images of ")
            && list.contains("\n  full      100 cells, 25,528 images of ")
    );
    assert!(list.contains("\nnelson-2022: An initial look at deep learning I/O performance"), "{list}");
    let shown = dir.met("study show chien-2018");
    for wanted in [
        "Chien",
        "\n\nHow many images per second can a hard disk, an SSD, an Optane card and a Lustre file system feed to training, and how \
         much do more reading threads help? Images are read, ",
        "dataset imagenet: imagenet images, made: 2048 quick, 8192 standard, 16384 full\n",
        "tier lustre: shaped in this process, lustre: 1.97 GB/s read, ",
        "experiment ingest (ingest): 32 cells quick, 32 full, all combinations; 5 repeats after 1 warm-up\n  dataset = imagenet\n",
        "  threads: 1, 2, 4, 8\n",
        "  batches = 16 quick, 64 standard, 256 full\n",
        "  table-1 tier=optane read_mb_per_s: 1603.06 (Table I, Blackdog, Intel Optane, max read; expected within 10 %, calibrated)\n",
        "  ingest read_only=false threads=8 tier=lustre speed_up: 7.8 (Section VII, Lustre, eight threads; expected within 15 %)\n",
        "  ingest read_only=true threads=8 tier=lustre speed_up: 7.8 (Section VII, for reading and decoding, Lustre, eight \
         threads; expected within 15 %, calibrated)\n",
        "  ingest read_only=false threads=8 tier=ssd efficiency: unfavorable compared with IOR (Section V.A, figure 4; ",
    ] {
        assert!(shown.contains(wanted), "{wanted}\n{shown}");
    }
    dir.write("copy.toml", dir.met("study show chien-2018 --toml"));
    assert_eq!(dir.met("study show copy.toml"), shown);
    let preview = dir.met("study run copy.toml --dry-run");
    assert!(preview.contains("ingest (ingest): 32 cells × 1+5  "), "{preview}");
}

#[test]
fn the_study_among_the_examples_can_be_run_on_ones_own_images() {
    let dir = Dir::with_set();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/studies/batch-size.toml");
    let line = format!("study run {} --dataset images=set", file.display());
    let preview = dir.run(&format!("{line} --dry-run")).stdout;
    assert!(preview.contains("ingest (ingest): 8 cells × 1+3  "), "{preview}");
    assert!(preview.contains("/set, 8 cells\n"), "{preview}");
    dir.run(&format!("{line} --out out"));
    let cells = cells(&dir, "out");
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|cell| cell["error"].is_null()), "{cells:?}");
}

#[test]
fn the_other_studies_among_the_examples_can_be_planned() {
    let dir = Dir::new();
    for (name, wanted) in [
        ("prefetch-frontier", "frontier (train): 36 cells × 0+1  "),
        ("contention", "saves (train): 3 cells × 0+1  "),
        ("checkpoint-interval", "interval (train): 6 cells × 0+2  "),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/studies/{name}.toml"));
        let preview = dir.met(&format!("study run {} --dry-run", file.display()));
        assert!(preview.contains(wanted), "{preview}");
        let shown = dir.met(&format!("study show {}", file.display()));
        assert!(!shown.is_empty());
    }
}
