//! `forebay report`: records as tables again.

use std::path::PathBuf;

use anyhow::{Context, Result};
use forebay_record::{IngestCell, Record};

use crate::output::{Outcome, print};

/// The flags of `forebay report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Records written with --json
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    for (number, path) in args.records.iter().enumerate() {
        let name = || format!("cannot show {}", path.display());
        let text = std::fs::read_to_string(path).with_context(name)?;
        let record: Record<IngestCell> = Record::from_json(&text).with_context(name)?;
        if number > 0 {
            print("\n")?;
        }
        print(&forebay_report::ingest(&record))?;
    }
    Ok(Outcome::Met)
}
