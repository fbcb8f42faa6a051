//! `forebay data inspect`: what is in a dataset.
//!
//! Only the headers and the last bytes of an image file are read, so a large tree takes as long as opening its files;
//! BMP and TIFF have no end marker and are decoded. Shards are read a sample at a time, with their checksums. Whether the
//! pixels decode is checked by [`crate::verify()`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use forebay_format::example::KeyNames;
use forebay_format::image::{self, ImageDecoder, ImageInfo, ImageKind, ImageSpec};
use forebay_format::{Kind, MAX_SAMPLE_SIZE};
use forebay_record::{Class, Fault, Form, Inspection};
use forebay_storage::{Buffer, Object, Routed, Storage};
use forebay_units::{Bytes, Summary, chain};

use crate::manifest::Manifest;
use crate::reason::{not_an_image, too_large, why_unreadable};
use crate::shard::{self, Content, Reading};
use crate::sizes::{bssplit, histogram};
use crate::source::{Item, Source};
use crate::{Control, Result, features};

/// First read of an image file: enough for nearly all headers.
const FIRST_READ: u64 = 16 << 10;
/// How many last bytes are searched for the end marker; some writers append a few bytes.
const LAST_READ: u64 = 4 << 10;

#[derive(Clone, Debug)]
pub struct InspectOptions {
    /// At most this many bad files are listed; all are counted.
    pub bad_limit: usize,
    /// The TFRecord features that hold image and label, if known.
    pub keys: KeyNames,
    /// A larger sample is reported as bad and not read.
    pub max_sample: Bytes,
}

impl Default for InspectOptions {
    fn default() -> Self {
        Self { bad_limit: 100, keys: KeyNames::default(), max_sample: Bytes(MAX_SAMPLE_SIZE) }
    }
}

/// Inspects `path`: a folder of images, a list, an image, or shards.
///
/// # Errors
/// When `path` does not exist or contains no data, or the caller stops it. Bad files are part of the result.
pub fn inspect(path: &Path, options: &InspectOptions, control: &Control<'_>) -> Result<Inspection> {
    let storage = Routed::default();
    let source = Source::open(&storage, path)?;
    let keys = features::decide(&storage, path, &source, &options.keys, options.max_sample)?;
    let reading = Reading { storage: &storage, keys: &keys, limit: options.max_sample.0 };
    let totals = Mutex::new(Totals::default());
    let work = |buffer: &mut Buffer, number: u64| {
        let mut seen = Totals::default();
        seen.look(&reading, &source.items[number as usize], buffer);
        let bytes = seen.bytes;
        totals.lock().expect("adding does not panic").add(seen);
        Ok(bytes)
    };
    control.for_each("inspect", source.items.len() as u64, Buffer::default, work)?;
    let totals = totals.into_inner().expect("adding does not panic");
    let names = class_names(&storage, path, &source, totals.n_shards > 0, &options.keys);
    let mut found = totals.finish(path, source.form, &names, options);
    found.notes = source.notes_with(&keys);
    Ok(found)
}

/// Class names by label, from a manifest or from the folders of image files. Labels of records have no folder names.
fn class_names(storage: &dyn Storage, path: &Path, source: &Source, has_shards: bool, given: &KeyNames) -> Vec<String> {
    match Manifest::beside(storage, path) {
        Some(Ok(manifest)) if given.has_usual_label() => manifest.classes,
        _ if has_shards => Vec::new(),
        _ => source.classes.clone(),
    }
}

#[derive(Default)]
struct Totals {
    n_files: u64,
    n_shards: u64,
    bytes: u64,
    files: BTreeMap<&'static str, u64>,
    formats: BTreeMap<&'static str, u64>,
    colours: BTreeMap<&'static str, u64>,
    labels: BTreeMap<Option<i64>, u64>,
    sizes: Vec<u64>,
    dimensions: Vec<(u32, u32)>,
    n_progressive: u64,
    n_rotated: u64,
    bad: Vec<Fault>,
}

