//! `forebay workload run`: what a run leaves behind, and what it says.

use std::collections::BTreeSet;
use std::ffi::OsString;

use serde_json::Value;

use crate::dir::{Dir, flat};
use crate::process::{Load, Running};
use crate::workload::{TINY, with_tiny};

/// A folder with the workload in `tiny.yaml` and its data in `set`.
fn with_data() -> Dir {
    let dir = with_tiny();
    dir.met("workload make tiny.yaml --data set");
    dir
}

const RUN: &str = "workload run tiny.yaml --data set";

/// The cell of a run that must end with status 0.
fn cell_of(dir: &Dir, flags: &str) -> Value {
    let ran = dir.run(&format!("{RUN} --json record.json {flags}"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    dir.json("record.json")["cells"][0].clone()
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name}: {value}"))
}

#[test]
fn a_run_reads_every_sample_and_its_time_adds_up() {
    let dir = with_data();
    let ran = dir.run(&format!("{RUN} --accelerators 2 --json record.json"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("Workload tiny\ndata         set: 8 samples in 8 files (npz)\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("; batch 2; 2 epochs; "), "{}", ran.stdout);
    let record = dir.json("record.json");
    let cell = &record["cells"][0];
    assert_eq!((&cell["steps"], &cell["samples"], &cell["accelerators"]), (&8.into(), &16.into(), &2.into()));
    assert!(number(cell, "bytes_moved") >= 16.0 * 4096.0, "{cell}");
    let parts = ["wait_s", "compute_s", "barrier_s", "checkpoint_s", "other_s"].map(|name| number(cell, name));
    assert!((parts.iter().sum::<f64>() - number(cell, "accelerator_s")).abs() < 1e-6, "{cell}");
    assert!(record["series"].is_object(), "what the machine did meanwhile");
    assert_eq!(dir.met("report record.json"), ran.stdout);
}

#[test]
fn overrides_and_the_threshold_decide_what_is_run_and_how_it_ends() {
    let dir = with_data();
    let cell =
        cell_of(&dir, "++workload.train.epochs=1 ++workload.reader.batch_size=4 ++workload.reader.read_threads=3");
    assert_eq!((&cell["epochs"], &cell["batch"], &cell["read_threads"]), (&1.into(), &4.into(), &3.into()));
    let slow = format!("{RUN} --tier hdd --threshold 0.99");
    let ran = dir.missed(&slow);
    assert!(ran.stderr.contains("below the required 99 %"), "{}", ran.stderr);
    assert!(flat(&ran.stdout).contains(" required: missed"), "{}", ran.stdout);
    assert!(dir.refused(&format!("{RUN} --threshold 90")).contains("give a fraction above 0, up to 1"));
}

#[test]
fn a_run_is_made_smaller_and_of_several_processes_as_in_a_study() {
    let dir = with_tiny();
    let of_data = "--shrink-bytes 4 --dlio-decode-mb-per-s 400";
    let said = dir.met(&format!("workload make tiny.yaml --data set --dry-run {of_data}"));
    assert_eq!(said, "set: 8 train npz files, 8.2 KB of values\n");
    dir.met(&format!("workload make tiny.yaml --data set {of_data}"));
    let shown = dir.met(&format!("{RUN} {of_data} --processes 2 --dry-run"));
    assert!(shown.contains("2 accelerators"), "{shown}");
    let cell = cell_of(&dir, &format!("{of_data} --processes 2 --shrink-time 2"));
    assert_eq!((&cell["accelerators"], &cell["samples"]), (&2.into(), &16.into()));
    let notes = dir.json("record.json")["notes"].to_string();
    let said = ["2 processes are emulated", "loader is emulated", "records are 1/4 and times 1/2 of what the workload"];
    assert!(said.iter().all(|note| notes.contains(note)) && !notes.contains("made with"), "{notes}");
    let sized = "++workload.dataset.record_dims=[8,8] ++workload.dataset.record_length_bytes_stdev=0";
    let said = dir.refused(&format!("{RUN} --shrink-bytes 4 {sized}"));
    assert!(said.contains("--shrink-bytes divides record_length_bytes, but the workload gives dimensions"), "{said}");
    let said = dir.refused(&format!("{RUN} --processes 300 --accelerators 300"));
    assert!(said.contains("--processes × --accelerators must be at most 65,536"), "{said}");
}

#[test]
fn an_emulated_device_is_slower_and_named() {
    let dir = with_data();
    let cell = cell_of(&dir, "--tier hdd --threshold 0.0001");
    assert_eq!(cell["medium"]["tier"], "hdd");
    assert!(number(&cell, "wait_s") > 0.01, "{cell}");
    assert!(dir.refused(&format!("{RUN} --tier drum")).contains("drum"));
}

#[test]
fn the_folder_of_results_has_the_record_the_page_and_dlios_files() {
    let dir = with_data();
    let ran = dir.run(&format!("{RUN} --out results --access-log"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "forebay: report: results/report.html\n"));
    let names = dir.names("results");
    for name in
        ["record.json", "report.html", "summary.json", "0_output.json", "0_per_epoch_stats.json", "access-0.csv"]
    {
        assert!(names.iter().any(|there| there == name), "{name}: {names:?}");
    }
    let summary = dir.json("results/summary.json");
    assert!(summary["metric"]["train_au_percentage"].as_array().is_some_and(|au| au.len() == 2), "{summary}");
    assert_eq!(dir.met("report results/record.json"), ran.stdout);
    let read = String::from_utf8(dir.read("results/access-0.csv")).unwrap();
    assert_eq!(read.lines().count(), 1 + 16, "a line a sample: {read}");
    let text = dir.met("report --from-dlio results");
    assert!(
        flat(&text).contains("; batch 2; 2 epochs; ") && flat(&text).contains("; 1 rank; 1 accelerator; "),
        "{text}"
    );
    let before = dir.tree("results");
    let said = dir.refused(&format!("{RUN} --out results"));
    assert_eq!(said, "forebay: --out results: the folder is not empty\nhint: give a new one, or empty it\n");
    assert_eq!(dir.tree("results"), before);
    std::fs::create_dir(dir.path("empty")).unwrap();
    assert_eq!(dir.run(&format!("{RUN} --out empty")).code, Some(0), "an empty one will do");
}

#[test]
fn results_that_cannot_be_written_are_refused_before_the_run() {
    let dir = with_data();
    dir.write("file", b"x");
    let said = dir.refused(&format!("{RUN} --out file/results"));
    assert!(said.starts_with("forebay: cannot create the folder file/results: "), "{said}");
    assert!(
        dir.refused(&format!("{RUN} --json none/record.json")).starts_with("forebay: cannot write none/record.json")
    );
    let said = dir.refused(&format!("{RUN} --access-log"));
    assert_eq!(said, "forebay: --access-log needs --out DIR, the folder for the log\n");
}

#[test]
fn data_that_is_not_there_is_answered_with_the_command_that_makes_it() {
    let dir = with_tiny();
    let said = dir.refused("workload run tiny.yaml --data none ++workload.train.epochs=1");
    assert_eq!(
        said,
        "forebay: none/train: no data for this workload\n\
         hint: forebay workload make tiny.yaml ++workload.train.epochs=1 --data none\n"
    );
    let said = dir.refused("workload run tiny.yaml --data none --shrink-bytes 4 --dlio-decode-mb-per-s 0.5");
    let wanted = "make tiny.yaml --data none --shrink-bytes 4 --dlio-decode-mb-per-s 0.5\n";
    assert!(said.ends_with(wanted), "{said}");
    let said = dir.refused("workload run tiny.yaml");
    assert!(said.contains("data/tiny/train: ") && said.ends_with("--data data/tiny\n"), "{said}");
    dir.met("workload make tiny.yaml --data set ++workload.dataset.num_files_train=4");
    let said = dir.refused(RUN);
    assert!(said.contains("set/train"), "{said}");
}

/// The file system of the data, as a dry run names it.
fn file_system(text: &str) -> &str {
    let line = text.lines().find(|line| line.starts_with("data in ")).unwrap_or_else(|| panic!("{text}"));
    line.split_once(" (").unwrap().1.trim_end_matches(')')
}

#[test]
fn a_dry_run_says_what_would_be_done_and_where() {
    let dir = with_tiny();
    dir.write("saves.yaml", TINY.replace("train: True", "train: True\n  checkpoint: True"));
    for data in ["a/set", "data/tiny"] {
        dir.met(&format!("workload make tiny.yaml --data {data}"));
    }
    let text = dir.met("workload run saves.yaml --data a/set --accelerators 2 --out results --dry-run");
    assert!(text.starts_with("workload    saves\ndata        8 npz files of 1 sample, 32.8 KB; "), "{text}");
    assert!(text.lines().nth(1).unwrap().ends_with("a/set"), "the folder of the run, not of the workload: {text}");
    assert!(text.contains("\ntrain       2 epochs of 2 steps for each of 2 accelerators, "), "{text}");
    let other = dir.met("workload run saves.yaml --shrink-bytes 2 --dry-run");
    assert!(
        other.contains("\nWARNING: the data was made with other settings (") && !text.contains("WARNING"),
        "{other}"
    );
    let said = dir.refused("workload run saves.yaml --data gone --dry-run");
    assert!(said.starts_with("forebay: gone: no data for this workload\nhint: make it with "), "{said}");
    let system = file_system(&text);
    let ending = |saves: &str| format!("data in     a/set ({system})\nsaves to    {saves}\nresults in  results\n");
    assert!(text.ends_with(&ending(&format!("results/checkpoints ({system})"))), "{text}");
    let text = dir.met("workload run saves.yaml --checkpoint-dir saves --dry-run");
    assert!(text.ends_with(&format!("data in     data/tiny ({system})\nsaves to    saves ({system})\n")), "{text}");
    let text = dir.met("workload run saves.yaml --dry-run");
    let scratch = format!("saves to    a scratch folder in data/tiny ({system}, removed at the end)\n");
    assert!(text.ends_with(&scratch), "{text}");
    let text = dir.met("workload run saves.yaml --tier hdd --dry-run");
    assert!(text.contains("\nWARNING: the emulated hdd applies to the data only: "), "{text}");
    assert!(!dir.path("results").exists());
}

#[test]
fn a_dry_run_says_what_the_run_would_fail_on() {
    let dir = with_data();
    let refused = |flags: &str| {
        let ran = dir.run(&format!("{RUN} --dry-run {flags}"));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stdout.starts_with("workload    tiny\n"), "what would be run is said all the same: {ran:?}");
        ran.stderr
    };
    let said = refused("++workload.dataset.num_files_train=16");
    assert!(said.contains("set/train contains 8 .npz files; the workload needs 16"), "{said}");
    let said = refused("++workload.dataset.format=npy");
    assert!(said.contains("contains 0 .npy files; the workload needs 8"), "{said}");
    let saves = "++workload.workflow.checkpoint=True ++workload.model.model_size_bytes";
    assert!(refused(&format!("{saves}=1000000000000000")).contains("checkpoints need "));
    dir.write("file", "");
    let said = refused(&format!("{saves}=1000 --checkpoint-dir file/saves"));
    assert_eq!(said, "forebay: writing to file: not a directory\n");
    std::fs::create_dir(dir.path("full")).unwrap();
    dir.write("full/file", "");
    assert!(refused("--out full").contains("the folder is not empty"));
    dir.edit("set/train/img_0_of_8.npz", |bytes| bytes.truncate(10));
    assert!(refused("").contains("img_0_of_8.npz"));
    std::fs::remove_dir_all(dir.path("set/train")).unwrap();
    let said = refused("");
    assert_eq!(
        said,
        "forebay: set/train: no data for this workload\nhint: forebay workload make tiny.yaml --data set\n"
    );
}

/// Saves 64 KiB after each of two epochs.
const SAVES: &str = "++workload.workflow.checkpoint=True ++workload.model.model_size_bytes=65536";

/// All entries of a folder, hidden ones too.
fn entries(dir: &Dir, folder: &str) -> BTreeSet<OsString> {
    std::fs::read_dir(dir.path(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// What the first rank saved is below a folder.
fn is_saved_in(dir: &Dir, folder: &str) -> bool {
    dir.path(folder).join("rank-0000").is_dir()
}

#[test]
fn checkpoints_go_to_the_folder_that_was_named() {
    let dir = with_data();
    let cell = cell_of(&dir, &format!("--checkpoint-dir saves {SAVES}"));
    let saves = cell["saves"].as_array().unwrap();
    assert_eq!(saves.len(), 2, "after each epoch: {cell}");
    assert!(saves.iter().all(|save| save["bytes"] == 65_536), "{cell}");
    assert!(is_saved_in(&dir, "saves") && !dir.path("checkpoints").exists());
    let place = &cell["checkpoint_place"];
    assert_eq!(
        (&place["path"], &place["is_with_data"], &place["is_removed"]),
        (&"saves".into(), &true.into(), &false.into())
    );
    assert!(place["medium"]["storage"].as_str().unwrap().contains(" on "), "{place}");
    cell_of(&dir, &format!("{SAVES} ++workload.checkpoint.checkpoint_folder=other"));
    assert!(is_saved_in(&dir, "other"));
}

#[test]
fn checkpoints_go_into_the_results_and_every_account_names_their_place() {
    let dir = with_data();
    let before = [".", "set"].map(|folder| entries(&dir, folder));
    let ran = dir.run(&format!("{RUN} --out results {SAVES}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(is_saved_in(&dir, "results/checkpoints"));
    assert!(ran.stderr.starts_with("forebay: checkpoints go to results/checkpoints ("), "{}", ran.stderr);
    assert!(ran.stdout.contains("\n  Checkpoints in results/checkpoints ("), "{}", ran.stdout);
    assert!(flat(&ran.stdout).contains("), on the file system of the data. "), "{}", ran.stdout);
    let page = String::from_utf8(dir.read("results/report.html")).unwrap();
    assert!(page.contains("Checkpoints in results/checkpoints ("), "{page}");
    let mut after = [".", "set"].map(|folder| entries(&dir, folder));
    assert!(after[0].remove(&OsString::from("results")));
    assert_eq!(after, before, "nothing else is left");
    // A workload's own relative folder lies there too, an absolute one where it says.
    let folder = dir.path("ckpt");
    for (own, to, wanted) in [("ckpt/tiny", "more", "more/ckpt/tiny"), (folder.to_str().unwrap(), "most", "ckpt")] {
        dir.write("own.yaml", format!("{TINY}checkpoint:\n  checkpoint_folder: {own}\n"));
        let ran = dir.run(&format!("workload run own.yaml --data set --out {to} {SAVES}"));
        assert!(ran.code == Some(0) && is_saved_in(&dir, wanted), "{own}: {ran:?}");
    }
}

#[test]
fn a_run_without_a_folder_for_checkpoints_leaves_none_behind() {
    let dir = with_data();
    let before = [".", "set"].map(|folder| entries(&dir, folder));
    let ran = dir.run(&format!("{RUN} {SAVES}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.starts_with("forebay: checkpoints go to a scratch folder in set ("), "{}", ran.stderr);
    assert!(
        ran.stderr.ends_with(", removed at the end); keep them with --out DIR or --checkpoint-dir DIR\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.contains("\n  2 checkpoints of 65.5 KB: "), "{}", ran.stdout);
    assert_eq!([".", "set"].map(|folder| entries(&dir, folder)), before);
    // Nor does one that fails.
    dir.edit("set/train/img_3_of_8.npz", |bytes| bytes.truncate(100));
    for flags in ["", " --out results"] {
        assert_eq!(dir.run(&format!("{RUN} {SAVES}{flags}")).code, Some(2));
        assert_eq!([".", "set"].map(|folder| entries(&dir, folder)), before, "{flags}");
    }
    let only = "++workload.workflow.train=False ++workload.checkpoint.num_checkpoints_write";
    let said = dir.refused(&format!("workload run tiny.yaml {SAVES} {only}=1"));
    assert!(
        said.contains("no data folder data/tiny") && said.contains("\nhint: name a folder with --checkpoint-dir"),
        "{said}"
    );
    let said = dir.refused(&format!("{RUN} {SAVES} {only}=0 ++workload.checkpoint.num_checkpoints_read=1"));
    assert!(said.ends_with("\nhint: name their folder with --checkpoint-dir DIR\n"), "{said}");
}

#[test]
fn a_damaged_sample_is_found_unless_checksums_are_left_out() {
    let dir = with_data();
    dir.edit("set/train/img_3_of_8.npz", |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
    let ran = dir.run(RUN);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("img_3_of_8.npz"), "{ran:?}");
    assert_eq!(dir.run(&format!("{RUN} --no-verify")).code, Some(0));
}

#[test]
fn a_cold_run_says_whether_it_was() {
    let dir = with_data();
    let cell = cell_of(&dir, "--cold");
    assert!(cell["medium"]["cache"].is_string(), "{cell}");
    assert_ne!(cell["medium"]["cache"], "warm", "{}", cell["medium"]);
}

#[test]
fn a_time_that_ranks_wait_for_one_another_has_a_unit_and_is_some() {
    let dir = with_data();
    for (wrong, why) in [("20", "unit"), ("0s", "above 0")] {
        let said = dir.refused(&format!("{RUN} --rank-timeout {wrong}"));
        assert!(said.contains(why), "{said}");
    }
    dir.met(&format!("{RUN} --rank-timeout 90s"));
}

#[test]
fn an_interrupted_run_keeps_what_it_measured() {
    let dir = with_data();
    let line =
        format!("{RUN} --json record.json ++workload.train.epochs=100000 ++workload.train.computation_time=0.005");
    let mut running = Running::start(&dir, &line);
    running.wait_until("bytes of samples", |running| running.bytes_read() > 1_000_000);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let record = dir.json("record.json");
    assert!(record["notes"].to_string().contains("interrupted"), "{}", record["notes"]);
    assert!(number(&record["cells"][0], "steps") > 0.0);
    assert_eq!(dir.met("report record.json"), ran.stdout);
}

#[test]
fn a_folder_of_results_is_shown_by_its_name_and_one_without_results_is_not_left_behind() {
    let dir = with_data();
    let ran = dir.run(&format!("{RUN} --out out"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(dir.met("report out"), ran.stdout);
    // Fewer files than the workload names: found when the run begins.
    let said = dir.refused(&format!("{RUN} --out none ++workload.dataset.num_files_train=64"));
    assert!(!dir.path("none").exists(), "{said}");
    let said = dir.refused(&format!("{RUN} ++workload.output.folder=out"));
    assert!(said.contains("the workload's output.folder out: the folder is not empty"), "{said}");
}

#[test]
fn a_run_beside_other_processes_is_marked() {
    let (dir, load) = (with_data(), Load::start());
    let ran = load.beside(&dir, &format!("{RUN} --json record.json ++workload.train.computation_time=0.1"));
    let disturbed = &dir.json("record.json")["cells"][0]["disturbed"];
    assert_eq!((&disturbed["repeats"], &disturbed["taken"]), (&1.into(), &"processors".into()));
    assert!(ran.stdout.contains("\n  Disturbed: other processes used "), "{}", ran.stdout);
    assert!(!ran.stdout.contains("What would help most"), "{}", ran.stdout);
}
