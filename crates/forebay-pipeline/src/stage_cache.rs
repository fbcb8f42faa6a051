//! Caching samples, in memory or in a file on a given tier.
//!
//! Before `map` it keeps samples as read, after `map` finished ones. A file cache is written during the first epoch and
//! committed at its end; it then serves later epochs and later runs, because its index holds the pipeline's
//! fingerprint. The fingerprint covers paths and locations, not contents: a dataset that was changed in place needs
//! another file. If the cache cannot be written, samples are made as usual and the reason is kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use forebay_storage::{Buffer, Object, Storage, Writer};
use forebay_units::Fnv;

use crate::error::SampleError;

#[derive(Clone)]
pub enum CacheAt {
    Memory,
    /// In a file, with an index in a second file with the suffix `.index`.
    File {
        storage: Arc<dyn Storage>,
        path: PathBuf,
    },
}

pub(crate) struct Cache {
    store: Store,
}

enum Store {
    Memory(Box<[OnceLock<Box<[u8]>>]>),
    File(FileStore),
}

struct FileStore {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    fingerprint: u64,
    writing: Mutex<Writing>,
    ready: OnceLock<Ready>,
}

enum Writing {
    Open { writer: Box<dyn Writer>, spans: Vec<Option<(u64, u64)>>, end: u64, kept: usize },
    Over,
    Failed(String),
}

struct Ready {
    object: Box<dyn Object>,
    spans: Vec<Option<(u64, u64)>>,
}

impl Cache {
    pub(crate) fn new(at: &CacheAt, n_samples: usize, fingerprint: u64) -> Result<Self, forebay_storage::Error> {
        let store = match at {
            CacheAt::Memory => Store::Memory((0..n_samples).map(|_| OnceLock::new()).collect()),
            CacheAt::File { storage, path } => {
                Store::File(FileStore::open(Arc::clone(storage), path, fingerprint, n_samples)?)
            }
        };
        Ok(Self { store })
    }

    pub(crate) fn contains(&self, sample: u32) -> bool {
        match &self.store {
            Store::Memory(samples) => samples[sample as usize].get().is_some(),
            Store::File(file) => file.ready.get().is_some_and(|ready| ready.spans[sample as usize].is_some()),
        }
    }

    /// Copies the sample's bytes into the buffer, if they are cached.
    pub(crate) fn get(&self, sample: u32, into: &mut Buffer) -> Result<bool, SampleError> {
        match &self.store {
            Store::Memory(samples) => {
                let Some(bytes) = samples[sample as usize].get() else { return Ok(false) };
                into.fill_from(bytes);
                Ok(true)
            }
            Store::File(file) => {
                let Some(ready) = file.ready.get() else { return Ok(false) };
                let Some((offset, len)) = ready.spans[sample as usize] else { return Ok(false) };
                ready.object.read_at(offset, len as usize, into)?;
                Ok(true)
            }
        }
    }

    /// Keeps a sample. Keeping it again changes nothing.
    pub(crate) fn put(&self, sample: u32, bytes: &[u8]) {
        match &self.store {
            Store::Memory(samples) => {
                samples[sample as usize].get_or_init(|| bytes.into());
            }
            Store::File(file) => file.put(sample, bytes),
        }
    }

    /// The number of bytes moved from storage to get `bytes` bytes from the cache.
    pub(crate) fn moved(&self, bytes: u64) -> u64 {
        if matches!(self.store, Store::File(_)) { bytes } else { 0 }
    }

    /// Called at the end of the iteration: makes durable what a file cache has so far.
    pub(crate) fn finish(&self) {
        if let Store::File(file) = &self.store {
            file.commit(&mut file.lock());
        }
    }

    /// Why a file cache could not be kept, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        match &self.store {
            Store::Memory(_) => None,
            Store::File(file) => match &*file.lock() {
                Writing::Failed(reason) => Some(reason.clone()),
                _ => None,
            },
        }
    }
}

