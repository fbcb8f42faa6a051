//! What is said of trainings is true of all of them, and each is named.

use serde_json::{Value, json};

use crate::chien;
use crate::train::{figure, number, report, rows, study};
use crate::{mini, page_of, plain};

fn verdict(lines: &[Value]) -> Value {
    report(&[study(lines)])["runs"][0]["verdict"].clone()
}

#[test]
fn a_disk_figure_of_cells_that_read_nothing_says_so() {
    let mut lines = mini::lines();
    let figures = lines[0]["spec"]["figure"].as_array_mut().unwrap();
    figures.iter_mut().find(|figure| figure["id"] == "disk").unwrap()["at"] = json!({"dataset": "synthetic"});
    let mut run = chien::study(&lines);
    run.series = Some(mini::series(&lines[1..]));
    let record = forebay_record::AnyRecord::Study(Box::new(run));
    let found = figure(&report(&[forebay_report::NamedRun { name: "mini".to_owned(), record }]), "disk");
    assert_eq!(found["remarks"], json!(["These cells read nothing: their batches were made in memory."]));
}

#[test]
fn every_emulated_accelerator_is_named_or_counted() {
    let mut lines = mini::lines();
    let said = |lines: &[Value]| verdict(lines)["caveats"].to_string();
    let three = "(emulated:620ms, emulated:192.4ms, emulated:334.8ms and emulated:619.6ms)";
    assert!(said(&lines).contains(three), "in the order of the study: {}", said(&lines));
    let cells = lines.iter_mut().filter(|line| line["experiment"] == "mini-app");
    cells.take(20).enumerate().for_each(|(i, cell)| cell["train"]["accelerator"] = json!(format!("emulated:{i}ms")));
    assert!(said(&lines).contains(" and 16 more)"), "{}", said(&lines));
}

#[test]
fn findings_of_single_cells_name_the_cell() {
    let mut lines = mini::lines();
    lines.retain(|line| {
        line["line"] == "head" || line["id"] == "feed/dataset=files" || line["id"] == "feed/dataset=tfrecord"
    });
    let findings = verdict(&lines)["findings"].clone();
    let all = findings.as_array().unwrap();
    for name in ["files: ", "tfrecord: "] {
        let said = |what: &str| all.iter().any(|said| said.as_str().unwrap().starts_with(&format!("{name}{what}")));
        assert!(said("20 steps of 64 images took") && said("AU is") && said("The cost of I/O is"), "{findings}");
    }
}

#[test]
fn very_small_times_are_told_in_a_smaller_unit() {
    let mut record = mini::record(1.0);
    record["cells"][0]["io_cost_s"] = json!(1.2e-4);
    let findings = report(&[plain::named("short", &record)])["runs"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains("The cost of I/O cannot be told: it is less than the variation"), "{findings}");
    record["cells"][0]["baseline"]["is_mean"] = json!(true);
    let findings = report(&[plain::named("short", &record)])["runs"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains("The cost of I/O is 120 µs (") && !findings.contains("e-4"), "{findings}");
}

#[test]
fn cells_that_wait_are_counted_as_their_table_shows_them() {
    let mut lines = mini::lines();
    // One that waited for its first batch alone.
    let cell = lines.iter_mut().find(|line| line["id"] == "mini-app/prefetch=1/threads=8/tier=optane").unwrap();
    let late = |run: &mut Value| {
        for part in ["wall_s", "wait_s", "first_wait_s"] {
            run[part] = json!(number(&run[part]) + 5.0);
        }
    };
    late(&mut cell["train"]);
    cell["train"]["samples"].as_array_mut().unwrap().iter_mut().for_each(late);
    let found = report(&[study(&lines)]);
    let run = &found["runs"][0];
    let cells = run["cells"].as_array().unwrap();
    let shares: Vec<f64> = cells.iter().filter_map(|cell| cell["wait_share"].as_f64()).collect();
    let n = shares.iter().filter(|share| **share >= 0.05).count();
    let said =
        format!("In {n} of 41 training cells the accelerator waited 5.0 % or more of the time after the first batch;");
    assert!(run["verdict"]["findings"].to_string().contains(&said), "{said} {}", run["verdict"]["findings"]);
}

