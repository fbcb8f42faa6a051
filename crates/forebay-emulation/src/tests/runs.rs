//! Runs that train.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_workload::Shuffle;

use super::*;

#[test]
fn accelerators_share_an_epoch_and_the_account_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 2);
    workload.workflow.evaluation = true;
    workload.dataset.n_files_eval = 8;
    workload.evaluation.eval_time = Time::Normal { mean: 0.001, stdev: 0.0 };
    workload.reader.batch_size_eval = 2;
    let cell = cell_of(&plan(workload, dir.path(), 2));
    adds_up(&cell);
    assert_eq!((cell.totals.steps, cell.totals.samples, cell.totals.accelerators), (16, 128, 2));
    assert_eq!((cell.steps_per_epoch, cell.epochs, cell.epochs_of.len()), (4, 2, 4));
    assert_eq!(
        cell.epochs_of.iter().map(|epoch| (epoch.epoch, epoch.accelerator)).collect::<Vec<_>>(),
        [(1, 0), (1, 1), (2, 0), (2, 1)]
    );
    assert!(cell.epochs_of.iter().all(|epoch| epoch.load.len() == 4 && epoch.eval_steps == 2), "{cell:?}");
    assert!(cell.totals.eval_s >= 2.0 * 2.0 * 2.0 * 0.001 && cell.totals.au_eval.is_some());
    assert!(cell.totals.compute_s >= 16.0 * 0.0005);
    let totals = &cell.totals;
    assert!(totals.au_epoch.unwrap() <= totals.au_steady.unwrap() && totals.first_step_s.unwrap() > 0.0);
    assert!(totals.step.p50 >= 0.0005 && totals.step.max >= totals.step.p99 && totals.load.max > 0.0);
    assert!(totals.warnings.iter().any(|text| text.starts_with("only 4 steps per epoch")), "{:?}", totals.warnings);
    assert_eq!(cell.order, "files: off, samples: off");
    assert_eq!(cell.processes.len(), 1);
}

#[test]
fn two_hundred_and_fifty_six_accelerators_on_few_cores_finish_and_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let workload = workload(256 * 8 * 3, 2);
    let cell = cell_of(&plan(workload, dir.path(), 256));
    adds_up(&cell);
    assert_eq!((cell.totals.steps, cell.totals.samples), (256 * 3 * 2, 256 * 8 * 3 * 2));
    assert_eq!(cell.epochs_of.len(), 512);
    assert!(cell.epochs_of.iter().all(|epoch| epoch.n_steps == 3 && epoch.barrier.len() == 3));
}

#[test]
fn a_run_is_judged_by_whole_epochs_against_what_is_stated_or_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(workload(64, 1), dir.path(), 1);
    plan.workload.limits.au = 0.0;
    let judged = cell_of(&plan).judged;
    assert_eq!(
        judged.iter().map(|judged| (judged.what.as_str(), judged.limit, judged.is_decisive)).collect::<Vec<_>>(),
        [("au_epoch", 0.0, true), ("au_dlio", 0.0, false)]
    );
    assert!(judged.iter().all(|judged| judged.is_met), "{judged:?}");
    plan.settings.threshold = Some(1.01);
    let judged = cell_of(&plan).judged;
    assert_eq!((judged[0].limit, judged[0].is_met, judged[0].is_decisive), (1.01, false, true));
    assert_eq!((judged[1].limit, judged[1].is_met), (0.0, true));
}

