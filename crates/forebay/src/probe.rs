//! `forebay probe`: builds the plan from the flags, measures the storage, prints the table.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Result, anyhow, bail};
use forebay_measure::spelled;
use forebay_probe::ceiling::{Load, Tier};
use forebay_probe::{Kind, Like, Plan, Preview, ProbeSettings, TIME_LIMIT};
use forebay_record::{ProbeCell, TierKind};
use forebay_storage::{Profile, is_url};
use forebay_units::{Bytes, PathText, format_seconds, group_digits};

use crate::ceilings::{self, Ceilings, parse_name};
use crate::data::with_progress;
use crate::flags::{Flags, flag};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, done, remark};
use crate::{live, stop, tier};
use forebay_study::Placement;

/// Rates of a hard disk, a SATA SSD and an NVMe drive in bytes per second, for estimates without any measurement.
const USUAL_RATES: [f64; 3] = [150e6, 500e6, 2_000e6];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder on the storage to measure, or a file to measure reads of
    #[arg(value_name = "DIR")]
    target: PathBuf,

    #[command(flatten)]
    settings: Flags<ProbeSettings>,

    /// Write one file (with fsync) and read it from start to end; same as --mode sequential
    ///
    /// Each run writes a new file, allocated before the clock starts. With sync and direct, each thread has its own
    /// part of the file; uring has one stream with all requests in flight.
    #[arg(long)]
    sequential: bool,

    /// Read blocks of that file in random order, at most 5 s per run; same as --mode random
    #[arg(long)]
    random: bool,

    /// Open, read and close small files, at most 5 s per run; same as --mode files
    ///
    /// The files are created in DIR and removed at the end. Their sizes are those of --like (a random choice where they exceed
    /// --size), of --mix, or of --block. Each is read once, in random order.
    #[arg(long)]
    files: bool,

    /// Take block and file sizes from a dataset, as `data inspect` shows them
    ///
    /// DATA is only listed. Without a mode, a dataset of files adds the files mode to the other two.
    #[arg(long, value_name = "DATA")]
    like: Option<PathBuf>,

    /// Runs per cell; the first is a warm-up
    #[arg(long, default_value_t = 6, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    runs: u32,

    /// Emulate a device: hdd, ssd, optane, lustre or s3
    ///
    /// An emulated device serves one write at a time, so writes are measured at depth 1 only. Like a drive's cache, it accepts
    /// writes ahead, so single writes have no latency.
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    #[command(flatten)]
    quiet: QuietArgs,

    /// Save the record under this name, as a ceiling for ingest to compare with
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    save: Option<String>,

    /// Show the plan without measuring anything
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    if is_url(&args.target) {
        bail!(
            "{}: probe measures folders and files, not object stores\n\
             hint: `forebay ingest URL --read-only` measures reads, and `forebay checkpoint bench URL` large objects",
            args.target.escaped()
        );
    }
    let placement = tier::placement(&args.target)?;
    if args.dry_run {
        return preview(&args.into_plan(&placement)?, &placement);
    }
    let json = args.json.target(args.inputs())?;
    let (save, quiet) = (args.save.clone(), args.quiet);
    save.as_deref().map_or(Ok(()), ceilings::check)?;
    let notes = placement.notes_with(args.tier.as_ref());
    let plan = args.into_plan(&placement)?;
    stop::begun();
    let (mut record, series) = live::observed("probe", "forebay: ", stop::flag(), quiet, |observer| {
        Ok(forebay_probe::run(&plan, live::record(&plan.target), observer)?)
    })?;
    record.series = Some(series);
    record.notes.extend(notes);
    if let Some(profile) = &placement.kernel {
        record.cells.iter_mut().for_each(|cell| mark_tier(cell, &profile.name));
    }
    json.give_record(&record)?;
    let stopped = stop::flag().load(Ordering::Relaxed) || record.cells.is_empty();
    match save {
        Some(name) if stopped => remark(&format!("forebay: {name} not saved: the probe was stopped")),
        Some(name) => ceilings::save(&name, &record)?,
        None => {}
    }
    Ok(Outcome::of(!stopped))
}

/// Marks a cell as measured on a kernel tier, unless another tier is shaped on top.
fn mark_tier(cell: &mut ProbeCell, kernel: &str) {
    match &mut cell.medium.tier {
        Some(shaped) => shaped.push_str(&format!(" on {kernel}")),
        None => cell.on_kernel_tier(kernel),
    }
}

fn preview(plan: &Plan, placement: &Placement) -> Result<Outcome> {
    let preview = forebay_probe::preview(plan)?;
    let free = preview.free_bytes.map_or(String::new(), |free| format!(" of {} free", Bytes(free)));
    let mut text = format!(
        "{}: {} cells of {} runs: {} written and at most {} read; {}{free} on disk during the run, {} of memory\n",
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

/// Estimates the time from the tier's rate, a saved probe of this file system, or usual rates of disks.
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
    /// The input, which must not change. In a folder, only scratch files are written.
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
    stop::flag_once_begun();
    with_progress("listing", 0, |control| forebay_study::like(data, settings, control))
}

// Named in the help.
const _: () = assert!(TIME_LIMIT.as_secs() == 5);