impl Totals {
    fn look(&mut self, reading: &Reading<'_>, item: &Item, buffer: &mut Buffer) {
        self.n_files += 1;
        if let Err(fault) = self.try_look(reading, item, buffer) {
            self.bad.push(fault);
        }
    }

    fn try_look(&mut self, reading: &Reading<'_>, item: &Item, buffer: &mut Buffer) -> Result<(), Fault> {
        let limit = reading.limit;
        let unreadable = |error| Fault::of_file(&item.path, why_unreadable(&error));
        let object = reading.storage.open(&item.path).map_err(unreadable)?;
        let size = object.len().map_err(unreadable)?;
        object.read_at(0, size.min(FIRST_READ) as usize, buffer).map_err(unreadable)?;
        self.bytes += size;
        let kind = Kind::of(buffer.as_slice());
        *self.files.entry(kind.name()).or_default() += 1;
        match kind {
            Kind::Image(_) if size > limit => Err(Fault::of_file(&item.path, too_large(Bytes(size), Bytes(limit)))),
            Kind::Image(kind) => {
                let file = ImageFile { object: object.as_ref(), kind, size, limit };
                let info = file.header(buffer).and_then(|info| file.check_end(buffer).map(|()| info));
                self.take_image(&info.map_err(|reason| Fault::of_file(&item.path, reason))?, size, item.label);
                Ok(())
            }
            kind if kind.is_shard() => {
                self.n_shards += 1;
                shard::walk(reading, &item.path, kind, &mut |sample| {
                    let taken = sample.and_then(|sample| self.take_sample(&sample, &item.path));
                    self.bad.extend(taken.err());
                })
            }
            _ => Err(Fault::of_file(&item.path, not_an_image(buffer.as_slice()))),
        }
    }

    fn take_sample(&mut self, sample: &shard::Sample<'_>, path: &Path) -> Result<(), Fault> {
        match sample.content {
            Content::Encoded(bytes) => {
                let info = image::info(bytes).map_err(|error| Fault::of_record(path, sample.offset, chain(&error)))?;
                self.take_image(&info, bytes.len() as u64, sample.label);
            }
            Content::Pixels { shape, bytes } => {
                *self.formats.entry("pixels").or_default() += 1;
                *self.colours.entry(if shape.channels == 3 { "rgb" } else { "other" }).or_default() += 1;
                self.take_any(bytes, (shape.width, shape.height), sample.label);
            }
        }
        Ok(())
    }

    fn take_image(&mut self, info: &ImageInfo, size: u64, label: Option<i64>) {
        *self.formats.entry(Kind::Image(info.kind).name()).or_default() += 1;
        *self.colours.entry(info.colour).or_default() += 1;
        self.n_progressive += u64::from(info.progressive);
        self.n_rotated += u64::from(info.orientation.is_some_and(|orientation| orientation != 1));
        self.take_any(size, (info.width, info.height), label);
    }

    fn take_any(&mut self, size: u64, dimensions: (u32, u32), label: Option<i64>) {
        self.sizes.push(size);
        self.dimensions.push(dimensions);
        *self.labels.entry(label).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        let sum = |into: &mut BTreeMap<&'static str, u64>, from: BTreeMap<&'static str, u64>| {
            from.into_iter().for_each(|(key, count)| *into.entry(key).or_default() += count);
        };
        sum(&mut self.files, other.files);
        sum(&mut self.formats, other.formats);
        sum(&mut self.colours, other.colours);
        other.labels.into_iter().for_each(|(label, count)| *self.labels.entry(label).or_default() += count);
        self.n_files += other.n_files;
        self.n_shards += other.n_shards;
        self.bytes += other.bytes;
        self.sizes.extend(other.sizes);
        self.dimensions.extend(other.dimensions);
        self.n_progressive += other.n_progressive;
        self.n_rotated += other.n_rotated;
        self.bad.extend(other.bad);
    }

