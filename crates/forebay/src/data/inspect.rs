//! `forebay data inspect`.

use std::path::PathBuf;

use anyhow::Result;
use forebay_dataset::{InspectOptions, inspect};

use super::with_progress;
use crate::output::{JsonTarget, Outcome, give, to_json};

/// The flags of `forebay data inspect`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder, a list, an image, or shards
    path: PathBuf,

    /// Worker threads; one a core by default
    #[arg(long, default_value_t = 0, value_name = "N")]
    threads: usize,

    /// Write the findings to a file, or to stdout with "-"
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let json = args.json.as_deref().map(JsonTarget::from);
    json.as_ref().map_or(Ok(()), JsonTarget::check)?;
    let options = InspectOptions::default();
    let found = with_progress("inspecting", args.threads, |control| inspect(&args.path, &options, control))?;
    let text = forebay_report::inspection(&found);
    give(&text, json.as_ref().map(|target| Ok::<_, anyhow::Error>((target, to_json(&found)?))).transpose()?)?;
    Ok(Outcome::Met)
}
