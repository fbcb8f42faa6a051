//! `forebay ingest`: builds the plan from the flags, runs the experiment, prints the table.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use forebay_bench::Gpus;
use forebay_bench::ingest::{IngestSettings, Plan};
use forebay_measure::value;
use forebay_record::{IngestCell, Level};
use forebay_storage::Profile;
use forebay_study::Placement;
use forebay_units::group_digits;

use crate::ceilings::{Ceilings, parse_name};
use crate::data::InputArgs;
use crate::flags::Flags;
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, done, remark};
use crate::store::StoreArgs;
use crate::values::of;
use crate::{live, stop, tier};

/// Repeats if no number is given.
const REPEATS: u32 = 5;

#[derive(Debug, clap::Args)]
#[command(mut_args(crate::headings::headed))]
pub(crate) struct Args {
    /// A folder of images, a list of `path label` lines, or TFRecord, tar or tensor shards; also `s3://bucket/prefix`
    data: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    settings: Flags<IngestSettings>,

    /// Keep the page cache as the warm-up leaves it (the default)
    #[arg(long, conflicts_with = "cold")]
    warm: bool,

    /// Emulate a device: hdd, ssd, optane, lustre or s3; not needed for data on a mounted tier
    #[arg(long, value_name = "NAME", conflicts_with = "mmap")]
    tier: Option<Profile>,

    /// Warm-up repeats, not measured
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    warmups: u32,

    /// Measured repeats; median and spread are over these [default: 5, and more until the rate is known]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeats: Option<u32>,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    quiet: QuietArgs,

    /// Ceiling from `probe --save` to compare with; by default the newest of the file system
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    ceiling: Option<String>,

    /// Exit with status 1 if the fastest cell is below this many images per second
    #[arg(long, value_name = "RATE", value_parser = of(above_0))]
    min_images_per_s: Option<f64>,

    /// Show the plan without measuring anything
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(mut args: Args) -> Result<Outcome> {
    args.store.apply([args.data.as_path()])?;
    args.data = args.input.path(&args.data)?;
    let placement = tier::placement(&args.data)?;
    let ceilings = Ceilings::load(args.ceiling.as_deref())?;
    if args.dry_run {
        return preview(&args.into_plan(&placement)?);
    }
    let json = args.json.target([args.data.as_path()])?;
    let (threshold, quiet) = (args.min_images_per_s, args.quiet);
    let notes = placement.notes_with(args.tier.as_ref());
    let plan = args.into_plan(&placement)?;
    let (mut record, series) = live::observed("ingest", "", stop::flag_once_begun(), quiet, |observer| {
        Ok(forebay_bench::ingest::run(&plan, live::record(&plan.data), observer)?)
    })?;
    record.notes.extend(notes);
    ceilings.apply(&mut record);
    record.series = Some(series);
    json.give_record(&record)?;
    // If a whole repeat delivered nothing, the measurement is incomplete.
    let is_whole =
        record.cells.len() == plan.settings.threads.len() && record.cells.iter().all(|cell| cell.empty_repeats == 0);
    Ok(judge(&record.cells, threshold, !is_whole || stop::flag().load(Ordering::Relaxed)))
}

fn above_0(level: &Level) -> Result<f64, String> {
    value::number("a number above 0", |number| number > 0.0)(level)
}

fn preview(plan: &Plan) -> Result<Outcome> {
    let preview = forebay_bench::ingest::preview(plan)?;
    let (data, n) = (&preview.dataset, group_digits);
    done(&format!(
        "{}: {} samples in {} {} (batch {}): {} repeats of {} images, warm-ups included\n",
        data.path,
        n(data.n_samples),
        n(data.n_files),
        if data.packing == "files" { "files".to_owned() } else { format!("{} shards", data.packing) },
        plan.settings.batch,
        n(preview.n_repeats),
        n(preview.images_per_repeat)
    ))
}

/// Whether the goal was met. A run that was stopped early missed it.
fn judge(cells: &[IngestCell], threshold: Option<f64>, is_short: bool) -> Outcome {
    let best = cells.iter().map(|cell| cell.images_per_s).fold(0.0, f64::max);
    match threshold {
        _ if is_short || cells.is_empty() => Outcome::Missed,
        Some(wanted) if best < wanted => {
            remark(&format!("forebay: {best:.1} images/s, below the required {wanted}"));
            Outcome::Missed
        }
        _ => Outcome::Met,
    }
}

impl Args {
    fn into_plan(self, placement: &Placement) -> Result<Plan> {
        let settings = self.settings.0;
        if let (true, Some(profile)) = (settings.mmap, &placement.shaped) {
            bail!("--mmap bypasses the emulated tier {} of this data", profile.name);
        }
        Ok(Plan {
            until: settings.until(self.repeats.is_none()),
            settings,
            data: self.data,
            keys: self.input.keys(),
            tier: self.tier.or_else(|| placement.shaped.clone()),
            kernel_tier: placement.kernel.clone(),
            gpus: Gpus::cuda(crate::cuda::folders()),
            warmups: self.warmups as usize,
            repeats: self.repeats.unwrap_or(REPEATS) as usize,
        })
    }
}
