//! `forebay workload import`.

use anyhow::Result;
use forebay_workload::import::to_toml;

use super::source::Source;
use crate::output::{Outcome, print_data};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: forebay workload import unet3d.yaml ++workload.train.epochs=1 > unet3d.toml")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let checked = args.source.read()?;
    print_data(&format!("{}\n", to_toml(&checked).trim_end()))?;
    Ok(Outcome::Met)
}
