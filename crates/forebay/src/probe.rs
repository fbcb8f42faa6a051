//! `forebay probe`: flags in, plan built, storage measured, table out.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use forebay_dataset::{Control, InspectOptions, Progress};
use forebay_pipeline::Source;
use forebay_probe::ceiling::{Load, Tier};
use forebay_probe::{Mix, Modes, Plan, Preview, Sizes, TIME_LIMIT, Tree};
use forebay_record::{Engine, ProbeCell, TierKind};
use forebay_storage::{Local, Profile};
use forebay_units::{Bytes, PathText, format_seconds, group_digits};

use crate::ceilings::{self, Ceilings, Name};
use crate::live::QuietArgs;
use crate::output::{JsonArgs, Outcome, give, print, remark};
use crate::tier::Placement;
use crate::{live, progress, stop, tier};

const SIZE: u64 = 5 << 30;
const BLOCK: u64 = 1 << 20;
/// Places, order and content are the same in every probe.
const SEED: u64 = 0;
/// A disk, a SATA flash drive and an NVMe drive, in bytes a second: for an estimate where nothing is known.
const USUAL_RATES: [f64; 3] = [150e6, 500e6, 2_000e6];

/// The flags of `forebay probe`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// A folder on the storage to be measured; or a file there, of which only reads are measured
    #[arg(value_name = "DIR")]
    target: PathBuf,

    /// Length of the file that is written and read, and of all small files together; 5GiB by default
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,

    /// Write one file (fsync included) and read it, from end to end; with --random the default
    ///
    /// The file is made anew in each run, with its space allocated before the clock starts. With sync and direct, each
    /// thread has a part of the file; uring has one stream with all requests in flight.
    #[arg(long)]
    sequential: bool,

    /// Read pieces of that file in random order, none twice, for at most 5 s a run
    #[arg(long)]
    random: bool,

    /// Open, read and close small files in random order, each once, for at most 5 s a run
    ///
    /// The files are made in DIR and removed at the end: as long as those of --like (a random choice of them where
    /// they do not fit into --size), or of --mix, or of --block.
    #[arg(long)]
    files: bool,

    /// Sizes of random requests, as fio's bssplit: 4K/25:64K/75, with K = 1,024 bytes
    ///
    /// By default 2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1, the reads of an image set, or --block if given.
    #[arg(long, value_name = "SPEC", conflicts_with = "like")]
    mix: Option<Mix>,

    /// Take the sizes from a dataset: the mix that `data inspect` names; for --files the lengths of its files
    ///
    /// DATA is only looked at. Where no mode is given, a dataset of files adds the files mode to the other two.
    #[arg(long, value_name = "DATA")]
    like: Option<PathBuf>,

    /// Bytes a request; a list is swept; 1MiB by default; 64K is 65,536 bytes, as in --mix
    ///
    /// K, M and G alone are powers of two, as fio has them: 64K and 64KiB are 65,536 bytes, 64KB is 64,000.
    #[arg(long, value_delimiter = ',', value_parser = parse_block, value_name = "SIZE,…")]
    block: Vec<Bytes>,

    /// Requests in flight; a list is swept
    #[arg(long, value_delimiter = ',', default_value = "1,8,32", value_parser = parse_depth, value_name = "N,…")]
    depth: Vec<usize>,

    /// How requests are made; a list is swept
    ///
    /// sync goes through the page cache, direct past it, both with a thread a request in flight; uring is one io_uring
    /// past the page cache. By default direct, or sync where the file system knows no direct I/O.
    #[arg(long, value_delimiter = ',', value_parser = parse_engine, value_name = "sync|direct|uring")]
    engine: Vec<Engine>,

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
    give(&forebay_report::record(&record), json.as_ref().map(|target| (target, record.to_json())))?;
    let stopped = stop::flag().load(Ordering::Relaxed) || record.cells.is_empty();
    match save {
        Some(name) if stopped => remark(&format!("forebay: {name} is not saved: the probe was stopped")),
        Some(name) => ceilings::save(&name, &record)?,
        None => {}
    }
    Ok(if stopped { Outcome::Missed } else { Outcome::Met })
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
    print(&text)?;
    Ok(Outcome::Met)
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
        let modes = self.modes()?;
        let length = std::fs::metadata(&self.target).ok().filter(|found| found.is_file()).map(|found| found.len());
        let blocks = distinct(self.block.iter().map(|block| block.0).collect());
        let sizes = match &self.mix {
            Some(mix) => Sizes::Mix(mix.clone()),
            None if blocks.is_empty() => Sizes::Mix(Mix::of_images()),
            None => Sizes::Fixed(blocks.clone()),
        };
        let mut plan = Plan {
            size: self.size.map(|size| size.0).or(length).unwrap_or(SIZE),
            target: self.target,
            modes,
            blocks: if blocks.is_empty() { vec![BLOCK] } else { blocks },
            sizes,
            trees: Vec::new(),
            depths: distinct(self.depth),
            engines: Some(distinct(self.engine)).filter(|engines| !engines.is_empty()),
            runs: self.runs as usize,
            tier: self.tier.or_else(|| placement.shaped.clone()),
            seed: SEED,
        };
        match &self.like {
            Some(data) => {
                // A target that cannot be used is said before a large dataset is looked at.
                forebay_probe::preview(&plan)?;
                let (mix, files) = like(data)?;
                plan.sizes = Sizes::Mix(mix);
                let by_default = !(self.sequential || self.random || self.files);
                plan.modes.files |= by_default && files && length.is_none();
                if plan.modes.files {
                    let source = Source::discover(Arc::new(Local::default()), data)?;
                    plan.trees = vec![Tree::like(data, source.files(), plan.size, SEED)?];
                }
            }
            None if plan.modes.files => plan.trees = plan.sizes.trees(plan.size, SEED)?,
            None => {}
        }
        Ok(plan)
    }

    /// What is measured, after a look at the flags that would do nothing.
    fn modes(&self) -> Result<Modes> {
        let any = self.sequential || self.random || self.files;
        let modes = Modes { sequential: self.sequential || !any, random: self.random || !any, files: self.files };
        let sized = if self.mix.is_some() { Some("--mix") } else { self.like.as_ref().map(|_| "--like") };
        match sized {
            Some(flag) if modes == (Modes { sequential: true, random: false, files: false }) => {
                bail!("{flag} gives the sizes of --random and --files; --sequential has --block")
            }
            Some(flag) if !modes.sequential && !self.block.is_empty() => {
                bail!("{flag} and --block both give the sizes; leave one out")
            }
            _ => Ok(modes),
        }
    }
}

