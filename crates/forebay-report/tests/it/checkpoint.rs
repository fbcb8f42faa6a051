//! Checkpoints: what is said of them, what is drawn of them, and how two records of them are compared.

use forebay_report::{csv, headline, text};
use serde_json::{Value, json};

use crate::saved::{self, BURST};
use crate::train::{figure, number, report, rows};
use crate::{page_of, plain};

fn trained<'a>(lines: &'a [Value], to: &str) -> &'a Value {
    &lines.iter().find(|line| line["factors"]["checkpoint"] == to).unwrap()["train"]
}

fn row<'a>(figure: &'a Value, to: &str) -> &'a Value {
    rows(figure).iter().find(|row| row["checkpoint"] == to).unwrap()
}

#[test]
fn run_times_stand_beside_the_one_without_checkpoints() {
    let lines = saved::lines();
    let found = figure(&report(&[saved::run(&lines)]), "fig-9");
    let (hdd, none) = (trained(&lines, "hdd"), trained(&lines, "none"));
    let wall = |cell: &Value| {
        let mut walls: Vec<f64> =
            cell["samples"].as_array().unwrap().iter().map(|run| number(&run["wall_s"])).collect();
        walls.sort_by(f64::total_cmp);
        walls[1]
    };
    let of_hdd = row(&found, "hdd");
    assert_eq!(number(&of_hdd["wall_s"]), wall(hdd));
    assert_eq!(number(&of_hdd["without_s"]), wall(none));
    assert!((number(&of_hdd["longer"]) - (wall(hdd) / wall(none) - 1.0)).abs() < 1e-9);
    assert_eq!(of_hdd["stall_s"], hdd["checkpoints"]["median_stall_s"]);
    assert_eq!(of_hdd["n_saves"], 5);
    let of_none = row(&found, "none");
    assert_eq!([&of_none["stall_s"], &of_none["without_s"], &of_none["longer"]], [&Value::Null; 3]);
    let input =
        "Computing is an input here, not a measurement (emulated:500ms): only what is added to it was measured.";
    assert_eq!(found["remarks"], json!([input]));
}

#[test]
fn the_burst_buffers_ratio_is_that_of_the_median_stalls_and_stands_beside_the_published_one() {
    let lines = saved::lines();
    let run = saved::run(&lines);
    let found = report(std::slice::from_ref(&run));
    let stall = |to: &str| number(&trained(&lines, to)["checkpoints"]["median_stall_s"]);
    let wanted = stall("hdd") / stall("optane → hdd");
    let drawn = figure(&found, "fig-9");
    let ours = &row(&drawn, "optane → hdd")["stall_speed_up"];
    assert!((number(ours) - wanted).abs() < 1e-9 && wanted > 3.5, "{ours}");
    let references = &found["runs"][0]["references"][0];
    assert_eq!((&references["ours"], &references["agreement"]), (ours, &json!("agrees")), "{references}");
    let said = format!(
        "A burst buffer (checkpoints on optane → hdd) makes the stall per checkpoint {wanted:.2}× shorter (published: 2.6×"
    );
    let short = format!("A burst buffer makes the stall per checkpoint {wanted:.2}× shorter.");
    assert_eq!(found["runs"][0]["verdict"]["headline"], short);
    let findings = found["runs"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains(&said), "{said}\n{findings}");
    let caption = figure(&found, "fig-9")["caption"].clone();
    assert!(caption.as_str().unwrap().contains(&said), "{caption}");
    let page = page_of(&[run]);
    let drawn = &page[page.find("id=\"fig-9\"").unwrap()..page.find("id=\"fig-10\"").unwrap()];
    assert_eq!(drawn.matches("data-published=\"2.6\"").count(), 2, "on a desk and on a phone");
    assert_eq!(drawn.matches("<svg class=\"wide\"").count(), 2, "run times, and stalls below");
    let edges: Vec<&str> =
        drawn.split("class=\"ax\" x1=\"").skip(1).filter_map(|axis| axis.split('"').next()).collect();
    assert!(edges.len() == 4 && edges[0] == edges[1] && edges[2] == edges[3], "one below the other: {edges:?}");
    assert!(!drawn.contains(">none<") || drawn.find("<details").is_some_and(|at| !drawn[..at].contains(">none<")));
}

