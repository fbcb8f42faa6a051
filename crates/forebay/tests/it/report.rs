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
    assert!(both.contains("direct  tensorflow") && both.contains("The tier hdd is "), "{both}");
}

#[test]
fn several_records_stand_below_one_another() {
    let dir = Dir::with_set();
    let one = dir.met("ingest set --threads 1 --repeats 1 --warmups 0 --json 1.json");
    let two = dir.met("ingest set --threads 2 --repeats 1 --warmups 0 --json 2.json");
    let both = dir.met("report 1.json 2.json");
    assert!(both.starts_with(&format!("{one}\n{two}\n2 beside 1\n")), "{both}");
    assert!(both.contains("The runs have no cell in common") || both.contains("1 cell in common"), "{both}");
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
        assert_eq!(said(name), format!("forebay: cannot show {name}: not a record: {hint}\n"));
    }
    assert_eq!(
        said("future"),
        "forebay: cannot show future: this record has the schema \"forebay-record/9\"; this version reads \
         \"forebay-record/1\"\n"
    );
    assert_eq!(
        said("other"),
        "forebay: cannot show other: this is a record of \"bake\", not of \"ingest, probe, train, checkpoint, workload or study\"\n"
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
    assert!(said("binary").starts_with("forebay: cannot show binary: not a record: give a run's folder"));
    assert_eq!(
        said("folder"),
        "forebay: cannot show folder: there is neither a record.jsonl nor a record.json in this folder\n"
    );
    assert!(said("torn").starts_with("forebay: cannot show torn: not a record"), "{}", said("torn"));
}

#[test]
fn a_record_of_the_required_fields_alone_is_shown() {
    let dir = Dir::new();
    dir.write("least.json", r#"{"schema": "forebay-record/1", "command": "ingest", "cells": []}"#);
    assert_eq!(dir.met("report least.json"), "nothing was measured\n");
}
