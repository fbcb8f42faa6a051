//! Fetching samples' bytes: whole files, or runs of neighbouring records in one read.

use std::path::Path;
use std::sync::Arc;

use forebay_format::tfrecord;
use forebay_storage::{Buffer, Object};
use forebay_units::PathText;
use memmap2::Mmap;

use super::activity::{Activity, Stopwatch};
use super::blocks::{Blocks, Span, Taken};
use super::dispatch::Claim;
use super::expanded::Expanded;
use super::open::OpenShards;
use super::recent::Recent;
use crate::error::SampleError;
use crate::source::{Packing, Place, Source};
use crate::stage_cache::Cache;

enum Piece {
    /// In one of the parcel's own buffers.
    Own { buffer: usize, start: usize, len: usize },
    /// In a shard that is in memory completely.
    Shard { shard: Arc<ShardBytes>, offset: u64, len: usize },
    /// Not fetched: the finished sample is cached, or the map reads by itself.
    NotNeeded,
}

pub(crate) enum ShardBytes {
    Expanded(Expanded),
    Mapped(Mmap),
    /// Part of a shard.
    Block {
        /// Where it begins in the shard.
        start: u64,
        bytes: Buffer,
    },
}

impl ShardBytes {
    fn sample(&self, offset: u64, len: usize) -> Option<&[u8]> {
        match self {
            Self::Expanded(shard) => shard.sample(offset, len),
            Self::Mapped(map) => map.get(offset as usize..)?.get(..len),
            Self::Block { start, bytes } => {
                bytes.as_slice().get(usize::try_from(offset.checked_sub(*start)?).ok()?..)?.get(..len)
            }
        }
    }
}

/// Bytes that were read into the parcel's own buffers.
fn own_bytes(pieces: &[Result<Piece, SampleError>]) -> u64 {
    pieces.iter().map(|piece| if let Ok(Piece::Own { len, .. }) = piece { *len as u64 } else { 0 }).sum()
}

/// A claim with its bytes. Reused, to keep its buffers.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) claim: Claim,
    buffers: Vec<Buffer>,
    pieces: Vec<Result<Piece, SampleError>>,
}

impl Parcel {
    /// The stored bytes of the `i`-th sample.
    pub(crate) fn bytes(&self, i: usize) -> Result<&[u8], SampleError> {
        match &self.pieces[i] {
            Ok(Piece::Own { buffer, start, len }) => Ok(&self.buffers[*buffer].as_slice()[*start..*start + *len]),
            Ok(Piece::Shard { shard, offset, len }) => shard
                .sample(*offset, *len)
                .ok_or_else(|| SampleError::Refused("the shard has shrunk since it was indexed".to_owned())),
            Ok(Piece::NotNeeded) => Ok(&[]),
            Err(error) => Err(error.clone()),
        }
    }

    fn need_nothing(&mut self) -> u64 {
        self.pieces.extend(self.claim.samples.iter().map(|_| Ok(Piece::NotNeeded)));
        0
    }

    fn reserve_buffers(&mut self, n: usize) {
        while self.buffers.len() < n {
            self.buffers.push(Buffer::default());
        }
    }
}

pub(crate) struct Fetcher {
    source: Source,
    cache: Option<Arc<Cache>>,
    /// Finished samples; their bytes need not be fetched.
    made: Option<Arc<Cache>>,
    memory: Arc<Recent<ShardBytes>>,
    mapped: bool,
    blocks: Option<Arc<Blocks>>,
    open: OpenShards,
    /// Requests to the storage since they were last taken.
    n_requests: u64,
}

impl Fetcher {
    pub(crate) fn new(
        source: Source,
        cache: Option<Arc<Cache>>,
        made: Option<Arc<Cache>>,
        memory: Arc<Recent<ShardBytes>>,
        mapped: bool,
        blocks: Option<Arc<Blocks>>,
    ) -> Self {
        Self { source, cache, made, memory, mapped, blocks, open: OpenShards::default(), n_requests: 0 }
    }

    /// Requests to the storage since the last call.
    pub(crate) fn take_requests(&mut self) -> u64 {
        std::mem::take(&mut self.n_requests)
    }

