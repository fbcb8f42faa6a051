//! Settings of a training run, their defaults and contradictions.

use std::time::Duration;

use forebay_checkpoint::{Mode, WhenBehind, format};
use forebay_measure::value::{
    bytes, bytes_per_s, duration, flag, integer, io, number, one_of, parsed, seed, share, some, threads, word,
};
use forebay_measure::{Cache, Interleave, Io, Kept, MAX_LEAST, Refused, Shuffle, ThreadCount, Until};
use forebay_storage::CachePlace;
use forebay_train::{Emulation, Model, Optimizer, Precision};
use forebay_units::{Bytes, group_digits};

use super::device::TrainDevice;
use crate::checkpoint::MODES;
use crate::supply::{self, CROPS, CropKind, ImageChange, Order, ReadingSettings};

/// Enough for years, yet few enough that the bytes fit in 64 bits.
const MAX_IMAGES: u64 = 1_000_000_000_000;
const MAX_STEPS: i64 = 1_000_000_000;
/// Default number of steps for a synthetic batch, which never ends.
const SYNTHETIC_STEPS: u64 = 100;
/// Default number of baseline steps.
const BASELINE: u64 = 10;
/// Default: the network of the paper's mini-application.
const MODEL: &str = "alexnet";
/// Default number of checkpoints to keep at each place.
pub const KEEP: usize = 5;

const BEHIND: [(&str, WhenBehind); 3] =
    [("wait", WhenBehind::Wait), ("skip", WhenBehind::Skip), ("coalesce", WhenBehind::Coalesce)];

