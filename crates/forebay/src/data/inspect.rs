//! `forebay data inspect`.

use anyhow::Result;
use forebay_dataset::{InspectOptions, inspect};

use super::LookArgs;
use crate::output::Outcome;

pub(crate) fn run(args: &LookArgs) -> Result<Outcome> {
    let options =
        InspectOptions { keys: args.input.keys(), max_sample: args.limit.bytes(), ..InspectOptions::default() };
    args.look("inspecting", |path, control| inspect(path, &options, control), forebay_report::inspection)?;
    Ok(Outcome::Met)
}