#[test]
fn a_burst_buffer_that_the_disk_below_holds_back_differs_and_is_named() {
    let mut lines = saved::lines();
    let burst = lines.iter_mut().find(|line| line["factors"]["checkpoint"] == "optane → hdd").unwrap();
    let saved = &mut burst["train"]["checkpoints"];
    (saved["rated_mb_per_s"], saved["median_stall_s"]) = (json!(512.0), json!(3.4));
    let found = report(&[saved::run(&lines)]);
    let reference = &found["runs"][0]["references"][0];
    assert_eq!((&reference["agreement"], &reference["within"]), (&json!("differs"), &json!(0.2)), "{reference}");
    let caveats = found["runs"][0]["verdict"]["caveats"].to_string();
    let said = "The underlying disk was slower than optane promises (176 of 512 MB/s, checkpoints on optane → hdd): the stalls of 1 \
                cell are due to the disk.";
    assert!(caveats.contains(said), "{caveats}");
}

#[test]
fn a_study_that_stands_still_most_for_checkpoints_does_not_say_that_it_waited_for_data() {
    let mut lines = saved::lines();
    lines.retain(|line| line["factors"]["checkpoint"] != "optane → hdd");
    for line in lines.iter_mut().filter(|line| line["train"].is_object()) {
        line["train"]["wait_s"] = json!(number(&line["train"]["wall_s"]) * 0.06);
    }
    let found = report(&[saved::run(&lines)]);
    let headline = found["runs"][0]["verdict"]["headline"].as_str().unwrap();
    let said = "the accelerator stalled most with checkpoints on hdd (main cause: checkpoints).";
    assert!(headline.ends_with(said), "{headline}");
}

#[test]
fn the_direct_save_beside_a_burst_buffer_is_that_to_the_same_device_also_where_devices_are_real() {
    let mut lines = saved::lines();
    for line in lines.iter_mut().filter(|line| line["train"]["checkpoints"].is_object()) {
        line["train"]["checkpoints"]["tier"] = Value::Null;
        line["train"]["checkpoints"]["burst_tier"] = Value::Null;
    }
    let stall = |to: &str| number(&trained(&lines, to)["checkpoints"]["median_stall_s"]);
    let wanted = stall("hdd") / stall("optane → hdd");
    let found = figure(&report(&[saved::run(&lines)]), "fig-9");
    assert!((number(&row(&found, "optane → hdd")["stall_speed_up"]) - wanted).abs() < 1e-9);
    let burst = lines.iter_mut().find(|line| line["factors"]["checkpoint"] == "optane → hdd").unwrap();
    burst["factors"]["checkpoint"] = json!("somewhere");
    let found = figure(&report(&[saved::run(&lines)]), "fig-9");
    assert_eq!(row(&found, "somewhere")["stall_speed_up"], Value::Null, "which is meant cannot be told");
}

#[test]
fn a_burst_buffer_that_does_not_help_is_not_praised() {
    let mut lines = saved::lines();
    let burst = lines.iter_mut().find(|line| line["factors"]["checkpoint"] == "optane → hdd").unwrap();
    burst["train"]["checkpoints"]["median_stall_s"] = json!(9.2);
    let found = report(&[saved::run(&lines)]);
    let findings = found["runs"][0]["verdict"]["findings"].to_string();
    assert!(
        findings.contains("optane → hdd) makes the stall per checkpoint 1.96× longer (published: 2.6× shorter)"),
        "{findings}"
    );
    assert_eq!(found["runs"][0]["references"][0]["agreement"], "differs");
}

