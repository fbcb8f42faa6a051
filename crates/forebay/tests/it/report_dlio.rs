//! `forebay report --from-dlio`: what DLIO itself wrote, and what its own times say of whole epochs.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::dir::{Dir, flat};

/// A folder with the results of DLIO that the workload's own tests read, in `to`.
fn with_results(name: &str, to: &str) -> Dir {
    let dir = Dir::new();
    add_results(&dir, name, to);
    dir
}

fn add_results(dir: &Dir, name: &str, to: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-workload/tests/fixtures").join(name);
    for part in ["", ".hydra"] {
        for entry in fs::read_dir(from.join(part)).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                let file = Path::new(to).join(part).join(entry.file_name());
                dir.write(file.to_str().unwrap(), fs::read(entry.path()).unwrap());
            }
        }
    }
}

/// The row of the table of utilisations, without its spaces.
fn row<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}")).split_whitespace().collect()
}

#[test]
fn dlios_utilisation_stands_beside_that_of_whole_epochs() {
    let dir = with_results("dlio-1", "out");
    let text = dir.met("report --from-dlio out");
    assert!(text.starts_with("Workload unet3d, measured by DLIO\n"), "{text}");
    for said in ["; batch 2; 2 epochs; 16 files; npz; ", "; 1 rank; ", " 1 per file, 1.0 MB each\n", " 50.0 ms\n"] {
        assert!(flat(&text).contains(said.trim_end()), "{said}: {text}");
    }
    // 0.8 s of computing; the epochs took 0.557159 s and 0.461631 s by DLIO's own clock.
    assert_eq!(row(&text, "AU, whole epoch ")[3..5], ["78.5", "%"]);
    assert_eq!(row(&text, "AU, as DLIO counts ")[4..6], ["93.3", "%"], "what its summary says");
    assert!(flat(&text).contains(" as DLIO counts, samples/s 35.0 "), "{text}");
    assert!(text.contains("\n  Warning: only 8 steps per epoch: DLIO leaves out the first one"), "{text}");
    assert!(text.contains("\n  4 checkpoints: "), "{text}");
}

#[test]
fn times_of_all_ranks_are_added_up_and_the_parts_are_the_whole() {
    let dir = with_results("dlio-2", "out");
    let text = dir.met("report --from-dlio out");
    assert!(flat(&text).contains("; 2 ranks; 2 accelerators"), "{text}");
    dir.met("report --from-dlio out --json numbers.json");
    let numbers = String::from_utf8(dir.read("numbers.json")).unwrap();
    assert!(numbers.contains("au_epoch"), "{numbers}");
    let seconds = |name: &str| {
        let row = row(&text, name);
        let (i, value) = row.iter().enumerate().find_map(|(i, word)| Some((i, word.parse::<f64>().ok()?))).unwrap();
        if row[i + 1] == "ms" { value / 1e3 } else { value }
    };
    let parts: f64 = ["compute ", "wait for data ", "checkpoint ", "other "].into_iter().map(seconds).sum();
    assert!((parts / seconds("all ") - 1.0).abs() < 0.02, "of three digits each: {text}");
    assert!(!text.contains("\nbarrier"), "DLIO does not time them: {text}");
}

#[test]
fn results_are_found_below_a_hydra_log_also_without_the_workload() {
    let dir = with_results("dlio-1", "run/hydra_log/unet3d/2026-11-16-05-41-59");
    let text = dir.met("report --from-dlio run");
    assert!(text.starts_with("Workload unet3d, "), "{text}");
    fs::remove_dir_all(dir.path("run/hydra_log/unet3d/2026-11-16-05-41-59/.hydra")).unwrap();
    let text = dir.met("report --from-dlio run");
    assert!(text.starts_with("Workload DLIO, measured by DLIO\n") && text.contains("; 16 files; "), "{text}");
    assert!(text.contains("; batch 2; 2 epochs; "), "{text}");
    assert_eq!(row(&text, "AU, whole epoch ")[3..5], ["78.5", "%"]);
    assert!(text.contains("\nnote: batch size 2, inferred from rates, files and steps: no workload in "), "{text}");
}

