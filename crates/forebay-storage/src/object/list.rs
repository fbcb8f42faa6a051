//! Listing the objects below a prefix.
//!
//! A store lists a thousand objects per request, one request after the other. The prefixes one level down are
//! therefore listed at the same time.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectMeta;
use object_store::path::Path as Key;

use super::client::{Client, Store};
use super::location::Location;
use crate::local::count_listed;
use crate::{Entry, Error, Operation, Result};

/// Prefixes that are listed at the same time.
const AT_ONCE: usize = 16;
/// With more prefixes than this, one listing of everything takes fewer requests.
const MOST_PREFIXES: usize = 4_096;

pub(super) async fn below(client: Arc<Client>, store: Store, path: PathBuf, location: Location) -> Result<Vec<Entry>> {
    let prefix = Some(&location.key).filter(|key| !key.is_root());
    let top = client.within(Operation::List, &path, store.list_with_delimiter(prefix)).await?;
    let mut found = top.objects;
    count_listed(found.len());
    let below = if top.common_prefixes.len() > MOST_PREFIXES {
        found.clear();
        vec![location.key.clone()]
    } else {
        top.common_prefixes
    };
    let listings = stream::iter(below).map(|prefix| whole(&client, &store, &path, prefix)).buffer_unordered(AT_ONCE);
    for objects in listings.try_collect::<Vec<_>>().await? {
        found.extend(objects);
    }
    let mut entries: Vec<Entry> = found
        .into_iter()
        .filter(|object| !is_marker(object))
        .map(|object| {
            let path = location.path_of(&object.location);
            client.versions.note(&path, object.e_tag.as_deref());
            Entry { path, size: object.size }
        })
        .collect();
    if entries.is_empty() {
        return Err(Error::NotFound { operation: Operation::List, path });
    }
    entries.sort_unstable();
    // Tools mark a folder by an empty object of its name.
    let marks: Vec<bool> = entries
        .iter()
        .enumerate()
        .map(|(at, entry)| {
            entry.size == 0 && entries.get(at + 1).is_some_and(|next| next.path.starts_with(&entry.path))
        })
        .collect();
    let mut marks = marks.into_iter();
    entries.retain(|_| !marks.next().unwrap_or_default());
    Ok(entries)
}

/// Other tools' marks of an empty folder.
fn is_marker(object: &ObjectMeta) -> bool {
    object.size == 0 && object.location.filename().is_some_and(|name| name.ends_with("_$folder$"))
}

async fn whole(client: &Client, store: &Store, path: &std::path::Path, prefix: Key) -> Result<Vec<ObjectMeta>> {
    let prefix = Some(&prefix).filter(|key| !key.is_root());
    let mut found = Vec::new();
    let mut objects = store.list(prefix);
    while let Some(object) = client.within(Operation::List, path, async { objects.next().await.transpose() }).await? {
        found.push(object);
        count_listed(1);
    }
    Ok(found)
}
