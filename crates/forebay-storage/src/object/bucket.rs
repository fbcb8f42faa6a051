//! Conditional writes, and uploads in numbered parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion};

use super::Objects;
use super::client::Client;
use super::failure::{self, Cause};
use super::location::Location;
use crate::{Bucket, Error, Operation, Result, Upload, Version, Versioned};

/// How often a conditional write is sent whose answer is unknown.
const TRIES: usize = 3;

enum Put {
    Done(Version),
    Refused,
    Failed(Error),
}

impl Objects {
    fn put(&self, path: &Path, bytes: &[u8], mode: PutMode) -> Result<Put> {
        let location = Location::of(Operation::Write, path)?;
        let (owned, key) = (path.to_owned(), location.key.clone());
        let payload = PutPayload::from_bytes(Bytes::copy_from_slice(bytes));
        let options = PutOptions { mode, ..PutOptions::default() };
        self.client.wait(Operation::Write, path, &location, |client, store| async move {
            let put = tokio::time::timeout(client.timeout(), store.put_opts(&key, payload, options)).await;
            Ok(match put {
                Ok(Ok(done)) => Put::Done(Version { etag: done.e_tag, generation: done.version }),
                Ok(Err(
                    object_store::Error::AlreadyExists { .. }
                    | object_store::Error::Precondition { .. }
                    | object_store::Error::NotModified { .. },
                )) => Put::Refused,
                Ok(Err(error)) => Put::Failed(client.failed(Operation::Write, &owned, &error)),
                Err(_) => Put::Failed(client.silent(Operation::Write, &owned)),
            })
        })
    }

    /// Whether the object holds these bytes; `None` if there is no object.
    fn holds(&self, path: &Path, bytes: &[u8]) -> Result<Option<bool>> {
        match self.read(path) {
            Ok(found) => Ok(Some(found.bytes == bytes)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }
}

impl Bucket for Objects {
    fn create_once(&self, path: &Path, bytes: &[u8]) -> Result<bool> {
        let mut last = None;
        for _ in 0..TRIES {
            let failed = match self.put(path, bytes, PutMode::Create)? {
                Put::Done(_) => return Ok(true),
                Put::Refused => None,
                Put::Failed(error) => Some(error),
            };
            // The client sends a request again whose answer was lost, so the refusal may be due to our own object.
            match self.holds(path, bytes) {
                Ok(Some(is_ours)) => return Ok(is_ours),
                Ok(None) => last = failed.or(last),
                Err(error) => return Err(failed.unwrap_or(error)),
            }
        }
        Err(last.unwrap_or_else(|| {
            let what = "the store refuses it and says that it does not exist".to_owned();
            failure::of(Operation::Write, path, Cause::Other(what))
        }))
    }

    fn replace(&self, path: &Path, version: &Version, bytes: &[u8]) -> Result<Option<Version>> {
        let mode = PutMode::Update(UpdateVersion { e_tag: version.etag.clone(), version: version.generation.clone() });
        let failed = match self.put(path, bytes, mode)? {
            Put::Done(version) => return Ok(Some(version)),
            Put::Refused => None,
            Put::Failed(error) => Some(error),
        };
        match (self.read(path), failed) {
            (Ok(found), _) if found.bytes == bytes => Ok(Some(found.version)),
            (_, Some(error)) | (Err(error), None) if !matches!(error, Error::NotFound { .. }) => Err(error),
            _ => Ok(None),
        }
    }

    fn read(&self, path: &Path) -> Result<Versioned> {
        let location = Location::of(Operation::Read, path)?;
        let (owned, key) = (path.to_owned(), location.key.clone());
        self.client.wait(Operation::Read, path, &location, |client, store| async move {
            client.counts.want();
            let found = client.within(Operation::Read, &owned, store.get(&key)).await?;
            let version = Version { etag: found.meta.e_tag.clone(), generation: found.meta.version.clone() };
            let bytes = client.within(Operation::Read, &owned, found.bytes()).await?;
            Ok(Versioned { bytes: bytes.to_vec(), version })
        })
    }

    fn clear(&self, path: &Path) -> Result<()> {
        let location = Location::of(Operation::Remove, path)?;
        let (owned, key) = (path.to_owned(), location.key.clone());
        self.client.wait(Operation::Remove, path, &location, |client, store| async move {
            absent_is_fine(client.within(Operation::Remove, &owned, store.delete(&key)).await)
        })
    }

    fn begin(&self, path: &Path) -> Result<Box<dyn Upload>> {
        let location = Location::of(Operation::Create, path)?;
        let (owned, key) = (path.to_owned(), location.key.clone());
        let (id, parts) = self.client.wait(Operation::Create, path, &location, |client, store| async move {
            let parts = store.parts(Operation::Create, &owned)?;
            Ok((client.within(Operation::Create, &owned, parts.create_multipart(&key)).await?, parts))
        })?;
        let client = Arc::clone(&self.client);
        Ok(Box::new(PartsUpload { client, path: path.to_owned(), location, id, parts, sent: Mutex::default() }))
    }

    fn abandon(&self, path: &Path, id: &str) -> Result<()> {
        let location = Location::of(Operation::Remove, path)?;
        let (owned, key, id) = (path.to_owned(), location.key.clone(), id.to_owned());
        self.client.wait(Operation::Remove, path, &location, |client, store| async move {
            let parts = store.parts(Operation::Remove, &owned)?;
            absent_is_fine(client.within(Operation::Remove, &owned, parts.abort_multipart(&key, &id)).await)
        })
    }
}

fn absent_is_fine(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(Error::NotFound { .. }) => Ok(()),
        other => other,
    }
}

struct PartsUpload {
    client: Arc<Client>,
    path: PathBuf,
    location: Location,
    id: String,
    parts: Arc<dyn MultipartStore>,
    /// What the store calls each part.
    sent: Mutex<BTreeMap<usize, PartId>>,
}

impl PartsUpload {
    fn key(&self) -> Key {
        self.location.key.clone()
    }
}

impl Upload for PartsUpload {
    fn id(&self) -> &str {
        &self.id
    }

    fn put(&self, index: usize, bytes: Vec<u8>) -> Result<()> {
        let (path, key, id, parts) = (self.path.clone(), self.key(), self.id.clone(), Arc::clone(&self.parts));
        let part = self.client.wait(Operation::Write, &self.path, &self.location, |client, _| async move {
            // The transport limits how long a request may take, so that a large part on a slow network is not cut off.
            let sent = parts.put_part(&key, &id, index, PutPayload::from_bytes(Bytes::from(bytes))).await;
            sent.map_err(|error| client.failed(Operation::Write, &path, &error))
        })?;
        self.sent.lock().expect("no holder of this lock panics").insert(index, part);
        Ok(())
    }

    fn complete(&self) -> Result<()> {
        let sent = self.sent.lock().expect("no holder of this lock panics").clone();
        if sent.keys().copied().ne(0..sent.len()) {
            let what = "a part of it was not written".to_owned();
            return Err(failure::of(Operation::Commit, &self.path, Cause::Other(what)));
        }
        let (path, key, id, parts) = (self.path.clone(), self.key(), self.id.clone(), Arc::clone(&self.parts));
        self.client.wait(Operation::Commit, &self.path, &self.location, |client, _| async move {
            let done = parts.complete_multipart(&key, &id, sent.into_values().collect());
            client.within(Operation::Commit, &path, done).await.map(drop)
        })
    }
}
