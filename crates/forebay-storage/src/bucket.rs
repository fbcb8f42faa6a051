//! What object stores can do beyond [`Storage`](crate::Storage), and protocols of several writers need: create an object
//! once, replace a known version, and upload an object in numbered parts.

use std::path::Path;

use crate::Result;
#[cfg(not(feature = "object"))]
use crate::{Operation, routed::not_built_in};

/// What a store calls one version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub(crate) etag: Option<String>,
    pub(crate) generation: Option<String>,
}

/// An object's bytes and their version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    pub bytes: Vec<u8>,
    pub version: Version,
}

/// Conditional writes and uploads in parts. All methods block.
pub trait Bucket: Send + Sync {
    /// Stores an object if there is none of this name; returns whether it now holds these bytes. Of several writers
    /// whose bytes differ, one gets `true`. An answer that was lost is made up for by reading the object.
    ///
    /// # Errors
    /// When the store could not be asked; the object may then exist later.
    fn create_once(&self, path: &Path, bytes: &[u8]) -> Result<bool>;

    /// Replaces a version of an object; `None` if the object has another version or is gone, otherwise its new version.
    ///
    /// # Errors
    /// When the store could not be asked; the object may then have been replaced.
    fn replace(&self, path: &Path, version: &Version, bytes: &[u8]) -> Result<Option<Version>>;

    /// The whole object with its version.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) when there is no such object.
    fn read(&self, path: &Path) -> Result<Versioned>;

    /// Removes an object if it is there.
    ///
    /// # Errors
    /// When the store could not be asked.
    fn clear(&self, path: &Path) -> Result<()>;

    /// Starts an upload in parts. The object appears when the upload is completed.
    ///
    /// # Errors
    /// When nothing can be written there.
    fn begin(&self, path: &Path) -> Result<Box<dyn Upload>>;

    /// Removes the parts of an abandoned upload by its [id](Upload::id); success if it is gone already.
    ///
    /// # Errors
    /// When the store could not be asked.
    fn abandon(&self, path: &Path, id: &str) -> Result<()>;
}

/// An upload in parts. Dropping it leaves its parts in the store.
pub trait Upload: Send + Sync {
    /// The store's name of this upload, for [`Bucket::abandon`].
    fn id(&self) -> &str;

    /// Sends the part with this index, counted from 0. Parts may be sent in any order and from several threads. All but the
    /// last have at least 5 MiB and the same size.
    ///
    /// # Errors
    /// When the part could not be stored.
    fn put(&self, index: usize, bytes: Vec<u8>) -> Result<()>;

    /// Makes the object visible and durable: all parts from 0 on, in order.
    ///
    /// # Errors
    /// When parts are missing or the store could not be asked; the object may then exist.
    fn complete(&self) -> Result<()>;
}

/// The bucket of a build without object stores.
#[cfg(not(feature = "object"))]
pub(crate) struct NotBuiltIn;

#[cfg(not(feature = "object"))]
impl Bucket for NotBuiltIn {
    fn create_once(&self, path: &Path, _: &[u8]) -> Result<bool> {
        Err(not_built_in(Operation::Create, path))
    }

    fn replace(&self, path: &Path, _: &Version, _: &[u8]) -> Result<Option<Version>> {
        Err(not_built_in(Operation::Write, path))
    }

    fn read(&self, path: &Path) -> Result<Versioned> {
        Err(not_built_in(Operation::Read, path))
    }

    fn clear(&self, path: &Path) -> Result<()> {
        Err(not_built_in(Operation::Remove, path))
    }

    fn begin(&self, path: &Path) -> Result<Box<dyn Upload>> {
        Err(not_built_in(Operation::Create, path))
    }

    fn abandon(&self, path: &Path, _: &str) -> Result<()> {
        Err(not_built_in(Operation::Remove, path))
    }
}
