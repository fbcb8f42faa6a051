//! `forebay workload make`: generates the data of a workload, in one process or several ranks.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};
use forebay_dataset::{Control, MadeRecords, Progress, foresee_records, make_records};
use forebay_emulation::WorkloadSettings;
use forebay_ranks::{PATIENCE, Ranks};
use forebay_units::{Bytes, PathText, count, format_seconds, group_digits};
use forebay_workload::{Part, Workload};

use super::replay;
use super::run::data_folder;
use super::source::Source;
use crate::flags::{Flags, Pick, flag};
use crate::output::{Outcome, print, remark};
use crate::together::{join, said_once, shared};
use crate::{progress, stop};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: forebay workload make unet3d_h100 --data /mnt/scratch/unet3d")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Folder for train and valid; the workload's data_folder by default
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    #[command(flatten)]
    settings: Flags<WorkloadSettings, OfData>,

    /// Worker threads per process; 0 for one per core, at least four
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: u32,

    /// Show the plan, or the reason for a refusal, without writing anything
    #[arg(long)]
    dry_run: bool,
}

/// The settings that change the data.
#[derive(Debug)]
struct OfData;

impl Pick for OfData {
    fn has(name: &str) -> bool {
        WorkloadSettings::OF_DATA.contains(&name)
    }
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    if let Some(found) = args.source.replay()? {
        if let Some(name) = args.settings.1.keys().next() {
            bail!("{}: not for a traced job, whose files are made as they were", flag(name));
        }
        return replay::make(&args.source, &found, args.data.as_deref(), args.dry_run);
    }
    let ranks = join(PATIENCE)?;
    said_once(&*ranks, run_on(args, &*ranks))
}

fn run_on(args: &Args, ranks: &dyn Ranks) -> Result<Outcome> {
    let is_first = ranks.rank() == 0;
    let checked = shared(ranks, args.source.read_with(&args.settings.0))?;
    if is_first {
        let of_data = checked.notes.iter().filter(|note| note.key.starts_with("dataset."));
        of_data.for_each(|note| remark(&format!("note: {}: {}", note.key, note.text)));
    }
    let workload = checked.workload;
    let dir = args.data.clone().unwrap_or_else(|| data_folder(&workload));
    if !workload.workflow.train && !workload.workflow.generate_data {
        if is_first {
            print(&format!("{}: nothing to make: this workload reads no data\n", workload.name))?;
        }
        return Ok(Outcome::Met);
    }
    if args.dry_run {
        let parts = [Part::Train, Part::Eval].map(|part| planned(&workload, part));
        if is_first {
            print(&format!("{}: {}\n", dir.escaped(), parts.into_iter().flatten().collect::<Vec<_>>().join("; ")))?;
        }
        shared(ranks, foresee_records(&workload, &dir).map_err(anyhow::Error::from))?;
        return Ok(Outcome::Met);
    }
    let start = Instant::now();
    let made = shared(ranks, make(args, &workload, &dir, ranks))?;
    if let Some(all) = ranks.gather(serde_json::to_vec(&made)?)? {
        let all = all.iter().map(|one| serde_json::from_slice(one)).collect::<Result<Vec<_>, _>>()?;
        let made = all.into_iter().fold(MadeRecords::default(), sum);
        print(&format!("{}: {}\n", dir.escaped(), summary(&made, start.elapsed().as_secs_f64())))?;
    }
    Ok(Outcome::Met)
}

fn make(args: &Args, workload: &Workload, dir: &std::path::Path, ranks: &dyn Ranks) -> Result<MadeRecords> {
    let bar = if ranks.rank() == 0 { progress::unknown("making") } else { indicatif::ProgressBar::hidden() };
    let start = Instant::now();
    let show = |now: Progress| {
        progress::show(&bar, now);
        let rate = now.bytes as f64 / start.elapsed().as_secs_f64().max(1e-3);
        bar.set_message(format!("{}  {}/s", Bytes(now.bytes), Bytes(rate as u64)));
    };
    let control = Control { threads: args.threads as usize, cancel: stop::flag(), progress: &show };
    let made = make_records(workload, dir, ranks.rank(), ranks.size(), &control);
    bar.finish_and_clear();
    Ok(made?)
}

/// Describes a part of the data; `None` if the workload has none.
fn planned(workload: &Workload, part: Part) -> Option<String> {
    let dataset = &workload.dataset;
    let n_files = dataset.n_files(part);
    let what = format!("{} {} file", part.folder(), dataset.format.name());
    (n_files > 0).then(|| format!("{}, {} of values", count(n_files, &what), Bytes(dataset.bytes(part))))
}

fn summary(made: &MadeRecords, seconds: f64) -> String {
    let kept = match made.n_kept {
        0 => String::new(),
        n => format!("; {} already there", group_digits(n)),
    };
    match made.n_written {
        0 => format!("nothing to make; {} already there", count(made.n_kept, "file")),
        n => {
            let rate = Bytes((made.bytes as f64 / seconds.max(1e-6)) as u64);
            let (files, took) = (count(n, "file"), format_seconds(seconds));
            format!("{files} made, {} in {took}, {rate}/s{kept}", Bytes(made.bytes))
        }
    }
}

fn sum(a: MadeRecords, b: MadeRecords) -> MadeRecords {
    MadeRecords { n_written: a.n_written + b.n_written, n_kept: a.n_kept + b.n_kept, bytes: a.bytes + b.bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ranks_made_is_added_up() {
        let one = MadeRecords { n_written: 3, n_kept: 1, bytes: 4_000 };
        assert_eq!(summary(&sum(one, one), 2.0), "6 files made, 8.0 KB in 2.00 s, 4.0 KB/s; 2 already there");
        let none = MadeRecords { n_kept: 1, ..MadeRecords::default() };
        assert_eq!(summary(&none, 2.0), "nothing to make; 1 file already there");
    }
}
