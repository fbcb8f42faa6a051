//! `forebay ingest`: flags in, plan built, experiment run, table out.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use forebay_bench::ingest::Plan;
use forebay_measure::{Cache, Io, ThreadCount};
use forebay_record::IngestCell;
use forebay_storage::Profile;
use forebay_units::group_digits;

use crate::ceilings::{Ceilings, Name};
use crate::data::InputArgs;
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, give, print, remark};
use crate::pixels::{PixelArgs, parse_size};
use crate::tier::Placement;
use crate::values::{SampleLimit, parse_io, parse_positive, parse_threads};
use crate::{live, stop, tier};

/// The flags of `forebay ingest`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A folder of images, a list of `path label` lines, or TFRecord, tar or tensor shards
    data: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// Threads that make samples; a list is swept, `auto` finds the knee
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_parser = parse_threads, value_name = "N,…|auto")]
    threads: Vec<ThreadCount>,

    /// Threads that only read, ahead of those that decode; 0 lets every thread do both
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    readers: u32,

    /// Samples a batch
    #[arg(long, default_value_t = 64, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,

    /// Batches' worth of samples a repeat, failed ones included; one pass over the data by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    batches: Option<u64>,

    /// Batches made ahead of the consumer; 0 works only while the consumer waits
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(..=10_000))]
    prefetch: u32,

    /// Read without decoding
    #[arg(long, conflicts_with_all = ["size", "dtype", "layout", "scaled"])]
    read_only: bool,

    /// Evict the files before each repeat, and prove it
    #[arg(long, conflicts_with = "warm")]
    cold: bool,

    /// Leave the page cache as the warm-up fills it (the default)
    #[arg(long)]
    warm: bool,

    /// Emulate a device in this process: hdd, ssd, optane or lustre; data on a tier that is up needs no such word
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    /// How files are read: buffered, direct, uring, uring-direct, or auto to measure and choose
    #[arg(long, default_value = "buffered", value_parser = parse_io, value_name = "MODE")]
    io: Io,

    #[command(flatten)]
    limit: SampleLimit,

    /// Output size in pixels; 224x224 by default, and tensor shards keep their own
    #[arg(long, value_parser = parse_size, value_name = "N|WxH")]
    size: Option<(u32, u32)>,

    #[command(flatten)]
    pixels: PixelArgs,

    /// Map tensor shards into memory instead of reading them
    #[arg(long, conflicts_with_all = ["io", "tier"])]
    mmap: bool,

    /// Give samples in the order in which they arrive, not in the seeded one
    #[arg(long)]
    first_come: bool,

    /// Rounds that are run and not kept
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    warmups: u32,

    /// Rounds that are kept: median and spread are over these
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeats: u32,

    #[command(flatten)]
    quiet: QuietArgs,

    /// Seed of the shuffle
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,

    /// Set the rates beside a ceiling that `probe --save` kept; by default the newest one of the data's file system
    #[arg(long, value_name = "NAME")]
    ceiling: Option<Name>,

    /// Exit with status 1 when the fastest cell is below this many images a second
    #[arg(long, value_name = "RATE", value_parser = parse_positive)]
    min_images_per_s: Option<f64>,

    /// Say what would be measured, and measure nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    json: JsonArgs,
}

pub(crate) fn run(mut args: Args) -> Result<Outcome> {
    args.data = args.input.path(&args.data)?;
    let placement = tier::placement(&args.data)?;
    let ceilings = Ceilings::load(args.ceiling.as_ref())?;
    if args.dry_run {
        return preview(&args.into_plan(&placement)?);
    }
    let json = args.json.target([args.data.as_path()])?;
    let (threshold, quiet) = (args.min_images_per_s, args.quiet);
    let notes = placement.notes_beside(args.tier.as_ref());
    let plan = args.into_plan(&placement)?;
    let (mut record, series) = live::observed("ingest", "", stop::flag_once_begun(), quiet, |observer| {
        Ok(forebay_bench::ingest::run(&plan, live::record(&plan.data), observer)?)
    })?;
    record.notes.extend(notes);
    ceilings.apply(&mut record);
    record.series = Some(series);
    give(&forebay_report::record(&record), json.as_ref().map(|target| (target, record.to_json())))?;
    // Where a whole repeat delivered nothing, not all that was asked for was measured.
    let is_whole = record.cells.len() == plan.threads.len() && record.cells.iter().all(|cell| cell.empty_repeats == 0);
    Ok(judge(&record.cells, threshold, !is_whole || stop::flag().load(Ordering::Relaxed)))
}

fn preview(plan: &Plan) -> Result<Outcome> {
    let preview = forebay_bench::ingest::preview(plan)?;
    let (data, n) = (&preview.dataset, group_digits);
    print(&format!(
        "{}: {} samples in {} {} (batch {}): {} repeats of {} images, warm-ups included\n",
        data.path,
        n(data.n_samples),
        n(data.n_files),
        if data.packing == "files" { "files".to_owned() } else { format!("{} shards", data.packing) },
        plan.batch,
        n(preview.n_repeats),
        n(preview.images_a_repeat)
    ))?;
    Ok(Outcome::Met)
}

/// Whether what was asked for was met. A run that was cut short did not do all that was asked.
fn judge(cells: &[IngestCell], threshold: Option<f64>, is_short: bool) -> Outcome {
    let best = cells.iter().map(|cell| cell.images_per_s).fold(0.0, f64::max);
    match threshold {
        _ if is_short || cells.is_empty() => Outcome::Missed,
        Some(wanted) if best < wanted => {
            remark(&format!("forebay: {best:.1} images/s, less than the {wanted} asked for"));
            Outcome::Missed
        }
        _ => Outcome::Met,
    }
}

impl Args {
    fn into_plan(self, placement: &Placement) -> Result<Plan> {
        if self.threads.is_empty() {
            bail!("--threads: give at least one number, or auto");
        }
        if let (true, Some(profile)) = (self.mmap, &placement.shaped) {
            bail!("--mmap: the tier {} is emulated in this process, which a map goes past", profile.name);
        }
        // Tensor shards keep their own size unless one is asked for; type and layout hold for them too.
        let image_is_given = self.size.is_some();
        Ok(Plan {
            data: self.data,
            keys: self.input.keys(),
            threads: self.threads,
            readers: self.readers as usize,
            batch: self.batch as usize,
            batches: self.batches,
            prefetch: self.prefetch as usize,
            read_only: self.read_only,
            image: self.pixels.spec(self.size.unwrap_or((224, 224))),
            resize_pixels: image_is_given,
            cache: if self.cold { Cache::Cold } else { Cache::Warm },
            io: self.io,
            max_sample: self.limit.bytes(),
            tier: self.tier.or_else(|| placement.shaped.clone()),
            kernel_tier: placement.kernel.clone(),
            map_shards: self.mmap,
            warmups: self.warmups as usize,
            repeats: self.repeats as usize,
            seed: self.seed,
            first_come: self.first_come,
        })
    }
}
