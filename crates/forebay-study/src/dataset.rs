//! Where a study's data comes from: generated, packed from another dataset of the study, or existing.

use std::ops::{Deref, RangeInclusive};
use std::path::{Path, PathBuf};

use forebay_dataset::{MakePlan, MakeSpec, PackOptions, PackPlan, Packing};
use forebay_format::tfrecord::Compression;
use forebay_measure::value;
use forebay_record::{DatasetSpec, Level, Scale};
use forebay_units::{Bytes, PathText, did_you_mean, suggest};

use super::error::{Error, Result};

/// Eight times ImageNet.
const MAX_IMAGES: u64 = 10_000_000;
const FORMS: [&str; 3] = ["tfrecord", "tar", "tensor"];
/// As in `forebay data pack`.
const TENSOR_SIDE: u32 = 256;
/// A shard holds a few images at least.
const SHARD_SIZES: RangeInclusive<u64> = 1 << 20..=1 << 50;

#[derive(Debug, Clone)]
pub struct DatasetPlan {
    pub name: String,
    pub source: DatasetSource,
}

#[derive(Debug, Clone)]
pub enum DatasetSource {
    Make(Box<MakePlan>),
    Pack {
        packing: Shards,
        /// A dataset of files, generated or existing.
        of: String,
    },
    Path(PathBuf),
}

/// What shards are made of, and how large they may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shards {
    pub packing: Packing,
    /// `None` for the default.
    pub size: Option<Bytes>,
}

impl Deref for Shards {
    type Target = Packing;

    fn deref(&self) -> &Packing {
        &self.packing
    }
}

impl Shards {
    /// Part of a folder's name: data with other shards is other data.
    pub(super) fn folder(&self) -> String {
        let size = self.size.map(|size| format!("-{}", size.0)).unwrap_or_default();
        format!("{}{size}", self.packing.name())
    }
}

pub(super) fn plans(specs: &[DatasetSpec], scale: Scale) -> Result<Vec<DatasetPlan>> {
    let plans = specs.iter().map(|spec| plan(spec, scale)).collect::<Result<Vec<_>>>()?;
    plans.iter().try_for_each(|plan| check_origin(plan, &plans))?;
    Ok(plans)
}

fn plan(spec: &DatasetSpec, scale: Scale) -> Result<DatasetPlan> {
    let refuse = |reason: &str| Err(Error::plan(format!("dataset \"{}\"", spec.name), reason));
    if spec.pack.is_none() && spec.shard_size.is_some() {
        return refuse("`shard_size` applies only to packed data");
    }
    if spec.make.is_none() && (spec.count.is_some() || spec.seed != 0 || spec.sizes.is_some()) {
        return refuse("`count`, `seed` and `sizes` apply only to generated data");
    }
    let source = match (&spec.make, &spec.pack, &spec.path, &spec.of) {
        (Some(_), _, Some(_), _) => return refuse("give `make` or `path`, not both"),
        (Some(_), Some(_), ..) => return refuse("give `make` or `pack`, not both"),
        (None, Some(_), Some(_), _) => return refuse("give `pack` or `path`, not both"),
        (_, None, _, Some(_)) => {
            return refuse("`of` needs `pack` (tfrecord, tar, tensor)");
        }
        (None, Some(_), None, None) => return refuse("`pack` needs `of`, the dataset to pack"),
        (None, None, None, None) => {
            return refuse("give `make` (imagenet, caltech101), `pack` (tfrecord, tar, tensor) or `path`");
        }
        (Some(make), None, None, None) => DatasetSource::Make(Box::new(make_plan(spec, make, scale)?)),
        (None, Some(form), None, Some(of)) => {
            let size = spec.shard_size.as_ref().map(|size| shard_size(spec, size.at(scale))).transpose()?;
            DatasetSource::Pack { packing: Shards { packing: packing(spec, form)?, size }, of: of.clone() }
        }
        (None, None, Some(path), None) => DatasetSource::Path(path.clone()),
    };
    Ok(DatasetPlan { name: spec.name.clone(), source })
}

