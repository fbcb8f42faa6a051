//! Reads parts of one checkpoint on a tier: a single tensor without the rest.
//! // A read touches only the chunks that hold the requested bytes. Each chunk is checked against the manifest, so the
//! result is verified although most of the checkpoint is never read.

use std::io;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use forebay_units::PathText;

use crate::format::{self, Catalog};
use crate::fs::{File, PAGE};
use crate::parallel::Pace;
use crate::region::Region;
use crate::tier::Tier;
use crate::{Damage, Error, FileSum, Manifest, Name, PassedOver, damage, list, parallel, verify};

/// A finished checkpoint, opened for partial reads. It implements [`format::Source`].
pub struct Checkpoint {
    name: Name,
    path: PathBuf,
    manifest: Manifest,
    files: Vec<Box<dyn File>>,
    in_flight: usize,
    /// Which chunks of each file have been read and verified.
    seen: Vec<Vec<AtomicBool>>,
    /// The chunk read last. Tensor directories are read in many small parts.
    last: Mutex<Option<(usize, usize, Region)>>,
}

impl Checkpoint {
    /// Reads the manifest and checks that all files exist with the recorded lengths.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the damage found.
    pub fn open(tier: &Tier, name: Name) -> Result<Self, Damage> {
        let manifest = verify::read_manifest(tier, name)?;
        let files = manifest.files.iter().map(|sum| verify::check_length(tier, name, sum));
        let files = files.collect::<Result<_, _>>()?;
        let (path, in_flight) = (tier.path_of(name), tier.fs.in_flight());
        let unseen = |sum: &FileSum| sum.crcs.iter().map(|_| AtomicBool::new(false)).collect();
        let seen = manifest.files.iter().map(unseen).collect();
        Ok(Self { name, path, manifest, files, in_flight, seen, last: Mutex::new(None) })
    }

    /// Opens the newest checkpoint, or the newest of a given step, from the nearest tier where it opens in its format.
    ///
    /// # Errors
    /// [`Error::NothingGood`] with every checkpoint that was skipped, and why.
    pub fn find(tiers: &[Tier], step: Option<u64>) -> crate::Result<Self> {
        let mut passed_over = Vec::new();
        let found = list(tiers, &mut passed_over);
        for (name, at) in found.into_iter().rev().filter(|(name, _)| step.is_none_or(|step| step == name.step)) {
            for tier in at.into_iter().map(|index| &tiers[index]) {
                match Self::open(tier, name).and_then(Self::opened) {
                    Ok(checkpoint) => return Ok(checkpoint),
                    Err(damage) => passed_over.push(PassedOver { tier: tier.dir.clone(), name: Some(name), damage }),
                }
            }
        }
        let places: Vec<String> = tiers.iter().map(|tier| tier.dir.escaped().into_owned()).collect();
        Err(Error::NothingGood { step, places: places.join(", "), passed_over })
    }

    /// Returns itself if its tensor directory can be read or its format is unknown.
    fn opened(self) -> Result<Self, Damage> {
        match self.manifest.format().map(|(format, stem)| format.open(stem, &self)) {
            Some(Err(error)) => Err(Damage::Format { what: forebay_units::chain(&error) }),
            Some(Ok(_)) | None => Ok(self),
        }
    }

    pub fn name(&self) -> Name {
        self.name
    }

    /// The manifest: what the checkpoint held when it was written.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its tensors and notes, in the format given by the names of its files.
    ///
    /// # Errors
    /// When the format is unknown or the tensor directory is damaged.
    pub fn catalog(&self) -> Result<Catalog, format::Error> {
        let Some((format, stem)) = self.manifest.format() else {
            let what = "unknown format: no file name matches safetensors or TensorFlow".to_owned();
            return Err(format::Error::Unsupported { file: self.path.escaped().into_owned(), what });
        };
        format.open(stem, self)
    }

