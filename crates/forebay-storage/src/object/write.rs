//! Writing an object: small ones with one request, larger ones in parts that travel at the same time.
//!
//! The object appears when the store has acknowledged all of it. Parts of an upload that is given up are removed.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStoreExt, PutPayload};
use tokio::task::JoinHandle;

use super::client::Client;
use super::failure::{self, Cause};
use super::location::Location;
use crate::{Operation, Result, Writer};

/// Size of a part: above the least that stores accept, and of 10,000 parts 80 GB.
const PART: usize = 8 << 20;
/// Parts in flight.
const AT_ONCE: usize = 8;

pub(super) struct ObjectWriter {
    client: Arc<Client>,
    path: PathBuf,
    location: Location,
    pending: Vec<u8>,
    upload: Option<Box<dyn MultipartUpload>>,
    parts: Vec<JoinHandle<Result<()>>>,
    has_failed: bool,
}

impl ObjectWriter {
    pub(super) fn new(client: Arc<Client>, path: PathBuf, location: Location) -> Self {
        Self { client, path, location, pending: Vec::new(), upload: None, parts: Vec::new(), has_failed: false }
    }

    /// Sends the pending bytes as a part.
    fn send(&mut self) -> Result<()> {
        if self.upload.is_none() {
            let (path, key) = (self.path.clone(), self.location.key.clone());
            self.upload =
                Some(self.client.wait(Operation::Create, &self.path, &self.location, |client, store| async move {
                    client.within(Operation::Create, &path, store.put_multipart(&key)).await
                })?);
        }
        while self.parts.len() >= AT_ONCE {
            let oldest = self.parts.remove(0);
            self.join(vec![oldest])?;
        }
        let payload = PutPayload::from_bytes(Bytes::from(std::mem::take(&mut self.pending)));
        let Some(upload) = &mut self.upload else { return Ok(()) };
        let (part, path) = (upload.put_part(payload), self.path.clone());
        let sent = self.client.start(Operation::Write, &self.path, &self.location, |client, _| async move {
            part.await.map_err(|error| client.failed(Operation::Write, &path, &error))
        })?;
        self.parts.push(sent);
        Ok(())
    }

    /// Waits for parts; the first failure counts.
    fn join(&self, parts: Vec<JoinHandle<Result<()>>>) -> Result<()> {
        let path = self.path.clone();
        self.client.wait(Operation::Write, &self.path, &self.location, |_, _| async move {
            for part in parts {
                part.await.unwrap_or_else(|_| Err(failure::of(Operation::Write, &path, Cause::NoThread)))?;
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let (path, key) = (self.path.clone(), self.location.key.clone());
        if self.upload.is_none() {
            return self.client.wait(Operation::Commit, &self.path, &self.location, |client, store| async move {
                let payload = PutPayload::from_bytes(Bytes::from(pending));
                client.within(Operation::Commit, &path, store.put(&key, payload)).await.map(drop)
            });
        }
        self.pending = pending;
        if !self.pending.is_empty() {
            self.send()?;
        }
        let parts = std::mem::take(&mut self.parts);
        self.join(parts)?;
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        self.client.wait(Operation::Commit, &self.path, &self.location, |client, _| async move {
            let outcome = client.within(Operation::Commit, &path, upload.complete()).await;
            if outcome.is_err() {
                let _ = upload.abort().await;
            }
            outcome.map(drop)
        })
    }
}

impl Writer for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(PART - self.pending.len()));
            self.pending.extend_from_slice(now);
            rest = later;
            if self.pending.len() == PART {
                let sent = self.send();
                self.has_failed |= sent.is_err();
                sent?;
            }
        }
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        if self.has_failed {
            let what = "a part of it could not be written".to_owned();
            return Err(failure::of(Operation::Commit, &self.path, Cause::Other(what)));
        }
        self.finish()
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        let Some(mut upload) = self.upload.take() else { return };
        let parts = std::mem::take(&mut self.parts);
        // Bounded by the time limit; what a store keeps after a failure here, its own rules remove.
        let _ = self.client.wait(Operation::Remove, &self.path, &self.location, |client, _| async move {
            for part in parts {
                let _ = part.await;
            }
            let _ = tokio::time::timeout(client.timeout(), upload.abort()).await;
            Ok(())
        });
    }
}
