//! Tuning in the report: the path, the settings that were found, and where following the advice of a study leads.

use serde_json::{Value, json};

use crate::mini;
use crate::plain;
use crate::train::{figure, report, rows, study};
use forebay_report::{headline, html, text};

fn of_tuning(change: Value, outcome: &str, changes: Value) -> Value {
    json!({"change": change, "advice": "", "predicted_s": 12.0, "error_s": 0.5, "before_s": 26.0, "noise": 0.02,
           "outcome": outcome, "changes": changes, "settings": {"batch": 64, "cold": true, "threads": 8, "device": "cuda"},
           "data_flags": {"tier": "hdd"}, "end": null})
}

/// Three runs: 8 threads were twice as fast, and two batches ahead were not.
fn tuned() -> Value {
    let mut record = mini::record(1.0);
    let cell = |speed: f64, threads: u64, prefetch: u64, tuning: Value| {
        let mut cell = mini::record(speed)["cells"][0].take();
        (cell["threads"], cell["prefetch"], cell["tuning"]) = (threads.into(), prefetch.into(), tuning);
        cell["limit"] = json!({"name": "storage", "evidence": [], "rates": {
            "consumes_per_s": 3_000.0, "storage_per_s": 500.0, "storage_most_per_s": 600.0, "cores_per_s": 2_000.0, "cores": 4.0,
        }});
        cell
    };
    let threads = json!({"setting": "threads", "value": 8});
    let prefetch = json!({"setting": "prefetch", "value": 2});
    let mut start = of_tuning(Value::Null, "start", json!([]));
    (start["predicted_s"], start["before_s"]) = (Value::Null, Value::Null);
    let mut last = of_tuning(prefetch.clone(), "dropped", json!([prefetch, threads]));
    last["end"] = "exhausted".into();
    record["cells"] = json!([
        cell(1.0, 2, 1, start),
        cell(2.0, 8, 1, of_tuning(threads.clone(), "kept", json!([threads]))),
        cell(1.9, 8, 2, last),
    ]);
    record["dataset"]["path"] = "my photos".into();
    record
}

fn unfolded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_path_says_what_was_predicted_measured_and_kept() {
    let runs = [plain::named("tuned", &tuned())];
    let said = headline(&runs);
    assert!(said.starts_with("With --threads 8 the run takes ") && said.ends_with("(−48 %)."), "{said}");
    let report = report(&runs);
    let path = figure(&report, "tuning");
    let rows = rows(&path);
    let column = |name: &str| rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
    assert_eq!(column("outcome"), ["start", "kept", "dropped"]);
    assert_eq!(column("change"), ["none", "--threads 8", "--prefetch 2"]);
    assert_eq!((&column("predicted_s")[0], &column("predicted_s")[1]), (&Value::Null, &json!(12)));
    let page = html(&runs);
    assert!(page.contains("Run times from change to change") && page.contains("measured, dropped"));
}

#[test]
fn the_settings_that_were_found_are_a_command_and_a_study_file() {
    let shown = text(&[plain::named("tuned", &tuned())]);
    let command = "forebay train 'my photos' --batch 64 --cold --device cuda --threads 8 --tier hdd";
    assert!(shown.contains(command), "{shown}");
    for line in ["path = \"my photos\"", "tier = \"hdd\"", "cold = true", "threads = 8", "steps = 300"] {
        assert!(shown.lines().any(|of| of == line), "{line}\n{shown}");
    }
    let mut packed = tuned();
    let dataset = json!({"setting": "dataset", "value": "tensor"});
    let tuning = &mut packed["cells"][1]["tuning"];
    (tuning["changes"], tuning["pack"]) = (json!([dataset]), "--to tensor --size 224x224".into());
    let shown = text(&[plain::named("tuned", &packed)]);
    assert!(shown.contains("forebay data pack 'my photos' 'my photos-tensor' --to tensor --size 224x224\n"), "{shown}");
    assert!(shown.contains("forebay train 'my photos-tensor' --batch 64"), "{shown}");
    assert!(shown.contains("path = \"my photos-tensor\""), "{shown}");
}

#[test]
fn the_settings_that_were_found_are_a_loader_in_python() {
    let mut record = tuned();
    record["cells"][1]["output"] = "227x225 f32 nhwc, random crop, half mirrored".into();
    let settings = json!({"batch": 64, "cold": true, "crop": "random", "flip": true, "io": "direct", "seed": 7, "max_sample_size": "1MiB"});
    record["cells"][1]["tuning"]["settings"] = settings;
    record["cells"][1]["tuning"]["data_flags"]["label_key"] = "image/class".into();
    let shown = text(&[plain::named("tuned", &record)]);
    let wanted = r#"import forebay

# Not in Python: --io direct.
loader = forebay.ImageLoader(
    "my photos",
    batch_size=64,
    image_size=(227, 225),
    threads=8,
    prefetch=1,
    shuffle=True,
    drop_last=True,
    crop="random",
    flip=0.5,
    antialias=False,
    seed=7,
    max_sample_size=1048576,
    label_key="image/class",
)
"#;
    assert!(shown.contains(wanted), "{shown}");
    let class = include_str!("../../../../python/python/forebay/images.py");
    for argument in wanted.lines().filter_map(|line| line.trim().split_once('=')).map(|(name, _)| name) {
        let is_one = argument == "loader " || class.contains(&format!("\n        {argument}: "));
        assert!(is_one, "the loader has no argument {argument}");
    }
    assert!(!shown.contains("Checkpointer"), "{shown}");
    let tuning = &mut record["cells"][1]["tuning"];
    tuning["settings"] = json!({"shuffle": "window:64", "interleave": "4:16"});
    tuning["changes"] = json!([{"setting": "dataset", "value": "tensor"}]);
    let shown = text(&[plain::named("tuned", &record)]);
    assert!(shown.contains("# Not in Python: --interleave 4:16, --shuffle window:64.\nloader"), "{shown}");
    assert!(
        shown.contains("    \"my photos-tensor\",\n    batch_size=64,\n    threads=8,\n"),
        "tensors have their size: {shown}"
    );
}