forebay_measure::settings! {
    pub struct TrainSettings for Train {
        /// Train on one synthetic batch in memory instead of data: the upper bound
        synthetic: bool, flag;
        /// Network to train [default: alexnet]
        model: Option<String>, some(word(Model::names())), "NAME" [one: Model::names()];
        /// Device to train on: cpu, cuda, cuda:N, or auto for a GPU if there is one [default: cpu]
        ///
        /// If auto finds no GPU, the emulated accelerator takes the batches, or without one the CPU trains the network.
        device: Option<TrainDevice>, some(parsed), "auto|cpu|cuda[:N]";
        /// Arithmetic: f32, tf32 or bf16 [default: bf16 on a GPU, f32 on the CPU, which supports no other]
        precision: Option<Precision>, some(parsed), "NAME";
        /// Emulate the time of a step instead of training: emulated:224ms, or emulated:224ms,busy to keep a core busy
        ///
        /// The time may be random: uniform(FROM,TO), normal(MEAN,DEVIATION), exponential(MEAN), gamma(SHAPE,SCALE), poisson(MEAN).
        accelerator: Option<Emulation>, some(parsed), "emulated:TIME";
        /// Data-parallel ranks in this process: each has its own threads, its portion of every step and its accelerator or GPU
        ///
        /// On the CPU, they divide the cores. Ranks that are processes are started with mpirun or srun instead.
        ranks: usize = "1", integer(1..=1_024), "N";
        /// Samples per step; of several ranks, of each of them
        batch: usize = "64", integer(1..=1_000_000), "N";
        /// Number of steps; restarts the dataset as needed [default: 100 for a synthetic batch]
        steps: Option<u64>, some(integer(1..=MAX_STEPS)), "N";
        /// Number of epochs, each as many steps as a pass over the data has whole batches [default: 1]
        epochs: Option<u64>, some(integer(1..=1_000_000)), "N";
        /// Threads that read and decode; `auto` adds threads until more do not help
        threads: ThreadCount = "auto", threads, "N|auto";
        /// Batches prepared ahead of the accelerator; with 0 work happens only while it waits
        prefetch: usize = "1", integer(0..=10_000), "N";
        /// Part of each image that is trained on: all, its center, or a random part that differs from epoch to epoch
        ///
        /// With torchvision's definitions, as for ingest. Held-out samples show their center, or all of it with none.
        crop: CropKind = "none", one_of(CROPS), "KIND" [one: CROPS.map(|(name, _)| name)];
        /// Exchange left and right of a random half of the images that are trained on
        flip: bool, flag;
        /// Filter when shrinking, as torchvision and Pillow do; without it, pixels are TensorFlow's
        antialias: bool, flag;
        /// Batches sent to a GPU ahead of the one it computes [default: 1, or 0 without prefetch]
        device_prefetch: Option<usize>, some(integer(0..=1_000)), "N";
        /// Optimizer [default: adam]
        optimizer: Option<String>, some(word(Optimizer::names())), "NAME" [one: Optimizer::names()];
        /// Learning rate [default: 0.0001, or 0.01 with sgd]
        lr: Option<f64>, some(number("a number above 0 that an f32 can hold, such as 0.0001", is_rate)), "X";
        /// Number of classes [default: the data's, or 102 for a synthetic batch]
        classes: Option<usize>, some(integer(1..=1_000_000)), "N";
        /// Seed of shuffle, random crops, mirroring, weights and emulated times
        seed: u64 = "0", seed, "S";
        /// Evict the files from the page cache before the run, and verify it
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
        /// Steps on a synthetic batch measured first, to know what I/O costs; 0 for none [default: 10]
        ///
        /// Steps of an emulated accelerator do not depend on I/O: the run's own serve as the baseline, and only 0 is accepted.
        baseline: Option<u64>, some(integer(0..=100_000)), "N";
        /// Order of the samples: full (random), window:N (interleaved shards, shuffled among N samples), shards (random shards), none
        ///
        /// Defaults to full, and to window:1024 for compressed shards. Except with full, uncompressed shards are read in blocks of 1 MiB.
        shuffle: Option<Shuffle>, some(parsed), "full|window:N|shards|none";
        /// Read CYCLE shards at a time, BLOCK samples (16 if missing) of each in turn [default: 4:16 with a window, else 1]
        interleave: Option<Interleave>, some(parsed), "CYCLE[:BLOCK]";
        /// Repeat a cell until its repeats took this long in all [default: 1s in a study]
        ///
        /// Applies to two repeats or more.
        least_time: Option<Duration>, some(duration(Duration::ZERO..=MAX_LEAST)), "TIME";
        /// Repeat until half the 95 % interval of the rate is within this share [default: 5% in a study]
        ///
        /// Applies to two repeats or more, and for at most five times the least time.
        interval: Option<f64>, some(share), "SHARE";
        /// Save a checkpoint every N steps
        checkpoint_every: Option<u64>, some(integer(1..=MAX_STEPS)), "N";
        /// When training continues: once the checkpoint is durable (direct), durable in the burst buffer (burst), copied in memory (async)
        ///
        /// Defaults to burst with a burst buffer, otherwise to direct.
        checkpoint_mode: Option<Mode>, some(one_of(MODES)), "MODE" [one: MODES.map(|(name, _)| name)];
        /// File format of checkpoints [default: safetensors]
        checkpoint_format: Option<&'static str>, some(word(formats())), "NAME" [one: formats()];
        /// Checkpoints to keep in each folder [default: 5]
        keep: Option<usize>, some(integer(1..=1_000_000)), "N";
        /// Checkpoints to keep in the burst buffer [default: as `keep`]
        keep_fast: Option<usize>, some(integer(1..=1_000_000)), "N";
        /// Checkpoints to keep in the last folder [default: as `keep`]
        keep_slow: Option<usize>, some(integer(1..=1_000_000)), "N";
        /// If earlier checkpoints are unfinished and there is no room: wait, skip this one, or coalesce (replace an older one)
        checkpoint_behind: Option<WhenBehind>, some(one_of(BEHIND)), "WHAT" [one: BEHIND.map(|(name, _)| name)];
        /// Limit draining of the burst buffer, such as 100MB/s; reading back the copy has the same limit
        drain_rate: Option<Bytes>, some(bytes_per_s), "BYTES/s";
        /// Inject failures, this long apart on average: training restores the newest checkpoint and repeats the lost steps
        ///
        /// At random times, by the seed. It is the training that fails: the burst buffer survives. Needs a synthetic batch.
        fail_every: Option<Duration>, some(duration(Duration::from_millis(1)..=MAX_LEAST)), "TIME";
        /// Checkpoint size of an emulated accelerator, which has no state of its own
        checkpoint_size: Option<Bytes>, some(bytes(4..=10_000_000_000_000)), "SIZE";
    }
}

/// Whether the rate is positive and finite as an f32.
fn is_rate(rate: f64) -> bool {
    rate as f32 > 0.0 && (rate as f32).is_finite()
}

fn formats() -> [&'static str; 2] {
    format::FORMATS.map(format::Format::name)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Restarts the dataset as needed.
    Steps(u64),
    /// Each epoch has the whole batches of one pass; its remainder begins the next.
    Epochs(u64),
}

