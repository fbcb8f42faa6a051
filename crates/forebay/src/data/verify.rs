//! `forebay data verify`.

use anyhow::Result;
use forebay_dataset::{VerifyOptions, verify};

use super::LookArgs;
use crate::output::Outcome;

pub(crate) fn run(args: &LookArgs) -> Result<Outcome> {
    let options = VerifyOptions { keys: args.input.keys(), max_sample: args.limit.bytes() };
    let found =
        args.look("verifying", |path, control| verify(path, &options, control), forebay_report::verification)?;
    Ok(if found.is_sound() { Outcome::Met } else { Outcome::Missed })
}
