//! The JSON of every command: it has the schema of its command, and each field is on the page of the reference.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::checkpoint::save;
use crate::dir::Dir;
use crate::outputs_table::ARGUMENTS;
use crate::tier::probed;
use crate::workload::TINY;

const PAGE: &str = include_str!("../../../../docs/reference/json.md");

/// Commands that write a record or a report.
const RECORDS: [&str; 7] = ["checkpoint bench", "ingest", "probe", "report", "train", "tune", "workload run"];
/// Objects whose fields depend on the data, or are described with the record.
const CLOSED: [&str; 5] = ["file_formats", "sample_formats", "colours", "series", "environment"];

/// Lines of every command, so that together they show every field.
const LINES: [(&str, &[&str]); 14] = [
    (
        "checkpoint convert",
        &["checkpoint convert slow/step-000000000020/model.safetensors out --to tensorflow --force"],
    ),
    ("checkpoint drain", &["checkpoint drain drained --burst-dir slow"]),
    ("checkpoint ls", &["checkpoint ls slow"]),
    ("checkpoint prune", &["checkpoint prune slow --keep 1 --dry-run", "checkpoint prune bad --keep 1 --dry-run"]),
    ("checkpoint restore", &["checkpoint restore slow --to r.safetensors --force"]),
    ("checkpoint verify", &["checkpoint verify slow"]),
    ("data inspect", &["data inspect set", "data inspect splits"]),
    ("data verify", &["data verify set", "data verify splits"]),
    ("doctor", &["doctor"]),
    ("tier list", &["tier list"]),
    ("workload check", &["workload check unet3d_h100 wrong.yaml"]),
    ("workload list", &["workload list"]),
    ("workload show", &["workload show unet3d_h100"]),
    ("workload size", &["workload size tiny.yaml --accelerators 1 --host-memory 1GiB"]),
];

fn with_everything() -> Dir {
    let dir = Dir::with_set();
    dir.write("set/class_004/class_004_000004.jpg", "");
    let image = dir.read("set/class_003/class_003_000003.jpg");
    for split in ["train", "val"] {
        dir.write(format!("splits/{split}/a/1.jpg"), &image);
    }
    save(&dir, "slow", "safetensors", &[20, 40]);
    save(&dir, "bad", "safetensors", &[20, 40]);
    dir.edit("bad/step-000000000040/model.safetensors", |bytes| bytes.truncate(9));
    dir.write("tiny.yaml", TINY);
    dir.write("wrong.yaml", TINY.replace("batch_size: 2", "batch_size: -2"));
    dir.met("tier up hdd --shaped");
    let cells = ["sequential-read", "sequential-write", "random-read"].map(|mode| probed(mode, 100.0));
    let record = serde_json::json!({"schema": "forebay-record/1", "command": "probe", "cells": cells});
    dir.write(".home/ceilings/disk.json", record.to_string());
    dir
}

/// The paths of all fields: `classes[].label`.
fn fields(value: &Value, at: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields_of) => {
            for (name, value) in fields_of {
                let path = format!("{at}{name}");
                if !CLOSED.contains(&name.as_str()) {
                    fields(value, &format!("{path}."), into);
                }
                into.insert(path);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| fields(item, &format!("{}[].", at.trim_end_matches('.')), into));
        }
        _ => {}
    }
}

/// The fields that the page names under a schema.
fn documented(schema: &str) -> BTreeSet<String> {
    let section = PAGE.split("\n## ").find(|section| section.lines().next() == Some(schema));
    let section = section.unwrap_or_else(|| panic!("the page has no section {schema}"));
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(", "));
    names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
}

#[test]
fn every_field_of_every_command_is_on_the_page_and_the_page_names_no_other() {
    let dir = with_everything();
    for (command, lines) in LINES {
        let schema = format!("forebay-{}/1", command.replace(' ', "-"));
        let mut found = BTreeSet::new();
        for line in lines {
            let ran = dir.run(&format!("{line} --json -"));
            let json: Value =
                serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {ran:?}"));
            assert_eq!(json["schema"], schema.as_str(), "{line}");
            fields(&json, "", &mut found);
        }
        found.remove("schema");
        assert_eq!(found, documented(&schema), "{schema}: left: the JSON; right: docs/reference/json.md");
    }
}

#[test]
fn every_command_with_json_is_tried_or_writes_a_record() {
    let with_json: BTreeSet<&str> =
        ARGUMENTS.iter().filter(|argument| argument.id == "json").map(|argument| argument.command).collect();
    let tried: BTreeSet<&str> = LINES.iter().map(|(command, _)| *command).chain(RECORDS).collect();
    assert_eq!(with_json, tried);
}
