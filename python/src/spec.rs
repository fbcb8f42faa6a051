//! What the Python half passes on: checked there for types, here for values.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use forebay_format::example::KeyNames;
use forebay_format::image::{Dtype, ImageSpec, Layout, Normalize};
use forebay_pipeline::{Augment, Crop, Jitter, Source};
use forebay_storage::access::{self, Access};
use forebay_storage::{Routed, Storage, is_url};
use forebay_units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;

/// What all loaders have in common.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Common {
    pub(crate) data: Vec<PathBuf>,
    pub(crate) batch_size: usize,
    pub(crate) seed: u64,
    pub(crate) shuffle: bool,
    /// 0 to tune.
    pub(crate) threads: usize,
    pub(crate) prefetch: usize,
    pub(crate) rank: u64,
    pub(crate) world_size: u64,
    pub(crate) drop_last: bool,
    pub(crate) skip_errors: bool,
    /// Batches that the Python half has on their way, beside those that the loop holds.
    pub(crate) ahead: usize,
}

/// The settings of a loader of images.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ImageSettings {
    pub(crate) common: Common,
    /// Width and height; `None` for the size of tensor shards.
    size: Option<(u32, u32)>,
    dtype: String,
    layout: String,
    crop: String,
    scale: (f64, f64),
    ratio: (f64, f64),
    resize: Option<u32>,
    flip: f64,
    antialias: bool,
    /// Brightness, contrast, saturation, hue: the range of each that is changed.
    jitter: Option<[Option<(f64, f64)>; 4]>,
    normalize: Option<([f32; 3], [f32; 3])>,
    image_key: Option<String>,
    label_key: Option<String>,
    max_sample_size: u64,
}

/// What a loader does to each image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    pub(crate) image: ImageSpec,
    pub(crate) augment: Augment,
    /// Whether nothing but a resize without antialiasing happens, for which there is a faster path.
    pub(crate) is_plain: bool,
}

fn refused(reason: impl Into<String>) -> PyErr {
    PyValueError::new_err(reason.into())
}

/// Tells the storage how the environment says that object stores are reached: once, when they are first used.
fn provide_access() {
    static PROVIDED: Once = Once::new();
    PROVIDED.call_once(|| {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        // Nothing else in this process provides it.
        let _ = access::provide(Access::of_variables(std::env::vars_os().filter_map(text)));
    });
}

impl Common {
    /// The seed of the shuffle, if there is one.
    pub(crate) fn shuffle(&self) -> Option<u64> {
        self.shuffle.then_some(self.seed)
    }

    /// What the data is read from. Checks the settings first.
    pub(crate) fn storage(&self) -> PyResult<Arc<dyn Storage>> {
        self.check()?;
        if let Some(error) = self.data.iter().filter_map(|path| path.to_str()).find_map(error::not_a_path) {
            return Err(error);
        }
        // A list may name objects.
        if self.data.iter().any(|path| is_url(path) || path.is_file()) {
            provide_access();
        }
        Ok(Arc::new(Routed::default()))
    }

    /// The folder that names of samples are relative to when the data is compared with that of a saved state.
    pub(crate) fn root(&self) -> PathBuf {
        match self.data.as_slice() {
            [one] if one.is_dir() => one.clone(),
            [one, ..] => one.parent().unwrap_or(Path::new("")).to_owned(),
            [] => PathBuf::new(),
        }
    }

    /// Checks the numbers that are about batches and ranks.
    fn check(&self) -> PyResult<()> {
        if self.data.is_empty() {
            return Err(refused("data is an empty list: give at least one path"));
        }
        if self.batch_size == 0 || self.batch_size > 1_000_000 {
            return Err(refused(format!("batch_size is from 1 to 1,000,000, not {}", self.batch_size)));
        }
        if self.ahead > 1024 {
            return Err(refused("at most 1,000 threads for map are supported"));
        }
        if self.threads > 1024 || self.prefetch > 10_000 {
            return Err(refused("at most 1,024 threads and 10,000 batches of prefetch are supported"));
        }
        if self.world_size == 0 || self.rank >= self.world_size {
            let (rank, of) = (self.rank, self.world_size);
            return Err(refused(format!("rank {rank} of world_size {of} does not exist: ranks count from 0")));
        }
        Ok(())
    }
}

impl ImageSettings {
    /// Lists and indexes the data.
    pub(crate) fn source(&self, py: Python<'_>) -> PyResult<Source> {
        let storage = self.common.storage()?;
        let keys = KeyNames { image: self.image_key.clone(), label: self.label_key.clone() };
        let source = py.detach(|| match self.common.data.as_slice() {
            [one] => Source::discover_with(storage, one, &keys),
            several => Source::discover_all(storage, several, &keys),
        });
        let source = source.map_err(|error| error::of_pipeline(&error))?;
        Ok(source.with_max_sample_size(Bytes(self.max_sample_size)))
    }

    pub(crate) fn output(&self, source: &Source) -> PyResult<Output> {
        let dtype = [Dtype::U8, Dtype::F16, Dtype::Bf16, Dtype::F32];
        let names = ["uint8", "float16", "bfloat16", "float32"];
        let dtype = names.iter().position(|name| *name == self.dtype).map(|at| dtype[at]);
        let dtype =
            dtype.ok_or_else(|| refused(format!("dtype {:?} is not one of {}", self.dtype, names.join(", "))))?;
        let layout = match self.layout.as_str() {
            "NCHW" => Layout::Nchw,
            "NHWC" => Layout::Nhwc,
            other => return Err(refused(format!("layout {other:?} is neither \"NCHW\" nor \"NHWC\""))),
        };
        let size = self.size.or_else(|| source.pixels().map(|shape| (shape.width, shape.height)));
        let (width, height) = size.unwrap_or((224, 224));
        if width == 0 || height == 0 || width.max(height) > 16_384 {
            return Err(refused(format!("image_size of {width}x{height} pixels: give 1 to 16,384 for each side")));
        }
        let image = ImageSpec { width, height, dtype, layout, scaled_dct: false };
        let crop = match self.crop.as_str() {
            "none" => Crop::Whole,
            "usual" if self.size.is_none() && source.pixels().is_some() => Crop::Whole,
            "random" => Crop::Random { scale: self.scale, ratio: self.ratio },
            "center" | "usual" => {
                self.resize.map_or_else(|| Crop::center_of((width, height)), |shorter| Crop::Center { shorter })
            }
            other => return Err(refused(format!("crop {other:?} is not one of \"random\", \"center\", \"none\""))),
        };
        if self.resize.is_some() && !matches!(crop, Crop::Center { .. }) {
            return Err(refused("resize is the shorter side before a centre crop: give crop=\"center\" too"));
        }
        let normalize = self.normalize.map(|(mean, std)| Normalize { mean, std });
        let jitter =
            self.jitter.map(|[brightness, contrast, saturation, hue]| Jitter { brightness, contrast, saturation, hue });
        let (flip, antialias, seed) = (self.flip, self.antialias, self.common.seed);
        let augment = Augment { crop, flip, antialias, jitter, normalize, seed };
        augment.check(image).map_err(refused)?;
        let is_plain =
            crop == Crop::Whole && self.flip == 0.0 && !self.antialias && normalize.is_none() && jitter.is_none();
        Ok(Output { image, augment, is_plain })
    }
}
