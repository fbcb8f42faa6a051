//! What is said must not be more than what was found: noise, intervals that were cut, one device's best beside another's.

use forebay_report::{headline, json, text};
use serde_json::{Value, json};

use crate::chien::{self, Plan, USUAL};
use crate::flat;
use crate::{page_of, plain};

/// The repeats of a cell at these rates, and its median and spread with them.
fn repeats(cell: &mut Value, rates: &[f64]) {
    let sample = cell["samples"][0].clone();
    let images = sample["images"].as_f64().unwrap();
    let at = |rate: &f64| {
        let mut sample = sample.clone();
        sample["wall_s"] = json!(images / rate);
        sample
    };
    cell["samples"] = rates.iter().map(at).collect();
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted[sorted.len() / 2];
    cell["images_per_s"] = json!(middle);
    cell["spread"] = json!((sorted[sorted.len() - 1] - sorted[0]) / 2.0 / middle);
}

fn report(runs: &[forebay_report::NamedRun]) -> Value {
    serde_json::from_str(&json(runs)).unwrap()
}

#[test]
fn a_ratio_is_that_of_the_two_values_beside_it() {
    let (mut before, mut after) = (plain::ingest(USUAL), plain::ingest(USUAL));
    repeats(&mut before["cells"][0], &[6_156.0, 6_100.0, 9_000.0]);
    repeats(&mut after["cells"][0], &[7_460.0, 3_000.0, 7_500.0]);
    let runs = [plain::named("before.json", &before), plain::named("after.json", &after)];
    let found = report(&runs)["comparisons"][0].clone();
    let cell = &found["cells"][0];
    let number = |name: &str| cell[name].as_f64().unwrap();
    assert!((number("after") / number("before") - number("ratio")).abs() < 1e-9, "{cell}");
    assert!((number("before") - (6_156.0_f64 * 6_100.0 * 9_000.0).cbrt()).abs() < 1e-6, "{cell}");
    let method = found["method"].as_str().unwrap();
    assert!(
        method.contains("Values are geometric means of the repeats; the table of each run shows medians."),
        "{method}"
    );
    assert!(flat(&text(&runs)).contains("before, after, images/s, images/s, geometric geometric"), "{}", text(&runs));
}

#[test]
fn an_interval_beyond_the_picture_has_an_arrow_head_and_the_caption_says_so() {
    let (mut before, mut after) = (plain::ingest(USUAL), plain::ingest(USUAL));
    let page = |a: &Value, b: &Value| page_of(&[plain::named("a", a), plain::named("b", b)]);
    assert!(!page(&before, &after).contains("class=\"arrow"));
    repeats(&mut before["cells"][0], &[100.0, 120.0]);
    repeats(&mut after["cells"][0], &[60.0, 200.0]);
    let wide = page(&before, &after);
    assert!(wide.contains("class=\"arrow iv samel\""), "in the comparison");
    assert!(wide.contains("An arrow head marks an interval that extends beyond the axis; the data has its ends."));
    assert!(wide.contains("class=\"arrow iv c0l\""), "in the speed-up");
    assert!(wide.contains("with an arrow head if they extend beyond the axis"));
}

#[test]
fn runs_of_different_kinds_have_no_figure_and_no_method() {
    let runs = [plain::named_text("a", &chien::jsonl(&chien::lines(USUAL))), plain::named("b", &plain::probe())];
    let page = page_of(&runs);
    assert!(page.contains("The runs have no cell in common; there is nothing to compare."));
    assert!(!page.contains("0 comparisons") && !page.contains("id=\"compare-1\""));
    assert!(page.contains(">Figure 4<"), "the first figure after it has its own number");
    let said = text(&runs);
    assert!(said.contains("\n  tiers: hdd: ") && flat(&said).contains(" → none "), "{said}");
}

#[test]
fn generated_data_is_named_where_it_lies() {
    let mut lines = chien::lines(USUAL);
    lines[0]["data"] = "data".into();
    let page = |lines: &[Value]| page_of(&[plain::named_text("run", &chien::jsonl(lines))]);
    let shared = "<dt>generated data in</dt><dd>data in the run&#39;s folder</dd>";
    assert!(page(&lines).contains(shared));
    lines[0]["spec"]["tier"][0] = serde_json::json!({"name": "hdd", "path": "/mnt/hdd"});
    let found = page(&lines);
    assert!(
        !found.contains(shared) && found.contains("/mnt/hdd/forebay-data") && found.contains("data in the run&#39;s")
    );
}

