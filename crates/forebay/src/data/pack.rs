//! `forebay data pack`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use forebay_dataset::{Fault, PackOptions, PackPlan, Packing, UnpackOptions, pack, unpack};
use forebay_format::tfrecord::Compression;
use forebay_measure::value;
use forebay_storage::is_url;
use forebay_units::{Bytes, PathText, count, group_digits};

use super::InputArgs;
use super::{WorkArgs, with_progress};
use crate::output::{Outcome, Outputs, done, note, print, remark};
use crate::stop;
use crate::store::StoreArgs;
use crate::values::{SampleLimit, of};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Image files (a folder or a list); with `--to files`, TFRecord or tar shards
    input: PathBuf,

    #[command(flatten)]
    select: InputArgs,

    /// Folder or URL for the shards; a second run resumes an unfinished one
    out: PathBuf,

    /// Format to write
    #[arg(long, value_enum)]
    to: Target,

    /// Size of tensor images in pixels; 256x256 by default
    #[arg(long, value_parser = of(value::pixels), value_name = "N|WxH")]
    size: Option<(u32, u32)>,

    /// Largest shard; 128MiB by default
    #[arg(long, value_name = "SIZE")]
    shard_size: Option<Bytes>,

    /// Compress each TFRecord shard as a whole
    #[arg(long, value_parser = PossibleValuesParser::new(["gzip", "zlib"]).map(compression), value_name = "gzip|zlib")]
    compression: Option<Compression>,

    /// Keep the files' order instead of shuffling them
    #[arg(long)]
    keep_order: bool,

    /// Seed of the shuffle; 0 by default
    #[arg(long, value_name = "S", conflicts_with = "keep_order")]
    seed: Option<u64>,

    /// Stop at the first bad input instead of leaving it out
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    limit: SampleLimit,

    #[command(flatten)]
    work: WorkArgs,

    #[command(flatten)]
    store: StoreArgs,

    /// Show the plan without writing anything
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

pub(crate) fn run(mut args: Args) -> Result<Outcome> {
    let (to_files, keys) = (args.to == Target::Files, args.select.keys());
    for (flag, is_given, is_used, by) in [
        ("--compression", args.compression.is_some(), args.to == Target::Tfrecord, "--to tfrecord"),
        ("--size", args.size.is_some(), args.to == Target::Tensor, "--to tensor"),
        ("--shard-size", args.shard_size.is_some(), !to_files, "--to tfrecord, tar or tensor"),
        ("--keep-order", args.keep_order, !to_files, "--to tfrecord, tar or tensor"),
        ("--seed", args.seed.is_some(), !to_files, "--to tfrecord, tar or tensor"),
        ("--image-key", keys.image.is_some(), to_files, "--to files"),
        ("--label-key", keys.label.is_some(), to_files, "--to files"),
    ] {
        if is_given && !is_used {
            bail!("{flag} needs {by}");
        }
    }
    args.store.apply([args.input.as_path(), args.out.as_path()])?;
    if is_url(&args.input) {
        bail!("{}: pack reads local files; ingest and train read object stores directly", args.input.escaped());
    }
    if to_files && is_url(&args.out) {
        bail!("{}: --to files writes local files", args.out.escaped());
    }
    args.input = args.select.path(&args.input)?;
    Outputs::for_inputs([args.input.as_path()], false).folder_apart("OUT", &args.out)?;
    match packing(&args) {
        Some(packing) => run_pack(&args, packing),
        None => run_unpack(&args),
    }
}

fn compression(name: String) -> Compression {
    if name == "gzip" { Compression::Gzip } else { Compression::Zlib }
}

fn packing(args: &Args) -> Option<Packing> {
    let (width, height) = args.size.unwrap_or((256, 256));
    match args.to {
        Target::Tfrecord => Some(Packing::TfRecord { compression: args.compression.unwrap_or(Compression::None) }),
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
        max_sample: args.limit.0.max_sample_size,
        ..usual
    };
    let plan = PackPlan::new(&args.input, options)?;
    note(plan.notes());
    let out = args.out.escaped();
    if args.dry_run {
        let files = count(plan.n_files(), "file");
        let shards = count(plan.n_shards(), &format!("{} shard", packing.name()));
        return done(&format!("{out}: {files} into {shards}, about {}\n", plan.expected_bytes()));
    }
    stop::finishing("the shards");
    let packed = with_progress("packing", args.work.threads_for(&args.out), |control| pack(&plan, &args.out, control))?;
    let samples = count(packed.n_samples, "sample");
    let shards = count(packed.n_shards, &format!("{} shard", packing.name()));
    print(&format!("{out}: {samples} in {shards}, {}{}\n", packed.bytes, kept(packed.n_kept)))?;
    Ok(judge(&packed.skipped))
}

fn run_unpack(args: &Args) -> Result<Outcome> {
    if args.dry_run {
        bail!("--dry-run cannot show the content of shards without reading them\nhint: use `forebay data inspect`");
    }
    let options =
        UnpackOptions { stop_at_bad: args.strict, keys: args.select.keys(), max_sample: args.limit.0.max_sample_size };
    let done =
        with_progress("unpacking", args.work.threads, |control| unpack(&args.input, &args.out, &options, control))?;
    note(&done.notes);
    let files = count(done.n_files, "file");
    print(&format!("{}: {files}, {}{}\n", args.out.escaped(), done.bytes, kept(done.n_kept)))?;
    Ok(judge(&done.skipped))
}

fn kept(n: u64) -> String {
    match n {
        0 => String::new(),
        1 => "; 1 already there".to_owned(),
        _ => format!("; {} already there", group_digits(n)),
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
