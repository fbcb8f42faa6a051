//! Reading an object or a part of it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::StreamExt;
use object_store::path::Path as Key;
use object_store::{GetOptions, GetRange, ObjectStoreExt};

use super::client::{Client, Store};
use super::failure::{self, Cause};
use crate::{Buffer, Error, Operation, Result};

pub(super) struct Ask {
    pub(super) path: PathBuf,
    pub(super) key: Key,
    pub(super) range: Option<Range<u64>>,
    /// Largest whole object to read.
    pub(super) limit: u64,
    /// The version of the object that is meant; any, if `None`.
    pub(super) etag: Option<String>,
}

pub(super) struct Answer {
    pub(super) buffer: Buffer,
    pub(super) etag: Option<String>,
}

/// The size and version of an object.
pub(super) struct Head {
    pub(super) size: u64,
    pub(super) etag: Option<String>,
}

pub(super) async fn head(
    client: Arc<Client>,
    store: Store,
    operation: Operation,
    path: PathBuf,
    key: Key,
) -> Result<Head> {
    let found = client.within(operation, &path, store.head(&key)).await?;
    Ok(Head { size: found.size, etag: found.e_tag })
}

/// Reads into the buffer, which is given back.
pub(super) async fn get(client: Arc<Client>, store: Store, ask: Ask, mut buffer: Buffer) -> Result<Answer> {
    let Ask { path, key, range, limit, etag } = ask;
    client.counts.want();
    let options = GetOptions { range: range.clone().map(GetRange::Bounded), if_match: etag, ..GetOptions::default() };
    let found = client.within(Operation::Read, &path, store.get_opts(&key, options)).await?;
    let len = found.range.end.saturating_sub(found.range.start);
    match &range {
        None => Error::check_size(&path, len, limit)?,
        Some(wanted) if wanted.end - wanted.start != len => {
            return Err(Error::Truncated { path, offset: wanted.start, wanted: wanted.end - wanted.start, found: len });
        }
        Some(_) => {}
    }
    let etag = found.meta.e_tag.clone();
    buffer.resize(len as usize);
    let mut stream = found.into_stream();
    let mut at = 0;
    while let Some(chunk) = client.within(Operation::Read, &path, async { stream.next().await.transpose() }).await? {
        let Some(into) = buffer.as_mut_slice().get_mut(at..at + chunk.len()) else {
            let what = format!("the store sent more than the {len} bytes that it announced");
            return Err(failure::of(Operation::Read, &path, Cause::Other(what)));
        };
        into.copy_from_slice(&chunk);
        at += chunk.len();
    }
    if (at as u64) < len {
        let offset = range.map_or(0, |range| range.start);
        return Err(Error::Truncated { path, offset, wanted: len, found: at as u64 });
    }
    Ok(Answer { buffer, etag })
}
