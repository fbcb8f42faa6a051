//! Prints pages of `docs/` for `cargo xtask generate`: `record_schema json` the JSON Schema of records, `record_schema page` their
//! page, `record_schema words` the vocabulary, `record_schema study` and `record_schema study-results` the beginning and the end of the
//! page of study files. `record_schema rewrite` reads a record of any known schema on stdin and writes it as this version does.

mod page;
mod study;
mod types;
mod words;

use std::io::Read;
use std::process::ExitCode;

use forebay_record::{AnyRecord, Error, StudyLine, StudyRun};

#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> ExitCode {
    let printed = match std::env::args().nth(1).as_deref() {
        Some("json") => Ok(format!("{:#}\n", forebay_record::json_schema())),
        Some("page") => Ok(page::page(&forebay_record::json_schema())),
        Some("words") => Ok(words::page()),
        Some("study") => Ok(study::keys(&forebay_record::study_schema())),
        Some("study-results") => Ok(study::results(&forebay_record::study_schema())),
        Some("rewrite") => rewritten(),
        _ => Err("say json, page, words, study, study-results or rewrite".into()),
    };
    match printed {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("record_schema: {error}");
            ExitCode::FAILURE
        }
    }
}

fn rewritten() -> Result<String, Box<dyn std::error::Error>> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let record = AnyRecord::from_text(&text).map_err(|error: Error| error.to_string())?;
    Ok(match record {
        AnyRecord::Ingest(record) => record.to_json(),
        AnyRecord::Probe(record) => record.to_json(),
        AnyRecord::Train(record) => record.to_json(),
        AnyRecord::Checkpoint(record) => record.to_json(),
        AnyRecord::Workload(record) => record.to_json(),
        AnyRecord::Trace(record) => record.to_json(),
        AnyRecord::Study(run) => lines(*run),
    })
}

fn lines(run: StudyRun) -> String {
    let head = StudyLine::Head(Box::new(run.head));
    let resumed = run.resumed.into_iter().map(|line| StudyLine::Resumed(Box::new(line)));
    let cells = run.cells.into_iter().map(|cell| StudyLine::Cell(Box::new(cell)));
    std::iter::once(head).chain(resumed).chain(cells).map(|line| line.to_jsonl()).collect()
}