/// Results of one and of two ranks, as the author of a campaign keeps them: a folder of folders.
fn campaign() -> Dir {
    let dir = with_results("dlio-1", "campaign/1/unet3d");
    add_results(&dir, "dlio-2", "campaign/2/unet3d");
    dir
}

#[test]
fn a_folder_of_folders_is_one_page_by_number_of_processes() {
    let dir = campaign();
    dir.met("report --from-dlio campaign --html page.html");
    let page = String::from_utf8(dir.read("page.html")).unwrap();
    for part in
        ["DLIO&#39;s results in campaign", "Accelerator utilisation by number of processes", "1 process", "2 processes"]
    {
        assert!(page.contains(part) || page.contains(&part.replace("&#39;", "'")), "{part}");
    }
    let numbers: Value = serde_json::from_str(&dir.met("report --from-dlio campaign --json -")).unwrap();
    let cells = numbers["runs"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2, "{cells:?}");
    let alone = dir.met("report --from-dlio campaign/1");
    let shown = |cell: &Value| format!("{:.1}", cell["au_epoch"].as_f64().unwrap() * 100.0);
    let one = cells
        .iter()
        .find(|cell| cell["at"].as_str().unwrap().contains("1 process"))
        .unwrap_or_else(|| panic!("{cells:?}"));
    assert_eq!(row(&alone, "AU, whole epoch ")[3], shown(one), "as the run by itself has it");
    let csv = dir.met("report --from-dlio campaign --csv -");
    assert!(csv.lines().next().unwrap().contains("processes"), "{csv}");
}

#[test]
fn results_are_found_as_deep_as_campaigns_keep_them_and_below_other_results() {
    let dir = with_results("dlio-1", "results/h100/unet3d/processes-1/hydra_log/unet3d/2026-11-16-05-41-59");
    add_results(&dir, "dlio-2", "results/h100/unet3d/processes-2");
    add_results(&dir, "dlio-2", "results/h100/unet3d/processes-2/2026-11-17-05-41-59");
    let numbers: Value = serde_json::from_str(&dir.met("report --from-dlio results --json -")).unwrap();
    assert_eq!(numbers["runs"][0]["cells"].as_array().unwrap().len(), 3, "{numbers}");
}

#[test]
fn runs_of_the_same_settings_are_told_apart_by_folder_and_a_damaged_one_hides_no_other() {
    let dir = campaign();
    add_results(&dir, "dlio-1", "campaign/again");
    dir.write("campaign/bad/0_output.json", "{");
    let text = dir.met("report --from-dlio campaign");
    for part in ["run 1/unet3d", "run again", "1 cell failed"] {
        assert!(flat(&text).contains(part), "{part}: {text}");
    }
    let worse = Dir::new();
    worse.write("all/a/0_output.json", "{");
    worse.write("all/b/0_output.json", "[");
    let said = worse.refused("report --from-dlio all");
    assert!(said.contains("all: none of 2 results can be shown; the first: "), "{said}");
}

