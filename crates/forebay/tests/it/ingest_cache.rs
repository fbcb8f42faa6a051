//! Cold and warm: what is asked for, what was found, and a note where the two differ.

use serde_json::Value;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, flat};
use crate::record::{self, number};

/// The record of a run, unless the files lie where no cache can be cold.
fn record_on_disk(dir: &Dir, flags: &str) -> Option<Value> {
    let record = record::of(dir, flags);
    if record["environment"]["data_file_system"].as_str().unwrap().starts_with("tmpfs") {
        not_run(Reason::NoDisk, "nothing in memory is cold");
        return None;
    }
    Some(record)
}

/// The repeats of a cell, each with what its cache state was concluded from.
fn with_evidence(cell: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    let evidence = cell["medium"]["evidence"].as_array().unwrap();
    cell["samples"].as_array().unwrap().iter().zip(evidence)
}

#[test]
fn cold_repeats_start_without_a_page_and_fetch_every_byte() {
    let dir = Dir::with_set();
    let Some(record) = record_on_disk(&dir, "set --cold --threads 1,2 --repeats 2") else { return };
    for cell in record["cells"].as_array().unwrap() {
        assert_eq!(cell["medium"]["cache"], "cold");
        for (sample, evidence) in with_evidence(cell) {
            assert_eq!(evidence["resident_before"], 0.0);
            assert!(number(evidence, "block_bytes") >= number(evidence, "bytes_read"), "{evidence}");
            assert_eq!(evidence["bytes_read"], sample["bytes"]);
        }
    }
    assert_eq!(record::notes(&record), [] as [&str; 0]);
}

#[test]
fn warm_is_the_default_and_fetches_nothing() {
    let dir = Dir::with_set();
    for flags in ["", "--warm"] {
        let record = record::of(&dir, &format!("set --threads 1 --repeats 2 {flags}"));
        let cell = &record["cells"][0];
        assert_eq!((&cell["medium"]["cache"], record::notes(&record)), (&"warm".into(), Vec::new()));
        for (_, evidence) in with_evidence(cell) {
            assert_eq!((&evidence["resident_before"], &evidence["block_bytes"]), (&1.0.into(), &0.into()));
        }
    }
}

#[test]
fn a_warm_cell_that_reads_past_the_cache_is_called_cold_with_a_note() {
    let dir = Dir::with_set();
    let Some(record) = record_on_disk(&dir, "set --warm --io direct --threads 1,2 --repeats 1") else { return };
    assert_eq!(record["cells"][0]["medium"]["cache"], "cold");
    let note = "a warm cache was requested, but with 1, 2 threads more than 5 % of the bytes came from the device: the \
                data may not fit into memory, or direct I/O bypassed the cache";
    assert_eq!(record::notes(&record), [note]);
}

#[test]
fn the_table_names_the_cache_state() {
    let dir = Dir::with_set();
    let printed = dir.met("ingest set --cold --threads 1 --repeats 1 --warmups 0 --json record.json");
    let state = dir.json("record.json")["cells"][0]["medium"]["cache"].as_str().unwrap().to_owned();
    assert!(flat(&printed).contains(&format!(" cache {state} ")), "{printed}");
}
