//! `forebay data`: makes, inspects, packs, verifies and decodes datasets.

mod decode;
mod input;
mod make;
mod pack;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;
use forebay_dataset::{Control, InspectOptions, Progress, VerifyOptions, inspect, verify};
use forebay_observe::{Options, Sampler, observe};
use forebay_record::Series;
use forebay_storage::is_url;
use serde::Serialize;

use crate::output::{JsonArgs, Outcome, Schema};
use crate::store::StoreArgs;
use crate::values::SampleLimit;
use crate::{progress, stop};
pub(crate) use input::InputArgs;

/// Threads that examine or write objects, unless another number is given.
const THREADS_OF_OBJECTS: u32 = 32;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Generate a dataset of synthetic photographs; the same seed gives the same bytes
    Make(make::Args),
    /// Describe a dataset: sizes, formats, dimensions, bad files, fio block mix
    Inspect(InspectArgs),
    /// Pack image files into TFRecord, tar or tensor shards, or unpack shards into files
    Pack(pack::Args),
    /// Check every checksum and decode every image; list the bad ones
    Verify(InspectArgs),
    /// Decode and resize images exactly as ingest does, and write them to a NumPy array
    Decode(decode::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Make(args) => make::run(args),
        Command::Inspect(args) => args.inspect(),
        Command::Pack(args) => pack::run(args),
        Command::Verify(args) => args.verify(),
        Command::Decode(args) => decode::run(args),
    }
}

#[derive(Debug, clap::Args)]
struct WorkArgs {
    /// Worker threads; 0 for one per core
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1024))]
    threads: u32,
}

impl WorkArgs {
    /// The threads for data there: each waits for one request at a time.
    fn threads_for(&self, path: &Path) -> u32 {
        if self.threads == 0 && is_url(path) { THREADS_OF_OBJECTS } else { self.threads }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// A folder, a list, an image, or shards; also `s3://bucket/prefix`
    path: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    work: WorkArgs,

    #[command(flatten)]
    limit: SampleLimit,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Serialize)]
struct Observed<T> {
    #[serde(flatten)]
    found: T,
    series: Series,
}

impl InspectArgs {
    fn inspect(&self) -> Result<Outcome> {
        let options = InspectOptions {
            keys: self.input.keys(),
            max_sample: self.limit.0.max_sample_size,
            ..InspectOptions::default()
        };
        self.look(
            Schema::DataInspect,
            "inspecting",
            |path, control| inspect(path, &options, control),
            forebay_report::inspection,
        )?;
        Ok(Outcome::Met)
    }

    fn verify(&self) -> Result<Outcome> {
        let options = VerifyOptions { keys: self.input.keys(), max_sample: self.limit.0.max_sample_size };
        let found = self.look(
            Schema::DataVerify,
            "verifying",
            |path, control| verify(path, &options, control),
            forebay_report::verification,
        )?;
        Ok(Outcome::of(found.is_sound()))
    }

    /// Examines a dataset and prints the result as text and, on request, as JSON.
    fn look<T: Serialize>(
        &self,
        schema: Schema,
        name: &str,
        look: impl FnOnce(&Path, &Control<'_>) -> forebay_dataset::Result<T>,
        text: impl FnOnce(&T) -> String,
    ) -> Result<T> {
        self.store.apply([self.path.as_path()])?;
        let json = self.json.target([self.path.as_path()])?;
        let path = self.input.path(&self.path)?;
        // There is nothing to clean up, and listing a million files takes seconds.
        stop::flag_once_begun();
        let threads = self.work.threads_for(&path);
        let work = |_: Option<&Sampler>| with_progress(name, threads, |control| look(&path, control));
        let (found, series) = observe(Options::default(), work);
        let observed = Observed { found: found?, series: series? };
        json.give(schema, &text(&observed.found), &observed)?;
        Ok(observed.found)
    }
}

pub(crate) fn with_progress<T>(name: &str, threads: u32, run: impl FnOnce(&Control<'_>) -> T) -> T {
    let bar = progress::unknown(name);
    let show = |now: Progress| progress::show(&bar, now);
    let outcome = run(&Control { threads: threads as usize, cancel: stop::flag(), progress: &show });
    bar.finish_and_clear();
    outcome
}