#[test]
fn levels_stand_in_the_order_of_their_own_experiment() {
    let mut lines = mini::lines();
    let other = json!({"name": "other", "run": "train", "factors": {"dataset": ["tfrecord", "files"]}});
    lines[0]["spec"]["experiment"].as_array_mut().unwrap().insert(1, other);
    let bars = json!({"id": "bars", "title": "Rates", "kind": "bars", "experiment": "feed", "x": "dataset"});
    lines[0]["spec"]["figure"].as_array_mut().unwrap().push(bars);
    let found = report(&[study(&lines)]);
    let drawn = figure(&found, "bars");
    let sets: Vec<&str> = rows(&drawn).iter().map(|row| row["dataset"].as_str().unwrap()).collect();
    assert_eq!(sets, ["synthetic", "files", "tfrecord"]);
    let listed = figure(&found, "need");
    let sets: Vec<&str> = rows(&listed).iter().map(|row| row["at"].as_str().unwrap()).collect();
    assert_eq!(sets, ["synthetic", "files", "tfrecord"]);
}

#[test]
fn published_values_are_counted_as_their_table_has_them() {
    let findings = verdict(&mini::lines())["findings"].clone();
    let last = findings.as_array().unwrap().last().unwrap().as_str().unwrap();
    assert_eq!(
        last,
        "No published value could be judged; 2 not judged. The table has 4 rows, one for each cell that is \
         compared with a value."
    );
}

#[test]
fn a_need_says_whose_images_it_takes_and_what_lies_on_one_another() {
    let run = mini::run();
    let found = figure(&report(std::slice::from_ref(&run)), "need");
    assert_eq!(
        found["remarks"],
        json!([
            "synthetic read nothing; its image size is taken from files (112.0 KB).",
            "These lines coincide and are drawn slightly apart: synthetic, files and tfrecord."
        ])
    );
}

#[test]
fn sizes_say_why_the_mix_has_other_shares_than_the_bars() {
    let caption = figure(&report(&[mini::run()]), "sizes")["caption"].clone();
    assert!(
        caption
            .as_str()
            .unwrap()
            .contains("rounds each size to the nearest power of two, up or down, so its shares differ"),
        "{caption}"
    );
}

#[test]
fn a_row_of_the_table_has_the_medians_of_an_even_number_of_runs() {
    let mut lines = mini::lines();
    let cell = lines.iter_mut().find(|line| line["id"] == "feed/dataset=files").unwrap();
    cell["train"]["samples"].as_array_mut().unwrap().truncate(2);
    let runs = cell["train"]["samples"].clone();
    let middle = |part: &str| (number(&runs[0][part]) + number(&runs[1][part])) / 2.0;
    let found = report(&[study(&lines)]);
    let cells = found["runs"][0]["cells"].as_array().unwrap();
    let row = cells.iter().find(|cell| cell["at"] == "files").unwrap();
    for part in ["wall_s", "wait_s", "au_epoch"] {
        assert!((number(&row[part]) - middle(part)).abs() < 1e-9, "{part}: {row}");
    }
    let baseline = 0.05 * 20.0;
    assert!((number(&row["io_cost_s"]) - (middle("wall_s") - baseline)).abs() < 1e-9, "{row}");
}

#[test]
fn a_study_names_the_dataset_and_not_the_path_it_lay_in() {
    let mut lines = chien::lines(chien::USUAL);
    lines[0]["spec"]["experiment"][0]["settings"] = json!({"like": "imagenet"});
    lines[0]["spec"]["dataset"][0]["name"] = json!("imagenet");
    let experiment = lines[0]["spec"]["experiment"][0]["name"].clone();
    let probe = lines.iter_mut().find(|line| line["step"] == "probe" && line["experiment"] == experiment).unwrap();
    probe["probe"][0]["mix"] = json!("24 of 24 files as in /a/b/imagenet-24-seed0");
    let page = page_of(&[study(&lines)]);
    assert!(page.contains("24 of 24 files as in imagenet") && !page.contains("/a/b/"));
}

