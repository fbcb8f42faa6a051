//! Settings and plan of an ingest run.

use std::path::PathBuf;
use std::time::Duration;

use forebay_format::example::KeyNames;
use forebay_format::image::{Dtype, ImageSpec, Layout};
use forebay_measure::value::{
    bytes, duration, flag, integer, io, list, one_of, parsed, pixels, seed, share, some, threads,
};
use forebay_measure::{Cache, Interleave, Io, MAX_LEAST, Refused, Shuffle, ThreadCount, Until};
use forebay_pipeline::{Dataset, Mapped, Source};
use forebay_storage::{CachePlace, Mode, Profile};
use forebay_units::{Bytes, group_digits};

use crate::decoder::{self, DECODERS, DecodeOn, Gpus, Output};
use crate::supply::{self, CROPS, CropKind, ImageChange, Order, ReadingSettings};

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::U8];

/// Enough for years, yet few enough that the bytes fit in 64 bits.
const MAX_IMAGES: u64 = 1_000_000_000_000;

forebay_measure::settings! {
    pub struct IngestSettings for Ingest {
        /// Threads that read and decode: a list to sweep, or `auto` to add threads until more do not help
        threads: Vec<ThreadCount> = "1,2,4,8", list(threads), "N,…|auto" [sweep];
        /// Threads that only read, ahead of the decoding threads; with 0 every thread does both
        readers: usize = "0", integer(0..=1_024), "N";
        /// Samples per batch
        batch: usize = "64", integer(1..=1_000_000), "N";
        /// Batches per repeat, failed samples included [default: one pass over the data]
        batches: Option<u64>, some(integer(1..=1_000_000_000)), "N";
        /// Batches prepared ahead of the consumer; with 0 work happens only while the consumer waits
        prefetch: usize = "1", integer(0..=10_000), "N";
        /// Order of the samples: full (random), window:N (interleaved shards, shuffled among N samples), shards (random shards), none
        ///
        /// Defaults to full, and to window:1024 for compressed shards. Except with full, uncompressed shards are read in blocks of 1 MiB.
        shuffle: Option<Shuffle>, some(parsed), "full|window:N|shards|none";
        /// Read CYCLE shards at a time, BLOCK samples (16 if missing) of each in turn [default: 4:16 with a window, else 1]
        interleave: Option<Interleave>, some(parsed), "CYCLE[:BLOCK]";
        /// Repeat a cell until its repeats took this long in all [default: 1s in a study or without a number of repeats]
        ///
        /// Applies to two repeats or more.
        least_time: Option<Duration>, some(duration(Duration::ZERO..=MAX_LEAST)), "TIME";
        /// Repeat until half the 95 % interval of the rate is within this share [default: 5% in a study or without a number of repeats]
        ///
        /// Applies to two repeats or more, and for at most five times the least time.
        interval: Option<f64>, some(share), "SHARE";
        /// Read without decoding
        read_only: bool, flag;
        /// Evict the files from the page cache before each repeat, and verify it
        cold: bool, flag;
        /// Read mode: buffered, direct, uring, uring-direct, or auto to measure and choose
        io: Io = "buffered", io, "MODE";
        /// Requests in flight to an object store, or `auto` to add requests until more do not help [default: auto]
        inflight: Option<ThreadCount>, some(threads), "N|auto";
        /// Memory for objects that are requested before they are needed; 0 for none [default: 256MiB]
        readahead: Option<Bytes>, some(bytes(0..=u64::MAX)), "SIZE";
        /// Keep objects in this folder on a near disk for later epochs and runs; SIZE is 90 % of its free space by default
        ///
        /// The folder may be shared by several runs. Full, it keeps what the coming epoch needs first.
        cache: Option<CachePlace>, some(parsed), "DIR[:SIZE]";
        /// Largest sample to read (a file, a record or a tar sample); larger ones count as failed
        max_sample_size: Bytes = "256MiB", bytes(1..=u64::MAX), "SIZE";
        /// Output size in pixels [default: 224x224, or a tensor shard's own]
        size: Option<(u32, u32)>, some(pixels), "N|WxH";
        /// Type of the output values
        dtype: Dtype = "f32", one_of(DTYPES.map(|dtype| (dtype.name(), dtype))), "f32|f16|bf16|u8";
        /// Memory layout of the output values
        layout: Layout = "nhwc", one_of([("nhwc", Layout::Nhwc), ("nchw", Layout::Nchw)]), "nhwc|nchw";
        /// Decode JPEG at 1/2, 1/4 or 1/8 size if that still covers the output: faster, but different pixels
        scaled: bool, flag;
        /// Part of each image that a sample shows: all, its center, or a random part that differs from epoch to epoch
        ///
        /// With torchvision's definitions: `center` is Resize to 256/224 of the size and CenterCrop, `random` is RandomResizedCrop.
        crop: CropKind = "none", one_of(CROPS), "KIND" [one: CROPS.map(|(name, _)| name)];
        /// Exchange left and right of a random half of the images
        flip: bool, flag;
        /// Filter when shrinking, as torchvision and Pillow do; without it, pixels are TensorFlow's
        antialias: bool, flag;
        /// Where JPEG is decoded: cpu, gpu, or auto to measure both and use the faster
        ///
        /// Other formats, progressive and damaged files are decoded on the CPU anyway. A GPU supports neither antialias nor scaled.
        decode: DecodeOn = "cpu", one_of(DECODERS), "WHERE" [one: DECODERS.map(|(name, _)| name)];
        /// Map tensor shards into memory instead of reading them
        mmap: bool, flag;
        /// Deliver samples as they arrive instead of in the seeded order
        first_come: bool, flag;
        /// Seed of the shuffle, and of random crops and mirroring
        seed: u64 = "0", seed, "S";
    }
}

