//! `forebay data decode`: writes the pixels that ingest delivers to a NumPy array, to view or to compare.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Result, bail};
use forebay_bench::ingest::IngestSettings;
use forebay_format::image::{ImageSpec, Layout};
use forebay_format::npy;
use forebay_pipeline::{Source, Threads};
use forebay_storage::Routed;
use forebay_units::{PathText, count};

use super::InputArgs;
use crate::flags::{Flags, Pick};
use crate::output::{Kind, Outcome, Outputs, note, print, remark};
use crate::store::StoreArgs;
use crate::{progress, stop};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder, a list, an image, or TFRecord or tar shards
    path: PathBuf,

    #[command(flatten)]
    input: InputArgs,

    /// NumPy file to write, or "-" for stdout; images keep the source's order
    #[arg(long, value_name = "FILE.npy|-")]
    to: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    store: StoreArgs,

    #[command(flatten)]
    settings: Flags<IngestSettings, OfPixels>,
}

/// The flags of ingest that concern samples and pixels.
#[derive(Debug)]
struct OfPixels;

impl Pick for OfPixels {
    fn has(name: &str) -> bool {
        ["size", "dtype", "layout", "scaled", "crop", "flip", "antialias", "seed", "max_sample_size"].contains(&name)
    }
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    args.store.apply([args.path.as_path()])?;
    let path = args.input.path(&args.path)?;
    let to = Outputs::for_inputs([args.path.as_path()], args.force).file("--to", &args.to, Kind::Values)?;
    let source = Source::discover_with(Arc::new(Routed::default()), &path, &args.input.keys())?;
    let source = source.with_max_sample_size(args.settings.0.max_sample_size);
    if source.pixels().is_some() {
        bail!("{} already contains decoded images", path.escaped());
    }
    note(source.notes());
    note(source.left_out().note().as_slice());
    let n = source.n_samples();
    let spec = args.settings.0.image();
    // Written to a temporary file and renamed, since an image may fail.
    let mut file = to.begin()?;
    file.write(&npy::header(spec.dtype, &shape(n, &spec)))?;
    let pipeline = args.settings.0.decoded(&source).threads(Threads::Auto).batch(16).prefetch(1);
    let (bar, stopped) = (progress::images(n as u64), stop::flag());
    for batch in pipeline.iter()? {
        // A bad image is an error, or rows would not match the files.
        let batch = batch?;
        if stopped.load(Ordering::Relaxed) {
            return Err(forebay_dataset::Error::Cancelled.into());
        }
        file.write(batch.data())?;
        bar.inc(batch.len() as u64);
    }
    file.commit()?;
    bar.finish_and_clear();
    let told = format!("{}: {}", to.path().escaped(), count(n as u64, "image"));
    if to.is_stdout() {
        remark(&told)
    } else {
        print(&format!("{told}\n"))?
    }
    Ok(Outcome::Met)
}

fn shape(n: usize, spec: &ImageSpec) -> [usize; 4] {
    let (width, height) = (spec.width as usize, spec.height as usize);
    match spec.layout {
        Layout::Nhwc => [n, height, width, 3],
        Layout::Nchw => [n, 3, height, width],
    }
}
