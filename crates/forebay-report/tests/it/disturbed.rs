//! Cells that other processes disturbed are shown with a mark and conclude nothing; cells that were measured once conclude little.

use forebay_report::{csv, text};
use serde_json::{Value, json};

use crate::chien::{self, Plan, USUAL};
use crate::flat;
use crate::train::{report, study};
use crate::{mini, page_of, plain};

const CAUSE: &str = "other processes used 40 % of the processors";

fn disturb(cell: &mut Value) {
    cell["disturbed"] = json!({"repeats": 2, "taken": "processors", "share": 0.4});
}

/// The usual study, with the cells disturbed whose ids have a part.
fn disturbed(part: &str) -> Vec<Value> {
    let mut lines = chien::lines(USUAL);
    for line in lines.iter_mut().filter(|line| line["id"].as_str().is_some_and(|id| id.contains(part))) {
        disturb(&mut line["ingest"]);
    }
    lines
}

#[test]
fn no_sentence_rests_on_a_disturbed_cell() {
    let said = |lines: &[Value]| report(&[study(lines)])["runs"][0]["verdict"].clone();
    let (usual, without) = (said(&chien::lines(USUAL)), said(&disturbed("/tier=hdd")));
    let names = |verdict: &Value| format!("{}{}", verdict["headline"], verdict["findings"]).contains("hdd");
    assert!(names(&usual), "{usual}");
    let sentences =
        without["findings"].as_array().unwrap().iter().filter(|said| !said.to_string().contains("published values"));
    assert!(
        sentences.clone().count() > 3 && sentences.clone().all(|said| !said.to_string().contains("hdd")),
        "{without}"
    );
    assert!(!without["headline"].to_string().contains("hdd"), "{without}");
    assert!(without["findings"].to_string().contains("disturbed"), "{without}");
    let caveat = without["caveats"].to_string();
    assert!(caveat.contains(" cells were disturbed and are not judged: hdd, ") && caveat.contains(CAUSE), "{caveat}");
    let all = said(&disturbed("ingest/"));
    assert!(!all["headline"].to_string().contains("limit"), "{all}");
}

#[test]
fn the_mark_stands_wherever_the_number_is_shown() {
    let id = "ingest/read_only=false/threads=8/tier=optane";
    let run = [study(&disturbed(id))];
    let found = report(&run);
    let cells = found["runs"][0]["cells"].as_array().unwrap();
    let marked: Vec<&Value> = cells.iter().filter(|cell| !cell["disturbed"].is_null()).collect();
    assert_eq!(marked.len(), 1);
    assert_eq!(marked[0]["disturbed"], format!("2 of 5 repeats: {CAUSE}"));
    assert!(marked[0]["images_per_s"].is_number(), "programs get the number itself");
    let shown = text(&run);
    assert!(shown.lines().any(|line| line.contains("optane, decode, 8 threads ") && line.contains("* ")), "{shown}");
    assert!(flat(&shown).contains("* Disturbed by other processes; not judged."), "{shown}");
    let table = csv(&run);
    assert!(table.lines().next().unwrap().contains(",disturbed,"), "{table}");
    assert!(!csv(&[chien::run("usual", USUAL)]).lines().next().unwrap().contains("disturbed"));
    let page = page_of(&run);
    assert!(
        page.contains("class=\"mark faint\"") && page.contains(&format!("* disturbed: {CAUSE}")),
        "the figures' marks"
    );
    assert!(
        page.contains("*</td>") && page.contains("Drawn faint: optane, "),
        "the table of cells, and what figures remark"
    );
    assert!(!page_of(&[chien::run("usual", USUAL)]).contains("Drawn faint"));
}

#[test]
fn a_caption_is_of_cells_that_nothing_disturbed() {
    let mut record = plain::ingest(USUAL);
    let of_bars = |record: &Value| {
        let found = report(&[plain::named("ingest", record)]);
        let figures = found["runs"][0]["figures"].as_array().unwrap().clone();
        let bars = figures.into_iter().find(|figure| figure["kind"] == "bars").unwrap();
        (bars["caption"].as_str().unwrap().to_owned(), bars["remarks"].to_string())
    };
    let (usual, _) = of_bars(&record);
    assert!(usual.starts_with("Highest: ") && usual.contains("8 threads."), "{usual}");
    disturb(&mut record["cells"][3]);
    let (caption, remarks) = of_bars(&record);
    assert!(caption.starts_with("Highest: ") && !caption.contains("8 threads."), "{caption}");
    assert!(remarks.contains("Drawn faint: 8 threads (other processes"), "{remarks}");
}

#[test]
fn a_single_bar_has_one_axis_and_values_far_apart_are_marks() {
    let of_bars = |record: &Value| {
        let runs = [plain::named("ingest", record)];
        let figures = report(&runs)["runs"][0]["figures"].as_array().unwrap().clone();
        let bars = figures.into_iter().find(|figure| figure["kind"] == "bars").unwrap();
        (bars["remarks"].to_string(), bars["caption"].as_str().unwrap().to_owned())
    };
    let mut record = plain::ingest(USUAL);
    assert!(!of_bars(&record).0.contains("data table"), "images/s and MB/s are proportional");
    record["cells"].as_array_mut().unwrap().truncate(1);
    assert!(of_bars(&record).0.contains("is in the data table."), "{}", of_bars(&record).0);
    let mut record = plain::ingest(USUAL);
    record["cells"][0] = plain::ingest(Plan { speed: 0.01, ..USUAL })["cells"][0].clone();
    assert!(of_bars(&record).1.contains("The axis is logarithmic: marks show values"), "{}", of_bars(&record).1);
}

