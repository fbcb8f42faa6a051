//! What a batch made ahead is worth: the published finding, whether ours agrees, and the excess without.

use serde_json::{Value, json};

use crate::chien::{self, THREADS, TIERS};
use crate::train::{figure, number, report, rows, study};
use crate::{mini, page_of};

/// The cell of a study's record with an id.
fn line<'a>(lines: &'a mut [Value], id: &str) -> &'a mut Value {
    lines.iter_mut().find(|line| line["id"] == id).unwrap_or_else(|| panic!("no cell {id}"))
}

/// Makes a cell's run longer by so many seconds of waiting.
fn delay(cell: &mut Value, seconds: f64) {
    let add = |run: &mut Value| {
        for part in ["wall_s", "wait_s"] {
            run[part] = json!(number(&run[part]) + seconds);
        }
    };
    add(&mut cell["train"]);
    cell["train"]["samples"].as_array_mut().unwrap().iter_mut().for_each(add);
}

#[test]
fn the_published_finding_is_stated_with_whether_ours_agrees() {
    let found = report(&[mini::run()]);
    let verdict = &found["runs"][0]["verdict"];
    assert_eq!(
        verdict["headline"],
        "With prefetch the run time is the same for every device and thread count, within 3.6 %, which the emulated step of \
         0.62 s decides (the slowest batch takes 0.50 s)."
    );
    let said = "Published: with prefetch the run time is the same for every device and thread count. Ours agrees by \
                construction: with prefetch the run times of 16 cells are within 3.6 % of each other (12.5 to 12.9 s). It could \
                not come out otherwise: the emulated step of 0.62 s, an input, is longer than the slowest batch takes (0.50 s, \
                hdd, 1 thread). A faster accelerator would wait.";
    assert_eq!(verdict["findings"][0], said);
    assert!(figure(&found, "fig-6")["caption"].as_str().unwrap().starts_with(said));
    let cost = "“mini-app”: Without prefetch runs take 0.66 s more (5.3 %; optane, 8 threads) to 9.48 s more (73 %; hdd, 1 thread)";
    assert!(verdict["findings"].to_string().contains(cost), "{}", verdict["findings"]);
}

#[test]
fn cells_whose_run_time_is_not_the_same_are_named() {
    let mut lines = mini::lines();
    delay(line(&mut lines, "mini-app/prefetch=1/threads=1/tier=hdd"), 4.0);
    delay(line(&mut lines, "mini-app/prefetch=1/threads=1/tier=lustre"), 2.0);
    let verdict = report(&[study(&lines)])["runs"][0]["verdict"].clone();
    let said = verdict["findings"][0].as_str().unwrap();
    assert!(
        said.contains("Ours differs: with prefetch the run times of 16 cells are within 36 % of each other"),
        "{said}"
    );
    let named = "more than 10 % longer than the shortest: hdd, 1 thread (16.9 s) and lustre, 1 thread (14.8 s). It should be \
                 the same: the emulated step of 0.62 s";
    assert!(said.contains(named), "{said}");
    assert_eq!(verdict["headline"], "Prefetch does not hide I/O everywhere: with it run times still differ by 36 %.");
}

#[test]
fn a_difference_that_is_the_first_batch_alone_is_explained() {
    let mut lines = mini::lines();
    let cell = line(&mut lines, "mini-app/prefetch=1/threads=1/tier=hdd");
    delay(cell, 4.0);
    let first = |run: &mut Value| run["first_wait_s"] = json!(number(&run["first_wait_s"]) + 4.0);
    first(&mut cell["train"]);
    cell["train"]["samples"].as_array_mut().unwrap().iter_mut().for_each(first);
    let verdict = report(&[study(&lines)])["runs"][0]["verdict"].clone();
    let said = verdict["findings"][0].as_str().unwrap();
    assert!(
        said.contains("Ours differs: ") && said.contains("hdd, 1 thread (16.9 s); without the wait for the"),
        "{said}"
    );
    let headline = verdict["headline"].as_str().unwrap();
    assert!(
        headline.starts_with("With prefetch run times differ by 36 %; without the wait for the first batch"),
        "{headline}"
    );
}