    fn finish(mut self, path: &Path, form: Form, names: &[String], options: &InspectOptions) -> Inspection {
        let named =
            |counts: BTreeMap<&'static str, u64>| counts.into_iter().map(|(key, n)| (key.to_owned(), n)).collect();
        let summary = |values: Vec<f64>| Summary::of(&values);
        self.bad.sort_unstable();
        let n_bad = self.bad.len() as u64;
        self.bad.truncate(options.bad_limit);
        let class = |(label, n_samples): (Option<i64>, u64)| {
            let name = label.and_then(|label| names.get(usize::try_from(label).ok()?)).cloned();
            Class { label, name, n_samples }
        };
        Inspection {
            path: path.to_owned(),
            form,
            n_files: self.n_files,
            n_samples: self.sizes.len() as u64,
            total_bytes: Bytes(self.bytes),
            file_formats: named(self.files),
            sample_formats: named(self.formats),
            classes: self.labels.into_iter().map(class).collect(),
            sizes: summary(self.sizes.iter().map(|&size| size as f64).collect()),
            histogram: histogram(&self.sizes),
            widths: summary(self.dimensions.iter().map(|of| f64::from(of.0)).collect()),
            heights: summary(self.dimensions.iter().map(|of| f64::from(of.1)).collect()),
            colours: named(self.colours),
            n_progressive: self.n_progressive,
            n_rotated: self.n_rotated,
            n_bad,
            bad: self.bad,
            bssplit: bssplit(&self.sizes),
            notes: Vec::new(),
        }
    }
}

/// An image file being inspected.
struct ImageFile<'a> {
    object: &'a dyn Object,
    kind: ImageKind,
    size: u64,
    limit: u64,
}

impl ImageFile<'_> {
    /// The headers of an image whose beginning is in `buffer`; reads more if needed.
    fn header(&self, buffer: &mut Buffer) -> Result<ImageInfo, String> {
        match image::info(buffer.as_slice()) {
            Err(_) if self.size > FIRST_READ => {
                self.read_whole(buffer)?;
                image::info(buffer.as_slice()).map_err(|error| chain(&error))
            }
            other => other.map_err(|error| chain(&error)),
        }
    }

    /// Whether the file is complete at its end; its beginning is in `buffer`.
    fn check_end(&self, buffer: &mut Buffer) -> Result<(), String> {
        if image::declared_len(buffer.as_slice()).is_some_and(|len| len <= self.size) {
            return Ok(());
        }
        let len = self.size.min(LAST_READ);
        let read = self.object.read_at(self.size - len, len as usize, buffer);
        read.map_err(|error| why_unreadable(&error))?;
        if has_end(self.kind, buffer.as_slice()) {
            return Ok(());
        }
        // Some writers omit the marker, and some formats have none: only decoding shows it.
        self.read_whole(buffer)?;
        decodes(buffer.as_slice())
    }

    fn read_whole(&self, buffer: &mut Buffer) -> Result<(), String> {
        self.object.read_within(self.limit, buffer).map_err(|error| why_unreadable(&error))
    }
}

/// Whether the end marker is among an image's last bytes.
pub(crate) fn has_end(kind: ImageKind, bytes: &[u8]) -> bool {
    let last = &bytes[bytes.len().saturating_sub(LAST_READ as usize)..];
    let holds = |mark: &[u8]| last.windows(mark.len()).any(|window| window == mark);
    match kind {
        ImageKind::Jpeg => holds(&[0xFF, 0xD9]),
        ImageKind::Png => holds(b"IEND"),
        // The end of the last data, and the trailer.
        ImageKind::Gif => last.ends_with(&[0, 0x3B]),
        // Their length is stated in the first bytes, or not at all.
        ImageKind::Webp | ImageKind::Bmp | ImageKind::Tiff => false,
    }
}

/// Whether an image is whole, by decoding it.
pub(crate) fn decodes(bytes: &[u8]) -> Result<(), String> {
    ImageDecoder::new(ImageSpec::default()).decode(bytes).map(drop).map_err(|error| chain(&error))
}