#[test]
fn a_comparison_with_a_disturbed_cell_is_not_judged() {
    let (mut before, after) = (plain::ingest(USUAL), plain::ingest(Plan { speed: 1.5, ..USUAL }));
    disturb(&mut before["cells"][0]);
    let runs = [plain::named("before.json", &before), plain::named("after.json", &after)];
    let found = report(&runs)["comparisons"][0].clone();
    assert_eq!(found["cells"][0]["word"], "not judged: disturbed");
    assert_eq!(found["cells"][1]["word"], "faster");
    let summary = found["summary"].as_str().unwrap();
    assert!(summary.ends_with("3 faster and 1 disturbed and not judged."), "{summary}");
    assert!(found["method"].as_str().unwrap().contains("3 comparisons were made"), "{}", found["method"]);
    let said = text(&runs);
    assert!(flat(&said).contains(&format!("1 cell was disturbed and is not judged: 1 thread ({CAUSE})")), "{said}");
}

/// A record of cells that were measured once, at rates over that of the first.
fn once(ratios: [f64; 4]) -> Value {
    let mut record = plain::ingest(Plan { repeats: 1, ..USUAL });
    for (cell, ratio) in record["cells"].as_array_mut().unwrap().iter_mut().zip(ratios) {
        cell["images_per_s"] = json!(1_000.0 * ratio);
        let images = cell["samples"][0]["images"].as_f64().unwrap();
        cell["samples"][0]["wall_s"] = json!(images / (1_000.0 * ratio));
    }
    record
}

#[test]
fn cells_that_were_measured_once_are_told_apart_by_more_than_such_cells_vary() {
    let findings =
        |record: &Value| report(&[plain::named("once", record)])["runs"][0]["verdict"]["findings"].to_string();
    let little = findings(&once([1.0, 1.02, 1.08, 1.05]));
    assert!(little.contains("no clear gain over 1 thread (1.08×, measured once)"), "{little}");
    assert!(little.contains("so another cell may be faster"), "{little}");
    let much = findings(&once([1.0, 1.5, 3.0, 2.0]));
    assert!(much.contains("3.00× the rate of 1 thread") && !much.contains("may be faster"), "{much}");
    // A cell whose repeats lie 60 % apart says how far single ones may.
    let mut wide = once([1.0, 1.5, 1.4, 1.3]);
    let cell = &mut wide["cells"][3];
    cell["samples"] = json!([cell["samples"][0], cell["samples"][0]]);
    cell["spread"] = json!(0.3);
    assert!(findings(&wide).contains("no clear gain over 1 thread (1.50×, measured once)"), "{}", findings(&wide));
}

#[test]
fn run_times_that_were_measured_once_leave_open_what_chance_may_have_done() {
    let headline = |spread: f64| {
        let mut lines = mini::lines();
        for (i, line) in lines.iter_mut().filter(|line| line["train"].is_object()).enumerate() {
            let train = &mut line["train"];
            let first = train["samples"][0].clone();
            train["samples"] = json!([first]);
            train["spread"] = if i == 0 { json!(spread) } else { Value::Null };
            if i == 0 {
                train["samples"] = json!([train["samples"][0], train["samples"][0]]);
            }
        }
        let id = "mini-app/prefetch=1/threads=1/tier=hdd";
        let slow = lines.iter_mut().find(|line| line["id"] == id).unwrap();
        for part in ["wall_s", "wait_s"] {
            slow["train"]["samples"][0][part] = json!(slow["train"]["samples"][0][part].as_f64().unwrap() + 2.5);
        }
        report(&[study(&lines)])["runs"][0]["verdict"]["headline"].as_str().unwrap().to_owned()
    };
    assert!(headline(0.2).ends_with(" %, which is within the noise of single runs."), "{}", headline(0.2));
    assert!(headline(0.01).starts_with("Prefetch does not hide I/O everywhere: "), "{}", headline(0.01));
}

#[test]
fn a_published_value_just_outside_its_tolerance_is_not_missed_by_a_cell_that_was_measured_once() {
    let verdict_on = |lines: &[Value]| {
        let found = report(&[study(lines)]);
        let rows = found["runs"][0]["references"].as_array().unwrap().clone();
        let row =
            rows.into_iter().find(|row| row["at"] == "lustre" && row["metric"].to_string().contains("write")).unwrap();
        (row["agreement"].as_str().unwrap().to_owned(), found["runs"][0]["verdict"]["findings"].to_string())
    };
    let mut lines = chien::lines(USUAL);
    let place = |lines: &[Value], id: &str| lines.iter().position(|line| line["id"] == id).unwrap();
    let (probe, other) =
        (place(&lines, "table-1/tier=lustre"), place(&lines, "ingest/read_only=false/threads=1/tier=hdd"));
    for cell in lines[probe]["probe"].as_array_mut().unwrap() {
        cell["samples"].as_array_mut().unwrap().truncate(1);
        cell["spread"] = Value::Null;
    }
    assert_eq!(verdict_on(&lines).0, "differs", "2.3 % outside, where repeats lie 2 % apart");
    lines[other]["ingest"]["spread"] = json!(0.03);
    let (word, findings) = verdict_on(&lines);
    assert_eq!(word, "inconclusive (one repeat)");
    assert!(findings.contains("; 1 measured once (inconclusive)."), "{findings}");
    disturb(&mut lines[probe]["probe"][0]);
    assert_eq!(verdict_on(&lines).0, "not judged: disturbed");
}
