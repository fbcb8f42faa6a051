//! `forebay probe`: flags in, plan built, storage measured, table out.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow};
use forebay_dataset::{Control, Progress};
use forebay_measure::spelled;
use forebay_probe::ceiling::{Load, Tier};
use forebay_probe::{Kind, Like, Plan, Preview, ProbeSettings, TIME_LIMIT};
use forebay_record::{ProbeCell, TierKind};
use forebay_storage::Profile;
use forebay_units::{Bytes, PathText, format_seconds, group_digits};

use crate::ceilings::{self, Ceilings, Name};
use crate::flags::{Flags, flag};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, done, remark};
use crate::{live, progress, stop, tier};
use forebay_study::Placement;

/// A disk, a SATA flash drive and an NVMe drive, in bytes per second: for an estimate where nothing is known.
const USUAL_RATES: [f64; 3] = [150e6, 500e6, 2_000e6];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder on the storage to be measured; or a file there, of which only reads are measured
    #[arg(value_name = "DIR")]
    target: PathBuf,

    #[command(flatten)]
    settings: Flags<ProbeSettings>,

    /// Write one file (fsync included) and read it, from end to end; short for the mode sequential
    ///
    /// The file is made anew in each run, with its space allocated before the clock starts. With sync and direct, each
    /// thread has a part of the file; uring has one stream with all requests in flight.
    #[arg(long)]
    sequential: bool,

    /// Read pieces of that file in random order, none twice, for at most 5 s per run; short for the mode random
    #[arg(long)]
    random: bool,

    /// Open, read and close small files in random order, each once, for at most 5 s per run; short for the mode files
    ///
    /// The files are made in DIR and removed at the end: as long as those of --like (a random choice of them where
    /// they do not fit into --size), or of --mix, or of --block.
    #[arg(long)]
    files: bool,

    /// Take the sizes from a dataset: the mix that `data inspect` names; for --files the lengths of its files
    ///
    /// DATA is only looked at. Where no mode is given, a dataset of files adds the files mode to the other two.
    #[arg(long, value_name = "DATA")]
    like: Option<PathBuf>,

    /// Runs of each cell; the first is not kept
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    runs: u32,

    /// Emulate a device in this process: hdd, ssd, optane or lustre
    ///
    /// An emulated device takes one write after the other: its writes are measured with depth 1 alone. It takes them ahead
    /// as a drive's cache does, so that single writes have no latency.
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    #[command(flatten)]
    quiet: QuietArgs,

    /// Keep the record under a name, as a ceiling that ingest sets beside its rates
    #[arg(long, value_name = "NAME")]
    save: Option<Name>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let placement = tier::placement(&args.target)?;
    if args.dry_run {
        return preview(&args.into_plan(&placement)?, &placement);
    }
    let json = args.json.target(args.inputs())?;
    let (save, quiet) = (args.save.clone(), args.quiet);
    save.as_ref().map_or(Ok(()), ceilings::check)?;
    let notes = placement.notes_beside(args.tier.as_ref());
    let plan = args.into_plan(&placement)?;
    stop::begun();
    let (mut record, series) = live::observed("probe", "forebay: ", stop::flag(), quiet, |observer| {
        Ok(forebay_probe::run(&plan, live::record(&plan.target), observer)?)
    })?;
    record.series = Some(series);
    record.notes.extend(notes);
    if let Some(profile) = &placement.kernel {
        record.cells.iter_mut().for_each(|cell| stand_on(cell, &profile.name));
    }
    json.give_record(&record)?;
    let stopped = stop::flag().load(Ordering::Relaxed) || record.cells.is_empty();
    match save {
        Some(name) if stopped => remark(&format!("forebay: {name} is not saved: the probe was stopped")),
        Some(name) => ceilings::save(&name, &record)?,
        None => {}
    }
    Ok(Outcome::of(!stopped))
}

