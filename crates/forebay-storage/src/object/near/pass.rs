//! The cache as one pass over announced reads uses it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::order::{Names, Order};
use super::usage::on_disk;
use super::{Key, NearCache, key};
use crate::NextRead;
use crate::object::versions::{self, Versions};

/// Bytes to keep, and what to remove for them.
pub(in crate::object) struct Keep {
    pub(in crate::object) key: Key,
    cache: Arc<NearCache>,
    /// Where they are in the reader's buffer.
    span: Range<usize>,
    size: u64,
    victims: Vec<u64>,
}

impl Keep {
    /// Returns whether the bytes are in the cache.
    pub(in crate::object) fn store(&self, buffer: &[u8]) -> bool {
        buffer.get(self.span.clone()).is_some_and(|bytes| self.cache.keep(&self.key, bytes, self.size, &self.victims))
    }
}

impl Drop for Keep {
    fn drop(&mut self) {
        self.cache.promised.fetch_sub(self.size, Ordering::Relaxed);
    }
}

pub(in crate::object) struct Pass {
    cache: Arc<NearCache>,
    versions: Arc<Versions>,
    order: Order,
    is_alone: bool,
}

impl Pass {
    /// `reads` are those that will be planned, in their order.
    pub(in crate::object) fn new(
        cache: Arc<NearCache>,
        versions: Arc<Versions>,
        reads: impl Iterator<Item = NextRead> + Send + 'static,
    ) -> Self {
        cache.n_passes.fetch_add(1, Ordering::Relaxed);
        let is_alone = cache.is_alone();
        let listed = Arc::clone(&versions);
        let names: Names = Box::new(reads.map(move |read| key_of(&listed, &read).name));
        let held: Vec<(u64, u64)> = cache.entries().iter().map(|(name, bytes)| (*name, *bytes)).collect();
        Self { order: Order::new(names, held.into_iter(), is_alone), cache, versions, is_alone }
    }

    /// Goes one read ahead. Returns its key and, if the bytes are cached, how many there are; they stay until
    /// [`done`](Self::done).
    pub(in crate::object) fn plan(&mut self, read: &NextRead) -> (Key, Option<u64>) {
        let key = key_of(&self.versions, read);
        self.order.pass(key.name);
        if !self.order.is_held(key.name)
            && !self.is_alone
            && let Some(bytes) = self.cache.find(key.name)
        {
            self.order.found(key.name, bytes);
        }
        let bytes = self.order.pin(key.name);
        (key, bytes)
    }

    /// A planned read of cached bytes was made or given up.
    pub(in crate::object) fn done(&mut self, key: &Key) {
        self.order.unpin(key.name);
    }

    /// Cached bytes could not be read.
    pub(in crate::object) fn forget(&mut self, key: &Key) {
        self.order.forget(key.name);
    }

    /// What to do to keep bytes that came from the store in this version; `None` if others are needed earlier.
    pub(in crate::object) fn admit(
        &mut self,
        path: &Path,
        key: Key,
        span: Range<usize>,
        etag: Option<&str>,
    ) -> Option<Keep> {
        // The object was replaced after it was listed.
        if self.versions.get(path).is_some_and(|listed| etag.map(versions::of) != Some(listed)) {
            return None;
        }
        let size = on_disk((span.len() + key::TRAILER) as u64);
        let taken = self.cache.usage.seen().saturating_add(self.cache.promised.load(Ordering::Relaxed));
        let victims = self.order.admit(key.name, size, self.cache.limit.saturating_sub(taken))?;
        self.cache.promised.fetch_add(size, Ordering::Relaxed);
        Some(Keep { key, cache: Arc::clone(&self.cache), span, size, victims })
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.cache.n_passes.fetch_sub(1, Ordering::Relaxed);
    }
}

fn key_of(versions: &Versions, read: &NextRead) -> Key {
    Key::of(&read.path, read.range.as_ref(), versions.get(&read.path).unwrap_or(0))
}
