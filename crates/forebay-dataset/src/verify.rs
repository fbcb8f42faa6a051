//! `forebay data verify`: every checksum and every decode.
//!
//! An image file must decode to its last pixel; a TFRecord shard's checksums must hold and its images decode; a tar
//! shard's headers must be valid and its images decode; a tensor shard's checksums must hold. If a folder has a manifest,
//! every listed shard must exist with its length and checksum. Every file that fails is named.

use std::path::Path;
use std::sync::Mutex;

use forebay_format::example::KeyNames;
use forebay_format::image::{ImageDecoder, ImageSpec};
use forebay_format::{Kind, MAX_SAMPLE_SIZE};
use forebay_record::{Fault, Verification};
use forebay_storage::{Buffer, Routed};
use forebay_units::{Bytes, chain};

use crate::manifest::Manifest;
use crate::reason::{not_an_image, why_unreadable};
use crate::shard::{self, Content, Reading};
use crate::source::{Item, Source, read_head};
use crate::{Control, Result, features};

#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The features of TFRecord records that hold image and label, where they are known.
    pub keys: KeyNames,
    /// A larger sample is reported as bad and not read.
    pub max_sample: Bytes,
}

impl Default for VerifyOptions {
    fn default() -> Self {
        Self { keys: KeyNames::default(), max_sample: Bytes(MAX_SAMPLE_SIZE) }
    }
}

/// Verifies all data at `path`.
///
/// # Errors
/// When `path` does not exist or contains no data, or the caller stops it. Bad files are part of the result.
pub fn verify(path: &Path, options: &VerifyOptions, control: &Control<'_>) -> Result<Verification> {
    let storage = Routed::default();
    let manifest = Manifest::beside(&storage, path);
    let listed = manifest.as_ref().and_then(|read| read.as_ref().ok());
    let source = Source::open(&storage, path)?;
    let keys = features::decide(&storage, path, &source, &options.keys, options.max_sample)?;
    let reading = Reading { storage: &storage, keys: &keys, limit: options.max_sample.0 };
    let found =
        Mutex::new(Verification { path: path.to_owned(), manifest: manifest.is_some(), ..Verification::default() });
    let work = |desk: &mut Desk, number: u64| {
        let item = &source.items[number as usize];
        let mut seen = Seen::default();
        if let Err(fault) = seen.check(&reading, item, desk) {
            seen.bad.push(fault);
        }
        seen.bad.extend(listed.and_then(|manifest| manifest.disagreement(&storage, path, &item.path)));
        let bytes = seen.bytes;
        seen.add_to(&mut found.lock().expect("adding does not panic"));
        Ok(bytes)
    };
    control.for_each("verify", source.items.len() as u64, Desk::default, work)?;
    let mut found = found.into_inner().expect("adding does not panic");
    match &manifest {
        Some(Ok(manifest)) => found.bad.extend(manifest.missing(path, &source.items)),
        Some(Err(fault)) => found.bad.push(fault.clone()),
        None => {}
    }
    found.notes = source.notes_with(&keys);
    found.bad.sort_unstable();
    found.bad.dedup();
    found.n_bad = found.bad.len() as u64;
    Ok(found)
}

struct Desk {
    buffer: Buffer,
    decoder: ImageDecoder,
}

impl Default for Desk {
    fn default() -> Self {
        Self { buffer: Buffer::default(), decoder: ImageDecoder::new(ImageSpec::default()) }
    }
}

#[derive(Default)]
struct Seen {
    n_good: u64,
    bytes: u64,
    bad: Vec<Fault>,
}

impl Seen {
    fn add_to(self, found: &mut Verification) {
        found.n_files += 1;
        found.n_good += self.n_good;
        found.bytes += Bytes(self.bytes);
        found.bad.extend(self.bad);
    }

    fn check(&mut self, reading: &Reading<'_>, item: &Item, desk: &mut Desk) -> Result<(), Fault> {
        let Reading { storage, limit, .. } = *reading;
        let unreadable = |error| Fault::of_file(&item.path, why_unreadable(&error));
        let kind = read_head(storage, &item.path, &mut desk.buffer).map_err(unreadable)?;
        if kind.is_shard() {
            self.bytes += storage.size(&item.path).map_err(unreadable)?;
            return shard::walk(reading, &item.path, kind, &mut |sample| match sample
                .and_then(|sample| check_sample(&sample, &item.path, &mut desk.decoder))
            {
                Ok(()) => self.n_good += 1,
                Err(fault) => self.bad.push(fault),
            });
        }
        let Kind::Image(_) = kind else {
            return Err(Fault::of_file(&item.path, not_an_image(desk.buffer.as_slice())));
        };
        let read = storage.open(&item.path).and_then(|object| object.read_within(limit, &mut desk.buffer));
        read.map_err(unreadable)?;
        let bytes = desk.buffer.as_slice();
        self.bytes += bytes.len() as u64;
        check_image(bytes, &mut desk.decoder).map_err(|reason| Fault::of_file(&item.path, reason))?;
        self.n_good += 1;
        Ok(())
    }
}

fn check_sample(sample: &shard::Sample<'_>, path: &Path, decoder: &mut ImageDecoder) -> Result<(), Fault> {
    match sample.content {
        Content::Encoded(bytes) => {
            check_image(bytes, decoder).map_err(|reason| Fault::of_record(path, sample.offset, reason))
        }
        // The walk has compared their checksum already.
        Content::Pixels { .. } => Ok(()),
    }
}

/// Decodes an image to its last pixel.
fn check_image(bytes: &[u8], decoder: &mut ImageDecoder) -> Result<(), String> {
    match Kind::of(bytes) {
        Kind::Image(_) => decoder.decode(bytes).map(|_| ()).map_err(|error| chain(&error)),
        _ => Err(not_an_image(bytes)),
    }
}