#[test]
fn a_finding_is_only_called_published_where_the_study_has_a_source() {
    let mut lines = mini::lines();
    lines[0]["spec"]["source"] = Value::Null;
    let findings = report(&[study(&lines)])["runs"][0]["verdict"]["findings"].clone();
    assert!(findings[0].as_str().unwrap().starts_with("With prefetch the run times of 16 cells are"), "{findings}");
    assert!(!findings.to_string().contains("Published:"), "{findings}");
}

#[test]
fn the_excess_is_the_difference_of_the_two_run_times() {
    let lines = mini::lines();
    let found = figure(&report(&[study(&lines)]), "fig-6");
    assert_eq!(rows(&found).len(), TIERS.len() * THREADS.len());
    for row in rows(&found) {
        let wall = |prefetch: u64| {
            let of = |cell: &&Value| {
                cell["experiment"] == "mini-app"
                    && cell["factors"] == json!({"prefetch": prefetch, "threads": row["threads"], "tier": row["tier"]})
            };
            number(&lines[1..].iter().find(of).unwrap()["train"]["wall_s"])
        };
        assert_eq!((number(&row["with_s"]), number(&row["without_s"])), (wall(1), wall(0)));
        assert_eq!(number(&row["excess_s"]), wall(0) - wall(1));
        assert_eq!(number(&row["excess_share"]), wall(0) / wall(1) - 1.0);
    }
}

#[test]
fn a_caption_of_the_study_is_not_said_twice() {
    let mut lines = mini::lines();
    lines[0]["spec"]["figure"][0]["caption"] = json!("The paper found them the same.");
    let caption = figure(&report(&[study(&lines)]), "fig-6")["caption"].clone();
    let said = "The paper found them the same. Ours agrees by construction: with prefetch the run times of 16";
    assert!(caption.as_str().unwrap().starts_with(said), "{caption}");
}

#[test]
fn an_excess_needs_both_runs_and_says_when_one_is_missing() {
    let mut lines = mini::lines();
    line(&mut lines, "mini-app/prefetch=0/threads=2/tier=ssd")["error"] = json!("no space left");
    lines.retain(|line| line["id"] != "mini-app/prefetch=0/threads=4/tier=ssd");
    line(&mut lines, "mini-app/prefetch=1/threads=8/tier=ssd")["error"] = json!("broken");
    let run = study(&lines);
    let found = figure(&report(std::slice::from_ref(&run)), "fig-6");
    assert!(found["remarks"].to_string().contains("3 cells not measured both with and without prefetch."), "{found}");
    let ssd: Vec<&Value> = rows(&found).iter().filter(|row| row["tier"] == "ssd").collect();
    assert_eq!((&ssd[1]["excess_s"], &ssd[1]["error"]), (&Value::Null, &json!("no space left")));
    assert_eq!(ssd[2]["excess_s"], Value::Null);
    assert!(page_of(&[run]).contains("failed: broken"));
}

/// The study with another number of batches ahead beside that of some cells.
fn with_more(lines: &[Value], more: u64) -> Vec<Value> {
    let mut all = lines.to_vec();
    for cell in lines.iter().filter(|line| line["experiment"] == "mini-app" && line["factors"]["prefetch"] == 1) {
        let mut cell = cell.clone();
        cell["id"] = json!(cell["id"].as_str().unwrap().replace("prefetch=1", &format!("prefetch={more}")));
        cell["factors"]["prefetch"] = json!(more);
        all.push(cell);
    }
    all
}

#[test]
fn of_several_numbers_of_batches_ahead_the_smallest_is_the_bar_and_what_is_said() {
    let mut lines = with_more(&mini::lines(), 4);
    delay(line(&mut lines, "mini-app/prefetch=1/threads=1/tier=hdd"), 4.0);
    delay(line(&mut lines, "mini-app/prefetch=4/threads=1/tier=hdd"), 5.0);
    let found = report(&[study(&lines)]);
    let fig = figure(&found, "fig-6");
    assert_eq!(rows(&fig).len(), TIERS.len() * THREADS.len());
    assert!(fig["caption"].as_str().unwrap().contains("Solid bars are run times with prefetch 1;"), "{fig}");
    assert!(fig["remarks"].to_string().contains("Runs with prefetch 4 are not drawn here"), "{}", fig["remarks"]);
    let verdict = &found["runs"][0]["verdict"];
    let said = verdict["findings"][0].as_str().unwrap();
    assert!(said.contains("Ours differs: with prefetch 1 the run times of 16 cells are within 36 %"), "{said}");
    assert!(said.contains("longer than the shortest: hdd, 1 thread (16.9 s). It should"), "{said}");
    assert!(verdict["findings"].to_string().contains(" than with prefetch 1: the cost of I/O."), "{verdict}");
}

