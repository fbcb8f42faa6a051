//! Runs beside each other: which differences are said, and how.

use forebay_report::{csv, json, text};
use serde_json::{Value, json};

use crate::chien::{self, Plan, USUAL};
use crate::flat;
use crate::plain;

fn compared(a: &Value, b: &Value) -> Value {
    let report: Value =
        serde_json::from_str(&json(&[plain::named("before.json", a), plain::named("after.json", b)])).unwrap();
    report["comparisons"][0].clone()
}

/// Every rate of a cell times a factor.
fn scale(record: &mut Value, cell: usize, factor: f64) {
    let cell = &mut record["cells"][cell];
    cell["images_per_s"] = json!(cell["images_per_s"].as_f64().unwrap() * factor);
    for sample in cell["samples"].as_array_mut().unwrap() {
        sample["wall_s"] = json!(sample["wall_s"].as_f64().unwrap() / factor);
    }
}

fn words(comparison: &Value) -> Vec<&str> {
    comparison["cells"].as_array().unwrap().iter().map(|cell| cell["word"].as_str().unwrap()).collect()
}

#[test]
fn differences_beyond_the_noise_are_named_and_noise_is_called_noise() {
    let before = plain::ingest(USUAL);
    let mut after = plain::ingest(Plan { seed: 2, ..USUAL });
    scale(&mut after, 0, 1.10);
    scale(&mut after, 2, 0.90);
    let found = compared(&before, &after);
    let noise = "noise: the interval includes 1×";
    assert_eq!(words(&found), ["faster", noise, "slower", noise]);
    assert_eq!(found["summary"], "4 cells in common: 1 faster, 1 slower and 2 within noise.");
    let method =
        "4 comparisons were made; between equal runs, about 0.2 of these intervals would exclude 1× by chance.";
    assert!(found["method"].as_str().unwrap().contains(method), "{}", found["method"]);
    let ratio = &found["cells"][0];
    let number = |name: &str| ratio[name].as_f64().unwrap();
    assert!(number("low") < number("ratio") && number("ratio") < number("high") && number("low") > 1.0);
    assert_eq!((found["base"].as_str(), found["run"].as_str()), (Some("before"), Some("after")));
}

#[test]
fn a_run_beside_itself_is_all_noise() {
    let record = plain::ingest(USUAL);
    let found = compared(&record, &record);
    assert_eq!(
        (found["n_faster"].as_u64(), found["n_slower"].as_u64(), found["n_noise"].as_u64()),
        (Some(0), Some(0), Some(4))
    );
    assert_eq!(found["differences"], json!([]));
}

#[test]
fn one_repeat_cannot_tell() {
    let before = plain::ingest(Plan { repeats: 1, ..USUAL });
    let after = plain::ingest(Plan { repeats: 1, speed: 3.0, ..USUAL });
    let found = compared(&before, &after);
    assert_eq!(words(&found), ["inconclusive (one repeat)"; 4]);
    assert_eq!(found["cells"][0]["low"], Value::Null);
    assert!((found["cells"][0]["ratio"].as_f64().unwrap() - 3.0).abs() < 1e-9);
}