#[test]
fn every_sample_is_read_once_an_epoch_in_an_order_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 2);
    workload.reader.sample_shuffle = Shuffle::Seed;
    (workload.workflow.evaluation, workload.dataset.n_files_eval, workload.reader.batch_size_eval) = (true, 8, 2);
    let plan = Plan { access_log: Some(dir.path().join("log")), ..plan(workload, dir.path(), 4) };
    cell_of(&plan);
    let text = std::fs::read_to_string(dir.path().join("log/access-0.csv")).unwrap();
    let rows_of = |part: &str| -> Vec<Vec<u64>> {
        let lines = text.lines().filter(|line| line.split(',').nth(1) == Some(part));
        lines.map(|line| line.split(',').skip(2).map(|value| value.parse().unwrap()).collect()).collect()
    };
    let (rows, evaluated) = (rows_of("train"), rows_of("eval"));
    assert_eq!((rows.len(), evaluated.len()), (128, 16), "evaluated after both epochs: {text}");
    assert!(evaluated.iter().all(|row| (1..=2).contains(&row[1]) && row[2] < 8), "{evaluated:?}");
    for epoch in [1, 2] {
        let of = |accelerator: Option<u64>| -> Vec<u64> {
            let mine = rows.iter().filter(|row| row[1] == epoch && accelerator.is_none_or(|a| row[0] == a));
            mine.map(|row| row[2]).collect()
        };
        assert_eq!(of(None).into_iter().collect::<BTreeSet<_>>(), (0..64).collect::<BTreeSet<_>>());
        assert!((0..4).all(|accelerator| of(Some(accelerator)).len() == 16), "shares are equal and disjoint");
    }
    let first = |epoch: u64| {
        rows.iter().filter(|row| row[1] == epoch && row[0] == 0).map(|row| row[2]).collect::<BTreeSet<_>>()
    };
    assert_ne!(first(1), first(2), "every epoch has its own order");
}

#[test]
fn a_run_that_is_stopped_keeps_its_steps_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(8 * 10_000, 1);
    workload.train.computation_time = Time::Normal { mean: 0.002, stdev: 0.0 };
    let plan = plan(workload, dir.path(), 2);
    let stop = AtomicBool::new(false);
    let observe = |event| {
        if matches!(event, Event::Step { step, .. } if step >= 3) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let record = run_observed(&plan, &observe, &stop).unwrap();
    assert_eq!(record.notes, ["interrupted: the completed steps are kept, but not compared with a threshold"]);
    let cell = &record.cells[0];
    adds_up(cell);
    assert!((6..2_000).contains(&cell.totals.steps), "{}", cell.totals.steps);
    assert_eq!(cell.epochs_of[0].n_steps, cell.epochs_of[1].n_steps, "all end at the same step");
}

#[test]
fn an_observer_hears_of_epochs_and_steps() {
    let dir = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let plan = plan(workload(32, 2), dir.path(), 2);
    run_observed(&plan, &|event| heard.hear(event), &AtomicBool::new(false)).unwrap();
    let heard = heard.0.into_inner().unwrap();
    let epochs: Vec<&Event> = heard.iter().filter(|event| matches!(event, Event::Steps { .. })).collect();
    let begun = |epoch| Event::Steps { epoch: Some((epoch, 2)), first: 0, n_steps: 2 };
    assert_eq!(epochs, [&begun(1), &begun(2)]);
    assert!(heard.iter().any(|event| matches!(event, Event::Step { step: 2, .. })), "{heard:?}");
}

#[test]
fn dlio_finds_its_own_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 2);
    workload.workflow.evaluation = true;
    workload.dataset.n_files_eval = 8;
    let plan = Plan { out: Some(dir.path().join("out")), ..plan(workload, dir.path(), 2) };
    let cell = cell_of(&plan);
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("out").join(name)).unwrap()).unwrap()
    };
    let summary = json("summary.json");
    assert_eq!(summary["num_accelerators"], 2);
    let mean = summary["metric"]["train_au_mean_percentage"].as_f64().unwrap();
    assert!((mean / 100.0 - cell.totals.au_dlio.unwrap()).abs() < 1e-9, "{mean}");
    assert_eq!(summary["metric"]["eval_au_percentage"].as_array().unwrap().len(), 2);
    for accelerator in 0..2 {
        let output = json(&format!("{accelerator}_output.json"));
        assert_eq!(output["2"]["load"]["block1"].as_array().unwrap().len(), 4);
        assert_eq!(output["1"]["compute"]["eval"].as_array().unwrap().len(), 4);
        let stats = json(&format!("{accelerator}_per_epoch_stats.json"));
        assert!(stats["1"]["block1"]["start"].as_str().unwrap() <= stats["1"]["eval"]["start"].as_str().unwrap());
        assert!(stats["2"]["duration"].as_str().unwrap().parse::<f64>().is_ok());
    }
    let names = ["", ".hydra/"].into_iter().flat_map(|below| {
        let entries = std::fs::read_dir(dir.path().join("out").join(below)).unwrap().map(Result::unwrap);
        let files = entries.filter(|entry| entry.path().is_file());
        files.map(move |entry| format!("{below}{}", entry.file_name().into_string().unwrap()))
    });
    let text = |name: &String| std::fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let files = names.map(|name| (name.clone(), text(&name)));
    let read = forebay_workload::dlio::read_run(&files.collect()).unwrap();
    assert_eq!((read.ranks.len(), read.batch, read.name.as_deref()), (2, Some(8), Some("small")));
    assert_eq!(read.odd, Vec::<String>::new());
    assert_eq!(read.workload.unwrap().train, plan.workload.train);
    let blocks: Vec<f64> = read
        .ranks
        .iter()
        .flat_map(|rank| &rank.epochs)
        .filter_map(|epoch| epoch.blocks[0].au)
        .map(|percent| percent / 100.0)
        .collect();
    assert_eq!(
        blocks,
        cell.epochs_of
            .iter()
            .filter(|epoch| epoch.accelerator == 0)
            .chain(cell.epochs_of.iter().filter(|epoch| epoch.accelerator == 1))
            .filter_map(|epoch| epoch.au_dlio)
            .collect::<Vec<f64>>()
    );
}

