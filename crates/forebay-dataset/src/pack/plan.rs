//! Which file goes into which shard, and under what name.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use forebay_format::example::Keys;
use forebay_format::image::ImageKind;
use forebay_format::tfrecord::Compression;
use forebay_format::{MAX_SAMPLE_SIZE, tar};
use forebay_storage::{Buffer, Local, is_url};
use forebay_units::random::mix;
use forebay_units::{Bytes, PathText};
use serde_json::{Map, Value};

use super::Note;
use crate::home::INPUTS;
use crate::manifest::{Manifest, SCHEMA};
use crate::rng::Rng;
use crate::source::{Item, Source, read_head};
use crate::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// TFRecord shards of `tf.train.Example` messages.
    TfRecord { compression: Compression },
    /// Tar shards in WebDataset's convention.
    Tar,
    /// Images decoded and resized, one after the other.
    Tensor { width: u32, height: u32 },
}

impl Packing {
    /// The name used in flags, manifests and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TfRecord { .. } => "tfrecord",
            Self::Tar => "tar",
            Self::Tensor { .. } => "tensor",
        }
    }

    fn extension(&self) -> &'static str {
        match self {
            Self::TfRecord { compression: Compression::Gzip } => "tfrecord.gz",
            Self::TfRecord { compression: Compression::Zlib } => "tfrecord.zlib",
            Self::TfRecord { .. } => "tfrecord",
            Self::Tar => "tar",
            Self::Tensor { .. } => "fbt",
        }
    }

    /// Approximate size of a file of `size` bytes in a shard.
    pub fn sample_bytes(&self, size: u64) -> u64 {
        match self {
            Self::TfRecord { .. } => size + 200,
            Self::Tar => size.next_multiple_of(512) + 1536,
            Self::Tensor { width, height } => u64::from(*width) * u64::from(*height) * 3,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackOptions {
    pub packing: Packing,
    /// Maximum length of a shard.
    pub shard_size: Bytes,
    /// Seed for shuffling the files before packing, so that every shard holds all classes; `None` keeps the order of paths
    /// or of the list.
    pub shuffle: Option<u64>,
    /// Shard names begin with this, before `-00000-of-00012`; `None` takes the name of the input.
    pub name: Option<OsString>,
    /// Stop at the first bad input instead of leaving it out.
    pub stop_at_bad: bool,
    /// A larger file is reported as bad and not read.
    pub max_sample: Bytes,
    /// Pack only this many files, evenly spread over the input.
    pub most: Option<usize>,
}

impl PackOptions {
    /// Shards of 128 MiB, shuffled with seed 0, bad inputs left out.
    pub fn new(packing: Packing) -> Self {
        Self {
            packing,
            shard_size: Bytes(128 << 20),
            shuffle: Some(0),
            name: None,
            stop_at_bad: false,
            max_sample: Bytes(MAX_SAMPLE_SIZE),
            most: None,
        }
    }
}

impl PackOptions {
    /// Approximate size of a file in its shard; 0 if it is too large to be packed.
    fn room_of(&self, input: &Input) -> u64 {
        if input.size > self.max_sample.0 { 0 } else { self.packing.sample_bytes(input.size) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Input {
    /// Its number in the order of the source.
    pub(super) id: u64,
    pub(super) path: PathBuf,
    /// The name to store: relative, without `..`.
    pub(super) name: Vec<u8>,
    pub(super) label: Option<i64>,
    /// Whether a tar entry cannot represent this name.
    pub(super) odd: bool,
    size: u64,
}

/// A validated plan: every file has its shard.
#[derive(Clone, Debug)]
pub struct PackPlan {
    options: PackOptions,
    input: PathBuf,
    name: OsString,
    inputs: Vec<Input>,
    shards: Vec<Vec<u32>>,
    classes: Vec<String>,
    notes: Vec<String>,
    fingerprint: u64,
}

impl PackPlan {
    /// Assigns the files of `input` to shards.
    ///
    /// # Errors
    /// When `input` does not exist, contains shards instead of files, or an option is invalid.
    pub fn new(input: &Path, options: PackOptions) -> Result<Self> {
        check(&options)?;
        let mut source = Source::open(&Local::default(), input)?;
        refuse_shards(&source)?;
        let mut fingerprint = 0;
        let mut items = std::mem::take(&mut source.items);
        if let Some(most) = options.most {
            items = spread(items, most);
        }
        let mut inputs: Vec<Input> =
            (0..).zip(items).map(|(id, item)| Input::new(id, item, &mut fingerprint)).collect();
        mark_odd(&mut inputs);
        let shards = assign(&inputs, &options);
        let name = options.name.clone().unwrap_or_else(|| name_of(input));
        let (input, notes) = (input.to_owned(), source.notes_with(&Keys::default()));
        Ok(Self { options, input, name, inputs, shards, classes: source.classes, notes, fingerprint })
    }

    /// Refuses to write into the folder being packed: the shards would become part of the input.
    pub(super) fn refuse_inside(&self, out: &Path) -> Result<()> {
        if is_url(out) {
            return Ok(());
        }
        let existing = out.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
        let inside = matches!((existing, self.input.canonicalize()), (Some(out), Ok(input)) if out.starts_with(&input));
        if !inside || !self.input.is_dir() {
            return Ok(());
        }
        let reason = "must not be inside the input folder";
        Err(Error::Parameter { parameter: "output folder", value: out.escaped().into_owned(), reason })
    }

    pub fn options(&self) -> &PackOptions {
        &self.options
    }

    /// Notes for the user: splits packed together, files left out.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    pub fn n_files(&self) -> u64 {
        self.inputs.len() as u64
    }

    pub fn n_shards(&self) -> u64 {
        self.shards.len() as u64
    }

    /// Approximate size of the shards before compression.
    pub fn expected_bytes(&self) -> Bytes {
        Bytes(self.inputs.iter().map(|input| self.options.room_of(input)).sum())
    }

    pub fn shard_name(&self, number: usize) -> PathBuf {
        let mut name = self.name.clone();
        name.push(format!("-{number:05}-of-{:05}.{}", self.shards.len(), self.options.packing.extension()));
        PathBuf::from(name)
    }

    pub(super) fn inputs_of(&self, shard: usize) -> &[u32] {
        &self.shards[shard]
    }

    pub(super) fn input(&self, number: u32) -> &Input {
        &self.inputs[number as usize]
    }

    /// Everything that determines the bytes of the shards.
    pub(super) fn identity(&self) -> Map<String, Value> {
        let PackOptions { packing, shard_size, shuffle, max_sample, .. } = &self.options;
        let mut map = Map::new();
        let mut put = |key: &str, value: Value| map.insert(key.to_owned(), value);
        put("format", packing.extension().into());
        put("shard_bytes", shard_size.0.into());
        put("shuffle", (*shuffle).into());
        put("name", self.name.escaped().into());
        put("n_files", self.n_files().into());
        put(INPUTS, format!("{:016x}", self.fingerprint).into());
        if max_sample.0 != MAX_SAMPLE_SIZE {
            put("max_sample_bytes", max_sample.0.into());
        }
        if let Packing::Tensor { width, height } = packing {
            put("size", format!("{width}x{height}").into());
        }
        map
    }

    pub(super) fn manifest(&self, notes: Vec<Note>) -> Manifest {
        let (shards, skipped): (Vec<_>, Vec<_>) = notes.into_iter().map(|note| (note.entry, note.skipped)).unzip();
        Manifest {
            schema: SCHEMA,
            format: self.options.packing.name().to_owned(),
            n_samples: shards.iter().map(|shard| shard.n_samples).sum(),
            bytes: shards.iter().map(|shard| shard.bytes).sum(),
            shards,
            classes: self.classes.clone(),
            skipped: skipped.into_iter().flatten().collect(),
        }
    }
}

impl Input {
    #[cfg(test)]
    pub(super) fn for_test(id: u64, name: &str, size: u64) -> Self {
        Self { id, path: name.into(), name: name.as_bytes().to_owned(), label: None, odd: false, size }
    }

    /// Adds a file to the plan, and its name, size and time to the fingerprint of all inputs.
    fn new(id: u64, item: Item, fingerprint: &mut u64) -> Self {
        let name = inner_name(&item.name);
        // A missing file is reported when it is read.
        let (size, time) =
            fs::metadata(&item.path).map_or((0, 0), |of| (of.len(), of.mtime_nsec() ^ (of.mtime() << 30)));
        let numbers = [size, time as u64, item.label.map_or(u64::MAX, |label| label as u64)];
        let words = name.chunks(8).map(|word| word.iter().fold(0, |sum, &byte| (sum << 8) | u64::from(byte)));
        for word in words.chain(numbers) {
            *fingerprint = mix(*fingerprint ^ word).wrapping_add(1);
        }
        Self { id, path: item.path, name, label: item.label, odd: false, size }
    }
}

/// At most so many of the items, evenly spread.
fn spread(items: Vec<Item>, most: usize) -> Vec<Item> {
    let n = items.len();
    let is_chosen = |i: usize| i * most / n.max(1) != (i + 1) * most / n.max(1);
    items.into_iter().enumerate().filter(|(i, _)| n <= most || is_chosen(*i)).map(|(_, item)| item).collect()
}

fn check(options: &PackOptions) -> Result<()> {
    let refuse = |parameter, value: String, reason| Err(Error::Parameter { parameter, value, reason });
    if options.shard_size.0 < 1 << 16 {
        return refuse("shard size", options.shard_size.to_string(), "must be at least 64 KiB");
    }
    match options.packing {
        Packing::Tensor { width, height } if !(1..=16_384).contains(&width) || !(1..=16_384).contains(&height) => {
            refuse("size", format!("{width}x{height}"), "must be 1 to 16,384 each")
        }
        _ => match &options.name {
            Some(name) if name.is_empty() || name.as_bytes().starts_with(b".") || name.as_bytes().contains(&b'/') => {
                refuse("name", format!("\"{}\"", name.escaped()), "must be a file name that is not hidden")
            }
            _ => Ok(()),
        },
    }
}

fn refuse_shards(source: &Source) -> Result<()> {
    let Some(first) = source.items.first() else { return Ok(()) };
    // If the first file cannot be read, it is reported like any other input.
    let kind = read_head(&Local::default(), &first.path, &mut Buffer::default());
    match kind {
        Ok(kind) if kind.is_shard() => Err(Error::NotFiles { path: first.path.clone(), found: kind.name() }),
        _ => Ok(()),
    }
}

/// Splits the files, shuffled or not, into runs that fill one shard each.
fn assign(inputs: &[Input], options: &PackOptions) -> Vec<Vec<u32>> {
    let mut order: Vec<u32> = (0..inputs.len() as u32).collect();
    if let Some(seed) = options.shuffle {
        let mut rng = Rng::new(seed, 0x7368_7566);
        (1..order.len()).rev().for_each(|at| order.swap(at, rng.below(at as u32 + 1) as usize));
    }
    let mut shards: Vec<Vec<u32>> = Vec::new();
    let mut filled = u64::MAX;
    for input in order {
        let bytes = options.room_of(&inputs[input as usize]);
        if filled.saturating_add(bytes) > options.shard_size.0 {
            shards.push(Vec::new());
            filled = 0;
        }
        filled += bytes;
        shards.last_mut().expect("the first input opens a shard").push(input);
    }
    shards
}

/// Marks the names that a tar entry cannot represent: those that share their key with another file, and those that
/// WebDataset would read differently.
fn mark_odd(inputs: &mut [Input]) {
    let mut keys: HashMap<Vec<u8>, u32> = HashMap::new();
    let key = |name: &[u8]| tar::key_and_extension(name).map_or_else(|| name.to_owned(), |(key, _)| key.to_owned());
    inputs.iter().for_each(|input| *keys.entry(key(&input.name)).or_default() += 1);
    for input in inputs {
        let plain = match tar::key_and_extension(&input.name) {
            Some((key, extension)) => {
                let known = std::str::from_utf8(extension).is_ok_and(|it| ImageKind::from_extension(it).is_some());
                known && keys.get(key) == Some(&1) && !key.starts_with(b"__")
            }
            None => false,
        };
        input.odd = !plain;
    }
}

/// A name without components that lead out of a folder.
fn inner_name(name: &Path) -> Vec<u8> {
    let normal = |part: Component<'_>| match part {
        Component::Normal(part) => Some(part.as_bytes().to_owned()),
        _ => None,
    };
    name.components().filter_map(normal).collect::<Vec<_>>().join(&b'/')
}

/// Default shard name: the folder's name, or the list's without its extension.
fn name_of(input: &Path) -> OsString {
    let whole = fs::canonicalize(input).unwrap_or_else(|_| input.to_owned());
    let name = if whole.is_dir() { whole.file_name() } else { whole.file_stem() };
    let name = name.unwrap_or_default().as_bytes();
    let visible = name.iter().position(|&byte| byte != b'.').map_or(&b"data"[..], |at| &name[at..]);
    OsStr::from_bytes(visible).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_one_shard_and_no_shard_is_too_long() {
        let inputs: Vec<Input> =
            (0..1000).map(|id| Input::for_test(id, &format!("{id}.jpg"), 1000 + id * 37 % 5000)).collect();
        for shuffle in [None, Some(3)] {
            let packing = Packing::TfRecord { compression: Compression::None };
            let options = PackOptions { shard_size: Bytes(100_000), shuffle, ..PackOptions::new(packing) };
            let shards = assign(&inputs, &options);
            let mut all: Vec<u32> = shards.iter().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..1000).collect::<Vec<u32>>());
            let bytes = |shard: &Vec<u32>| shard.iter().map(|&n| inputs[n as usize].size + 200).sum::<u64>();
            assert!(shards.iter().all(|shard| bytes(shard) <= 100_000));
        }
    }

    #[test]
    fn names_that_tar_would_not_give_back_are_marked() {
        let names = ["a/1.jpg", "a/1.png", "a/2.JPEG", "b/x.y.jpg", "b/z", "b/z.gif", "__m__.jpg", "b/y.webp"];
        let mut inputs: Vec<Input> = names.iter().map(|name| Input::for_test(0, name, 1)).collect();
        mark_odd(&mut inputs);
        let odd: Vec<bool> = inputs.iter().map(|input| input.odd).collect();
        assert_eq!(odd, [true, true, false, true, true, true, true, false]);
    }

    #[test]
    fn kept_names_do_not_lead_out_of_a_folder() {
        assert_eq!(inner_name(Path::new("/data/../x/./1.jpg")), b"data/x/1.jpg");
    }
}