    /// Reads the remaining chunks and checks them against the manifest. Ends early when `stop` is set.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the damage found; [`Error::Stopped`].
    pub fn verify_rest(&self, stop: &AtomicBool) -> crate::Result<()> {
        let pace = Pace::free().until(stop);
        for (file, seen) in self.seen.iter().enumerate() {
            let is_left = |chunk: &usize| !seen[*chunk].load(Ordering::Relaxed);
            let left: Vec<usize> = (0..seen.len()).filter(is_left).collect();
            parallel::for_each(self.in_flight, self.span(file), left.into_iter(), |chunk, scratch| {
                pace.before(0)?;
                self.read_chunk(file, chunk, scratch).map(drop)
            })?;
        }
        Ok(())
    }

    fn index_of(&self, file: &str) -> io::Result<usize> {
        self.manifest.files.iter().position(|sum| sum.name == file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Length of the longest chunk of a file, in bytes.
    fn span(&self, file: usize) -> usize {
        self.manifest.chunk_bytes.min(self.manifest.files[file].len) as usize
    }

    /// Reads one chunk and checks it against the manifest.
    fn read_chunk(&self, file: usize, chunk: usize, scratch: &mut [u8]) -> crate::Result<usize> {
        let sum = &self.manifest.files[file];
        let offset = chunk as u64 * self.manifest.chunk_bytes;
        let len = self.manifest.chunk_bytes.min(sum.len - offset) as usize;
        let n = self.files[file].read_at(offset, &mut scratch[..len.next_multiple_of(PAGE)])?.min(len);
        let (expected, found) = (sum.crcs[chunk], crc32c::crc32c(&scratch[..n]));
        if n == len && found == expected {
            self.seen[file][chunk].store(true, Ordering::Relaxed);
            return Ok(len);
        }
        let damage = damage::of_chunk(&sum.name, offset, &scratch[..n], expected, found);
        Err(Error::Damaged { path: self.path.clone(), damage })
    }

    /// Reads part of one chunk and keeps the chunk for the next call.
    fn read_within(&self, file: usize, chunk: usize, from: usize, into: &mut [u8]) -> crate::Result<()> {
        let mut last = self.last.lock().expect("no holder of this lock panics");
        if !matches!(&*last, Some((f, c, _)) if (*f, *c) == (file, chunk)) {
            let mut region = match last.take() {
                Some((.., region)) if region.len() >= self.span(file) => region,
                _ => Region::new(self.span(file))?,
            };
            self.read_chunk(file, chunk, &mut region)?;
            *last = Some((file, chunk, region));
        }
        let (.., region) = last.as_ref().expect("it was just put there");
        into.copy_from_slice(&region[from..from + into.len()]);
        Ok(())
    }

    fn read(&self, file: usize, offset: u64, into: &mut [u8]) -> crate::Result<()> {
        let chunk_bytes = self.manifest.chunk_bytes;
        let (first, from) = ((offset / chunk_bytes) as usize, (offset % chunk_bytes) as usize);
        let (head, rest) = into.split_at_mut(into.len().min(chunk_bytes as usize - from));
        if rest.is_empty() {
            return if head.is_empty() { Ok(()) } else { self.read_within(file, first, from, head) };
        }
        if head.len() + rest.len() <= chunk_bytes as usize {
            // The next sequential read finds the second chunk cached.
            self.read_within(file, first, from, head)?;
            return self.read_within(file, first + 1, 0, rest);
        }
        let others = rest.chunks_mut(chunk_bytes as usize).enumerate().map(|(k, part)| (first + 1 + k, 0, part));
        let parts: Vec<_> = std::iter::once((first, from, head)).chain(others).collect();
        parallel::for_each(self.in_flight, self.span(file), parts.into_iter(), |(chunk, from, part), scratch| {
            self.read_chunk(file, chunk, scratch)?;
            part.copy_from_slice(&scratch[from..from + part.len()]);
            Ok(())
        })
    }
}

impl format::Source for Checkpoint {
    fn size(&self, file: &str) -> io::Result<u64> {
        self.index_of(file).map(|index| self.manifest.files[index].len)
    }

    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let index = self.index_of(file)?;
        let FileSum { len, .. } = &self.manifest.files[index];
        if offset.checked_add(into.len() as u64).is_none_or(|end| end > *len) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.read(index, offset, into).map_err(|error| match &error {
            Error::Damaged { .. } => io::Error::new(io::ErrorKind::InvalidData, error),
            _ => io::Error::other(error),
        })
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint").field("path", &self.path).finish_non_exhaustive()
    }
}