#[test]
fn the_values_of_a_comparison_have_a_unit_and_its_ratio_a_meaning_also_where_nothing_was_repeated() {
    let before = plain::ingest(Plan { repeats: 1, ..USUAL });
    let after = plain::ingest(Plan { repeats: 1, speed: 3.0, ..USUAL });
    let said = text(&[plain::named("before.json", &before), plain::named("after.json", &after)]);
    assert!(flat(&said).contains(" before, after, cell images/s images/s ratio "), "{said}");
    let end = "\n\nA ratio is after over before. For a verdict, measure both with --repeats 5.\n";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn many_comparisons_are_corrected_for_chance() {
    // One of 32 equal cells differs by a little more than its own interval allows: alone it would count.
    let shift = |lines: &mut Vec<Value>| {
        for sample in lines[5]["ingest"]["samples"].as_array_mut().unwrap() {
            sample["wall_s"] = json!(sample["wall_s"].as_f64().unwrap() / 1.013);
        }
    };
    let before = chien::lines(USUAL);
    let mut after = chien::lines(USUAL);
    shift(&mut after);
    let runs = [plain::named_text("a", &chien::jsonl(&before)), plain::named_text("b", &chien::jsonl(&after))];
    let report: Value = serde_json::from_str(&json(&runs)).unwrap();
    let cells = report["comparisons"][0]["cells"].as_array().unwrap().clone();
    let moved: Vec<&Value> = cells.iter().filter(|cell| !cell["word"].as_str().unwrap().starts_with("noise")).collect();
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert_eq!(moved[0]["word"], "not significant after Holm's correction");
    assert!(moved[0]["low"].as_f64().unwrap() > 1.0);
}

#[test]
fn what_else_differs_comes_first_and_does_not_part_the_cells() {
    let before = plain::ingest(USUAL);
    let mut after = plain::ingest(USUAL);
    for cell in after["cells"].as_array_mut().unwrap() {
        cell["storage"] = json!("local, direct");
        cell["cache"] = json!("warm");
    }
    after["environment"]["kernel"] = json!("7.0");
    after["dataset"]["n_samples"] = json!(99);
    let found = compared(&before, &after);
    let differences: Vec<(&str, &str, &str)> = found["differences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["what"].as_str().unwrap(), row["before"].as_str().unwrap(), row["after"].as_str().unwrap()))
        .collect();
    assert_eq!(
        differences,
        [
            ("storage", "local, buffered", "local, direct"),
            ("dataset", "photos: 1,024 samples in 1,024 files (files)", "photos: 99 samples in 1,024 files (files)"),
            ("kernel", "6.18.0", "7.0"),
            ("cache", "cold", "warm"),
        ]
    );
    assert_eq!(found["cells"].as_array().unwrap().len(), 4);
}

#[test]
fn runs_of_different_commands_are_not_compared() {
    let runs = [plain::named("a", &plain::ingest(USUAL)), plain::named("b", &plain::probe())];
    let said = text(&runs);
    assert!(!said.contains("compared with") && !said.contains("nothing to compare"), "{said}");
    let report: Value = serde_json::from_str(&json(&runs)).unwrap();
    assert_eq!(report["comparisons"], serde_json::json!([]));
    assert!(crate::page_of(&runs).contains("<h1>2 runs</h1>"));
    assert!(forebay_report::headline(&runs).starts_with("a: "));
}

#[test]
fn three_runs_are_each_compared_with_the_first() {
    let run = |name: &str, speed| plain::named(name, &plain::ingest(Plan { speed, ..USUAL }));
    let report: Value = serde_json::from_str(&json(&[run("a", 1.0), run("b", 1.3), run("c", 0.7)])).unwrap();
    let summary: Vec<&str> =
        report["comparisons"].as_array().unwrap().iter().map(|c| c["summary"].as_str().unwrap()).collect();
    assert_eq!(summary, ["4 cells in common: 4 faster.", "4 cells in common: 4 slower."]);
}

#[test]
fn the_json_has_every_number_of_the_page() {
    let lines = chien::lines(USUAL);
    let report: Value = serde_json::from_str(&json(&[chien::run("chien", USUAL)])).unwrap();
    let run = &report["runs"][0];
    assert_eq!(run["figures"].as_array().unwrap().len(), 8);
    let rates = run["figures"][1]["data"].as_array().unwrap();
    assert_eq!(rates.len(), 16);
    for line in lines[1..].iter().filter(|line| line["ingest"]["read_only"] == false) {
        let at = |row: &&Value| row["tier"] == line["factors"]["tier"] && row["threads"] == line["factors"]["threads"];
        let row = rates.iter().find(at).unwrap();
        assert_eq!(row["images_per_s"], line["ingest"]["images_per_s"]);
    }
    assert_eq!(run["cells"].as_array().unwrap().len(), 8 + 32);
    assert_eq!(run["figures"][7]["data"].as_array().unwrap().len(), 150);
    assert_eq!(run["references"].as_array().unwrap().len(), 15);
    let headline = "Storage limits hdd; decoding limits optane; storage and decoding together limit ssd and lustre.";
    assert_eq!(run["verdict"]["headline"], headline);
    assert_eq!(run["command_line"], "forebay study run chien-2018 --scale quick --out 'my runs/chien'");
    assert_eq!(run["complete"], true);
}

#[test]
fn the_table_has_a_line_a_cell_and_quantity_with_its_repeats() {
    let mut lines = chien::lines(USUAL);
    lines[7]["error"] = json!("a, \"b\"\nc");
    let table = csv(&[plain::named_text("my, run", &chien::jsonl(&lines))]);
    let head = table.lines().next().unwrap();
    assert_eq!(
        head,
        "run,experiment,block,depth,engine,mode,read_only,threads,tier,metric,unit,value,spread,n,cache,error,\
         repeat_1,repeat_2,repeat_3,repeat_4,repeat_5"
    );
    let first = &lines[9]["ingest"];
    let wanted = format!("\"my, run\",ingest,,,,,true,1,hdd,images_per_s,images/s,{}", first["images_per_s"]);
    let row = table.lines().find(|line| line.starts_with(&wanted)).unwrap_or_else(|| panic!("{wanted}"));
    let repeats: Vec<f64> = row.rsplit(',').take(5).map(|field| field.parse().unwrap()).collect();
    let last = &first["samples"][4];
    assert_eq!(repeats[0], last["images"].as_f64().unwrap() / last["wall_s"].as_f64().unwrap());
    assert!(table.contains(",\"a, \"\"b\"\"\nc\","), "quoted as RFC 4180 asks");
    let n_rows = table.lines().count() - 1;
    let n_ingest = table.lines().filter(|line| line.contains(",ingest,")).count();
    assert!(
        n_ingest > 31 * 7 && (n_ingest - 1) % 31 == 0,
        "{n_ingest}: 31 cells with the same metrics, and the failed one"
    );
    assert_eq!(n_rows, 1 + 8 * 7 + n_ingest, "head, probes, ingest; the failed cell has a line break in it");
}

#[test]
fn a_cache_state_is_named_and_counted_only_where_cells_differ_in_it() {
    let mut before = plain::ingest(USUAL);
    let mut after = before.clone();
    after["cells"].as_array_mut().unwrap().truncate(2);
    let said = |a: &Value, b: &Value| text(&[plain::named("before.json", a), plain::named("after.json", b)]);
    assert!(
        said(&before, &after).contains("after compared with before\n  number of cells: 4 → 2\n"),
        "{}",
        said(&before, &after)
    );
    for cell in before["cells"].as_array_mut().unwrap() {
        cell["cache"] = json!("warm");
    }
    assert!(said(&before, &after).contains("  cache: warm → cold\n"), "{}", said(&before, &after));
    before["cells"][0]["cache"] = json!("mixed");
    assert!(
        said(&before, &after).contains("  cache: 3 warm, 1 mixed of 4 cells → cold\n"),
        "{}",
        said(&before, &after)
    );
}

#[test]
fn a_cell_of_several_measurements_is_one_cell_and_has_several_values() {
    let mut lines = chien::lines(USUAL);
    let second = lines[1]["probe"][0].clone();
    lines[1]["probe"].as_array_mut().unwrap().push(second);
    lines[1]["probe"][1]["cache"] = json!("warm");
    lines[1]["probe"][1]["depth"] = json!(8);
    let n_cells = lines.len() - 1;
    let run = |name: &str| plain::named_text(name, &chien::jsonl(&lines));
    let found: Value = serde_json::from_str(&json(&[run("a")])).unwrap();
    let caveats = found["runs"][0]["verdict"]["caveats"].to_string();
    let wanted = format!("Of {n_cells} cells, not all are proven cold: 1 came partly from memory");
    assert!(caveats.contains(&wanted), "{caveats}");
    let found: Value = serde_json::from_str(&json(&[run("a"), run("b")])).unwrap();
    let summary = found["comparisons"][0]["summary"].as_str().unwrap();
    let n_values = found["comparisons"][0]["cells"].as_array().unwrap().len();
    assert!(n_values > n_cells && summary.starts_with(&format!("{n_values} values in common")), "{summary}");
}