    /// Fetches all samples of the parcel's claim; returns the bytes moved from storage.
    pub(crate) fn fetch(&mut self, parcel: &mut Parcel, watch: &mut Stopwatch) -> u64 {
        parcel.pieces.clear();
        if let Some(made) = &self.made
            && parcel.claim.samples.iter().all(|sample| made.contains(*sample))
        {
            return parcel.need_nothing();
        }
        if self.source.index.packing == Packing::Streamed {
            return parcel.need_nothing();
        }
        if let Some(cache) = self.cache.clone()
            && let Some(bytes) = self.fetch_cached(&cache, parcel, watch)
        {
            return bytes;
        }
        let bytes = match self.source.index.packing {
            _ if self.blocks.is_some() => self.fetch_from_blocks(parcel, watch),
            Packing::Files => self.fetch_files(parcel, watch),
            Packing::CompressedTfRecord(how) | Packing::CompressedTar(how) => self.fetch_expanded(parcel, how, watch),
            Packing::Tensor if self.mapped => self.fetch_mapped(parcel, watch),
            _ => self.fetch_run(parcel, watch),
        };
        if let Some(cache) = &self.cache {
            for i in 0..parcel.claim.samples.len() {
                if let Ok(stored) = parcel.bytes(i) {
                    cache.put(parcel.claim.samples[i], stored);
                }
            }
        }
        bytes
    }

    /// All samples of the claim from the cache, or `None` if one is missing there.
    fn fetch_cached(&mut self, cache: &Cache, parcel: &mut Parcel, watch: &mut Stopwatch) -> Option<u64> {
        watch.enter(Activity::Reading);
        let n = parcel.claim.samples.len();
        parcel.reserve_buffers(n);
        for i in 0..n {
            match cache.get(parcel.claim.samples[i], &mut parcel.buffers[i]) {
                Ok(true) => parcel.pieces.push(Ok(Piece::Own { buffer: i, start: 0, len: parcel.buffers[i].len() })),
                Ok(false) => {
                    parcel.pieces.clear();
                    return None;
                }
                Err(error) => parcel.pieces.push(Err(error)),
            }
        }
        Some(cache.moved(own_bytes(&parcel.pieces)))
    }

    fn path_of(&self, sample: u32) -> &Path {
        &self.source.index.files[self.source.index.places[sample as usize].file as usize]
    }

    fn fetch_files(&mut self, parcel: &mut Parcel, watch: &mut Stopwatch) -> u64 {
        let n = parcel.claim.samples.len();
        self.n_requests += n as u64;
        parcel.reserve_buffers(n);
        if n == 1 {
            let outcome = self.fetch_file(parcel.claim.samples[0], &mut parcel.buffers[0], watch);
            parcel.pieces.push(outcome.map(|len| Piece::Own { buffer: 0, start: 0, len }));
        } else {
            watch.enter(Activity::Reading);
            let paths: Vec<&Path> = parcel.claim.samples.iter().map(|sample| self.path_of(*sample)).collect();
            let outcomes = self.source.storage.read_many(&paths, self.source.max_sample, &mut parcel.buffers[..n]);
            for (buffer, outcome) in outcomes.into_iter().enumerate() {
                let len = parcel.buffers[buffer].len();
                parcel.pieces.push(outcome.map(|()| Piece::Own { buffer, start: 0, len }).map_err(SampleError::from));
            }
        }
        own_bytes(&parcel.pieces)
    }

    fn fetch_file(&self, sample: u32, buffer: &mut Buffer, watch: &mut Stopwatch) -> Result<usize, SampleError> {
        watch.enter(Activity::Opening);
        let object = self.source.storage.open(self.path_of(sample))?;
        watch.enter(Activity::Reading);
        object.read_within(self.source.max_sample, buffer)?;
        Ok(buffer.len())
    }

    /// Fetches the neighbouring samples of a claim in one read, except those over the size limit.
    fn fetch_run(&mut self, parcel: &mut Parcel, watch: &mut Stopwatch) -> u64 {
        let (index, max_sample) = (Arc::clone(&self.source.index), self.source.max_sample);
        let is_readable = |sample: &u32| index.places[*sample as usize].len <= max_sample;
        let (mut moved, mut n_read) = (0, 0);
        let samples = std::mem::take(&mut parcel.claim.samples);
        for run in samples.chunk_by(|one, next| is_readable(one) == is_readable(next)) {
            let places = run.iter().map(|sample| &index.places[*sample as usize]);
            if is_readable(&run[0]) {
                moved += self.fetch_places(places, parcel, n_read, watch);
                n_read += 1;
            } else {
                parcel.pieces.extend(places.map(|place| self.source.check_size(place).map(|()| Piece::NotNeeded)));
            }
        }
        parcel.claim.samples = samples;
        moved
    }

