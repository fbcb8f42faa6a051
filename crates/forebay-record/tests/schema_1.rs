//! Records of schema 1, as earlier versions wrote them: read, written as of schema 2, and read again.

use std::path::{Path, PathBuf};

use forebay_record::{AnyRecord, Cell, Record, SCHEMA, StudyLine, StudyRun};

#[test]
fn a_record_of_schema_1_is_written_as_schema_2_and_read_again_the_same() {
    for path in records() {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(r#""forebay-record/1""#), "{name}");
        let record = AnyRecord::from_text(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = written(&record);
        assert!(!again.contains("forebay-record/1") && again.contains(SCHEMA), "{name}");
        let found = AnyRecord::from_text(&again).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Unknown latencies are not numbers, which are not equal to themselves.
        assert_eq!(format!("{found:?}"), format!("{record:?}"), "{name}");
    }
}

/// The records that the reports are tested with.
fn records() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-report/tests/fixtures");
    let plain = ["ingest.json", "probe.json", "train.json", "checkpoint.json", "saved.json"];
    let studies = ["chien/record.jsonl", "mini/record.jsonl", "saved/record.jsonl"];
    plain.iter().chain(&studies).map(|name| dir.join(name)).collect()
}

fn written(record: &AnyRecord) -> String {
    fn of<C: Cell>(record: &Record<C>) -> String {
        assert_eq!(record.schema, SCHEMA);
        record.to_json()
    }
    match record {
        AnyRecord::Ingest(record) => of(record),
        AnyRecord::Probe(record) => of(record),
        AnyRecord::Train(record) => of(record),
        AnyRecord::Checkpoint(record) => of(record),
        AnyRecord::Workload(record) => of(record),
        AnyRecord::Trace(record) => of(record),
        AnyRecord::Study(run) => lines(run),
    }
}

fn lines(run: &StudyRun) -> String {
    let head = StudyLine::Head(Box::new(run.head.clone()));
    let resumed = run.resumed.iter().map(|line| StudyLine::Resumed(Box::new(line.clone())));
    let cells = run.cells.iter().map(|cell| StudyLine::Cell(Box::new(cell.clone())));
    std::iter::once(head).chain(resumed).chain(cells).map(|line| line.to_jsonl()).collect()
}