#[test]
fn where_checkpoints_go_is_part_of_the_settings() {
    let mut record = tuned();
    let tuning = &mut record["cells"][1]["tuning"];
    tuning["settings"] =
        json!({"checkpoint_every": 20, "checkpoint_mode": "async", "checkpoint_size": "1MB", "keep": 3});
    tuning["data_flags"] = json!({"checkpoint_dir": "my saves", "burst_dir": "fast", "burst_tier": "optane"});
    let shown = text(&[plain::named("tuned", &record)]);
    let flags = "--checkpoint-every 20 --checkpoint-mode async --checkpoint-size 1MB --keep 3 --burst-dir fast --burst-tier optane \
                 --checkpoint-dir 'my saves'";
    assert!(shown.contains(flags), "{shown}");
    let python = "# saver.save(step, …) every 20 steps\n\
                  saver = forebay.Checkpointer(\"my saves\", burst_dir=\"fast\", mode=\"async\", keep=3)\n";
    assert!(shown.contains(python), "{shown}");
    let tiers = "[[tier]]\nname = \"checkpoints\"\npath = \"my saves\"\n\n[[tier]]\nname = \"burst-buffer\"\nprofile = \"optane\"\n";
    assert!(shown.contains(tiers), "{shown}");
    assert!(shown.contains("checkpoint = \"checkpoints\"\nburst = \"burst-buffer\"\n"), "{shown}");
}

#[test]
fn what_no_flag_changes_is_said_in_requests_bytes_and_cores() {
    let shown = unfolded(&text(&[plain::named("tuned", &tuned())]));
    let wanted = "the storage must deliver 3,000 IOPS and 336 MB/s, one request per image; it delivers 600 and 67.2 MB/s; decoding \
                  needs 6 cores like these; there are 4.";
    assert!(shown.contains(wanted), "{shown}");
    let mut enough = tuned();
    for cell in enough["cells"].as_array_mut().unwrap() {
        cell["limit"]["name"] = "accelerator".into();
    }
    assert!(!text(&[plain::named("tuned", &enough)]).contains("IOPS"));
}

#[test]
fn a_search_that_was_cut_short_does_not_say_what_no_flag_changes() {
    let mut record = tuned();
    record["cells"][2]["tuning"]["end"] = "budget".into();
    record["cells"][1]["lever"] = json!({
        "name": "prefetch", "advice": "--prefetch 4: a longer queue", "saves_s": 1.0, "wall_s": 5.0,
        "setting": {"setting": "prefetch", "value": 4}
    });
    let said = unfolded(&text(&[plain::named("tuned", &record)]));
    assert!(said.contains("another run would have exceeded the budget"), "{said}");
    assert!(!said.contains("No flag changes the rest") && !said.contains("IOPS"), "{said}");
    assert!(said.contains("What would help most: --prefetch 4: a longer queue"), "what was not tried any more: {said}");
    record["cells"][1]["lever"]["setting"]["value"] = 2.into();
    let said = unfolded(&text(&[plain::named("tuned", &record)]));
    assert!(!said.contains("What would help most"), "it was tried and dropped: {said}");
}

#[test]
fn every_table_of_the_path_names_its_runs() {
    let mut record = tuned();
    record["cells"][0]["limit"]["name"] = "latency".into();
    let shown = text(&[plain::named("tuned", &record)]);
    let heads: Vec<&str> = shown.lines().filter(|line| line.contains("limit") && line.starts_with("run")).collect();
    assert_eq!(heads.len(), 1, "{shown}");
    assert!(!shown.lines().any(|line| line.trim() == "limit"), "{shown}");
}

#[test]
fn the_gain_has_the_interval_of_the_repeats() {
    let mut record = tuned();
    (record["cells"][0]["spread"], record["cells"][1]["spread"]) = (0.03.into(), 0.04.into());
    let said = headline(&[plain::named("tuned", &record)]);
    // 0.52 of the time before, each known to a few percent.
    assert!(said.ends_with("(−48 % ± 2.6 %)."), "{said}");
}

#[test]
fn disturbed_runs_of_a_path_are_named_as_a_doubt() {
    let mut record = tuned();
    record["cells"][1]["disturbed"] = json!({"repeats": 1, "taken": "processors", "share": 0.4});
    let said = headline(&[plain::named("tuned", &record)]);
    assert!(said.ends_with("Other processes used the machine meanwhile: repeat it when it is quiet."), "{said}");
}

#[test]
fn following_the_advice_of_a_study_leads_from_cell_to_cell() {
    let mut lines = mini::lines();
    lines[0]["spec"]["figure"] =
        json!([{"id": "advice", "title": "Advice", "kind": "advice", "experiment": "mini-app"}]);
    for line in lines.iter_mut().filter(|line| line["experiment"] == "mini-app") {
        let threads = line["factors"]["threads"].as_u64().unwrap();
        let setting = if threads < 8 { json!({"setting": "threads", "value": 2 * threads}) } else { Value::Null };
        line["train"]["lever"] =
            json!({"name": "threads", "advice": "more", "saves_s": 0.0, "wall_s": 1.0, "setting": setting});
    }
    let shown = unfolded(&text(&[study(&lines)]));
    assert!(
        shown.contains("Following the advice from run to run ends within 5 % of the fastest of all settings in "),
        "{shown}"
    );
    assert!(shown.contains("trying all settings takes 8."), "four numbers of threads, two of batches ahead: {shown}");
}
