//! The data of a run: its samples, read through the storage under test, and the pipelines over them.

use std::path::PathBuf;
use std::sync::Arc;

use forebay_format::image::{Dtype, ImageSpec, Layout};
use forebay_pipeline::{Batched, Dataset, Mapped, Source, Threads};
use forebay_record::DatasetNote;
use forebay_storage::{Device, Mode, Requests, Routed, Storage, files, is_url};
use forebay_train::Shape;
use forebay_units::Fnv;

use super::plan::{Plan, Validate};
use super::run::{Error, MOST_CLASSES};
use crate::decoder::{Decoder, Output};
use crate::supply::{self, ImageChange, Order};

/// A separate seed keeps the held-out samples the same if weights and order change.
const HOLD_OUT_SEED: u64 = 0x0a11_da7e;
/// Of samples that nobody trains on.
const SMALL_BATCH: usize = 4;
/// Passes over the data that the tuner may use.
const TUNING_EPOCHS: u64 = 100;

pub(super) struct TrainingData {
    pub(super) source: Source,
    path: PathBuf,
    /// Whether the labels are those of a manifest beside the data.
    has_usual_label: bool,
    /// Samples that are not trained on.
    n_held_out: u64,
    pub(super) storage_description: String,
    /// The storage under test.
    storage: Option<Arc<dyn Storage>>,
    /// The device below it, if this process emulates one.
    device: Option<Arc<Device>>,
    spec: ImageSpec,
    change: ImageChange,
    batch: usize,
    order: Order,
    decoder: Decoder,
    /// This rank, and the number of ranks.
    rank: (u64, u64),
    /// Samples that this rank trains on, if its part is whole shards.
    n_own: Option<u64>,
}

impl TrainingData {
    /// `None` for synthetic batches. `rank` is this process, of so many.
    pub(super) fn find(plan: &Plan, image: Shape, rank: (u64, u64)) -> Result<Option<Self>, Error> {
        let Some(path) = &plan.data else { return Ok(None) };
        let source = Source::discover_with(Arc::new(Routed::default()), path, &plan.keys)?;
        let source = source.with_max_sample_size(plan.settings.max_sample_size);
        let n_samples = source.n_samples() as u64;
        let n_held_out = match plan.validate {
            Some(Validate::Share(share)) => ((n_samples as f64 * share).round() as u64).max(1),
            _ => 0,
        };
        let mut data = Self {
            source,
            path: path.clone(),
            has_usual_label: plan.keys.has_usual_label(),
            n_held_out,
            storage_description: String::new(),
            storage: None,
            device: None,
            spec: spec_of(image),
            change: plan.settings.change(),
            batch: plan.settings.batch,
            order: plan.settings.order(),
            decoder: Decoder::Cpu,
            rank,
            n_own: None,
        };
        data.n_own = data.has_own_shards().then(|| data.own_shards().n_samples().unwrap_or(0));
        let (n_shards, n_ranks) = (data.source.files().len() as u64, rank.1);
        // The same on every rank; one whose shards hold nothing to learn has none, too.
        if data.n_own == Some(0) || data.n_own.is_some() && n_shards < n_ranks {
            return Err(Error::TooFewShards { path: path.clone(), n_shards, n_ranks });
        }
        if data.steps_per_epoch() == 0 {
            let n_samples = n_samples.saturating_sub(n_held_out);
            let batch = data.step_samples() as usize;
            return Err(Error::TooFewSamples { path: path.clone(), n_samples, batch, n_ranks });
        }
        Ok(Some(data))
    }

    /// `device` is that of the plan's tier, if ranks share it.
    pub(super) fn through(
        mut self,
        plan: &Plan,
        device: Option<&Arc<Device>>,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        self.device = device.cloned().or_else(|| plan.tier.clone().map(Device::of));
        let storage = supply::storage(plan.settings.reading(), self.device.as_ref(), &self.source, notes)?;
        self.storage_description = supply::describe_storage(storage.as_ref(), &self.source);
        self.source = self.source.with_storage(Arc::clone(&storage));
        self.storage = Some(storage);
        Ok(self)
    }