impl IngestSettings {
    fn check(&self) -> Result<(), Refused> {
        let of_pixels = [
            ("size", self.size.is_some()),
            ("dtype", self.dtype != Dtype::F32),
            ("layout", self.layout != Layout::Nhwc),
            ("scaled", self.scaled),
            ("crop", self.crop != CropKind::None),
            ("flip", self.flip),
            ("antialias", self.antialias),
            ("decode", self.decode != DecodeOn::Cpu),
        ];
        if let (true, Some((name, _))) = (self.read_only, of_pixels.iter().find(|(_, given)| *given)) {
            return Err(format!(
                "`read_only` decodes nothing, so `{name}` would have no effect: give only one of them"
            ));
        }
        if let (true, Some((name, _))) = (self.scaled, of_pixels[4..7].iter().find(|(_, given)| *given)) {
            return Err(format!(
                "`scaled` decodes images at other sizes, which `{name}` does not support: give only one of them"
            ));
        }
        if self.mmap && self.io != Io::Fixed(Mode::Buffered) {
            return Err("`mmap` reads no files, so `io` would have no effect: give only one of them".to_owned());
        }
        decoder::check(self.decode, &[("scaled", self.scaled), ("antialias", self.antialias)])?;
        supply::check_cache(self.cache.as_ref(), self.readahead)?;
        if self.images_per_repeat(0) > MAX_IMAGES {
            return Err(format!("a repeat has more than {} images: give fewer `batches`", group_digits(MAX_IMAGES)));
        }
        self.order().check()
    }

    pub fn images_per_repeat(&self, n_samples: u64) -> u64 {
        self.batches.map_or(n_samples, |n| n.saturating_mul(self.batch as u64))
    }

    /// Tensor shards keep their size unless another is requested.
    pub fn image(&self) -> ImageSpec {
        let (width, height) = self.size.unwrap_or((224, 224));
        ImageSpec { width, height, dtype: self.dtype, layout: self.layout, scaled_dct: self.scaled }
    }

    /// Makes samples of a source as `ingest` does.
    pub fn decoded(&self, source: &Source) -> Mapped {
        supply::decoded(Dataset::new(source.clone()), source, self.image(), self.change())
    }

    pub(super) fn change(&self) -> ImageChange {
        ImageChange { crop: self.crop, flip: self.flip, antialias: self.antialias, seed: self.seed }
    }

    pub(super) fn output(&self) -> Output {
        Output { spec: self.image(), change: self.change() }
    }

    pub(super) fn reading(&self) -> ReadingSettings {
        let Self { cold, io, inflight, readahead, .. } = *self;
        ReadingSettings { cold, io, inflight, readahead, cache: self.cache.clone() }
    }

    pub(super) fn order(&self) -> Order {
        Order { shuffle: self.shuffle, interleave: self.interleave, seed: self.seed }
    }

    /// When a cell's rate is known; `is_default` says whether it is to become known if nothing else is asked.
    pub fn until(&self, is_default: bool) -> Option<Until> {
        Until::of(self.least_time, self.interval, is_default)
    }

    pub(super) fn cache(&self) -> Cache {
        if self.cold { Cache::Cold } else { Cache::Warm }
    }
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub settings: IngestSettings,
    /// A folder of images, a list, or shards.
    pub data: PathBuf,
    /// TFRecord features that hold image and label, if known.
    pub keys: KeyNames,
    /// Emulated by this process.
    pub tier: Option<Profile>,
    /// Emulated by the kernel below the data.
    pub kernel_tier: Option<Profile>,
    /// GPUs that may decode.
    pub gpus: Gpus,
    /// Dropped rounds before the kept ones.
    pub warmups: usize,
    /// Kept rounds.
    pub repeats: usize,
    /// When more rounds follow.
    pub until: Option<Until>,
}