#[test]
fn the_limit_is_said_with_its_evidence_and_the_lever_with_its_error() {
    let mut record = mini::record(1.0);
    let cell = &mut record["cells"][0];
    (cell["wait_s"], cell["compute_s"]) = (json!(8.0), json!(6.5));
    cell["limit"] = json!({"name": "latency", "evidence": ["8 requests give 7 times as much"]});
    let wall_s = number(&cell["wall_s"]);
    cell["lever"] = json!({
        "name": "threads", "advice": "--threads 8: more requests in flight", "saves_s": 5.0, "wall_s": wall_s - 5.0, "error_s": 0.5,
        "setting": {"setting": "threads", "value": 8},
        "runner_up": {"name": "prefetch", "advice": "--prefetch 2", "saves_s": 1.0, "wall_s": wall_s - 1.0}
    });
    let findings = report(&[plain::named("run", &record)])["runs"][0]["verdict"]["findings"].to_string();
    for said in [
        "The limit is the number of requests in flight: 8 requests give 7 times as much.",
        "more requests in flight. It would save about 5.00 s ± 0.50 s of ",
        " Second best, alone: --prefetch 2 (1.00 s).",
    ] {
        assert!(findings.contains(said), "{said} in {findings}");
    }
    let cell = &mut record["cells"][0];
    cell["limit"] = json!({"name": "unknown", "evidence": ["it varies"]});
    cell["lever"] = json!({"name": "unknown", "advice": "too noisy", "saves_s": 0.0, "wall_s": wall_s});
    let findings = report(&[plain::named("run", &record)])["runs"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains("This run does not show what limits it: it varies."), "{findings}");
    assert!(findings.contains("No change can be recommended: too noisy."), "{findings}");
}

#[test]
fn ranks_are_counted_and_the_one_that_waits_longest_is_named() {
    let mut record = mini::record(1.0);
    let cell = &mut record["cells"][0];
    let wall_s = number(&cell["wall_s"]);
    let rank = |cell: &Value, rank: u64, wait_s: f64| {
        let mut own = cell["samples"][0].clone();
        own["rank"] = json!(rank);
        (own["host"], own["device"], own["threads"]) = (json!(format!("n{rank}")), json!("cpu"), json!(2));
        own["wait_s"] = json!(wait_s);
        own
    };
    cell["ranks"] = json!([rank(cell, 0, 0.1 * wall_s), rank(cell, 1, 0.5 * wall_s)]);
    cell["exchange_s"] = json!(0.2 * wall_s);
    let said = |record: &Value| report(&[plain::named("ranks", record)])["runs"][0]["verdict"]["findings"].to_string();
    let findings = said(&record);
    assert!(findings.contains("images on each of 2 ranks took"), "{findings}");
    assert!(findings.contains("waiting for other ranks and exchanging gradients "), "{findings}");
    assert!(findings.contains("Rank 1 on n1 waited longest for data, "), "{findings}");
    record["cells"][0]["ranks"][0]["wait_s"] = json!(0.3 * wall_s);
    assert!(!said(&record).contains("waited longest"), "nearly as long");
}

#[test]
fn several_accelerators_are_not_compared_with_one() {
    let mut lines = mini::lines();
    let said = |lines: &[Value]| verdict(lines)["findings"].to_string();
    assert!(
        said(&lines).contains("training reached") && said(&lines).contains("the most frequent lever"),
        "{}",
        said(&lines)
    );
    for line in lines.iter_mut().filter(|line| line["train"]["synthetic"] == json!(false)) {
        let mut own = line["train"]["samples"][0].clone();
        (own["rank"], own["host"], own["device"], own["threads"]) = (json!(0), json!("a"), json!("cpu"), json!(1));
        line["train"]["ranks"] = json!([own.clone(), own]);
    }
    assert!(
        !said(&lines).contains("training reached") && !said(&lines).contains("most frequent lever"),
        "{}",
        said(&lines)
    );
}
