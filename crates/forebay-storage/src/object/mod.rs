//! Objects in S3, Google Cloud Storage, Azure Blob Storage, or behind plain HTTP.
//!
//! Paths are URLs: `s3://bucket/prefix/name`. Callers block, as with every storage; requests run on threads of their
//! own (`client`). A missing answer is repeated within the time limit; no call takes longer than that without progress.
//! An object is opened with one request, for its size and version (ETag); its parts are then read of that version only,
//! so an object that changes in between is an error. [`Storage::read_many`] needs one request per object, and
//! [`Storage::read_ahead`] keeps requests in flight ahead of all readers (`session`), and what it read on a near disk (`near`).
//!
//! What a local file system has and a store has not: a page cache, so cold and warm mean nothing; folders, so an empty
//! one does not exist; a rename.

mod bucket;
mod client;
mod failure;
mod get;
mod hedge;
mod level;
mod list;
mod location;
mod near;
mod plan;
mod redirect;
mod session;
mod transport;
mod versions;
mod window;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use forebay_units::PathText;
use object_store::ObjectStoreExt;

use crate::{Ahead, Buffer, Entry, Error, Object, Operation, Reading, Reads, Requests, Result, Storage, Writer};
use client::Client;
use get::{Answer, Ask, Head};
use location::Location;
use near::NearCache;
use window::Window;

/// Objects per call of `read_many`: enough to hide a few round trips, few enough not to make others wait.
const MANY: usize = 16;
/// Objects that are examined at the same time, such as the shards of a dataset while it is indexed.
const CONCURRENCY: usize = 32;

/// All object stores that this program's credentials reach.
#[derive(Clone)]
pub struct Objects {
    client: Arc<Client>,
    reading: Reading,
    near: Option<Arc<NearCache>>,
}

impl Objects {
    /// Objects reached as the program said in [`provide`](crate::access::provide).
    ///
    /// # Errors
    /// When the near cache cannot be opened.
    pub fn new(reading: Reading) -> Result<Self> {
        Self::of_client(Client::shared(), reading)
    }

    fn of_client(client: Arc<Client>, reading: Reading) -> Result<Self> {
        let near = reading.cache.as_ref().map(NearCache::open).transpose()?;
        Ok(Self { client, reading, near })
    }

    /// One store under a URL such as `s3://bucket`: for tests on a store in memory.
    #[cfg(any(test, feature = "contract"))]
    pub fn over(
        root: &str,
        store: &Arc<dyn object_store::ObjectStore>,
        access: crate::Access,
        reading: Reading,
    ) -> Result<Self> {
        Self::of_client(Arc::new(Client::of_store(root, store, access)), reading)
    }

    /// Objects reached with this access, on connections of their own.
    ///
    /// # Errors
    /// When the near cache cannot be opened.
    pub fn with_access(access: crate::Access, reading: Reading) -> Result<Self> {
        Self::of_client(Arc::new(Client::new(access)), reading)
    }

    fn head(&self, operation: Operation, path: &Path) -> Result<(Location, Head)> {
        let location = Location::of(operation, path)?;
        if location.key.is_root() {
            let what = "is a bucket, not an object".to_owned();
            return Err(Error::Unsupported { operation, path: path.to_owned(), what });
        }
        let (owned, key) = (path.to_owned(), location.key.clone());
        let head = self
            .client
            .wait(operation, path, &location, |client, store| get::head(client, store, operation, owned, key))?;
        self.client.versions.note(path, head.etag.as_deref());
        Ok((location, head))
    }
}

impl Storage for Objects {
    fn description(&self) -> String {
        "object store".to_owned()
    }

    fn description_of(&self, path: &Path) -> String {
        match Location::of(Operation::Open, path) {
            Ok(location) => {
                let cached = self.near.as_ref().map(|near| format!(", cached in {}", near.dir().escaped()));
                format!("object store, {}{}", location.root, cached.unwrap_or_default())
            }
            Err(_) => self.description(),
        }
    }

    fn concurrency(&self, _: &Path) -> usize {
        CONCURRENCY
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        let location = Location::of(Operation::List, dir)?;
        let (path, whole) = (dir.to_owned(), location.clone());
        self.client.wait(Operation::List, dir, &location, |client, store| list::below(client, store, path, whole))
    }