#[test]
fn the_best_of_one_tier_is_not_mixed_with_that_of_another() {
    let mut lines = chien::lines(USUAL);
    lines.truncate(5);
    let found = report(&[plain::named_text("probes", &chien::jsonl(&lines))]);
    let verdict = &found["runs"][0]["verdict"];
    assert_eq!(
        verdict["headline"],
        "Best rates: hdd sequential read 162 MB/s and sequential write 131 MB/s; ssd sequential read 279 MB/s and sequential \
         write 194 MB/s; optane sequential read 1,571 MB/s and sequential write 503 MB/s; lustre sequential read 1,930 MB/s \
         and sequential write 870 MB/s."
    );
    assert!(verdict["findings"][0].as_str().unwrap().starts_with("Fastest: hdd, sequential read"), "{verdict}");
}

#[test]
fn the_quick_scale_is_smaller_only_where_the_study_says_so() {
    let quick = "This is the quick scale";
    let page = |change: &dyn Fn(&mut Value)| {
        let mut lines = chien::lines(USUAL);
        change(&mut lines[0]["spec"]);
        page_of(&[plain::named_text("study", &chien::jsonl(&lines))])
    };
    assert!(page(&|_| {}).contains(quick));
    assert!(!page(&|spec| spec["source"] = Value::Null).contains(quick));
    assert!(!page(&|spec| spec["dataset"][0]["count"] = json!({"quick": 64, "full": 64})).contains(quick));
    let repeats = |spec: &mut Value| {
        spec["dataset"][0]["count"] = json!(64);
        spec["experiment"][1]["repeats"] = json!({"quick": 2, "full": 6});
    };
    assert!(page(&repeats).contains(quick));
}