    pub(super) fn decode_with(&mut self, decoder: &Decoder) {
        self.decoder = decoder.clone();
    }

    pub(super) fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// Divided among ranks for validation.
    pub(super) fn judged_by(self, rank: (u64, u64)) -> Self {
        Self { rank, ..self }
    }

    /// What all ranks must have in common.
    pub(super) fn identity(&self) -> String {
        format!("{} samples, names {:016x}, sizes {:016x}", self.source.n_samples(), self.names(), self.sizes())
    }

    /// Requests sent so far, if the data is on an object store.
    pub(super) fn requests(&self) -> Option<Requests> {
        self.storage.as_ref().filter(|_| self.is_remote())?.requests()
    }

    pub(super) fn device(&self) -> Option<&Arc<Device>> {
        self.device.as_ref()
    }

    pub(super) fn is_remote(&self) -> bool {
        supply::is_remote(&self.source)
    }

    pub(super) fn note(&self) -> DatasetNote {
        supply::note_of(&self.path, &self.source)
    }

    pub(super) fn classes(&self) -> Result<usize, Error> {
        let path = || self.path.clone();
        // The labels of records are inside them, but the manifest gives the number of classes.
        let names = || forebay_dataset::packed_classes(&Routed::default(), &self.path);
        let packed = || names().filter(|_| self.has_usual_label).map(|names| names.len());
        match (self.source.n_classes().or_else(packed), self.source.packing()) {
            (Some(classes), _) if classes > MOST_CLASSES => Err(Error::TooManyClasses { path: path(), classes }),
            (Some(n), _) => Ok(n),
            (None, "files" | "tensor") => Err(Error::NoLabels { path: path() }),
            (None, _) => Err(Error::ClassesUnknown { path: path() }),
        }
    }

    pub(super) fn spec(&self) -> ImageSpec {
        self.spec
    }

    pub(super) fn described_output(&self) -> String {
        supply::describe_output(self.spec, self.change)
    }

    pub(super) fn output(&self) -> Output {
        Output { spec: self.spec, change: self.change }
    }

    /// Samples per step, over all ranks.
    fn step_samples(&self) -> u64 {
        self.batch as u64 * self.rank.1
    }

    /// Whether each rank reads whole shards. Where samples are read one by one, ranks divide each batch instead; blocks
    /// of a shard would be read by all of them.
    fn has_own_shards(&self) -> bool {
        let is_seekable = Dataset::new(self.source.clone()).packing_is_seekable();
        self.rank.1 > 1 && self.source.packing() != "files" && (self.order.is_streamed() || !is_seekable)
    }

    /// The samples of the shards that this rank reads.
    fn own_shards(&self) -> Dataset {
        self.all_learnt().shard_groups(self.rank.0, self.rank.1)
    }

    fn all_learnt(&self) -> Dataset {
        let dataset = Dataset::new(self.source.clone());
        if self.n_held_out > 0 { dataset.hold_out(self.n_held_out, HOLD_OUT_SEED) } else { dataset }
    }

    /// Whole batches in one pass over the training samples.
    pub(super) fn steps_per_epoch(&self) -> u64 {
        self.n_learnt() / self.step_samples()
    }

    /// Without held-out samples.
    pub(super) fn n_learnt(&self) -> u64 {
        (self.source.n_samples() as u64).saturating_sub(self.n_held_out)
    }

    /// In random order, for `n_steps` whole batches; of several ranks, this one's portions of them.
    pub(super) fn training(&self, threads: Threads, n_steps: u64) -> Batched {
        // Other samples replace failed ones; if all fail, the passes still end.
        let (own, of) = self.n_own.map_or((self.step_samples(), self.n_learnt()), |n_own| (self.batch as u64, n_own));
        let needed = n_steps.saturating_mul(own).div_ceil(of);
        self.learnt(threads, needed.saturating_mul(2).saturating_add(1)).drop_remainder().at_most(n_steps)
    }