impl FileStore {
    fn open(
        storage: Arc<dyn Storage>,
        path: &Path,
        fingerprint: u64,
        n_samples: usize,
    ) -> Result<Self, forebay_storage::Error> {
        let ready = OnceLock::new();
        let mut writing = Writing::Over;
        match load(storage.as_ref(), path, fingerprint, n_samples) {
            Some(found) => drop(ready.set(found)),
            None => {
                let writer = storage.create(path)?;
                writing = Writing::Open { writer, spans: vec![None; n_samples], end: 0, kept: 0 };
            }
        }
        Ok(Self { storage, path: path.to_owned(), fingerprint, writing: Mutex::new(writing), ready })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Writing> {
        self.writing.lock().expect("no holder of this lock panics")
    }

    fn put(&self, sample: u32, bytes: &[u8]) {
        let mut writing = self.lock();
        let Writing::Open { writer, spans, end, kept } = &mut *writing else { return };
        if spans[sample as usize].is_some() {
            // The sample comes a second time, so the first epoch is over.
            return self.commit(&mut writing);
        }
        if let Err(error) = writer.write(bytes) {
            *writing = Writing::Failed(error.to_string());
            return;
        }
        spans[sample as usize] = Some((*end, bytes.len() as u64));
        *end += bytes.len() as u64;
        *kept += 1;
        if *kept == spans.len() {
            self.commit(&mut writing);
        }
    }

    fn commit(&self, writing: &mut Writing) {
        if !matches!(writing, Writing::Open { .. }) {
            return;
        }
        let Writing::Open { writer, spans, .. } = std::mem::replace(writing, Writing::Over) else { return };
        if spans.iter().all(Option::is_none) {
            return;
        }
        match self.commit_parts(writer, &spans) {
            Ok(object) => drop(self.ready.set(Ready { object, spans })),
            Err(error) => *writing = Writing::Failed(error.to_string()),
        }
    }

    fn commit_parts(
        &self,
        writer: Box<dyn Writer>,
        spans: &[Option<(u64, u64)>],
    ) -> Result<Box<dyn Object>, forebay_storage::Error> {
        // Remove the index of an older file first: it must never be paired with the new data.
        let index = index_path(&self.path);
        match self.storage.remove(&index) {
            Err(forebay_storage::Error::NotFound { .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
        writer.commit()?;
        let mut writer = self.storage.create(&index)?;
        writer.write(&index_bytes(self.fingerprint, spans))?;
        writer.commit()?;
        self.storage.open(&self.path)
    }
}

fn index_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".index");
    PathBuf::from(name)
}

const MAGIC: &[u8; 8] = b"FBCACHE1";

/// Magic, fingerprint, offset and length + 1 of every sample (0 if not kept), then the hash of everything before.
fn index_bytes(fingerprint: u64, spans: &[Option<(u64, u64)>]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(fingerprint.to_le_bytes());
    for span in spans {
        let (offset, len_plus_1) = span.map_or((0, 0), |(offset, len)| (offset, len + 1));
        bytes.extend(offset.to_le_bytes());
        bytes.extend(len_plus_1.to_le_bytes());
    }
    bytes.extend(Fnv::of(&bytes).to_le_bytes());
    bytes
}

/// The cache of an earlier run, if it is complete and of the same pipeline.
fn load(storage: &dyn Storage, path: &Path, fingerprint: u64, n_samples: usize) -> Option<Ready> {
    let mut buffer = Buffer::default();
    storage.open(&index_path(path)).ok()?.read_all(&mut buffer).ok()?;
    let spans = parse_index(buffer.as_slice(), fingerprint, n_samples)?;
    let object = storage.open(path).ok()?;
    let end = spans.iter().flatten().map(|(offset, len)| offset.saturating_add(*len)).max()?;
    (object.len().ok()? == end).then_some(Ready { object, spans })
}

fn parse_index(bytes: &[u8], fingerprint: u64, n_samples: usize) -> Option<Vec<Option<(u64, u64)>>> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let expected = 16 + n_samples * 16;
    let hash = Fnv::of(bytes.get(..expected)?);
    let same = bytes.starts_with(MAGIC) && word(8)? == fingerprint && word(expected)? == hash;
    if !same || bytes.len() != expected + 8 {
        return None;
    }
    (0..n_samples)
        .map(|i| {
            let (offset, len_plus_1) = (word(16 + i * 16)?, word(24 + i * 16)?);
            Some(len_plus_1.checked_sub(1).map(|len| (offset, len)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_storage::{Effect, Fault, Faulty, Memory, Operation};

    fn file(storage: impl Storage + 'static) -> CacheAt {
        CacheAt::File { storage: Arc::new(storage), path: PathBuf::from("tier/cache") }
    }

    fn get(cache: &Cache, sample: u32) -> Option<Vec<u8>> {
        let mut buffer = Buffer::default();
        cache.get(sample, &mut buffer).unwrap().then(|| buffer.as_slice().to_vec())
    }

    #[test]
    fn memory_serves_at_once() {
        let cache = Cache::new(&CacheAt::Memory, 3, 1).unwrap();
        cache.put(1, b"one");
        assert_eq!(get(&cache, 1).unwrap(), b"one");
        assert_eq!(get(&cache, 0), None);
    }

    #[test]
    fn a_file_serves_once_the_first_epoch_is_over_and_in_the_next_run() {
        let tier = Memory::default();
        let cache = Cache::new(&file(tier.clone()), 3, 1).unwrap();
        cache.put(2, b"two");
        cache.put(0, b"");
        assert_eq!(get(&cache, 2), None);
        cache.put(2, b"two");
        assert_eq!(get(&cache, 2).unwrap(), b"two");
        assert_eq!(get(&cache, 0).unwrap(), b"");
        let again = Cache::new(&file(tier.clone()), 3, 1).unwrap();
        assert_eq!(get(&again, 2).unwrap(), b"two");
        assert_eq!(get(&again, 1), None);
        let other = Cache::new(&file(tier), 3, 2).unwrap();
        assert_eq!(get(&other, 2), None, "another pipeline's cache is not used");
    }

    #[test]
    fn a_full_tier_is_reported_and_does_no_harm() {
        let fault = Fault { operation: Operation::Write, nth: 1, effect: Effect::Fail(28) };
        let cache = Cache::new(&file(Faulty::new(Memory::default(), vec![fault])), 2, 1).unwrap();
        cache.put(0, b"zero");
        cache.put(1, b"one");
        cache.finish();
        assert_eq!(get(&cache, 0), None);
        assert!(cache.failure().unwrap().contains("no space left"), "{:?}", cache.failure());
    }

    #[test]
    fn a_torn_index_is_not_believed() {
        let spans = vec![Some((0, 3)), None];
        let bytes = index_bytes(9, &spans);
        assert_eq!(parse_index(&bytes, 9, 2), Some(spans));
        for cut in 0..bytes.len() {
            assert_eq!(parse_index(&bytes[..cut], 9, 2), None);
        }
        for at in 0..bytes.len() {
            let mut bent = bytes.clone();
            bent[at] ^= 4;
            assert_eq!(parse_index(&bent, 9, 2), None, "byte {at}");
        }
    }
}