#[test]
fn a_single_published_value_that_differs_is_not_said_to_agree() {
    let mut lines = chien::lines(USUAL);
    let all = lines[0]["spec"]["reference"].clone();
    let mut said = |references: Value| {
        lines[0]["spec"]["reference"] = references;
        let found = report(&[plain::named_text("study", &chien::jsonl(&lines))]);
        found["runs"][0]["verdict"]["findings"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned()
    };
    assert_eq!(
        said(json!([all[7]])),
        "The one published value that was judged differs: lustre (sequential write, MB/s: 870 against 991.914)."
    );
    assert_eq!(said(json!([all[0]])), "The one published value that was judged agrees within its tolerance.");
    let mut other = all[0].clone();
    other["value"] = json!(300.0);
    let two = said(json!([all[7], other, all[2]]));
    assert!(two.starts_with("1 of 3 published values agree within their tolerance; these differ: lustre ("), "{two}");
}

#[test]
fn values_that_an_emulation_was_built_from_are_calibrated_and_never_agree() {
    let mut lines = chien::lines(USUAL);
    let all = lines[0]["spec"]["reference"].clone();
    let found = |lines: &mut Vec<Value>, put_in: &[usize], free: &[usize]| {
        let with = |i: &usize, calibrated: Value| {
            let mut reference = all[*i].clone();
            reference["calibrated"] = calibrated;
            reference
        };
        let put_in = put_in.iter().map(|i| with(i, json!("the device has this rate")));
        let free = free.iter().map(|i| with(i, Value::Null));
        lines[0]["spec"]["reference"] = put_in.chain(free).collect();
        report(&[plain::named_text("study", &chien::jsonl(lines))])["runs"][0].clone()
    };
    let said =
        |run: &Value| run["verdict"]["findings"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    let run = found(&mut lines, &[0, 7], &[2]);
    assert_eq!(
        said(&run),
        "The one published value that was judged and is not calibrated agrees within its tolerance. 2 are calibrated: our \
         values follow from what the emulation was given and prove nothing; this one was not reached: lustre (sequential \
         write, MB/s: 870 against 991.914)."
    );
    let words: Vec<&str> =
        run["references"].as_array().unwrap().iter().map(|row| row["agreement"].as_str().unwrap()).collect();
    assert_eq!(words, ["calibrated", "calibrated, not reached", "agrees"]);
    assert_eq!(run["references"][0]["note"], "Calibrated: the device has this rate.");
    let only = said(&found(&mut lines, &[0], &[]));
    assert!(only.starts_with("No published value could be judged that is not calibrated. 1 is calibrated: "), "{only}");
    for tier in lines[0]["tiers"].as_array_mut().unwrap() {
        tier["kind"] = json!("device");
    }
    let real = found(&mut lines, &[0, 7], &[2]);
    assert!(said(&real).starts_with("2 of 3 published values agree within their tolerance"), "{}", said(&real));
}

#[test]
fn ranges_words_and_reasons_of_published_values_are_said() {
    let mut lines = chien::lines(USUAL);
    let reference = |value: f64, to: f64| {
        json!({
            "experiment": "ingest", "metric": "efficiency", "at": {"tier": "ssd", "threads": 8, "read_only": false},
            "value": value, "to": to, "within": 0.05, "says": "unfavorable", "because": "The cores decide.", "source": "V.A",
        })
    };
    let mut said = |value: f64, to: f64| {
        lines[0]["spec"]["reference"] = json!([reference(value, to)]);
        lines[0]["spec"]["limits"] = json!(["No Lustre."]);
        let runs = [plain::named_text("study", &chien::jsonl(&lines))];
        assert!(page_of(&runs).contains("What this study does not show") && page_of(&runs).contains("No Lustre."));
        assert!(text(&runs).contains("not shown: No Lustre."));
        let run = report(&runs)["runs"][0].clone();
        assert_eq!(run["limits"], json!(["No Lustre."]));
        let findings = run["verdict"]["findings"].as_array().unwrap().clone();
        findings[findings.len() - 2].as_str().unwrap().to_owned()
    };
    let differs = said(0.01, 0.5);
    assert!(differs.contains("differs from the published value, unfavorable (V.A). The cores decide."), "{differs}");
    let agrees = said(0.01, 0.99);
    assert!(agrees.contains("agrees with the published value, unfavorable"), "{agrees}");
}

#[test]
fn a_gain_within_the_noise_is_called_no_clear_gain() {
    let mut record = plain::ingest(Plan { repeats: 3, ..USUAL });
    record["cells"].as_array_mut().unwrap().truncate(2);
    repeats(&mut record["cells"][0], &[900.0, 1_000.0, 1_100.0]);
    repeats(&mut record["cells"][1], &[800.0, 1_200.0, 1_400.0]);
    let runs = [plain::named("noisy", &record)];
    let findings = report(&runs)["runs"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains("no clear gain over 1 thread (1.20×, 0."), "{findings}");
    assert!(findings.contains("at most roughly 1,200 ± 25 % images/s"), "{findings}");
    assert!(findings.contains("its repeats vary so much that another cell may be faster"), "{findings}");
    assert!(page_of(&runs).contains("No clear gain; the largest speed-up is 1.20× (0."));
    repeats(&mut record["cells"][1], &[1_990.0, 2_000.0, 2_010.0]);
    let findings = report(&[plain::named("clear", &record)])["runs"][0]["verdict"]["findings"].to_string();
    assert!(findings.contains("2.00× the rate of 1 thread") && !findings.contains("roughly"), "{findings}");
}

#[test]
fn levels_that_are_no_scale_stand_side_by_side() {
    let mut lines = chien::lines(USUAL);
    lines[0]["spec"]["figure"] = json!([
        {"id": "readers", "title": "By readers", "kind": "speed-up", "experiment": "ingest", "metrics": ["images_per_s"],
         "x": "readers", "series": "tier"},
    ]);
    lines[0]["spec"]["experiment"][1]["factors"] = json!({"tier": ["hdd", "ssd"], "readers": [1, 0, 2]});
    let mut cells = lines.split_off(5);
    cells.truncate(4);
    for (cell, (tier, readers)) in cells.iter_mut().zip([("hdd", 1), ("hdd", 0), ("hdd", 2), ("ssd", 1)]) {
        cell["factors"] = json!({"tier": tier, "readers": readers});
        cell["id"] = json!(format!("ingest/readers={readers}/tier={tier}"));
    }
    lines.extend(cells);
    let page = page_of(&[plain::named_text("study", &chien::jsonl(&lines))]);
    let figure = &page[page.find("<figure id=\"readers\"").unwrap()..];
    let figure = &figure[..figure.find("</figure>").unwrap()];
    assert!(figure.contains("levels are in the order of the study"), "{figure}");
    assert!(!figure.contains("both axes") && !figure.contains("class=\"ideal\""), "{figure}");
    let leads = figure.matches("class=\"lead\"").count();
    assert_eq!(leads, 1, "hdd's, and none from the single point of ssd across the picture");
    assert!(figure.contains("Speed-up over 1 reader<"), "{figure}");
}

#[test]
fn what_takes_the_rest_of_an_accelerators_time_is_said_where_it_is_much() {
    let mut record: Value = serde_json::from_str(include_str!("../fixtures/train.json")).unwrap();
    let mut said = |copy_s: f64| {
        let cell = &mut record["cells"][0];
        (cell["wall_s"], cell["validate_s"], cell["wait_s"]) = (json!(110.0), json!(10.0), json!(2.0));
        (cell["compute_s"], cell["copy_s"], cell["other_s"]) = (json!(98.0 - copy_s), json!(copy_s), json!(0.0));
        cell["au_epoch"] = json!((98.0 - copy_s) / 100.0);
        cell["samples"] = json!([]);
        headline(&[plain::named("run.json", &record)])
    };
    let wanted = "The accelerator is the limit: AU is 79 %; copying took 19 %.";
    assert_eq!(said(19.0), wanted);
    assert_eq!(said(4.0), "The accelerator is the limit: AU is 94 %.");
}
