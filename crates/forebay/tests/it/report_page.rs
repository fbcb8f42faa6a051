//! `forebay report` as a page, as JSON and as CSV.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::dir::Dir;

/// A folder with the records that the report's own tests are made of: `study/`, `ingest.json`, `probe.json`.
fn with_records() -> Dir {
    let dir = Dir::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-report/tests/fixtures");
    for (from, to) in [
        ("chien/record.jsonl", "study/record.jsonl"),
        ("chien/samples.csv", "study/samples.csv"),
        ("ingest.json", "ingest.json"),
        ("probe.json", "probe.json"),
    ] {
        dir.write(to, fs::read(fixtures.join(from)).unwrap());
    }
    dir
}

fn text(dir: &Dir, name: &str) -> String {
    String::from_utf8(dir.read(name)).unwrap()
}

#[test]
fn html_writes_one_page_with_every_figure_of_the_study() {
    let dir = with_records();
    assert_eq!(dir.met("report study --html page.html"), "", "the page is the report");
    let page = text(&dir, "page.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for id in ["table-1", "fig-4", "fig-5", "speed-up-read", "speed-up-decode", "efficiency", "workers", "trace"] {
        assert!(page.contains(&format!("<figure id=\"{id}\"")), "{id}");
    }
    assert!(page.contains("disk.vda") || page.contains("vda read"), "the series beside the record is shown");
    assert!(!page.contains("kept no per-second series"));
}

#[test]
fn the_record_of_a_study_may_be_named_itself() {
    let dir = with_records();
    dir.met("report study/record.jsonl --html file.html");
    dir.met("report study --html folder.html");
    let page = text(&dir, "file.html").replace("study/record.jsonl", "study");
    assert_eq!(page, text(&dir, "folder.html"));
}

#[test]
fn a_study_without_its_series_is_shown_and_says_so() {
    let dir = with_records();
    fs::remove_file(dir.path("study/samples.csv")).unwrap();
    dir.met("report study --html page.html");
    assert!(text(&dir, "page.html").contains("The run kept no per-second series."));
    dir.write("study/samples.csv", "hello\n");
    let said = dir.refused("report study --html page.html");
    assert!(said.starts_with("forebay: cannot read study/samples.csv: "), "{said}");
}

#[test]
fn without_a_file_the_tables_are_printed() {
    let dir = with_records();
    let printed = dir.met("report study");
    assert!(
        printed.starts_with("Characterizing deep-learning I/O workloads: the micro-benchmark\n\nStorage limits hdd;")
    );
    assert!(printed.contains("11 of 12 published values agree"), "{printed}");
    let cells = printed.lines().filter(|line| line.contains("read only, 8 threads") && line.contains("cold")).count();
    assert_eq!(cells, 4, "{printed}");
    assert!(dir.met("report probe.json").contains("random read"));
}

#[test]
fn json_and_csv_go_to_files_or_stdout() {
    let dir = with_records();
    let json: Value = serde_json::from_str(&dir.met("report study ingest.json --json -")).unwrap();
    assert_eq!(json["schema"], "forebay-report/1");
    assert_eq!(json["runs"][0]["figures"][1]["data"][0]["tier"], "hdd");
    assert_eq!(json["comparisons"][0]["summary"], "The runs have no cell in common: nothing can be compared.");
    let printed = dir.met("report ingest.json --json out.json --csv out.csv");
    assert!(printed.starts_with("photos: 1,024 samples"), "the table is still printed: {printed}");
    assert_eq!(dir.json("out.json")["runs"][0]["cells"].as_array().unwrap().len(), 4);
    let csv = text(&dir, "out.csv");
    assert!(csv.starts_with("run,experiment,threads,metric,value,spread,n,cache,error,repeat_1,"), "{csv}");
    assert_eq!(dir.met("report ingest.json --csv -"), csv);
    let both = dir.refused("report ingest.json --csv - --json -");
    assert_eq!(both, "forebay: --json - and --csv - cannot both have stdout\n");
}

#[test]
fn two_runs_are_compared_in_words_and_on_the_page() {
    let dir = with_records();
    let faster = text(&dir, "ingest.json").replace("\"n_cores\": 2", "\"n_cores\": 64");
    dir.write("other.json", faster);
    let printed = dir.met("report ingest.json other.json");
    assert!(
        printed.contains("other beside ingest\n  cores: 64, not 2\n\n4 cells in common: 4 within noise.\n"),
        "{printed}"
    );
    dir.met("report ingest.json other.json --html page.html");
    let page = text(&dir, "page.html");
    assert!(page.contains("Comparison of 2 runs") && page.contains("noise: the interval includes 1"));
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_done() {
    let dir = with_records();
    let said = dir.refused("report ingest.json --html gone/page.html --csv out.csv");
    assert_eq!(said, "forebay: cannot write gone/page.html: No such file or directory (os error 2)\n");
    assert!(!dir.path("out.csv").exists());
    assert!(dir.refused("report ingest.json --html -").contains("--html: give a file"));
    let former = "former";
    dir.write("page.html", former);
    dir.refused("report gone.json --html page.html");
    assert_eq!(text(&dir, "page.html"), former, "a report that cannot be made leaves the former");
}

#[test]
fn open_hands_the_page_to_the_desktop_or_says_where_it_is() {
    let dir = with_records();
    dir.write("bin/xdg-open", "#!/bin/sh\necho \"$1\" > opened\n");
    fs::set_permissions(dir.path("bin/xdg-open"), fs::Permissions::from_mode(0o755)).unwrap();
    let line = "report ingest.json --html page.html --open";
    let path = format!("{}:/usr/bin:/bin", dir.path("bin").display());
    let opened = dir.command(line).env("PATH", path).output().unwrap();
    assert_eq!(opened.status.code(), Some(0));
    assert_eq!(text(&dir, "opened"), "page.html\n");

    let without = dir.command(line).env("PATH", dir.path("study")).output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    let said = String::from_utf8(without.stderr).unwrap();
    assert!(said.starts_with("forebay: cannot start xdg-open; the page is in page.html: "), "{said}");
    assert!(dir.refused("report ingest.json --open").contains("--html"), "there is nothing to open");
}
