//! A wrapper that breaks the n-th operation of a kind: fails it, tears it, delays it or corrupts its bytes.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::{Buffer, Entry, Error, Object, Operation, Requests, Result, Storage, Writer};

/// What happens to the faulty operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// It fails with this system error number.
    Fail(i32),
    /// Only the first `n` bytes come through: a read returns a shorter object, a write stops there and fails.
    Tear(usize),
    /// Blocks for this long on the real clock, then succeeds.
    Delay(Duration),
    /// Bit 0 of byte `n` (counted from the start, wrapping) is flipped; the operation reports success.
    Corrupt(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub operation: Operation,
    /// Which one of that kind, counted from 0 over all objects.
    pub nth: u64,
    pub effect: Effect,
}

struct Plan {
    faults: Vec<Fault>,
    seen: Mutex<HashMap<Operation, u64>>,
}

impl Plan {
    /// Counts the operation and returns its fault, if any. Failures and delays take effect here.
    fn strike(&self, operation: Operation, path: &Path) -> Result<Option<Effect>> {
        let nth = {
            let mut seen = self.seen.lock().expect("no holder of this lock panics");
            let count = seen.entry(operation).or_insert(0);
            *count += 1;
            *count - 1
        };
        let fault = self.faults.iter().find(|f| f.operation == operation && f.nth == nth);
        match fault.map(|f| f.effect.clone()) {
            Some(Effect::Fail(errno)) => Err(Error::from_io(operation, path, io::Error::from_raw_os_error(errno))),
            Some(Effect::Delay(by)) => {
                std::thread::sleep(by);
                Ok(None)
            }
            other => Ok(other),
        }
    }
}

/// A storage with planned faults; clones share the count of operations.
#[derive(Clone)]
pub struct Faulty<S> {
    inner: S,
    plan: Arc<Plan>,
}

impl<S: Storage> Faulty<S> {
    pub fn new(inner: S, faults: Vec<Fault>) -> Self {
        Self { inner, plan: Arc::new(Plan { faults, seen: Mutex::new(HashMap::new()) }) }
    }
}

impl<S: Storage> Storage for Faulty<S> {
    fn description(&self) -> String {
        format!("faulty over {}", self.inner.description())
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.plan.strike(Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn size(&self, path: &Path) -> Result<u64> {
        self.plan.strike(Operation::Size, path)?;
        self.inner.size(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        self.plan.strike(Operation::Open, path)?;
        let inner = self.inner.open(path)?;
        Ok(Box::new(FaultyObject { inner, path: path.to_owned(), plan: Arc::clone(&self.plan) }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        self.plan.strike(Operation::Create, path)?;
        let inner = self.inner.create(path)?;
        Ok(Box::new(FaultyWriter { inner, path: path.to_owned(), plan: Arc::clone(&self.plan) }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.plan.strike(Operation::Remove, path)?;
        self.inner.remove(path)
    }

    fn description_of(&self, path: &Path) -> String {
        format!("faulty over {}", self.inner.description_of(path))
    }

    fn concurrency(&self, path: &Path) -> usize {
        self.inner.concurrency(path)
    }

    fn requests(&self) -> Option<Requests> {
        self.inner.requests()
    }
}

struct FaultyObject {
    inner: Box<dyn Object>,
    path: PathBuf,
    plan: Arc<Plan>,
}

impl FaultyObject {
    fn read(&self, into: &mut Buffer, read: impl FnOnce(&mut Buffer) -> Result<()>) -> Result<Option<Effect>> {
        let effect = self.plan.strike(Operation::Read, &self.path)?;
        read(into)?;
        if let Some(Effect::Corrupt(at)) = effect
            && !into.is_empty()
        {
            let at = at % into.len();
            into.as_mut_slice()[at] ^= 1;
        }
        Ok(effect)
    }
}

impl Object for FaultyObject {
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        if let Some(Effect::Tear(keep)) = self.read(into, |into| self.inner.read_within(limit, into))? {
            into.resize(keep.min(into.len()));
        }
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        if let Some(Effect::Tear(keep)) = self.read(into, |into| self.inner.read_at(offset, len, into))? {
            let (wanted, found) = (len as u64, keep.min(len) as u64);
            return Err(Error::Truncated { path: self.path.clone(), offset, wanted, found });
        }
        Ok(())
    }

    fn moved_for(&self, offset: u64, len: u64) -> u64 {
        self.inner.moved_for(offset, len)
    }
}

struct FaultyWriter {
    inner: Box<dyn Writer>,
    path: PathBuf,
    plan: Arc<Plan>,
}

impl Writer for FaultyWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self.plan.strike(Operation::Write, &self.path)? {
            Some(Effect::Tear(keep)) => {
                self.inner.write(&bytes[..keep.min(bytes.len())])?;
                Err(Error::Full { operation: Operation::Write, path: self.path.clone() })
            }
            Some(Effect::Corrupt(at)) if !bytes.is_empty() => {
                let mut bent = bytes.to_vec();
                bent[at % bytes.len()] ^= 1;
                self.inner.write(&bent)
            }
            _ => self.inner.write(bytes),
        }
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.plan.strike(Operation::Commit, &self.path)?;
        self.inner.commit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memory;

    fn with(operation: Operation, nth: u64, effect: Effect) -> Faulty<Memory> {
        let memory = Memory::default();
        memory.insert("a", b"0123456789".to_vec());
        Faulty::new(memory, vec![Fault { operation, nth, effect }])
    }

    fn read(storage: &dyn Storage) -> Result<Vec<u8>> {
        let mut buffer = Buffer::default();
        storage.open(Path::new("a"))?.read_all(&mut buffer)?;
        Ok(buffer.as_slice().to_vec())
    }

    #[test]
    fn only_the_nth_operation_is_hit() {
        let storage = with(Operation::Open, 1, Effect::Fail(libc::EIO));
        assert!(read(&storage).is_ok());
        assert_eq!(read(&storage).unwrap_err().to_string(), "opening a");
        assert!(read(&storage).is_ok());
    }

    #[test]
    fn a_torn_read_is_short_and_a_corrupt_one_differs_in_one_bit() {
        assert_eq!(read(&with(Operation::Read, 0, Effect::Tear(4))).unwrap(), b"0123");
        assert_eq!(read(&with(Operation::Read, 0, Effect::Corrupt(11))).unwrap(), b"0023456789");
    }

    #[test]
    fn a_torn_write_fails_and_the_object_stays_invisible() {
        let storage = with(Operation::Write, 0, Effect::Tear(2));
        let mut writer = storage.create(Path::new("b")).unwrap();
        assert!(matches!(writer.write(b"xyz"), Err(Error::Full { .. })));
        drop(writer);
        assert!(matches!(storage.size(Path::new("b")), Err(Error::NotFound { .. })));
    }

    #[test]
    fn a_delay_delays_and_changes_nothing() {
        let storage = with(Operation::Read, 0, Effect::Delay(Duration::from_millis(3)));
        let start = std::time::Instant::now();
        assert_eq!(read(&storage).unwrap(), b"0123456789");
        assert!(start.elapsed() >= Duration::from_millis(3));
    }
}
