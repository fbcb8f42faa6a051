//! `forebay data verify`.

use std::path::Path;

use anyhow::Result;
use forebay_dataset::{Control, verify};

use super::LookArgs;
use crate::output::Outcome;

pub(crate) fn run(args: &LookArgs) -> Result<Outcome> {
    let look = |path: &Path, control: &Control<'_>| verify(path, args.limit.bytes(), control);
    let found = args.look("verifying", look, forebay_report::verification)?;
    Ok(if found.is_sound() { Outcome::Met } else { Outcome::Missed })
}
