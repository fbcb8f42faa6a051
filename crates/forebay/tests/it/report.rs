//! `forebay report`: a record as the table it was printed with.

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
fn several_records_stand_below_one_another() {
    let dir = Dir::with_set();
    let one = dir.met("ingest set --threads 1 --repeats 1 --warmups 0 --json 1.json");
    let two = dir.met("ingest set --threads 2 --repeats 1 --warmups 0 --json 2.json");
    assert_eq!(dir.met("report 1.json 2.json"), format!("{one}\n{two}"));
}

#[test]
fn what_is_no_record_is_refused_by_name() {
    let dir = Dir::new();
    dir.write("text", "hello");
    dir.write("future", r#"{"schema": "forebay-record/9", "command": "ingest", "cells": []}"#);
    dir.write("other", r#"{"schema": "forebay-record/1", "command": "train", "cells": []}"#);
    let said = |name: &str| dir.refused(&format!("report {name}"));
    assert_eq!(said("gone"), "forebay: cannot show gone: No such file or directory (os error 2)\n");
    assert_eq!(said("text"), "forebay: cannot show text: not a record: expected value at line 1 column 1\n");
    assert_eq!(
        said("future"),
        "forebay: cannot show future: this record has the schema \"forebay-record/9\"; this version reads \
         \"forebay-record/1\"\n"
    );
    assert_eq!(said("other"), "forebay: cannot show other: this is a record of \"train\", not of \"ingest\"\n");
    assert!(dir.refused("report").contains("<RECORD>..."));
}

#[test]
fn a_record_of_the_required_fields_alone_is_shown() {
    let dir = Dir::new();
    dir.write("least.json", r#"{"schema": "forebay-record/1", "command": "ingest", "cells": []}"#);
    assert_eq!(dir.met("report least.json"), "nothing was measured\n");
}