fn make_plan(spec: &DatasetSpec, make: &str, scale: Scale) -> Result<MakePlan> {
    let place = format!("dataset \"{}\"", spec.name);
    let profile = make.parse().map_err(|reason: String| Error::Plan {
        place: format!("{place}, make"),
        reason,
        hint: did_you_mean(make, ["imagenet", "caltech101"]),
    })?;
    let count = spec.count.as_ref().map(|count| *count.at(scale));
    if count.is_some_and(|count| count > MAX_IMAGES) {
        return Err(Error::plan(format!("{place}, count"), format!("at most {MAX_IMAGES} images are supported")));
    }
    let sizes = spec.sizes.as_deref().map(str::parse).transpose();
    let sizes = sizes.map_err(|reason: String| Error::plan(format!("{place}, sizes"), reason))?;
    let make = MakeSpec { count, seed: spec.seed, sizes, ..MakeSpec::new(profile) };
    MakePlan::new(&make).map_err(|error| Error::plan(place, error.to_string()))
}

fn shard_size(spec: &DatasetSpec, size: &Level) -> Result<Bytes> {
    let place = || format!("dataset \"{}\", shard_size", spec.name);
    value::bytes(SHARD_SIZES)(size).map_err(|reason| Error::plan(place(), reason))
}

fn packing(spec: &DatasetSpec, form: &str) -> Result<Packing> {
    match form {
        "tfrecord" => Ok(Packing::TfRecord { compression: Compression::None }),
        "tar" => Ok(Packing::Tar),
        "tensor" => Ok(Packing::Tensor { width: TENSOR_SIDE, height: TENSOR_SIDE }),
        _ => Err(Error::Plan {
            place: format!("dataset \"{}\", pack", spec.name),
            reason: format!("\"{form}\" is not one of {}", FORMS.join(", ")),
            hint: did_you_mean(form, FORMS),
        }),
    }
}

/// Only datasets of files can be packed, which rules out cycles.
fn check_origin(plan: &DatasetPlan, all: &[DatasetPlan]) -> Result<()> {
    let DatasetSource::Pack { of, .. } = &plan.source else { return Ok(()) };
    let place = format!("dataset \"{}\", of", plan.name);
    if *of == plan.name {
        return Err(Error::plan(place, "a dataset cannot be packed from itself"));
    }
    match all.iter().find(|other| other.name == *of).map(|other| &other.source) {
        None => Err(Error::Plan {
            place,
            reason: format!("unknown dataset \"{of}\""),
            hint: suggest(of, all.iter().map(|other| other.name.as_str()).filter(|name| *name != plan.name)),
        }),
        Some(DatasetSource::Pack { .. }) => {
            Err(Error::plan(place, format!("\"{of}\" is itself packed; name a dataset of image files")))
        }
        Some(DatasetSource::Make(_) | DatasetSource::Path(_)) => Ok(()),
    }
}

/// Checks that data given by a path exists, and that it can be packed if another dataset is packed from it.
pub(super) fn check_existing(all: &[DatasetPlan]) -> Result<()> {
    let at = |name: &str| all.iter().find(|dataset| dataset.name == name).map(|dataset| &dataset.source);
    for dataset in all {
        let refused = |reason: String| refused(dataset, reason);
        match &dataset.source {
            DatasetSource::Path(path) if !path.exists() => {
                return Err(refused(format!("{} does not exist", path.escaped())));
            }
            DatasetSource::Pack { packing, of } => match at(of) {
                Some(DatasetSource::Path(path)) if path.exists() => {
                    pack_plan(path, *packing).map_err(|error| refused(error.to_string()))?;
                }
                _ => {}
            },
            _ => {}
        }
    }
    Ok(())
}

pub(super) fn refused(dataset: &DatasetPlan, reason: String) -> Error {
    let hint = Some(format!("--dataset {}=PATH uses data elsewhere", dataset.name));
    Error::Plan { place: format!("dataset \"{}\"", dataset.name), reason, hint }
}

pub(super) fn pack_plan(from: &Path, shards: Shards) -> forebay_dataset::Result<PackPlan> {
    let usual = PackOptions::new(shards.packing);
    PackPlan::new(from, PackOptions { shard_size: shards.size.unwrap_or(usual.shard_size), ..usual })
}