#[test]
fn the_headline_names_the_factors_that_vary() {
    let mut lines = mini::lines();
    lines.retain(|line| line["experiment"] != "mini-app" || line["factors"]["threads"] == 8);
    for cell in lines.iter_mut().filter(|line| line["experiment"] == "mini-app") {
        cell["factors"].as_object_mut().unwrap().remove("threads");
    }
    let headline = report(&[study(&lines)])["runs"][0]["verdict"]["headline"].clone();
    let said = headline.as_str().unwrap();
    assert!(said.starts_with("With prefetch the run time is the same for every device, within"), "{said}");
}

#[test]
fn without_runs_without_prefetch_there_is_no_excess_and_nothing_is_hatched() {
    let mut lines = with_more(&mini::lines(), 2);
    lines.retain(|line| line["experiment"] != "mini-app" || line["factors"]["prefetch"] != 0);
    let missing = "No cell of this figure was trained both with and without prefetch.";
    let run = study(&lines);
    let found = figure(&report(std::slice::from_ref(&run)), "fig-6");
    assert!(found["remarks"].to_string().contains(missing), "{}", found["remarks"]);
    let caption = found["caption"].as_str().unwrap();
    assert!(caption.ends_with("Bars are run times with prefetch 1.") && !caption.contains("atched"), "{caption}");
    let page = page_of(&[run]);
    let fig = &page[page.find("<figure id=\"fig-6\"").unwrap()..];
    assert!(!fig[..fig.find("</figure>").unwrap()].contains("longer without prefetch"));
    // As a setting, prefetch is no factor of the cells.
    lines.retain(|line| line["factors"]["prefetch"] != 2);
    for cell in lines.iter_mut().filter(|line| line["experiment"] == "mini-app") {
        cell["factors"].as_object_mut().unwrap().remove("prefetch");
    }
    let found = figure(&report(&[study(&lines)]), "fig-6");
    assert_eq!(rows(&found).len(), TIERS.len() * THREADS.len());
    assert_eq!(found["remarks"], json!([missing]));
}

#[test]
fn a_study_of_ingest_and_training_answers_both() {
    let mut lines = mini::lines();
    let ingest = chien::lines(chien::USUAL).into_iter().find(|line| line["step"] == "ingest").unwrap();
    lines.push(ingest);
    let headline = report(&[study(&lines)])["runs"][0]["verdict"]["headline"].clone();
    assert_eq!(
        headline,
        "Storage is the limit: the workers spend most of their time reading. With prefetch the run time is the same for every \
         device and thread count, within 3.6 %, which the emulated step of 0.62 s decides (the slowest batch takes 0.50 s)."
    );
}

#[test]
fn trained_networks_agree_without_reserve_and_short_steps_are_said_to_decide() {
    let mut lines = mini::lines();
    for line in lines.iter_mut().filter(|line| line["train"].is_object()) {
        line["train"]["accelerator"] = Value::Null;
    }
    let said = report(&[study(&lines)])["runs"][0]["verdict"].clone();
    assert!(said["findings"][0].as_str().unwrap().ends_with("(12.5 to 12.9 s)."), "{said}");
    let mut lines = mini::lines();
    let slow = line(&mut lines, "mini-app/prefetch=0/threads=1/tier=hdd");
    delay(slow, 8.0);
    let said = report(&[study(&lines)])["runs"][0]["verdict"]["findings"][0].as_str().unwrap().to_owned();
    assert!(said.contains("Ours agrees: ") && said.contains("is shorter than the slowest batch takes (0.9"), "{said}");
}