    fn size(&self, path: &Path) -> Result<u64> {
        Ok(self.head(Operation::Size, path)?.1.size)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Object>> {
        let (location, head) = self.head(Operation::Open, path)?;
        let client = Arc::clone(&self.client);
        Ok(Box::new(StoredObject { client, path: path.to_owned(), location, head, window: Mutex::default() }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Writer>> {
        let location = Location::of(Operation::Create, path)?;
        Ok(Box::new(write::ObjectWriter::new(Arc::clone(&self.client), path.to_owned(), location)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        // Stores report success for what never existed.
        let (location, _) = self.head(Operation::Remove, path)?;
        let (owned, key) = (path.to_owned(), location.key.clone());
        self.client.wait(Operation::Remove, path, &location, |client, store| async move {
            client.within(Operation::Remove, &owned, store.delete(&key)).await
        })
    }

    fn read_many_preferred(&self) -> usize {
        MANY
    }

    fn read_many(&self, paths: &[&Path], limit: u64, into: &mut [Buffer]) -> Vec<Result<()>> {
        assert!(into.len() >= paths.len(), "one buffer per path");
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut outcomes: Vec<Result<()>> = Vec::new();
        for (number, (path, buffer)) in paths.iter().zip(into.iter_mut()).enumerate() {
            let started = Location::of(Operation::Open, path).and_then(|location| {
                let ask = whole(path, &location, limit);
                let (buffer, sender) = (std::mem::take(buffer), sender.clone());
                self.client.start(Operation::Open, path, &location, |client, store| async move {
                    drop(sender.send((number, get::get(client, store, ask, buffer).await)));
                })
            });
            // Replaced by the outcome of the request.
            outcomes.push(started.and_then(|_| Err(failure::of(Operation::Read, path, failure::Cause::NoThread))));
        }
        drop(sender);
        for (number, outcome) in receiver {
            outcomes[number] = outcome.map(|answer: Answer| into[number] = answer.buffer);
        }
        outcomes
    }

    fn requests(&self) -> Option<Requests> {
        let cache = self.near.as_ref().map(|near| near.counts()).unwrap_or_default();
        Some(Requests { cache, ..self.client.counts.snapshot() })
    }

    fn read_ahead(&self, reads: &dyn Fn() -> Reads, limit: u64, spread: usize) -> Option<Ahead> {
        (self.reading.readahead > 0).then(|| session::start(self.clone(), reads, limit, spread))
    }
}

fn whole(path: &Path, location: &Location, limit: u64) -> Ask {
    Ask { path: path.to_owned(), key: location.key.clone(), range: None, limit, etag: None }
}

/// An object of which size and version are known.
struct StoredObject {
    client: Arc<Client>,
    path: PathBuf,
    location: Location,
    head: Head,
    window: Mutex<Window>,
}

impl StoredObject {
    fn get(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        let ask = Ask {
            path: self.path.clone(),
            key: self.location.key.clone(),
            range: Some(offset..offset + len as u64),
            limit: u64::MAX,
            etag: self.head.etag.clone(),
        };
        let buffer = std::mem::take(into);
        *into = self.client.wait(Operation::Read, &self.path, &self.location, |client, store| async move {
            get::get(client, store, ask, buffer).await.map(|answer| answer.buffer)
        })?;
        Ok(())
    }
}

impl Object for StoredObject {
    fn len(&self) -> Result<u64> {
        Ok(self.head.size)
    }

    fn read_within(&self, limit: u64, into: &mut Buffer) -> Result<()> {
        Error::check_size(&self.path, self.head.size, limit)?;
        if self.head.size == 0 {
            into.resize(0);
            return Ok(());
        }
        self.get(0, self.head.size as usize, into)
    }

    fn read_at(&self, offset: u64, len: usize, into: &mut Buffer) -> Result<()> {
        let found = self.head.size.saturating_sub(offset);
        if (len as u64) > found {
            return Err(Error::Truncated { path: self.path.clone(), offset, wanted: len as u64, found });
        }
        if len == 0 {
            into.resize(0);
            return Ok(());
        }
        let mut window = self.window.lock().expect("no holder of this lock panics");
        if let Some(bytes) = window.get(offset, len) {
            into.fill_from(bytes);
            return Ok(());
        }
        let Some(block) = window.next_block(offset, len, self.head.size) else {
            drop(window);
            return self.get(offset, len, into);
        };
        self.get(offset, block, window.buffer_at(offset))?;
        into.fill_from(window.get(offset, len).unwrap_or_default());
        Ok(())
    }
}
