//! `forebay report`: a record as the table it was printed with, and what is no record.

use crate::dir::Dir;

#[test]
fn a_record_shows_the_table_that_the_run_printed() {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "");
    for (n, flags) in ["", "--tier ssd --read-only", "--cold --readers 2", "--io auto"].into_iter().enumerate() {
        let printed = dir.met(&format!("ingest set --threads 1,2 --repeats 2 --batch 8 --json {n}.json {flags}"));
        assert_eq!(dir.met(&format!("report {n}.json")), printed, "{flags}");
    }
}

#[test]
fn a_record_of_checkpoints_shows_the_table_that_the_benchmark_printed() {
    let dir = Dir::new();
    for name in ["slow", "fast"] {
        std::fs::create_dir(dir.path(name)).unwrap();
    }
    for (n, flags) in ["", "--burst-dir fast --tier hdd", "--burst-dir fast --mode async"].into_iter().enumerate() {
        let printed = dir.met(&format!("checkpoint bench slow --size 1MB --saves 2 --json {n}.json {flags}"));
        assert!(printed.contains("ceiling") && printed.contains("safetensors"), "{printed}");
        assert_eq!(dir.met(&format!("report {n}.json")), printed, "{flags}");
    }
    let both = dir.met("report 0.json 1.json");
    assert!(both.contains("\ndirect, tensorflow ") && both.contains("Emulated devices: hdd is "), "{both}");
}

#[test]
fn several_records_stand_below_one_another() {
    let dir = Dir::with_set();
    let one = dir.met("ingest set --threads 1 --repeats 1 --warmups 0 --json 1.json");
    let two = dir.met("ingest set --threads 2 --repeats 1 --warmups 0 --json 2.json");
    let both = dir.met("report 1.json 2.json");
    assert!(both.starts_with(&format!("{one}\n{two}\n2 compared with 1\n")), "{both}");
    assert!(
        both.contains("The runs have no cell in common") || both.contains("The cell in common was measured only once"),
        "{both}"
    );
}

#[test]
fn what_is_no_record_is_refused_by_name() {
    let dir = Dir::new();
    dir.write("future", r#"{"schema": "forebay-record/9", "command": "ingest", "cells": []}"#);
    dir.write("other", r#"{"schema": "forebay-record/1", "command": "bake", "cells": []}"#);
    let said = |name: &str| dir.refused(&format!("report {name}"));
    assert_eq!(said("gone"), "forebay: cannot show gone: No such file or directory (os error 2)\n");
    for (name, bytes) in [("text", "hello"), ("list", "[]"), ("empty", ""), ("study.toml", "name = \"a\"\n")] {
        dir.write(name, bytes);
        let hint = "give a run's folder, its record.jsonl, or a file written with --json";
        assert_eq!(said(name), format!("forebay: cannot show {name}: not a record\nhint: {hint}\n"));
    }
    assert_eq!(
        said("future"),
        "forebay: cannot show future: this record has the schema \"forebay-record/9\"; this version reads \
         \"forebay-record/2\"\n"
    );
    assert_eq!(
        said("other"),
        "forebay: cannot show other: this is a record of \"bake\", not of \"ingest, probe, train, checkpoint, workload, trace or study\"\n"
    );
    assert!(dir.refused("report").contains("<RUN>..."));
}

#[test]
fn what_was_cut_off_or_is_not_there_is_refused_by_name() {
    let dir = Dir::new();
    dir.write("half.json", r#"{"schema": "forebay-record/1", "command": "ingest", "cells": ["#);
    dir.write("binary", [0xff, 0xfe, 0x00]);
    dir.write("folder/other.txt", "");
    dir.write("torn/record.jsonl", r#"{"line":"head","schema":"forebay-record/1","command":"study","#);
    let said = |name: &str| dir.refused(&format!("report {name}"));
    assert!(said("half.json").starts_with("forebay: cannot show half.json: not a record: EOF while parsing"));
    assert!(said("binary").starts_with("forebay: cannot show binary: not a record\nhint: give a run's folder"));
    assert_eq!(said("folder"), "forebay: cannot show folder: no record.jsonl or record.json in this folder\n");
    assert!(said("torn").starts_with("forebay: cannot show torn: not a record"), "{}", said("torn"));
}

#[test]
fn a_record_of_the_required_fields_alone_is_shown() {
    let dir = Dir::new();
    dir.write("least.json", r#"{"schema": "forebay-record/1", "command": "ingest", "cells": []}"#);
    assert_eq!(dir.met("report least.json"), "Ingest\n\nNothing was measured.\n");
}

#[test]
fn a_summary_that_its_repeats_do_not_give_is_refused_in_every_form() {
    let dir = Dir::with_set();
    dir.met("ingest set --threads 1 --repeats 3 --warmups 0 --json run.json");
    let mut record = dir.json("run.json");
    record["cells"][0]["images_per_s"] = 99_999.0.into();
    dir.write("run.json", record.to_string());
    let said = dir.refused("report run.json");
    let wanted = "forebay: cannot show run.json: cell 1 of 1: summary disagrees with its raw values: images_per_s 99999, repeats give ";
    assert!(said.starts_with(wanted), "{said}");
    assert!(
        said.ends_with("\nhint: the record was changed after the run; use the original, or measure again\n"),
        "{said}"
    );
    for form in ["--json -", "--csv -", "--html page.html"] {
        assert_eq!(dir.refused(&format!("report run.json {form}")), said);
    }
    assert!(!dir.path("page.html").exists());
}

#[test]
fn control_characters_of_a_record_are_shown_and_not_obeyed() {
    let dir = Dir::with_set();
    dir.met("ingest set --threads 1 --repeats 2 --warmups 0 --json run.json");
    let mut record = dir.json("run.json");
    let evil = "x\u{1b}]0;owned\u{7}\r\u{9b}31m\u{202e}\nnote: forged\t";
    record["notes"] = vec![evil].into();
    record["dataset"]["path"] = evil.into();
    record["cells"][0]["storage"] = evil.into();
    record["cells"][0]["failures"] = serde_json::json!([{"name": evil, "reason": evil}]);
    record["cells"][0]["failed_samples"] = 1.into();
    record["cells"][0]["samples"][0]["failed"] = 1.into();
    record["environment"]["cpu"] = evil.into();
    dir.write("run.json", record.to_string());
    let mut other = record.clone();
    other["environment"]["kernel"] = evil.into();
    dir.write("other.json", other.to_string());
    for line in ["report run.json", "report run.json other.json", "report run.json --html page.html"] {
        let said = dir.met(line);
        assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{line}: {said:?}");
        assert!(!said.contains('\u{202e}') && !said.contains("\nnote: forged"), "{line}: {said:?}");
    }
    let shown = "note: x\\x1b]0;owned\\x07\\r\\u{9b}31m\\u{202e}\\nnote: forged\\t\n";
    assert!(dir.met("report run.json").contains(shown), "{}", dir.met("report run.json"));
    let page = String::from_utf8(dir.read("page.html")).unwrap();
    assert!(!page.contains(['\u{1b}', '\u{9b}', '\u{202e}']));
    let data: serde_json::Value = serde_json::from_str(&dir.met("report run.json --json -")).unwrap();
    assert_eq!(data["runs"][0]["notes"][0], evil, "data is given as it is");
    let said = dir.refused("report gone\u{1b}[31m");
    assert_eq!(said, "forebay: cannot show gone\\x1b[31m: No such file or directory (os error 2)\n");
}
