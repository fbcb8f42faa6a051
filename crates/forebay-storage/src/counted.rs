//! A wrapper that counts operations, bytes moved, and latencies.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_units::{Clock, Histogram, SystemClock};
use serde::Serialize;

use crate::{Ahead, Buffer, Entry, Object, Operation, Reads, Requests, Result, Storage, Writer};

#[derive(Debug, Default)]
pub struct OpCounts {
    n: AtomicU64,
    errors: AtomicU64,
    bytes: AtomicU64,
    latency_ns: Histogram,
}

/// A snapshot of the counts of one kind of operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OpSnapshot {
    /// Failed operations count too, so `n - errors` succeeded.
    pub n: u64,
    pub errors: u64,
    /// Bytes moved by operations that succeeded; counts whole pages if only whole pages can be read.
    pub bytes: u64,
    /// Median latency in nanoseconds, too high by at most 1/16.
    pub latency_p50_ns: Option<u64>,
    /// 99th percentile of the latency in nanoseconds.
    pub latency_p99_ns: Option<u64>,
    pub latency_max_ns: Option<u64>,
}

impl OpCounts {
    pub fn snapshot(&self) -> OpSnapshot {
        OpSnapshot {
            n: self.n.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            latency_p50_ns: self.latency_ns.quantile(0.5),
            latency_p99_ns: self.latency_ns.quantile(0.99),
            latency_max_ns: self.latency_ns.max(),
        }
    }

    pub fn latency_ns(&self) -> &Histogram {
        &self.latency_ns
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn n(&self) -> u64 {
        self.n.load(Ordering::Relaxed)
    }
}

/// The counts by kind of operation. Latencies include failed operations.
#[derive(Debug, Default)]
pub struct Counters {
    pub open: OpCounts,
    /// Reads of whole objects and of ranges.
    pub read: OpCounts,
    pub write: OpCounts,
    /// Includes the sync of a durable backend.
    pub commit: OpCounts,
    /// Lists, sizes, removes and creates: metadata operations that move no object bytes.
    pub other: OpCounts,
}

impl Counters {
    fn of(&self, operation: Operation) -> &OpCounts {
        match operation {
            Operation::Open => &self.open,
            Operation::Read | Operation::Map => &self.read,
            Operation::Write => &self.write,
            Operation::Commit => &self.commit,
            _ => &self.other,
        }
    }
}

struct Meter {
    counters: Counters,
    clock: Arc<dyn Clock>,
}

impl Meter {
    fn time<T>(&self, operation: Operation, bytes: impl Fn(&T) -> u64, run: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = self.clock.now_ns();
        let outcome = run();
        let counts = self.counters.of(operation);
        counts.latency_ns.record(self.clock.now_ns() - start);
        counts.n.fetch_add(1, Ordering::Relaxed);
        match &outcome {
            Ok(value) => counts.bytes.fetch_add(bytes(value), Ordering::Relaxed),
            Err(_) => counts.errors.fetch_add(1, Ordering::Relaxed),
        };
        outcome
    }
}

/// A storage whose traffic is counted; clones share the counters.
#[derive(Clone)]
pub struct Counted<S> {
    inner: S,
    meter: Arc<Meter>,
}

impl<S: Storage> Counted<S> {
    /// Counts the traffic of `inner` by the system's clock.
    pub fn new(inner: S) -> Self {
        Self::with_clock(inner, Arc::new(SystemClock::default()))
    }

    pub fn with_clock(inner: S, clock: Arc<dyn Clock>) -> Self {
        Self { inner, meter: Arc::new(Meter { counters: Counters::default(), clock }) }
    }

