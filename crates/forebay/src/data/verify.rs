//! `forebay data verify`.

use std::path::PathBuf;

use anyhow::Result;
use forebay_dataset::verify;

use super::with_progress;
use crate::output::{JsonTarget, Outcome, give, to_json};

/// The flags of `forebay data verify`.
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
    let found = with_progress("verifying", args.threads, |control| verify(&args.path, control))?;
    let text = forebay_report::verification(&found);
    give(&text, json.as_ref().map(|target| Ok::<_, anyhow::Error>((target, to_json(&found)?))).transpose()?)?;
    Ok(if found.is_sound() { Outcome::Met } else { Outcome::Missed })
}