#[test]
fn data_that_is_missing_is_said_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 1);
    workload.dataset.format = Format::Tfrecord;
    let error = run_it(&plan(workload, dir.path(), 1)).unwrap_err().to_string();
    assert!(error.contains("forebay workload make"), "{error}");
}

#[test]
fn a_workload_that_does_nothing_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 1);
    workload.workflow.train = false;
    let record = run_it(&plan(workload, dir.path(), 1)).unwrap();
    assert!(record.cells.is_empty());
    assert_eq!(record.notes, ["the workload neither trains nor saves; nothing was measured"]);
}

#[test]
fn data_is_made_first_where_the_workload_says_so_and_goes_where_it_is_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(16, 1);
    workload.workflow.generate_data = true;
    let kept = plan(workload.clone(), dir.path(), 1);
    let record = run_it(&kept).unwrap();
    assert!(record.notes[0].starts_with("this process made 16 files of data"), "{:?}", record.notes);
    let file = |n: u64| kept.data.join(workload.dataset.path_of(forebay_workload::Part::Train, n));
    assert!(file(0).exists() && file(15).exists());
    let not_kept = |dir: &Path| {
        let mut plan = plan(workload.clone(), dir, 1);
        plan.workload.dataset.keep_files = false;
        plan
    };
    let record = run_it(&not_kept(dir.path())).unwrap();
    assert!(record.notes.iter().any(|note| note.contains("existed before this run")), "{:?}", record.notes);
    assert!(file(0).exists(), "the data of another run stays");
    let mut not_made = not_kept(dir.path());
    not_made.workload.workflow.generate_data = false;
    let record = run_it(&not_made).unwrap();
    assert!(record.notes.iter().any(|note| note.contains("did not generate the data")), "{:?}", record.notes);
    let fresh = tempfile::tempdir().unwrap();
    run_it(&not_kept(fresh.path())).unwrap();
    assert!(!fresh.path().join("data").exists());
}

#[test]
fn real_files_are_read_whole_in_every_epoch_and_damage_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(32, 2);
    workload.dataset.format = Format::Npz;
    workload.dataset.record_length_bytes = 10_000.0;
    workload.dataset.record_length_bytes_resize = 100;
    workload.workflow.generate_data = true;
    let plan = plan(workload, dir.path(), 2);
    let cell = cell_of(&plan);
    adds_up(&cell);
    assert!(cell.totals.bytes_moved >= 2 * 32 * 10_000, "{}", cell.totals.bytes_moved);
    assert!(cell.totals.mb_per_s_moved > 0.0 && cell.worker_time["reading"] > 0.0);
    assert_eq!(cell.processes[0].bytes_moved, cell.totals.bytes_moved);
    assert!(!cell.totals.warnings.iter().any(|text| text.contains("another workload")), "{:?}", cell.totals.warnings);
    let mut longer = plan.clone();
    longer.workload.workflow.generate_data = false;
    longer.workload.dataset.record_length_bytes = 40_000.0;
    let error = run_it(&longer).map(|record| record.cells[0].totals.warnings.join("\n"));
    let said = error.unwrap_or_else(|error| error.to_string());
    assert!(said.contains("record_length_bytes: made with 10000.0, the workload says 40000.0"), "{said}");
    let file = plan.data.join(plan.workload.dataset.path_of(forebay_workload::Part::Train, 20));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[5_000] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let error = run_it(&plan).unwrap_err().to_string();
    assert!(error.contains("accelerator 1") && error.contains("img_20_of_32.npz"), "{error}");
}

