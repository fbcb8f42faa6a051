//! `forebay workload import`: a workload as forebay's TOML, from DLIO's YAML or from a traced job.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use forebay_record::AnyRecord;
use forebay_trace::map_trace;
use forebay_units::{PathText, group_digits, shell_word};
use forebay_workload::import::to_toml;

use super::source::{Source, parse_override};
use crate::output::{Outcome, print_data};
use crate::trace::TRACE;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  forebay workload import unet3d.yaml ++workload.train.epochs=1 > unet3d.toml
  forebay workload import --from-trace traced > mine.toml")]
pub(crate) struct Args {
    /// Name of a built-in workload, or a file: DLIO's YAML or forebay's TOML
    #[arg(value_name = "NAME|FILE", required_unless_present = "from_trace")]
    name: Option<OsString>,

    /// Overrides in DLIO's syntax, for example ++workload.reader.read_threads=8
    #[arg(value_name = "++workload.a.b=c", value_parser = parse_override)]
    overrides: Vec<String>,

    /// Make the workload of a traced job: the folder that `forebay trace` wrote
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "overrides"])]
    from_trace: Option<PathBuf>,
}

pub(super) fn run(args: Args) -> Result<Outcome> {
    let text = match (args.from_trace, args.name) {
        (Some(folder), _) => of_trace(&folder)?,
        (None, Some(name)) => to_toml(&Source { name, overrides: args.overrides }.read()?),
        (None, None) => bail!("no workload given"),
    };
    print_data(&format!("{}\n", text.trim_end()))?;
    Ok(Outcome::Met)
}

fn of_trace(folder: &Path) -> Result<String> {
    let path = folder.join(TRACE);
    let cannot = || format!("cannot read {}", path.escaped());
    if folder.is_dir() && !path.exists() {
        bail!("{}: there is no {TRACE}\nhint: `forebay trace --out DIR -- COMMAND` makes one", folder.escaped());
    }
    let bytes = map_trace(&path).with_context(cannot)?;
    let imported = forebay_trace::import(&bytes).map_err(|error| anyhow!("{}: {error}", folder.escaped()))?;
    let mut comments = vec![
        format!("Made by `forebay workload import --from-trace {}`.", shell_word(folder)),
        "Play it again with `forebay workload run FILE --data COPY`; `workload make` makes data like it.".to_owned(),
    ];
    comments.extend(imported.notes.iter().map(|note| note.replace('\n', " ")));
    if let Some(n) = n_lost(folder).filter(|n| *n > 0) {
        comments.push(format!("{} events of the job were lost, so some calls are missing.", group_digits(n)));
    }
    Ok(imported.replay.to_toml(&comments))
}

/// Events that were lost, as the record of the trace says; `None` without one.
fn n_lost(folder: &Path) -> Option<u64> {
    let text = std::fs::read_to_string(folder.join("record.json")).ok()?;
    match AnyRecord::from_text(&text).ok()? {
        AnyRecord::Trace(record) => record.cells.first().map(|cell| cell.totals.lost_events),
        _ => None,
    }
}
