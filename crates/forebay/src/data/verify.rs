//! `forebay data verify`.

use anyhow::Result;
use forebay_dataset::verify;

use super::LookArgs;
use crate::output::Outcome;

pub(crate) fn run(args: &LookArgs) -> Result<Outcome> {
    let found = args.look("verifying", verify, forebay_report::verification)?;
    Ok(if found.is_sound() { Outcome::Met } else { Outcome::Missed })
}
