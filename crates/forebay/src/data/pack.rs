//! `forebay data pack`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use forebay_dataset::{Control, Fault, PackOptions, PackPlan, Packing, pack, unpack};
use forebay_format::tfrecord::Compression;
use forebay_units::{Bytes, count, group_digits};

use super::{WorkArgs, with_progress};
use crate::output::{Outcome, print, remark};
use crate::pixels::parse_size;
use crate::values::SampleLimit;

/// The flags of `forebay data pack`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Image files (a folder or a list); with `--to files`, TFRecord or tar shards
    input: PathBuf,

    /// Where to put the shards; a second run goes on where the first one stopped
    out: PathBuf,

    /// What to make
    #[arg(long, value_enum)]
    to: Target,

    /// Size of tensor images in pixels; 256x256 by default
    #[arg(long, value_parser = parse_size, value_name = "N|WxH")]
    size: Option<(u32, u32)>,

    /// A shard is ended before it would become larger than this; 128MiB by default
    #[arg(long, value_name = "SIZE")]
    shard_size: Option<Bytes>,

    /// Compress each TFRecord shard as a whole
    #[arg(long, value_enum, value_name = "gzip|zlib")]
    compression: Option<CompressionArg>,

    /// Keep the files' order instead of mixing the classes over the shards
    #[arg(long)]
    keep_order: bool,

    /// Seed of the mixing; 0 by default
    #[arg(long, value_name = "S", conflicts_with = "keep_order")]
    seed: Option<u64>,

    /// Stop at the first bad input instead of leaving it out
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    limit: SampleLimit,

    #[command(flatten)]
    work: WorkArgs,

    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    Tfrecord,
    Tar,
    Tensor,
    Files,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompressionArg {
    Gzip,
    Zlib,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    if args.compression.is_some() && args.to != Target::Tfrecord {
        bail!("--compression belongs to --to tfrecord");
    }
    if args.size.is_some() && args.to != Target::Tensor {
        bail!("--size belongs to --to tensor");
    }
    let of_shards = [
        ("--shard-size", args.shard_size.is_some()),
        ("--keep-order", args.keep_order),
        ("--seed", args.seed.is_some()),
    ];
    if let Some((flag, _)) = of_shards.iter().find(|(_, given)| *given && args.to == Target::Files) {
        bail!("{flag} belongs to making shards, not to --to files");
    }
    match packing(&args) {
        Some(packing) => run_pack(&args, packing),
        None => run_unpack(&args),
    }
}

fn packing(args: &Args) -> Option<Packing> {
    let (width, height) = args.size.unwrap_or((256, 256));
    let compression = match args.compression {
        None => Compression::None,
        Some(CompressionArg::Gzip) => Compression::Gzip,
        Some(CompressionArg::Zlib) => Compression::Zlib,
    };
    match args.to {
        Target::Tfrecord => Some(Packing::TfRecord { compression }),
        Target::Tar => Some(Packing::Tar),
        Target::Tensor => Some(Packing::Tensor { width, height }),
        Target::Files => None,
    }
}

fn run_pack(args: &Args, packing: Packing) -> Result<Outcome> {
    let usual = PackOptions::new(packing);
    let options = PackOptions {
        shard_size: args.shard_size.unwrap_or(usual.shard_size),
        shuffle: (!args.keep_order).then(|| args.seed.unwrap_or(0)),
        stop_at_bad: args.strict,
        max_sample: args.limit.bytes(),
        ..usual
    };
    let plan = PackPlan::new(&args.input, options)?;
    let out = args.out.display();
    plan.left_out().note().iter().for_each(|note| remark(&format!("forebay: {note}")));
    if args.dry_run {
        let files = count(plan.n_files(), "file");
        let shards = count(plan.n_shards(), &format!("{} shard", packing.name()));
        print(&format!("{out}: {files} into {shards}, about {}\n", plan.expected_bytes()))?;
        return Ok(Outcome::Met);
    }
    let packed = with_progress("packing", &args.work, |control| pack(&plan, &args.out, control))?;
    let samples = count(packed.n_samples, "sample");
    let shards = count(packed.n_shards, &format!("{} shard", packing.name()));
    print(&format!("{out}: {samples} in {shards}, {}{}\n", packed.bytes, kept(packed.n_kept)))?;
    Ok(judge(&packed.skipped))
}

fn run_unpack(args: &Args) -> Result<Outcome> {
    if args.dry_run {
        bail!("--dry-run: what shards hold is known only after reading them; see `forebay data inspect`");
    }
    let limit = args.limit.bytes();
    let work = |control: &Control<'_>| unpack(&args.input, &args.out, args.strict, limit, control);
    let done = with_progress("unpacking", &args.work, work)?;
    done.left_out.iter().for_each(|note| remark(&format!("forebay: {note}")));
    let files = count(done.n_files, "file");
    print(&format!("{}: {files}, {}{}\n", args.out.display(), done.bytes, kept(done.n_kept)))?;
    Ok(judge(&done.skipped))
}

fn kept(n: u64) -> String {
    match n {
        0 => String::new(),
        1 => "; 1 was there already".to_owned(),
        _ => format!("; {} were there already", group_digits(n)),
    }
}

fn judge(skipped: &[Fault]) -> Outcome {
    if skipped.is_empty() {
        return Outcome::Met;
    }
    remark(&format!("forebay: left out {}:", count(skipped.len() as u64, "bad input")));
    skipped.iter().for_each(|fault| remark(&format!("  {fault}")));
    Outcome::Missed
}
