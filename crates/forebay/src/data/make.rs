//! `forebay data make`.

use std::path::PathBuf;

use anyhow::Result;
use forebay_dataset::{MakePlan, MakeSpec, Profile, SizeMix, make};
use forebay_measure::value;
use forebay_units::{Bytes, PathText, count, group_digits};

use super::{WorkArgs, with_progress};
use crate::output::{Outcome, done};
use crate::store::StoreArgs;
use crate::values::of;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// imagenet: median 112 KB, mean 126 KB, about 480x415; caltech101: 102 classes, median 12 KB
    #[arg(value_name = "imagenet|caltech101")]
    profile: Profile,

    /// Folder or URL to write to; a second run resumes an unfinished one
    dir: PathBuf,

    /// Number of images; the profile's by default
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Seed of the images
    #[arg(long, default_value_t = 0, value_name = "S")]
    seed: u64,

    /// Median file size
    #[arg(long, value_name = "SIZE")]
    median_size: Option<Bytes>,

    /// Spread of the file sizes: standard deviation of their logarithm
    #[arg(long, value_name = "SIGMA")]
    sigma: Option<f64>,

    /// File sizes by powers of two, in per cent: 32K/13:64K/87 has 13 % of 32 to 64 KiB, the others of 64 to 128 KiB
    #[arg(long, value_name = "FROM/PERCENT:...", conflicts_with_all = ["median_size", "sigma"])]
    sizes: Option<SizeMix>,

    /// Make all images this size instead of the profile's mix
    #[arg(long, value_parser = of(value::pixels), value_name = "N|WxH")]
    dimensions: Option<(u32, u32)>,

    /// Number of class folders
    #[arg(long, value_name = "N")]
    classes: Option<u32>,

    #[command(flatten)]
    work: WorkArgs,

    #[command(flatten)]
    store: StoreArgs,

    /// Show the plan without writing anything
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: Args) -> Result<Outcome> {
    let spec = MakeSpec {
        count: args.count,
        seed: args.seed,
        median_size: args.median_size,
        sigma: args.sigma,
        sizes: args.sizes,
        dimensions: args.dimensions,
        classes: args.classes,
        ..MakeSpec::new(args.profile)
    };
    args.store.apply([args.dir.as_path()])?;
    let plan = MakePlan::new(&spec)?;
    let dir = args.dir.escaped();
    if args.dry_run {
        let images = count(plan.count(), "image");
        let classes = plan.parameters().classes;
        let classes = format!("{classes} class{}", if classes == 1 { "" } else { "es" });
        return done(&format!("{dir}: {images} in {classes}, about {}\n", plan.expected_bytes()));
    }
    let made = with_progress("making", args.work.threads_for(&args.dir), |control| make(&plan, &args.dir, control))?;
    let kept =
        if made.n_kept > 0 { format!(", {} of them already there", group_digits(made.n_kept)) } else { String::new() };
    done(&format!("{dir}: {}, {}{kept}\n", count(made.n_files, "image"), made.bytes))
}