    /// What is done to images that are trained on; empty if nothing.
    pub(super) fn change(&self) -> String {
        self.change.describe()
    }

    pub(super) fn n_held_out(&self) -> u64 {
        self.n_held_out
    }

    /// Hash of the samples' names below the data's folder, their places and labels; independent of the folder's
    /// location.
    pub(super) fn names(&self) -> u64 {
        let root =
            if self.path.is_dir() || is_url(&self.path) { Some(self.path.as_path()) } else { self.path.parent() };
        self.source.fingerprint_below(root.unwrap_or(&self.path))
    }

    /// Hash of all file lengths, in order; a missing file counts as empty, as does an object, whose
    /// length would take a request.
    pub(super) fn sizes(&self) -> u64 {
        let len = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        let mut hash = Fnv::default();
        self.source.files().iter().map(len).for_each(|len| hash.word(len));
        hash.0
    }

    /// The pipeline for the tuner. `one_pass` limits it to one pass, because a second one would find the data in
    /// memory.
    pub(super) fn tuning(&self, one_pass: bool) -> Batched {
        self.learnt(Threads::Auto, if one_pass { 1 } else { TUNING_EPOCHS }).prefetch(1)
    }

    fn learnt(&self, threads: Threads, epochs: u64) -> Batched {
        let (rank, of) = self.rank;
        let dataset = match self.n_own {
            Some(_) => self.order.of(self.own_shards()).repeat(epochs),
            None => {
                let whole = self.order.of(self.all_learnt()).repeat(epochs);
                if of > 1 { whole.shard_blocks(rank, of, self.batch as u64) } else { whole }
            }
        };
        self.made(dataset, self.change, threads, self.batch)
    }

    /// A few samples from memory again and again, as fast as so many threads make them. The first that fails ends it: of samples that
    /// all fail, there is no batch to wait for.
    pub(super) fn again(&self, threads: usize, n: u64) -> Batched {
        self.again_from_memory(&self.decoder, threads, n).batch(SMALL_BATCH).prefetch(threads)
    }

    /// The same with another decoder, in whole batches as a GPU takes many at once.
    pub(super) fn again_with(&self, decoder: &Decoder, threads: usize, n: u64) -> Batched {
        self.again_from_memory(decoder, threads, n).batch(self.batch).prefetch(2)
    }

    fn again_from_memory(&self, decoder: &Decoder, threads: usize, n: u64) -> Mapped {
        let source = self.source.clone().with_storage(files(Mode::Buffered, None));
        let dataset = Dataset::new(source).take(n).repeat_forever();
        let mapped = self.order.read(decoder.decoded(dataset, &self.source, self.output()));
        mapped.threads(Threads::Fixed(threads))
    }

    /// This rank's part of the held-out samples, or of another dataset.
    pub(super) fn judged(&self, threads: usize, batch: usize) -> Batched {
        let mut dataset = Dataset::new(self.source.clone());
        if self.n_held_out > 0 {
            dataset = dataset.held_out(self.n_held_out, HOLD_OUT_SEED);
        }
        if self.rank.1 > 1 {
            dataset = dataset.shard(self.rank.0, self.rank.1);
        }
        self.made(dataset, self.change.for_evaluation(), Threads::Fixed(threads), batch).prefetch(1)
    }

    fn made(&self, dataset: Dataset, change: ImageChange, threads: Threads, batch: usize) -> Batched {
        let output = Output { spec: self.spec, change };
        let mapped = self.order.read(self.decoder.decoded(dataset, &self.source, output));
        mapped.threads(threads).ignore_errors().batch(batch)
    }
}

fn spec_of(image: Shape) -> ImageSpec {
    let (width, height) = (image.width as u32, image.height as u32);
    ImageSpec { width, height, dtype: Dtype::F32, layout: Layout::Nhwc, scaled_dct: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_what_the_network_takes() {
        let spec = spec_of(Shape { height: 20, width: 30, channels: 3 });
        assert_eq!((spec.width, spec.height, spec.sample_bytes()), (30, 20, 20 * 30 * 3 * 4));
    }
}