#[test]
fn what_is_missing_or_failed_is_said_and_the_rest_is_drawn() {
    let mut lines = saved::lines();
    lines.retain(|line| line["factors"]["checkpoint"] != "none");
    let failed = lines.iter_mut().find(|line| line["factors"]["checkpoint"] == "ssd").unwrap();
    failed["train"] = Value::Null;
    failed["error"] = json!("no space left on the device");
    let hdd = lines.iter_mut().find(|line| line["factors"]["checkpoint"] == "hdd").unwrap();
    hdd["train"]["checkpoints"]["saves"][2]["fate"] = json!("skipped");
    let run = saved::run(&lines);
    let found = figure(&report(std::slice::from_ref(&run)), "fig-9");
    assert_eq!(row(&found, "ssd")["error"], "no space left on the device");
    assert_eq!(row(&found, "hdd")["not_saved"], 1);
    let remarks = found["remarks"].to_string();
    assert!(remarks.contains("No run without checkpoints was measured"), "{remarks}");
    assert!(remarks.contains("1 save was skipped, replaced or failed"), "{remarks}");
    page_of(&[run]);
    lines.retain(|line| line["line"] == "head" || line["error"].is_string());
    let alone = report(&[saved::run(&lines)]);
    assert!(
        figure(&alone, "fig-9")["remarks"]
            .to_string()
            .contains("No cell of this figure saved checkpoints. The first error")
    );
    assert!(
        figure(&alone, "fig-10")["remarks"]
            .to_string()
            .contains("No cell of this figure recorded its checkpoint traffic")
    );
}

#[test]
fn traffic_is_rates_of_every_tier_and_goes_on_after_the_end() {
    let lines = saved::lines();
    let run = saved::run(&lines);
    let found = figure(&report(std::slice::from_ref(&run)), "fig-10");
    let cell = trained(&lines, "optane → hdd");
    let (wall, drain) = (number(&cell["wall_s"]), number(&cell["checkpoints"]["drain_after_s"]));
    assert!(drain > 1.0, "the last checkpoint is drained behind");
    for traffic in cell["checkpoints"]["traffic"].as_array().unwrap() {
        let ours: Vec<&Value> = rows(&found).iter().filter(|row| row["tier"] == traffic["tier"]).collect();
        let mb = traffic["written_mb"].as_array().unwrap();
        assert_eq!(ours.len(), mb.len());
        for (i, (row, mb)) in ours.iter().zip(mb).enumerate() {
            assert_eq!((number(&row["time_s"]), number(&row["written_mb_per_s"])), (i as f64 * 0.5, number(mb) / 0.5));
            assert_eq!(row["after_end"] == "yes", i as f64 * 0.5 >= wall);
        }
    }
    let after = rows(&found).iter().filter(|row| row["tier"] == "hdd" && row["after_end"] == "yes");
    assert!(after.map(|row| number(&row["written_mb_per_s"])).sum::<f64>() > 0.0);
    let caption = found["caption"].as_str().unwrap();
    assert!(
        caption.starts_with("In total, 3,000 MB were written to optane and 3,000 MB were written to hdd."),
        "{caption}"
    );
    assert!(caption.contains("Draining continued after the end of training for "), "{caption}");
    assert!(caption.contains("All panels have the same y-axis."), "{caption}");
    let page = page_of(&[run]);
    let drawn = &page[page.find("id=\"fig-10\"").unwrap()..page.find("id=\"all\"").unwrap()];
    assert_eq!(drawn.matches("class=\"save\"").count(), 5 * 2 * 2, "a handle a save, tier and picture");
}