/// Says that a cell was measured on a tier of the kernel. What is shaped on top of it is a device of its own.
fn stand_on(cell: &mut ProbeCell, kernel: &str) {
    match &mut cell.medium.tier {
        Some(shaped) => shaped.push_str(&format!(" on {kernel}")),
        None => cell.on_kernel_tier(kernel),
    }
}

fn preview(plan: &Plan, placement: &Placement) -> Result<Outcome> {
    let preview = forebay_probe::preview(plan)?;
    let free = preview.free_bytes.map_or(String::new(), |free| format!(" of the {} that are free", Bytes(free)));
    let mut text = format!(
        "{}: {} cells of {} runs: {} written and at most {} read; {}{free} on the disk meanwhile, {} of memory\n",
        plan.target.escaped(),
        group_digits(preview.n_cells),
        plan.runs,
        Bytes(preview.bytes_written),
        Bytes(preview.bytes_read),
        Bytes(preview.space_bytes),
        Bytes(preview.memory_bytes),
    );
    text.push_str(&estimate(plan, placement, &preview));
    for remark in &preview.remarks {
        text.push_str(&format!("note: {remark}\n"));
    }
    done(&text)
}

/// How long it would take: by the tier's rate, by a probe of this file system, or by what disks usually give.
fn estimate(plan: &Plan, placement: &Placement, preview: &Preview) -> String {
    let at = |bytes_per_s: f64, of: &str| {
        let rate = group_digits((bytes_per_s / 1e6).round() as u64);
        format!("about {} at {rate} MB/s{of}", format_seconds(preview.seconds_at(bytes_per_s)))
    };
    if let Some(tier) = &plan.tier {
        let slower = tier.read_bytes_per_s.min(tier.write_bytes_per_s) as f64;
        return format!("estimated time: {}\n", at(slower, &format!(", the slower rate of {}", tier.name)));
    }
    let place = forebay_measure::describe_environment(&plan.target, env!("CARGO_PKG_VERSION"));
    let tier = placement.kernel.as_ref().map(|profile| Tier { name: &profile.name, kind: TierKind::Kernel });
    let known = Ceilings::load(None).ok().and_then(|ceilings| ceilings.pick(&place, tier, Load::Shards));
    match known {
        Some(ceiling) => format!("estimated time: {}\n", at(ceiling.mb_per_s * 1e6, &format!(", {}", ceiling.of))),
        None => format!("estimated time: {}\n", USUAL_RATES.map(|rate| at(rate, "")).join(", ")),
    }
}

impl Args {
    /// What is read and must stay as it is. A folder is only where scratch files are made.
    fn inputs(&self) -> impl Iterator<Item = &Path> {
        let file = Some(self.target.as_path()).filter(|target| !target.is_dir());
        file.into_iter().chain(self.like.as_deref())
    }

    fn into_plan(self, placement: &Placement) -> Result<Plan> {
        let mut settings = self.settings.0;
        let short = [(self.sequential, Kind::Sequential), (self.random, Kind::Random), (self.files, Kind::Files)];
        for (is_given, kind) in short {
            if is_given && !settings.mode.contains(&kind) {
                settings.mode.push(kind);
            }
        }
        settings.check_with(self.like.is_some()).map_err(|refused| anyhow!(spelled(&refused, flag)))?;
        let tier = self.tier.or_else(|| placement.shaped.clone());
        let like = self.like.as_ref().map(|data| || like(data, &settings));
        Plan::new(settings.clone(), self.target, like, tier, self.runs as usize)
    }
}

fn like(data: &Path, settings: &ProbeSettings) -> Result<Like> {
    let bar = progress::unknown("look at");
    let show = |now: Progress| progress::show(&bar, now);
    let control = Control { threads: 0, cancel: stop::flag_once_begun(), progress: &show };
    let found = forebay_study::like(data, settings, &control);
    bar.finish_and_clear();
    found
}

// The help names it.
const _: () = assert!(TIME_LIMIT.as_secs() == 5);