/// The mix of a dataset, and whether it is one of files rather than of shards.
fn like(data: &Path) -> Result<(Mix, bool)> {
    let bar = progress::unknown("look at");
    let show = |now: Progress| progress::show(&bar, now);
    let control = Control { threads: 0, cancel: stop::flag_once_begun(), progress: &show };
    let found = forebay_dataset::inspect(data, &InspectOptions::default(), &control);
    bar.finish_and_clear();
    let found = found?;
    let named = || format!("{}: --like needs a dataset with at least one sound sample", data.escaped());
    let mix = found.bssplit.as_ref().with_context(named)?.parse();
    let mix = mix.map_err(|reason: String| anyhow::anyhow!("{}: {reason}", data.escaped()))?;
    Ok((mix, found.n_samples <= found.n_files))
}

/// A list without what it has twice.
fn distinct<T: PartialEq>(list: Vec<T>) -> Vec<T> {
    list.into_iter().fold(Vec::new(), |mut kept, item| {
        if !kept.contains(&item) {
            kept.push(item);
        }
        kept
    })
}

/// A size whose K, M and G are powers of two, as fio has them.
fn parse_block(text: &str) -> Result<Bytes, String> {
    let binary = text.ends_with(['k', 'K', 'm', 'M', 'g', 'G']).then(|| format!("{text}iB").parse().ok()).flatten();
    binary.map_or_else(|| text.parse().map_err(|error: forebay_units::ParseError| error.to_string()), Ok)
}

fn parse_depth(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("give a number from 1 to 1024".to_owned()),
    }
}

fn parse_engine(text: &str) -> Result<Engine, String> {
    match text {
        "sync" => Ok(Engine::Sync),
        "direct" => Ok(Engine::Direct),
        "uring" => Ok(Engine::Uring),
        _ => Err("give sync, direct or uring".to_owned()),
    }
}

// The help names it.
const _: () = assert!(TIME_LIMIT.as_secs() == 5);