#[test]
fn a_record_of_training_has_its_saves_and_their_traffic() {
    let run = plain::named("saved", &saved::train_record(Some(BURST)));
    let found = report(std::slice::from_ref(&run));
    let saves = figure(&found, "checkpoints");
    assert_eq!(rows(&saves).len(), 5);
    assert_eq!((&rows(&saves)[0]["step"], &rows(&saves)[0]["fate"]), (&json!(20), &json!("saved")));
    let headline = found["runs"][0]["verdict"]["headline"].as_str().unwrap();
    assert_eq!(headline, "Checkpoints cause the longest stalls: 11 % of the time. AU is 89 %.");
    let steps = figure(&found, "steps");
    assert_eq!(rows(&steps).iter().filter(|row| row["checkpoint_s"].is_number()).count(), 5);
    assert!(!rows(&figure(&found, "traffic")).is_empty());
    let cell = &found["runs"][0]["cells"][0];
    assert_eq!(cell["checkpoints"], 5);
    let said = found["runs"][0]["verdict"]["findings"].to_string();
    assert!(
        said.contains("5 checkpoints of 600.0 MB, every 20 steps, tensorflow, burst: to optane, then hdd."),
        "{said}"
    );
    assert!(text(std::slice::from_ref(&run)).contains("\n  Training stalled for "));
    let lines = csv(&[run]);
    for metric in ["checkpoint_s", "stall_s", "drain_after_s"] {
        assert!(lines.contains(&format!(",{metric},")), "{metric}\n{lines}");
    }
}

#[test]
fn trainings_with_other_checkpoints_are_compared_with_that_named() {
    let hdd = saved::Route { slow: "hdd", fast: None };
    let runs = [
        plain::named("direct", &saved::train_record(Some(hdd))),
        plain::named("burst", &saved::train_record(Some(BURST))),
    ];
    let found = report(&runs);
    let compared = &found["comparisons"][0];
    let differences = compared["differences"].to_string();
    assert!(differences.contains("checkpoint mode") && differences.contains("burst tier"), "{differences}");
    let stall =
        compared["cells"].as_array().unwrap().iter().find(|row| row["metric"] == "stall per checkpoint, s").unwrap();
    assert_eq!(stall["word"], "faster", "{stall}");
    assert!(compared["summary"].as_str().unwrap().starts_with("2 values in common: "), "{compared}");
}

#[test]
fn a_benchmark_of_checkpoints_is_a_page_a_table_and_lines() {
    let run = plain::named("bench", &saved::bench(1.0));
    let found = report(std::slice::from_ref(&run));
    let section = &found["runs"][0];
    assert_eq!(section["title"], "Checkpoints of 600 MB in 64 tensors");
    let ids: Vec<&str> = section["figures"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["stall", "saves", "ceiling", "restores"]);
    let headline = headline(std::slice::from_ref(&run));
    assert!(headline.starts_with("A checkpoint of 600.0 MB is durable after 1.2"), "{headline}");
    assert!(headline.contains("of the ceiling); in mode async, training stalls for 6"), "{headline}");
    let share = figure(&found, "ceiling");
    let first = &rows(&share)[0];
    let cell = saved::bench_cell("direct", "safetensors", 1.0);
    let wanted = 600.0 / number(&cell["durable_fast_s"]) / number(&cell["ceiling_mb_per_s"]);
    assert!((number(&first["efficiency"]) - wanted).abs() < 1e-9, "{first}");
    assert!(share["caption"].as_str().unwrap().contains("O_DIRECT and a final sync"));
    let findings = section["verdict"]["findings"].to_string();
    for said in ["A burst buffer (burst, safetensors) makes", "the stall is 1.2", "every byte verified"] {
        assert!(findings.contains(said), "{said}\n{findings}");
    }
    let lines = csv(std::slice::from_ref(&run));
    let restored = lines.lines().filter(|line| line.contains(",restore_efficiency,")).count();
    assert_eq!(restored, 6, "{lines}");
    page_of(&[run]);
}

#[test]
fn benchmarks_of_checkpoints_are_compared_by_what_one_waits_for() {
    let runs = [plain::named("before", &saved::bench(1.0)), plain::named("after", &saved::bench(1.5))];
    let compared = report(&runs)["comparisons"][0].clone();
    assert_eq!(compared["cells"].as_array().unwrap().len(), 6 * 3);
    assert_eq!(compared["n_faster"], 18, "{compared}");
    assert!(
        compared["method"].as_str().unwrap().contains("These are ratios of times: below 1× is faster."),
        "{compared}"
    );
    let page = page_of(&runs);
    assert!(page.contains(">burst, tensorflow: durable on the first tier<"), "a row names its quantity");
}