fn first_given(settings: &[(&'static str, bool)]) -> Option<&'static str> {
    settings.iter().find(|(_, is_given)| *is_given).map(|(name, _)| *name)
}

impl TrainSettings {
    fn check(&self) -> Result<(), Refused> {
        if self.steps.is_some() && self.epochs.is_some() {
            return Err("give `steps` or `epochs`, not both".to_owned());
        }
        if self.synthetic && self.epochs.is_some() {
            return Err("a synthetic batch has no epochs: give `steps`".to_owned());
        }
        let of_images = [("crop", self.crop != CropKind::None), ("flip", self.flip), ("antialias", self.antialias)];
        if let (true, Some(name)) = (self.synthetic, first_given(&of_images)) {
            return Err(format!("a synthetic batch has no images, so `{name}` would have no effect: omit it"));
        }
        if self.images_per_run(0) > MAX_IMAGES {
            return Err(format!("a run has more than {} images: give fewer `steps`", group_digits(MAX_IMAGES)));
        }
        if let (true, Some(name)) = (
            self.synthetic,
            first_given(&[("shuffle", self.shuffle.is_some()), ("interleave", self.interleave.is_some())]),
        ) {
            return Err(format!("a synthetic batch is not read, so `{name}` would have no effect: omit it"));
        }
        let of_one = [
            ("fail_every", self.fail_every.is_some()),
            ("least_time", self.least_time.is_some()),
            ("interval", self.interval.is_some()),
        ];
        if let (true, Some(name)) = (self.ranks > 1, first_given(&of_one)) {
            return Err(format!("`{name}` is for one process: omit it, or `ranks`"));
        }
        supply::check_cache(self.cache.as_ref(), self.readahead)?;
        self.order().check()?;
        self.check_accelerator()
    }

    fn check_accelerator(&self) -> Result<(), Refused> {
        let of_network = [
            ("model", self.model.is_some()),
            ("precision", self.precision.is_some()),
            ("optimizer", self.optimizer.is_some()),
            ("lr", self.lr.is_some()),
            ("classes", self.classes.is_some()),
        ];
        if self.accelerator.is_some() && matches!(self.device, Some(TrainDevice::Cpu | TrainDevice::Cuda { .. })) {
            return Err("an emulated accelerator replaces the device: omit `device`, or give auto to \
                        emulate only where there is no GPU"
                .to_owned());
        }
        if let (true, Some(name)) = (self.is_emulated(), first_given(&of_network)) {
            return Err(format!(
                "an emulated accelerator learns nothing, so `{name}` would have no effect: omit it, or give auto as \
                 `device` to emulate only where there is no GPU"
            ));
        }
        if self.is_emulated() && self.baseline.is_some_and(|n| n > 0) {
            return Err(
                "an emulated accelerator uses the run's own steps as the baseline: give 0 as `baseline`, or omit \
                        it"
                .to_owned(),
            );
        }
        let may_be_gpu = matches!(self.device, Some(TrainDevice::Auto | TrainDevice::Cuda { .. }));
        if !may_be_gpu && self.precision.is_some_and(|precision| precision != Precision::F32) {
            return Err("the CPU computes only in f32: `precision` is for a GPU".to_owned());
        }
        if !may_be_gpu && self.device_prefetch.is_some_and(|n| n > 0) {
            return Err("`device_prefetch` needs a GPU".to_owned());
        }
        Ok(())
    }

    /// Checks the checkpoint settings against the places. `has_burst` says whether there is a burst buffer; `None` if
    /// there is no place at all. The error calls the places `checkpoint` and `burst`.
    ///
    /// # Errors
    /// The contradiction.
    pub fn check_saves(&self, has_burst: Option<bool>) -> Result<(), Refused> {
        let of_saves = [
            ("checkpoint_every", self.checkpoint_every.is_some()),
            ("checkpoint_mode", self.checkpoint_mode.is_some()),
            ("checkpoint_format", self.checkpoint_format.is_some()),
            ("keep", self.keep.is_some()),
            ("keep_fast", self.keep_fast.is_some()),
            ("keep_slow", self.keep_slow.is_some()),
            ("checkpoint_behind", self.checkpoint_behind.is_some()),
            ("drain_rate", self.drain_rate.is_some()),
            ("checkpoint_size", self.checkpoint_size.is_some()),
            ("fail_every", self.fail_every.is_some()),
        ];
        let Some(has_burst) = has_burst else {
            return first_given(&of_saves)
                .map_or(Ok(()), |name| Err(format!("`{name}` needs checkpoints: give `checkpoint`")));
        };
        let Some(every) = self.checkpoint_every else {
            return Err("checkpoint interval missing: give `checkpoint_every`".to_owned());
        };
        let mode = self.mode(has_burst);
        let refused = match (self.length(), &self.accelerator, self.checkpoint_size) {
            (Length::Steps(steps), ..) if steps < every => {
                return Err(format!("a run of {steps} steps saves no checkpoint with `checkpoint_every` {every}"));
            }
            _ if self.fail_every.is_some() && !self.synthetic => {
                "`fail_every` repeats lost steps, for which no data is read again: give `synthetic`"
            }
            _ if self.fail_every.is_some() && mode == Mode::Async => {
                "copies in memory would survive injected failures: omit `fail_every` or async as `checkpoint_mode`"
            }
            _ if mode == Mode::Burst && !has_burst => "burst saves need a burst buffer: give `burst`",
            _ if mode == Mode::Direct && has_burst => "direct saves go straight to the last place: omit `burst`",
            _ if mode == Mode::Direct && self.checkpoint_behind.is_some() => {
                "a direct save always ends before the next one: omit `checkpoint_behind`"
            }
            _ if self.keep_fast.is_some() && !has_burst => "`keep_fast` needs a burst buffer: give `burst`",
            _ if self.drain_rate.is_some() && !has_burst => "`drain_rate` needs a burst buffer: give `burst`",
            (_, Some(_), None) => "an emulated accelerator has no state to save: give `checkpoint_size`",
            (_, None, Some(_)) => {
                "`checkpoint_size` needs an emulated `accelerator`: a network's state has a fixed size"
            }
            _ => return Ok(()),
        };
        Err(refused.to_owned())
    }

    /// True on every machine; with `auto`, an emulated accelerator may still find a GPU.
    pub fn is_emulated(&self) -> bool {
        self.accelerator.is_some() && self.device.is_none()
    }

    pub(super) fn change(&self) -> ImageChange {
        ImageChange { crop: self.crop, flip: self.flip, antialias: self.antialias, seed: self.seed }
    }

    pub fn model(&self) -> &str {
        self.model.as_deref().unwrap_or(MODEL)
    }

    pub(super) fn optimizer(&self) -> Optimizer {
        let name = self.optimizer.as_deref().unwrap_or(Optimizer::DEFAULT);
        Optimizer::named(name, self.lr).expect("the name was looked up when it was set")
    }

    pub fn length(&self) -> Length {
        match (self.steps, self.epochs) {
            (Some(steps), _) => Length::Steps(steps),
            (None, None) if self.synthetic => Length::Steps(SYNTHETIC_STEPS),
            (None, epochs) => Length::Epochs(epochs.unwrap_or(1)),
        }
    }

    /// Of all ranks of this process.
    pub fn images_per_step(&self) -> u64 {
        (self.batch as u64).saturating_mul(self.ranks as u64)
    }

    /// In whole batches.
    pub fn images_per_run(&self, n_samples: u64) -> u64 {
        let batch = self.images_per_step();
        match self.length() {
            Length::Steps(steps) => steps.saturating_mul(batch),
            Length::Epochs(epochs) => (n_samples / batch * batch).saturating_mul(epochs),
        }
    }

    /// Number of batches prepared ahead; a synthetic batch needs no preparation.
    pub(super) fn made_ahead(&self) -> usize {
        if self.synthetic { 0 } else { self.prefetch }
    }

    pub(super) fn sent_ahead(&self, has_memory: bool) -> usize {
        match self.device_prefetch {
            // Meant for a GPU, which `auto` did not find.
            Some(_) if self.device == Some(TrainDevice::Auto) && !has_memory => 0,
            Some(n) => n,
            None => usize::from(has_memory && self.prefetch > 0),
        }
    }

    /// A synthetic run is its own baseline.
    pub fn baseline_steps(&self) -> u64 {
        if self.synthetic { 0 } else { self.baseline.unwrap_or(BASELINE) }
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
        Until::of(self.least_time, self.interval, is_default && self.ranks == 1)
    }

    pub(super) fn cache(&self) -> Cache {
        if self.cold && !self.synthetic { Cache::Cold } else { Cache::Warm }
    }

    /// Set for every run with a place for checkpoints: see [`check_saves`](Self::check_saves).
    pub(super) fn every(&self) -> u64 {
        self.checkpoint_every.unwrap_or(MAX_STEPS as u64)
    }

    /// Defaults to the mode that suits the places.
    pub(super) fn mode(&self, has_burst: bool) -> Mode {
        self.checkpoint_mode.unwrap_or(if has_burst { Mode::Burst } else { Mode::Direct })
    }

    pub fn format(&self) -> &'static str {
        self.checkpoint_format.unwrap_or(formats()[0])
    }

    pub fn kept(&self) -> Kept {
        let each = self.keep.unwrap_or(KEEP);
        Kept { slow: self.keep_slow.unwrap_or(each), fast: self.keep_fast.unwrap_or(each) }
    }
}

#[cfg(test)]
mod tests;
