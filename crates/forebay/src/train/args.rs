//! The flags of `forebay train` that are not settings, and the plan built from all flags.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ArgGroup;
use clap::builder::{OsStringValueParser, TypedValueParser};
use forebay_bench::Gpus;
use forebay_bench::train::{Plan, TrainSettings, Validate};
use forebay_measure::value;
use forebay_record::Level;
use forebay_storage::Profile;
use forebay_study::Placement;

use super::saving::Saving;
use crate::data::InputArgs;
use crate::flags::Flags;
use crate::output::JsonArgs;
use crate::store::StoreArgs;
use crate::together::RankArgs;
use crate::values::of;

/// Flags that apply to data and have no meaning for a batch in memory.
const OF_DATA: [&str; 16] = [
    "threads",
    "prefetch",
    "cold",
    "io",
    "inflight",
    "readahead",
    "cache",
    "storage_option",
    "timeout",
    "max_sample_size",
    "baseline",
    "tier",
    "validate",
    "split",
    "image_key",
    "label_key",
];

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("input").required(true).args(["data", "synthetic"])))]
#[command(mut_arg("synthetic", |arg| arg.conflicts_with_all(OF_DATA)))]
#[command(mut_args(crate::headings::headed))]
pub(crate) struct Args {
    /// A folder of images, a list of `path label` lines, or TFRecord, tar or tensor shards; also `s3://bucket/prefix`
    pub(super) data: Option<PathBuf>,

    #[command(flatten)]
    pub(super) input: InputArgs,

    #[command(flatten)]
    settings: Flags<TrainSettings>,

    /// Emulate a device: hdd, ssd, optane, lustre or s3; not needed for data on a mounted tier
    #[arg(long, value_name = "NAME")]
    tier: Option<Profile>,

    /// Validate after each epoch on PATH or on a held-out fraction [default: 0.1]
    #[arg(
        long,
        value_name = "PATH|FRACTION",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0.1",
        value_parser = OsStringValueParser::new().try_map(parse_validate),
        conflicts_with = "accelerator"
    )]
    validate: Option<Validate>,

    #[command(flatten)]
    pub(super) store: StoreArgs,

    #[command(flatten)]
    saving: Saving,

    #[command(flatten)]
    pub(super) ranks: RankArgs,

    /// Warm-up runs, not measured
    #[arg(long, default_value_t = 0, value_name = "N", conflicts_with = "checkpoint_dir")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    warmups: u32,

    /// Measured runs, each from fresh weights; median and spread are over these
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "checkpoint_dir")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    repeats: u32,

    /// Exit with status 1 if the accelerator computes for less than this fraction of the run
    #[arg(long, value_name = "FRACTION", value_parser = of(share), conflicts_with = "dry_run")]
    pub(super) min_au: Option<f64>,

    /// Show the plan without training
    #[arg(long, conflicts_with = "json")]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) json: JsonArgs,
}

impl Args {
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Path> {
        let validation = match &self.validate {
            Some(Validate::Data(path)) => Some(path.as_path()),
            Some(Validate::Share(_)) | None => None,
        };
        self.data.as_deref().into_iter().chain(validation)
    }

    pub(super) fn checkpoint_dirs(&self) -> impl Iterator<Item = &Path> {
        self.saving.dirs()
    }

    /// The plan for the flags and this placement, and notes for the record.
    pub(super) fn into_plan(self, placement: &Placement) -> Result<(Plan, Vec<String>)> {
        let settings = self.settings.0;
        let (saves, more) = self.saving.saves(&settings, self.data.as_deref())?.unzip();
        let mut notes = placement.notes_with(self.tier.as_ref());
        notes.extend(more.into_iter().flatten());
        let plan = Plan {
            until: settings.until(false),
            settings,
            data: self.data,
            keys: self.input.keys(),
            tier: self.tier.or_else(|| placement.shaped.clone()),
            kernel_tier: placement.kernel.clone(),
            cuda_folders: crate::cuda::folders(),
            gpus: Gpus::cuda(crate::cuda::folders()),
            validate: self.validate,
            saves,
            warmups: self.warmups as usize,
            repeats: self.repeats as usize,
        };
        Ok((plan, notes))
    }
}

/// A number is a fraction; a path that looks like a number is written `./0.5`.
fn parse_validate(text: OsString) -> Result<Validate, String> {
    match text.to_str().and_then(|text| text.parse::<f64>().ok()) {
        None if text.is_empty() => Err("give a path, or a fraction above 0 and below 1".to_owned()),
        None => Ok(Validate::Data(PathBuf::from(text))),
        Some(share) if share > 0.0 && share < 1.0 => Ok(Validate::Share(share)),
        Some(_) => Err("give a fraction above 0 and below 1, or a path".to_owned()),
    }
}

fn share(level: &Level) -> Result<f64, String> {
    value::number("a fraction above 0, at most 1", |share| share > 0.0 && share <= 1.0)(level)
}