    pub fn counters(&self) -> &Counters {
        &self.meter.counters
    }
}

impl<S: Storage> Storage for Counted<S> {
    fn description(&self) -> String {
        self.inner.description()
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.meter.time(Operation::List, |_| 0, || self.inner.list(dir))
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.meter.time(Operation::Size, |_| 0, || self.inner.size(path))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        let inner = self.meter.time(Operation::Open, |_| 0, || self.inner.open(path))?;
        Ok(Box::new(CountedObject { inner, meter: Arc::clone(&self.meter) }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        let inner = self.meter.time(Operation::Create, |_| 0, || self.inner.create(path))?;
        Ok(Box::new(CountedWriter { inner, meter: Arc::clone(&self.meter) }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.meter.time(Operation::Remove, |()| 0, || self.inner.remove(path))
    }

    fn description_of(&self, path: &Path) -> String {
        self.inner.description_of(path)
    }

    fn concurrency(&self, path: &Path) -> usize {
        self.inner.concurrency(path)
    }

    fn requests(&self) -> Option<Requests> {
        self.inner.requests()
    }

    /// Counts the readers' reads, not those made ahead of them.
    fn read_ahead(&self, reads: &dyn Fn() -> Reads, limit: u64, spread: usize) -> Option<Ahead> {
        let Ahead { storage, stop } = self.inner.read_ahead(reads, limit, spread)?;
        Some(Ahead { storage: Arc::new(Counted { inner: storage, meter: Arc::clone(&self.meter) }), stop })
    }

    fn read_many_preferred(&self) -> usize {
        self.inner.read_many_preferred()
    }

    fn read_many(&self, paths: &[&Path], limit: u64, into: &mut [Buffer]) -> Vec<Result<()>> {
        let start = self.meter.clock.now_ns();
        let outcomes = self.inner.read_many(paths, limit, into);
        // The objects were in flight together, so each one has the latency of the whole call.
        let latency = self.meter.clock.now_ns() - start;
        let counts = &self.meter.counters.read;
        for (outcome, buffer) in outcomes.iter().zip(into.iter()) {
            counts.latency_ns.record(latency);
            counts.n.fetch_add(1, Ordering::Relaxed);
            match outcome {
                Ok(()) => counts.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed),
                Err(_) => counts.errors.fetch_add(1, Ordering::Relaxed),
            };
        }
        outcomes
    }
}

struct CountedObject {
    inner: Box<dyn Object>,
    meter: Arc<Meter>,
}

impl Object for CountedObject {
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        let read = || self.inner.read_within(limit, into).map(|()| into.len());
        self.meter.time(Operation::Read, |n| *n as u64, read).map(drop)
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        self.meter.time(Operation::Read, |()| len as u64, || self.inner.read_at(offset, len, into))
    }

    fn lend<'a>(&'a self, offset: u64, len: usize, buffer: &'a mut Buffer) -> Result<&'a [u8]> {
        self.meter.time(Operation::Read, |_| len as u64, || self.inner.lend(offset, len, buffer))
    }

    fn moved_for(&self, offset: u64, len: u64) -> u64 {
        self.inner.moved_for(offset, len)
    }

    fn map(&self) -> Result<Option<memmap2::Mmap>> {
        self.inner.map()
    }
}

struct CountedWriter {
    inner: Box<dyn Writer>,
    meter: Arc<Meter>,
}

impl Writer for CountedWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.meter.time(Operation::Write, |()| bytes.len() as u64, || self.inner.write(bytes))
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let Self { inner, meter } = *self;
        meter.time(Operation::Commit, |()| 0, || inner.commit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    #[test]
    fn bytes_are_counted_where_they_are_moved() {
        let memory = Memory::default();
        memory.insert("a", vec![7u8; 100]);
        let counted = Counted::new(memory);
        let mut buffer = Buffer::default();
        counted.open(Path::new("a")).unwrap().read_all(&mut buffer).unwrap();
        counted.open(Path::new("a")).unwrap().read_at(10, 5, &mut buffer).unwrap();
        assert_eq!(counted.open(Path::new("a")).unwrap().lend(95, 5, &mut buffer).unwrap(), [7; 5]);
        assert!(counted.open(Path::new("b")).is_err());
        let read = counted.counters().read.snapshot();
        assert_eq!((read.n, read.errors, read.bytes), (3, 0, 110));
        let open = counted.counters().open.snapshot();
        assert_eq!((open.n, open.errors), (4, 1));
    }
}