/// The keys of a DLIO file, including nested ones; epoch numbers count as one key.
fn keys(value: &serde_json::Value, above: &str, found: &mut std::collections::BTreeSet<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let key = if key.parse::<u64>().is_ok() { "N" } else { key.as_str() };
        let path = format!("{above}/{key}");
        keys(value, &path, found);
        found.insert(path);
    }
}

#[test]
fn every_key_that_dlio_writes_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 2);
    workload.workflow.evaluation = true;
    workload.dataset.n_files_eval = 8;
    let plan = Plan { out: Some(dir.path().join("out")), ..plan(workload, dir.path(), 2) };
    run_it(&plan).unwrap();
    let theirs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-workload/tests/fixtures/dlio-2");
    let of = |folder: &Path, name: &str| {
        let mut found = std::collections::BTreeSet::new();
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        keys(&serde_json::from_str(&text).unwrap(), "", &mut found);
        found
    };
    let ours = |name: &str| of(&dir.path().join("out"), name);
    for name in ["summary.json", "1_output.json"] {
        let missing: Vec<String> = of(&theirs, name).difference(&ours(name)).cloned().collect();
        assert_eq!(missing, [""; 0], "{name}");
    }
    // This run saves nothing.
    let stats = of(&theirs, "per_epoch_stats.json");
    let missing = stats.difference(&ours("1_per_epoch_stats.json")).filter(|key| !key.contains("ckpt")).count();
    assert_eq!(missing, 0);
    // Descriptions of the machine were removed from the fixtures.
    for key in ["/host_cpuinfo/processor", "/host_meminfo/MemTotal"] {
        assert!(ours("summary.json").contains(key) && ours("1_output.json").contains(key), "{key}");
    }
    for key in ["/N/host_meminfo/MemTotal", "/N/start", "/N/end"] {
        assert!(ours("1_output.json").contains(key), "{key}");
    }
}

#[test]
fn the_utilisation_of_an_evaluation_leaves_its_first_step_out_as_dlio_does() {
    let dir = tempfile::tempdir().unwrap();
    let mut workload = workload(64, 1);
    workload.workflow.evaluation = true;
    workload.dataset.n_files_eval = 8;
    workload.evaluation.eval_time = Time::Normal { mean: 0.002, stdev: 0.0 };
    let plan = Plan { out: Some(dir.path().join("out")), ..plan(workload, dir.path(), 1) };
    run_it(&plan).unwrap();
    let json = |name: &str| -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(dir.path().join("out").join(name)).unwrap()).unwrap()
    };
    let (epoch, summary) = (json("0_output.json")["1"].clone(), json("summary.json"));
    let values = |key: &str| -> Vec<f64> {
        epoch[key]["eval"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let (compute, proc, au) = (values("compute"), values("proc"), epoch["au"]["eval"].as_f64().unwrap());
    let wall_s = compute.len() as f64 / epoch["throughput"]["eval"].as_f64().unwrap();
    let wanted = 100.0 * compute[1..].iter().sum::<f64>() / (wall_s - proc[0]);
    assert!((au - wanted).abs() < 1e-6, "{au}, expected {wanted}");
    assert_eq!(summary["metric"]["eval_au_percentage"][0].as_f64().unwrap(), au);
}

#[test]
fn what_was_measured_is_kept_where_its_copies_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan(workload(64, 1), dir.path(), 1);
    std::fs::write(dir.path().join("file"), []).unwrap();
    plan.out = Some(dir.path().join("file"));
    let record = run_it(&plan).unwrap();
    assert_eq!(record.cells[0].totals.steps, 8);
    let last = record.notes.last().unwrap();
    assert!(last.starts_with("DLIO's result files are incomplete: "), "{last}");
}