#[test]
fn a_page_and_a_table_are_made_of_them_too() {
    let dir = with_results("dlio-2", "out");
    dir.met("report --from-dlio out --html page.html");
    let page = String::from_utf8(dir.read("page.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("unet3d"), "{page}");
    dir.met("report --from-dlio out --csv cells.csv");
    let csv = String::from_utf8(dir.read("cells.csv")).unwrap();
    assert!(csv.contains("au_dlio"), "{csv}");
    let before = dir.tree("out");
    let said = dir.refused("report --from-dlio out --json out/summary.json");
    assert!(said.contains("cannot write out/summary.json: it is inside the input out"), "{said}");
    assert_eq!(dir.tree("out"), before);
}

#[test]
fn what_is_missing_is_noted_and_only_what_says_nothing_is_refused() {
    let dir = with_results("dlio-1", "out");
    dir.write("empty/readme", b"x");
    let said = dir.refused("report --from-dlio empty");
    assert!(said.starts_with("forebay: empty: not an output folder of DLIO: no summary.json, "), "{said}");
    fs::rename(dir.path("out/per_epoch_stats.json"), dir.path("kept")).unwrap();
    let text = dir.met("report --from-dlio out");
    assert_eq!(row(&text, "AU, as DLIO counts ")[4], "93.3", "{text}");
    assert!(
        text.contains("\nnote: 2 of 2 epochs have no start and end in per_epoch_stats.json; their time is the sum of "),
        "{text}"
    );
    fs::rename(dir.path("kept"), dir.path("out/per_epoch_stats.json")).unwrap();
    fs::rename(dir.path("out/summary.json"), dir.path("kept")).unwrap();
    let text = dir.met("report --from-dlio out");
    assert_eq!(row(&text, "AU, as DLIO counts ")[4], "93.3", "{text}");
    assert!(!text.contains("as DLIO counts, samples/s"), "it did not come that far: {text}");
    assert!(text.contains("\nnote: no summary.json; DLIO's figures are computed from its steps\n"), "{text}");
    fs::rename(dir.path("kept"), dir.path("out/summary.json")).unwrap();
    dir.write("out/0_output.json", b"{torn");
    let text = dir.met("report --from-dlio out");
    assert!(text.contains("AU, as DLIO counts 93 %, at least 90 % required: met"), "{text}");
    assert!(text.contains("\nnote: 0_output.json cannot be read: "), "{text}");
    dir.write("out/summary.json", b"{}");
    fs::remove_file(dir.path("out/per_epoch_stats.json")).unwrap();
    let said = dir.refused("report --from-dlio out");
    assert!(said.starts_with("forebay: cannot show out: no summary, no training steps and no checkpoints"), "{said}");
    assert!(said.contains("\n  0_output.json cannot be read: "), "{said}");
}

#[test]
fn numbers_that_python_writes_and_json_has_not_are_read() {
    let dir = with_results("dlio-1", "out");
    let text = String::from_utf8(dir.read("out/summary.json")).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert!(value["metric"]["train_au_mean_percentage"].is_number());
    dir.write("out/summary.json", text.replace("34.995861088293964", "NaN"));
    let text = dir.met("report --from-dlio out");
    assert_eq!(row(&text, "AU, as DLIO counts ")[4], "93.3");
    assert!(!text.contains("as DLIO counts, samples/s"), "{text}");
}

/// The results of two ranks that only saved and restored. The second rank's times of the first save are not there.
fn of_checkpoints() -> Dir {
    let dir = Dir::new();
    let metric = r#"{"metric": {"checkpoint_size_GB": 1.0}, "num_accelerators": 2}"#;
    dir.write("out/summary.json", metric);
    let span = |name: &str, seconds: &str| {
        format!(
            r#""{name}": {{"start": "2026-01-31T10:00:00.000000", "end": "2026-01-31T10:00:0{seconds}", "duration": {seconds}}}"#
        )
    };
    let first = [span("save_ckpt1", "2.0"), span("save_ckpt2", "3.0"), span("load_ckpt1", "1.0")];
    let second = [span("save_ckpt2", "5.0"), span("load_ckpt1", "1.5")];
    for (rank, spans) in [(0, first.as_slice()), (1, second.as_slice())] {
        dir.write(format!("out/{rank}_output.json"), r#"{"hostname": "node"}"#);
        let stats = format!(r#"{{"1": {{{}}}}}"#, spans.join(", "));
        dir.write(format!("out/{rank}_per_epoch_stats.json"), stats);
    }
    dir
}

#[test]
fn runs_that_only_save_and_restore_are_shown_by_the_slowest_rank_of_each_checkpoint() {
    let dir = of_checkpoints();
    let text = dir.met("report --from-dlio out");
    for line in ["\n  2 checkpoints of 1.07 GB: 3.50 s each (", "\n  1 restore of 1.07 GB: 1.50 s each ("] {
        assert!(text.contains(line), "{text}");
    }
    let text = flat(&text);
    assert!(
        text.contains("7.00 s in all, 306.8 MB/s; 2.50 s for the first rank"),
        "the second save was longest: {text}"
    );
}
