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
    let printed = dir.met("report study --html page.html");
    assert!(printed.starts_with("page.html\nStorage limits hdd;") && printed.lines().count() == 2, "{printed}");
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
    for broken in [&b"hello\n"[..], b"\xff\xfe\n\n"] {
        dir.write("study/samples.csv", broken);
        let ran = dir.run("report study --html page.html");
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("forebay: cannot read study/samples.csv: "), "{}", ran.stderr);
        let page = text(&dir, "page.html");
        assert!(page.contains("The per-second series is not shown: cannot read study/samples.csv: "));
        assert!(page.contains("<figure id=\"fig-4\""), "the rest is there");
    }
}

#[test]
fn what_is_read_is_never_written_over() {
    let dir = with_records();
    let before = dir.tree("study");
    let record = dir.read("ingest.json");
    let said = dir.refused("report study --html study/record.jsonl");
    let read_only = "it belongs to the run study\nhint: choose another path";
    assert_eq!(said, format!("forebay: cannot write study/record.jsonl: {read_only}\n"));
    for line in [
        "report study --csv study/samples.csv",
        "report study --json study/../study/plan.toml",
        "report study/record.jsonl --csv study/samples-2.csv",
        "report study/record.jsonl --csv ./study/record.jsonl",
        "report study --html study/environment.json",
        "report study ingest.json --json ingest.json --force",
    ] {
        let said = dir.refused(line);
        assert!(said.contains("it belongs to the run ") || said.contains("it is the input "), "{line}: {said}");
    }
    std::os::unix::fs::symlink("study/record.jsonl", dir.path("link.html")).unwrap();
    assert!(dir.refused("report study --html link.html").contains("it belongs to the run "));
    assert_eq!(
        dir.refused("report ingest.json --json out --csv ./out"),
        "forebay: --json and --csv cannot both be written to ./out\n"
    );
    assert_eq!(dir.tree("study"), before);
    assert_eq!(dir.read("ingest.json"), record);
    dir.met("report study --html study/report.html --json /dev/null --csv /dev/null");
}

#[test]
fn a_full_disk_leaves_the_former_page_and_nothing_beside_it() {
    let dir = with_records();
    dir.write("out/page.html", "former");
    // No file may grow beyond a block of 512 bytes.
    let line = "ulimit -f 1; trap '' XFSZ; exec \"$0\" report ingest.json --html out/page.html --force";
    let bin = dir.command("").get_program().to_owned();
    let ran = std::process::Command::new("sh").arg("-c").arg(line).arg(bin).current_dir(dir.path("")).output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(said.starts_with("forebay: cannot write out/page.html: "), "{said}");
    assert_eq!(text(&dir, "out/page.html"), "former");
    assert_eq!(fs::read_dir(dir.path("out")).unwrap().count(), 1);
}

#[test]
fn without_a_file_the_tables_are_printed() {
    let dir = with_records();
    let printed = dir.met("report study");
    assert!(
        printed.starts_with("Characterizing deep-learning I/O workloads: the micro-benchmark\n\nStorage limits hdd;")
    );
    assert!(printed.contains("11 of 12 published values agree"), "{printed}");
    let table = printed.lines().skip_while(|line| *line != "ingest").take_while(|line| !line.is_empty());
    assert_eq!(table.filter(|line| line.contains("read only, 8 threads")).count(), 4, "{printed}");
    assert!(dir.met("report probe.json").contains("random read"));
}

#[test]
fn json_and_csv_go_to_files_or_stdout() {
    let dir = with_records();
    let json: Value = serde_json::from_str(&dir.met("report study ingest.json --json -")).unwrap();
    assert_eq!(json["schema"], "forebay-report/1");
    assert_eq!(json["runs"][0]["figures"][1]["data"][0]["tier"], "hdd");
    assert_eq!(json["comparisons"][0]["summary"], "The runs have no cell in common; there is nothing to compare.");
    let printed = dir.met("report ingest.json --json out.json --csv out.csv");
    assert!(printed.starts_with("Ingest of photos\n"), "the table is still printed: {printed}");
    assert_eq!(dir.json("out.json")["runs"][0]["cells"].as_array().unwrap().len(), 4);
    let csv = text(&dir, "out.csv");
    assert!(csv.starts_with("run,experiment,threads,metric,unit,value,spread,n,cache,error,repeat_1,"), "{csv}");
    assert_eq!(dir.met("report ingest.json --csv -"), csv);
    let both = dir.refused("report ingest.json --csv - --json -");
    assert_eq!(both, "forebay: --json - and --csv - cannot both go to stdout\n");
}

#[test]
fn two_runs_are_compared_in_words_and_on_the_page() {
    let dir = with_records();
    let faster = text(&dir, "ingest.json").replace("\"n_cores\": 2", "\"n_cores\": 64");
    dir.write("other.json", faster);
    let printed = dir.met("report ingest.json other.json");
    assert!(
        printed.contains("other compared with ingest\n  cores: 2 → 64\n\n4 cells in common: 4 within noise.\n"),
        "{printed}"
    );
    dir.met("report ingest.json other.json --html page.html");
    let page = text(&dir, "page.html");
    assert!(page.contains("Comparison of 2 runs") && page.contains("noise: the interval includes 1×"));
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_done() {
    let dir = with_records();
    let said = dir.refused("report ingest.json --html gone/page.html --csv out.csv");
    assert_eq!(said, "forebay: cannot write gone/page.html: No such file or directory (os error 2)\n");
    assert!(!dir.path("out.csv").exists());
    assert!(dir.refused("report ingest.json --html -").contains("--html needs a file"));
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
    assert!(said.starts_with("forebay: cannot start xdg-open; the page was written to page.html: "), "{said}");
    assert!(dir.refused("report ingest.json --open").contains("--html"), "there is nothing to open");
}
