//! Sources of samples. A source builds its index before the first sample is read.
//!
//! Knowing every sample's location beforehand makes orders exact and states small. For folders and lists the index is
//! the list of files; for shards it is built from the frame headers alone.

mod discover;
mod folder;
mod indexed;
mod keys;
mod list;
mod memory;
mod shards;
mod stream;
pub(crate) mod streamed;
mod unpack;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
pub(crate) use unpack::Content;

use forebay_format::example::{KeyNames, Keys};
use forebay_format::tfrecord::Compression;
use forebay_format::{LeftOut, MAX_SAMPLE_SIZE, Span, tensor};
use forebay_storage::{Null, Storage};
use forebay_units::{Bytes, Fnv, PathText};

use crate::error::{Error, SampleError};

/// The label of a sample without one.
pub const NO_LABEL: i64 = -1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) offset: u64,
    pub(crate) label: i64,
    /// Length in bytes; 0 for a whole file, whose length is known only after reading it.
    pub(crate) len: u64,
    pub(crate) file: u32,
    /// Class folder or shard, for the stages that shuffle or interleave groups.
    pub(crate) group: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Files,
    TfRecord,
    /// TFRecord frames in a compressed file, which can only be read as a whole.
    CompressedTfRecord(Compression),
    /// WebDataset's convention: neighbouring entries with the same base name form a sample.
    Tar,
    /// The same in a compressed file, which can only be read as a whole.
    CompressedTar(Compression),
    /// Decoded pixels; all samples have the same shape.
    Tensor,
    /// Records without frames, at the places that an index file names.
    Indexed,
    /// The map opens and reads the data by itself.
    Streamed,
}

/// All samples of a source, in the source's order.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) places: Vec<Place>,
    pub(crate) packing: Packing,
    /// The first sample and the tables of each tensor shard; empty for other packings.
    pub(crate) tables: Vec<(u32, tensor::Tables)>,
    /// The features of TFRecord records that hold image and label.
    pub(crate) keys: Keys,
    /// Describes streamed samples, which have no entry in `places`.
    pub(crate) streamed: Option<streamed::Streamed>,
    /// Computed on first use, since it visits all samples.
    fingerprint: OnceLock<u64>,
}

impl Index {
    pub(crate) fn new(packing: Packing, files: Vec<PathBuf>, places: Vec<Place>) -> Self {
        let (tables, keys) = (Vec::new(), Keys::default());
        Self { files, places, packing, tables, keys, streamed: None, fingerprint: OnceLock::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.streamed.as_ref().map_or(self.places.len(), |streamed| streamed.n_slots as usize)
    }

    /// Number of samples that share a slot of a batch.
    pub(crate) fn samples_per_slot(&self) -> usize {
        self.streamed.as_ref().map_or(1, |streamed| streamed.samples_per_slot)
    }

    /// A hash of the samples' paths, locations, labels and order. The contents of files are not part of it.
    pub(crate) fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.hash(Path::new("")))
    }

    fn hash(&self, root: &Path) -> u64 {
        let mut hash = Fnv::default();
        for path in &self.files {
            hash.bytes(below(path, root).as_os_str().as_encoded_bytes());
            // No path contains a zero byte, so adjacent paths cannot be confused.
            hash.bytes(&[0]);
        }
        for place in &self.places {
            hash.bytes(&place.offset.to_le_bytes());
            hash.bytes(&place.len.to_le_bytes());
            hash.bytes(&place.label.to_le_bytes());
            hash.bytes(&place.file.to_le_bytes());
        }
        // Default names leave the hash as it was before names could be given.
        if let Some(image) = self.keys.image().filter(|name| *name != "image/encoded") {
            hash.bytes(image.as_bytes());
            hash.bytes(&[0]);
            hash.bytes(self.keys.label().unwrap_or_default().as_bytes());
        }
        if let Some(streamed) = &self.streamed {
            hash.bytes(&streamed.n_slots.to_le_bytes());
            hash.bytes(&streamed.samples_per_slot.to_le_bytes());
        }
        hash.0
    }

    /// The indices by group, in order of each group's first appearance.
    pub(crate) fn grouped(&self, order: Vec<u32>) -> Vec<Vec<u32>> {
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut number_of = HashMap::new();
        for item in order {
            let group = match &self.streamed {
                Some(streamed) => (streamed.group_of)(item),
                None => self.places.get(item as usize).map_or(0, |place| place.group),
            };
            let number = *number_of.entry(group).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Vec::new());
            }
            groups[number].push(item);
        }
        groups
    }

    /// A sample's display name: its path, with the offset for a sample of a shard.
    pub(crate) fn name_of(&self, sample: u32) -> String {
        if let Some(streamed) = &self.streamed {
            return (streamed.name_of)(sample);
        }
        let place = &self.places[sample as usize];
        let path = self.files[place.file as usize].escaped();
        match self.packing {
            Packing::Files => path.to_string(),
            _ => format!("{path} at offset {}", place.offset),
        }
    }
}

