//! `forebay data verify`.

use anyhow::Result;
use forebay_dataset::verify;

use super::LookArgs;
use crate::output::Outcome;

pub(crate) fn run(args: &LookArgs) -> Result<Outcome> {
    let keys = args.input.keys();
    let found = args.look("verifying", |path, control| verify(path, &keys, control), forebay_report::verification)?;
    Ok(if found.is_sound() { Outcome::Met } else { Outcome::Missed })
}