    /// Reads neighbours into one of the parcel's buffers.
    fn fetch_places<'a>(
        &mut self,
        places: impl Iterator<Item = &'a Place> + Clone,
        parcel: &mut Parcel,
        number: usize,
        watch: &mut Stopwatch,
    ) -> u64 {
        let Some(first) = places.clone().next() else { return 0 };
        let total: u64 = places.clone().map(|place| place.len).sum();
        parcel.reserve_buffers(number + 1);
        let buffer = &mut parcel.buffers[number];
        self.n_requests += 1;
        let outcome = self.object(first.file, watch).and_then(|object| {
            watch.enter(Activity::Reading);
            object.read_at(first.offset, total as usize, buffer).map_err(SampleError::from)
        });
        let mut start = 0;
        for place in places {
            let len = place.len as usize;
            parcel.pieces.push(outcome.clone().map(|()| Piece::Own { buffer: number, start, len }));
            start += len;
        }
        if outcome.is_ok() { total } else { 0 }
    }

    /// Takes each sample from its block, which is read if this is its first.
    fn fetch_from_blocks(&mut self, parcel: &mut Parcel, watch: &mut Stopwatch) -> u64 {
        let Some(blocks) = self.blocks.clone() else { return 0 };
        let (index, samples) = (Arc::clone(&self.source.index), std::mem::take(&mut parcel.claim.samples));
        let mut moved = 0;
        for sample in &samples {
            let place = &index.places[*sample as usize];
            let piece = self.source.check_size(place).and_then(|()| {
                let (span, bytes) = match blocks.take(*sample) {
                    Taken::Block(span, bytes) => (span, bytes),
                    Taken::Alone => (Span::of(place), Arc::default()),
                };
                // Another worker may be reading it.
                watch.enter(Activity::WaitingForBytes);
                let shard = bytes.get_or_init(|| self.read_block(span, &mut moved, watch).map(Arc::new)).clone()?;
                Ok(Piece::Shard { shard, offset: place.offset, len: place.len as usize })
            });
            parcel.pieces.push(piece);
        }
        parcel.claim.samples = samples;
        moved
    }

    fn read_block(&mut self, span: Span, moved: &mut u64, watch: &mut Stopwatch) -> Result<ShardBytes, SampleError> {
        let mut bytes = Buffer::default();
        self.n_requests += 1;
        let object = self.object(span.file, watch)?;
        watch.enter(Activity::Reading);
        object.read_at(span.offset, span.len as usize, &mut bytes)?;
        *moved += span.len;
        Ok(ShardBytes::Block { start: span.offset, bytes })
    }

    fn object(&mut self, file: u32, watch: &mut Stopwatch) -> Result<&dyn Object, SampleError> {
        self.open.get(file, &self.source.index.files[file as usize], self.source.storage.as_ref(), watch)
    }

    fn fetch_expanded(&mut self, parcel: &mut Parcel, how: tfrecord::Compression, watch: &mut Stopwatch) -> u64 {
        let (mut moved, mut n_requests) = (0, 0);
        let source = self.source.clone();
        self.fetch_shard(parcel, |file| {
            watch.enter(Activity::Reading);
            let mut packed = Buffer::default();
            let object = source.storage.open(&source.index.files[file as usize])?;
            object.read_within(tfrecord::EXPANDED_LIMIT, &mut packed)?;
            moved += packed.len() as u64;
            n_requests += 1;
            watch.enter(Activity::Decoding);
            let expanded = match source.index.packing {
                Packing::CompressedTar(_) => Expanded::of_spans(packed.as_slice(), how, source.spans_of(file)),
                _ => Expanded::of_records(packed.as_slice(), how, source.max_sample),
            };
            expanded.map(ShardBytes::Expanded)
        });
        self.n_requests += n_requests;
        moved
    }

    fn fetch_mapped(&mut self, parcel: &mut Parcel, watch: &mut Stopwatch) -> u64 {
        let source = self.source.clone();
        self.fetch_shard(parcel, |file| {
            watch.enter(Activity::Opening);
            let path = &source.index.files[file as usize];
            let map = source.storage.open(path)?.map()?;
            map.map(ShardBytes::Mapped).ok_or_else(|| {
                SampleError::Refused(format!("{} cannot be mapped on {}", path.escaped(), source.storage.description()))
            })
        });
        parcel.claim.samples.iter().map(|sample| self.source.index.places[*sample as usize].len).sum()
    }

    fn fetch_shard(&self, parcel: &mut Parcel, mut make: impl FnMut(u32) -> Result<ShardBytes, SampleError>) {
        let place_of = |sample: &u32| &self.source.index.places[*sample as usize];
        let file = place_of(&parcel.claim.samples[0]).file;
        let mut shard = None;
        for sample in &parcel.claim.samples {
            let place = place_of(sample);
            let (offset, len) = (place.offset, place.len as usize);
            // A sample over the size limit does not cause its shard to be decompressed.
            let piece = self.source.check_size(place).and_then(|()| {
                let shard = shard.get_or_insert_with(|| self.memory.get(file, || make(file)));
                shard.clone().map(|shard| Piece::Shard { shard, offset, len })
            });
            parcel.pieces.push(piece);
        }
    }
}