/// A shard of which only the first part could be indexed.
#[derive(Debug)]
pub struct Damaged {
    pub path: PathBuf,
    pub n_samples_before: usize,
    pub error: forebay_format::Error,
}

/// The part of a path below `dir`.
fn below<'a>(path: &'a Path, dir: &Path) -> &'a Path {
    path.strip_prefix(dir).unwrap_or(path)
}

/// The group of a label; samples without a label share the group of label 0.
fn group_of(label: i64) -> u32 {
    label.clamp(0, i64::from(u32::MAX)) as u32
}

/// Indexed samples and the storage they are read from.
#[derive(Clone)]
pub struct Source {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) index: Arc<Index>,
    classes: Arc<Vec<String>>,
    damaged: Arc<Vec<Damaged>>,
    /// Features that could each be the image, if the choice is ambiguous.
    pub(crate) image_candidates: Arc<Vec<String>>,
    notes: Vec<String>,
    left_out: Arc<LeftOut>,
    pub(crate) max_sample: u64,
    pixels: Option<PixelShape>,
}

/// The shape of samples that are already pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelShape {
    pub height: u32,
    pub width: u32,
    pub channels: u32,
}

impl Source {
    /// Detects what is at `path`: a folder of images or shards, an image, a shard, or a list. A file is recognised by
    /// its content; in a folder, names come first.
    ///
    /// # Errors
    /// If the path does not exist, or contains nothing that is recognised, or several kinds of data.
    pub fn discover(storage: Arc<dyn Storage>, path: &Path) -> Result<Self, Error> {
        Self::discover_with(storage, path, &KeyNames::default())
    }

    /// Like [`discover`](Self::discover), with the names of the features that hold image and label of a TFRecord
    /// record.
    ///
    /// # Errors
    /// As for [`discover`](Self::discover); also if names are given and the data are not TFRecord shards, or the first
    /// records have no feature with that name and type.
    pub fn discover_with(storage: Arc<dyn Storage>, path: &Path, given: &KeyNames) -> Result<Self, Error> {
        discover::discover(storage, path, given)
    }

    /// The given files: images, or shards of one kind, each recognised by its content.
    ///
    /// # Errors
    /// As for [`discover_with`](Self::discover_with).
    pub fn discover_all(storage: Arc<dyn Storage>, paths: &[PathBuf], given: &KeyNames) -> Result<Self, Error> {
        discover::discover_all(storage, paths, given)
    }

    /// Image files below a folder. The class of an image is its folder; classes are numbered in sorted order.
    ///
    /// # Errors
    /// If the folder cannot be listed or contains no images.
    pub fn folder(storage: Arc<dyn Storage>, dir: &Path) -> Result<Self, Error> {
        folder::index(storage, dir)
    }

    /// The files named in a list of `path label` lines; relative paths are relative to the list's folder.
    ///
    /// # Errors
    /// If the list cannot be read, is not text, or names no file.
    pub fn list(storage: Arc<dyn Storage>, list: &Path) -> Result<Self, Error> {
        list::index(storage, list)
    }

    /// TFRecord shards, uncompressed or compressed as a whole.
    ///
    /// # Errors
    /// If a shard cannot be opened.
    pub fn tfrecord(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Self, Error> {
        shards::tfrecord(storage, shards, &KeyNames::default())
    }

    /// Tar shards in WebDataset's convention, uncompressed or compressed as a whole.
    ///
    /// # Errors
    /// If a shard cannot be opened.
    pub fn tar(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Self, Error> {
        shards::tar(storage, shards)
    }

    /// Pre-decoded tensor shards.
    ///
    /// # Errors
    /// If a shard cannot be opened, or their shapes differ.
    pub fn tensor(storage: Arc<dyn Storage>, shards: &[PathBuf]) -> Result<Self, Error> {
        shards::tensor(storage, shards)
    }

    /// Records of any content: indexed binary, or what [`discover`](Self::discover) recognises.
    ///
    /// # Errors
    /// As for [`discover`](Self::discover); also if an index does not fit its data.
    pub fn records(storage: Arc<dyn Storage>, paths: &[PathBuf]) -> Result<Self, Error> {
        if let Some(files) = indexed::files(storage.as_ref(), paths)? {
            return indexed::index(storage, &files);
        }
        match paths {
            [one] => Self::discover(storage, one),
            several => Self::discover_all(storage, several, &KeyNames::default()),
        }
    }

    /// Samples that are already in memory, each with its label.
    pub fn memory(samples: Vec<(Vec<u8>, i64)>) -> Self {
        memory::index(samples)
    }

    /// The first `n_samples` objects of a null storage, to measure the harness alone.
    pub fn null(storage: Null, n_samples: usize) -> Self {
        let places = (0..n_samples as u32).map(|file| Place { offset: 0, label: 0, len: 0, file, group: 0 }).collect();
        let files = (0..n_samples).map(Null::path_of).collect();
        Self::new(Arc::new(storage), Index::new(Packing::Files, files, places))
    }

    /// Samples that the map reads by itself: `n_slots` slots of `samples_per_slot` samples each. A
    /// [`Sample`](crate::Sample) then has no bytes, only the slot's number, and the slot has room for all of its
    /// samples; a batch consists of whole slots. `name_of` names a slot that fails.
    pub fn streamed(
        n_slots: u32,
        samples_per_slot: usize,
        name_of: impl Fn(u32) -> String + Send + Sync + 'static,
    ) -> Self {
        streamed::index(n_slots, samples_per_slot, name_of)
    }

    /// The error if the image feature is ambiguous.
    pub(crate) fn several_images(&self) -> Error {
        let candidates = self.image_candidates.to_vec();
        let what = self.index.files.first().map(|file| file.escaped().into_owned()).unwrap_or_default();
        Error::Source { what, source: Some(Box::new(forebay_format::Error::SeveralImages { candidates })) }
    }

    fn new(storage: Arc<dyn Storage>, index: Index) -> Self {
        Self {
            storage,
            index: Arc::new(index),
            classes: Arc::default(),
            damaged: Arc::default(),
            image_candidates: Arc::default(),
            notes: Vec::new(),
            left_out: Arc::default(),
            max_sample: MAX_SAMPLE_SIZE,
            pixels: None,
        }
    }

    /// A hash of the samples' paths below `root`, locations, labels and order; it does not change if the dataset is
    /// moved.
    pub fn fingerprint_below(&self, root: &Path) -> u64 {
        self.index.hash(root)
    }

    /// The same samples, read through another storage, such as a shaped or counted one.
    #[must_use]
    pub fn with_storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = storage;
        self
    }

    /// The same samples with another size limit; larger samples fail and are not read. Defaults to [`MAX_SAMPLE_SIZE`].
    #[must_use]
    pub fn with_max_sample_size(mut self, limit: Bytes) -> Self {
        self.max_sample = limit.0;
        self
    }

    /// Refuses a sample over the size limit before it is read, if its size is known.
    pub(crate) fn check_size(&self, place: &Place) -> Result<(), SampleError> {
        let (size, limit) = (Bytes(place.len), Bytes(self.max_sample));
        if size > limit { Err(SampleError::TooLarge { size, limit }) } else { Ok(()) }
    }

    /// The spans of a file's samples within the size limit, in order.
    pub(crate) fn spans_of(&self, file: u32) -> impl Iterator<Item = Span> {
        // An index lists the samples of each file together, in the order of files.
        let first = self.index.places.partition_point(|place| place.file < file);
        let places = self.index.places[first..].iter().take_while(move |place| place.file == file);
        let readable = places.filter(|place| self.check_size(place).is_ok());
        readable.map(|place| Span { offset: place.offset, len: place.len })
    }

    /// Stored sizes of up to `most` samples, evenly spaced; those that cannot be found out are left out.
    pub fn sizes(&self, most: usize) -> Vec<u64> {
        let step = self.index.places.len().div_ceil(most.max(1)).max(1);
        let size = |place: &Place| match self.index.packing {
            Packing::Files => self.storage.size(&self.index.files[place.file as usize]).ok(),
            _ => Some(place.len),
        };
        self.index.places.iter().step_by(step).filter_map(size).collect()
    }

    /// Number of samples; for streamed samples, number of slots.
    pub fn n_samples(&self) -> usize {
        self.index.len()
    }

    /// The files or shards that hold the samples.
    pub fn files(&self) -> &[PathBuf] {
        &self.index.files
    }

    /// The names of the classes, by label; empty if the source has none.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Number of classes, if known without reading samples; unknown for records and archives.
    pub fn n_classes(&self) -> Option<usize> {
        let largest = self.index.places.iter().map(|place| place.label).max();
        let by_label = largest.and_then(|label| usize::try_from(label).ok()).map(|label| label + 1);
        if self.classes.is_empty() { by_label } else { Some(self.classes.len()) }
    }

    /// Shards that are truncated or damaged; the samples before the damage are part of the source.
    pub fn damaged(&self) -> &[Damaged] {
        &self.damaged
    }

    /// Notes on the data for readers of results: splits that are read together, unknown labels, skipped entries.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Files of the folder that are not samples.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The shape of the samples, if they are already decoded.
    pub fn pixels(&self) -> Option<PixelShape> {
        self.pixels
    }

    /// The packing: "files", "tfrecord", "tar", "tensor", "indexed", "streamed".
    pub fn packing(&self) -> &'static str {
        match self.index.packing {
            Packing::Files => "files",
            Packing::TfRecord => "tfrecord",
            Packing::CompressedTfRecord(Compression::Gzip) => "tfrecord (gzip)",
            Packing::CompressedTfRecord(_) => "tfrecord (zlib)",
            Packing::Tar => "tar",
            Packing::CompressedTar(_) => "tar (gzip)",
            Packing::Tensor => "tensor",
            Packing::Indexed => "indexed",
            Packing::Streamed => "streamed",
        }
    }

    pub fn name_of(&self, sample: u32) -> String {
        self.index.name_of(sample)
    }
}
