//! Checkpoints on object stores.
//!
//! A store has no folders and no rename, but it can create an object only if there is none of its name. The files of a
//! checkpoint therefore go under a name that no other writer uses, and its manifest, which says where they are, is
//! created last and once. It is the name of the checkpoint:
//!
//! ```text
//! step-000000000120/manifest.forebay                       says: in 5f3c9a0d1b2e4f68
//! step-000000000120/5f3c9a0d1b2e4f68/model.safetensors
//! ```
//!
//! For the code above this is a file system: a folder `.staging-…` or `.trash-…` is a place without a manifest, renaming to or
//! from the name of a checkpoint creates or removes the manifest, and nothing needs a sync once an upload is
//! complete. Only such names are supported.
//!
//! - Large files are uploaded in parts, by as many threads as write. The name of an upload is kept beside the file until
//!   it is complete, so that an upload of a killed process is found and removed when a store is next opened.
//! - Two writers cannot both win: the second is told that the checkpoint exists. A writer whose answer was lost looks who won.
//! - A place whose manifest may still arrive, after an error of the network, is left alone until a store is next opened.
//! - The lock is an object that its holder renews (`lease`).

mod file;
mod lease;
#[cfg(all(test, feature = "object"))]
mod tests;

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use forebay_storage::{Bucket, Storage};

use self::file::{KEPT_PART, Lent, NewFile, NewManifest, StoredFile};
use self::lease::Lease;
pub use self::lease::lock_holder;
use super::{File, Fs, Guard, Kind, Reading};
use crate::manifest::MANIFEST;
use crate::tier::is_spare;
use crate::{Error, Manifest, Name, Operation, Result};

/// Requests in flight. Each upload of a part holds 8 MiB.
const IN_FLIGHT: usize = 16;

/// Checkpoints below URLs such as `s3://bucket/run-7`.
pub struct ObjectFs {
    inner: Arc<Inner>,
    /// A lock is renewed this often, and free after six times as long.
    renewal: Duration,
}

struct Inner {
    storage: Arc<dyn Storage>,
    bucket: Arc<dyn Bucket>,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    /// Where the files of a folder are that is not a checkpoint.
    places: HashMap<PathBuf, PathBuf>,
    /// Manifests that are not published, by their folder.
    manifests: HashMap<PathBuf, Lent>,
    /// Folders whose manifest may still arrive.
    doubtful: HashSet<PathBuf>,
    leases: HashMap<PathBuf, Weak<Lease>>,
}

/// What a path means here.
enum Means<'a> {
    Checkpoint,
    /// A folder that is being written or removed.
    Spare,
    File(&'a Path, &'a str),
    /// The folder of the checkpoints, the lock, or something foreign.
    Other,
}

fn meaning(path: &Path) -> Means<'_> {
    let is_folder = |path: &&Path| !matches!(meaning_of_folder(path), Means::Other);
    match (path.parent().filter(is_folder), path.file_name().and_then(|name| name.to_str())) {
        (Some(folder), Some(file)) => Means::File(folder, file),
        _ => meaning_of_folder(path),
    }
}

fn meaning_of_folder(path: &Path) -> Means<'_> {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(name) if is_spare(name) => Means::Spare,
        Some(name) if Name::parse(name).is_some() => Means::Checkpoint,
        _ => Means::Other,
    }
}

impl ObjectFs {
    pub fn new(storage: Arc<dyn Storage>, bucket: Arc<dyn Bucket>) -> Self {
        Self::with_renewal(storage, bucket, lease::RENEWAL)
    }

    pub(crate) fn with_renewal(storage: Arc<dyn Storage>, bucket: Arc<dyn Bucket>, renewal: Duration) -> Self {
        Self { inner: Arc::new(Inner { storage, bucket, names: Mutex::default() }), renewal }
    }
}

/// Keeps the outcome of a storage operation, as an error of this crate.
fn failed(operation: Operation, path: &Path, error: forebay_storage::Error) -> Error {
    use forebay_storage::Error as E;
    let path = path.to_owned();
    match error {
        E::NotFound { .. } => Error::NotFound { operation, path },
        E::Full { .. } => Error::Full { operation, path },
        E::Remote { what, .. } | E::Unsupported { what, .. } => {
            Error::Io { operation, path, source: Arc::new(io::Error::other(what)) }
        }
        other => Error::Io { operation, path, source: Arc::new(io::Error::other(forebay_units::chain(&other))) },
    }
}

fn refused(operation: Operation, path: &Path, kind: io::ErrorKind) -> Error {
    Error::from_io(operation, path, kind.into())
}

impl Inner {
    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().expect("no holder of this lock panics")
    }

    /// All objects below a path, relative to it.
    fn below(&self, dir: &Path) -> Result<Vec<String>> {
        let entries = match self.storage.list(dir) {
            Ok(entries) => entries,
            Err(forebay_storage::Error::NotFound { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(failed(Operation::List, dir, error)),
        };
        let relative = |path: &Path| path.strip_prefix(dir).ok()?.to_str().map(str::to_owned);
        Ok(entries.iter().filter_map(|entry| relative(&entry.path)).collect())
    }

    /// The place that the published manifest of a checkpoint names; `None` if the manifest is damaged.
    fn place_of(&self, operation: Operation, checkpoint: &Path) -> Result<Option<PathBuf>> {
        let manifest = checkpoint.join(MANIFEST);
        let found = self.bucket.read(&manifest).map_err(|error| failed(operation, checkpoint, error))?;
        let folder = Manifest::decode_in(&found.bytes).ok().and_then(|(_, folder)| folder);
        Ok(folder.map(|folder| checkpoint.join(folder)))
    }

    /// The object of a file.
    fn object_of(&self, operation: Operation, path: &Path) -> Result<PathBuf> {
        let Means::File(folder, file) = meaning(path) else { return Ok(path.to_owned()) };
        if let Means::Checkpoint = meaning_of_folder(folder) {
            if file == MANIFEST {
                return Ok(path.to_owned());
            }
            let place = self.place_of(operation, folder)?;
            return Ok(place.ok_or_else(|| Error::NotFound { operation, path: path.to_owned() })?.join(file));
        }
        let place = self.names().places.get(folder).cloned();
        Ok(place.ok_or_else(|| Error::NotFound { operation, path: path.to_owned() })?.join(file))
    }

    /// The names in the folder of all checkpoints.
    fn list_checkpoints(&self, dir: &Path) -> Result<Vec<String>> {
        let mut found: BTreeMap<Name, (bool, BTreeSet<String>)> = BTreeMap::new();
        let mut listed = BTreeSet::new();
        for path in self.below(dir)? {
            let mut parts = path.splitn(3, '/');
            let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
            match (Name::parse(first), second, third) {
                (Some(name), Some(MANIFEST), None) => found.entry(name).or_default().0 = true,
                (Some(name), Some(place), Some(_)) if is_place(place) => {
                    found.entry(name).or_default().1.insert(place.to_owned());
                }
                _ => listed.extend([first.to_owned()]),
            }
        }
        for (name, (is_published, places)) in found {
            let path = dir.join(name.to_string());
            // One place is that of the manifest; only of several, one must be asked for.
            let ours = match is_published {
                true if places.len() > 1 => self.place_of(Operation::List, &path)?,
                true => places.first().map(|place| path.join(place)),
                false => None,
            };
            listed.extend(is_published.then(|| name.to_string()));
            let others = places.into_iter().map(|place| path.join(place)).filter(|place| Some(place) != ours.as_ref());
            listed.extend(others.map(|place| self.names().spare_of(dir, name, place)));
        }
        let names = self.names();
        let made = names.places.keys().filter(|path| path.parent() == Some(dir));
        listed.extend(made.filter_map(|path| path.file_name()?.to_str().map(str::to_owned)));
        Ok(listed.into_iter().collect())
    }

    fn list_place(&self, place: &Path) -> Result<Vec<String>> {
        Ok(self.below(place)?.into_iter().filter(|name| !name.contains('/')).collect())
    }

    /// Removes a file, or an upload that was not completed.
    fn remove_object(&self, path: &Path, object: &Path) -> Result<()> {
        let failed = |error| failed(Operation::Remove, path, error);
        let Some(target) = object.to_str().and_then(|text| text.strip_suffix(KEPT_PART)) else {
            return self.storage.remove(object).map_err(failed);
        };
        let id = self.bucket.read(object).map_err(failed)?.bytes;
        self.bucket.abandon(Path::new(target), &String::from_utf8_lossy(&id)).map_err(failed)?;
        self.bucket.clear(object).map_err(failed)
    }

    /// Fails if another process has taken over the lock.
    fn check_lease(&self, path: &Path) -> Result<()> {
        let Some(dir) = path.parent() else { return Ok(()) };
        let lease = self.names().leases.get(dir).cloned();
        match lease.and_then(|lease| lease.upgrade()) {
            Some(lease) if !lease.is_ours() => {
                let holder = "another process: this one could not renew its lock".to_owned();
                Err(Error::Locked { path: dir.to_owned(), holder })
            }
            _ => Ok(()),
        }
    }

    /// Makes what a folder holds a checkpoint.
    fn publish(&self, from: &Path, to: &Path) -> Result<()> {
        let (place, manifest) = {
            let names = self.names();
            (names.places.get(from).cloned(), names.manifests.get(from).cloned())
        };
        let missing = || Error::NotFound { operation: Operation::Rename, path: from.to_owned() };
        let (place, manifest) = (place.ok_or_else(missing)?, manifest.ok_or_else(missing)?);
        let bytes = manifest.lock().expect("no holder of this lock panics").clone();
        let damaged = |damage| Error::Damaged { path: from.to_owned(), damage };
        let folder = place.file_name().and_then(|name| name.to_str());
        let text = Manifest::decode(&bytes).map_err(damaged)?.encode_in(folder);
        match self.bucket.create_once(&to.join(MANIFEST), &text) {
            Ok(true) => {
                self.names().forget(from);
                Ok(())
            }
            Ok(false) => Err(refused(Operation::Rename, to, io::ErrorKind::AlreadyExists)),
            Err(error) => {
                self.names().doubtful.insert(from.to_owned());
                Err(failed(Operation::Rename, from, error))
            }
        }
    }

    /// Removes the name of a checkpoint; its files are then in `to`.
    fn withdraw(&self, from: &Path, to: &Path) -> Result<()> {
        let place = self.place_of(Operation::Rename, from)?;
        self.bucket.clear(&from.join(MANIFEST)).map_err(|error| failed(Operation::Rename, from, error))?;
        // Without a readable manifest its files are found as left over when a store is next opened.
        let place = place.unwrap_or_else(|| from.join(new_place()));
        self.names().places.insert(to.to_owned(), place);
        Ok(())
    }
}

impl Names {
    /// The folder that stands for a place without a manifest.
    fn spare_of(&mut self, dir: &Path, name: Name, place: PathBuf) -> String {
        let known = self.places.iter().find(|(path, known)| **known == place && path.parent() == Some(dir));
        if let Some(known) = known.and_then(|(path, _)| path.file_name()?.to_str()) {
            return known.to_owned();
        }
        let spare = (0_u32..).map(|k| format!("{}{name}-{k}", crate::tier::STAGING));
        let spare = spare.into_iter().find(|spare| !self.places.contains_key(&dir.join(spare)));
        let spare = spare.expect("there are fewer folders than numbers");
        self.places.insert(dir.join(&spare), place);
        spare
    }

    fn forget(&mut self, folder: &Path) {
        self.places.remove(folder);
        self.manifests.remove(folder);
    }
}

/// A name that no other writer uses.
fn new_place() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

fn is_place(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Fs for ObjectFs {
    fn description(&self) -> String {
        "object store".to_owned()
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        let missing = || Error::NotFound { operation: Operation::Create, path: path.to_owned() };
        let Means::File(folder, file) = meaning(path) else { return Err(missing()) };
        let mut names = self.inner.names();
        let place = names.places.get(folder).cloned().ok_or_else(missing)?;
        if file == MANIFEST {
            let bytes = Lent::default();
            names.manifests.insert(folder.to_owned(), Arc::clone(&bytes));
            return Ok(Box::new(NewManifest { path: path.to_owned(), bytes }));
        }
        drop(names);
        Ok(Box::new(NewFile::new(Arc::clone(&self.inner), path.to_owned(), place.join(file))))
    }

    fn open(&self, path: &Path, _: Reading) -> Result<Box<dyn File>> {
        let failed = |error| failed(Operation::Open, path, error);
        if let Means::File(_, MANIFEST) = meaning(path) {
            let bytes = self.inner.bucket.read(path).map_err(failed)?.bytes;
            // Where the files are is no matter of the code above.
            let bytes = Manifest::decode(&bytes).map_or(bytes, |manifest| manifest.encode());
            return Ok(Box::new(NewManifest { path: path.to_owned(), bytes: Arc::new(Mutex::new(bytes)) }));
        }
        let object = self.inner.object_of(Operation::Open, path)?;
        let object = self.inner.storage.open(&object).map_err(failed)?;
        Ok(Box::new(StoredFile::new(path.to_owned(), object)))
    }

    fn make_dir(&self, path: &Path) -> Result<()> {
        let (Means::Spare, Some(name)) = (meaning(path), spare_name(path)) else {
            // Prefixes need not be made.
            return Ok(());
        };
        let mut names = self.inner.names();
        if names.places.contains_key(path) {
            return Err(refused(Operation::MakeFolder, path, io::ErrorKind::AlreadyExists));
        }
        let place = path.with_file_name(name.to_string()).join(new_place());
        names.places.insert(path.to_owned(), place);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let place = self.inner.names().places.get(path).cloned();
        let place =
            place.ok_or_else(|| Error::NotFound { operation: Operation::RemoveFolder, path: path.to_owned() })?;
        for left in self.inner.list_place(&place)? {
            // What the folder of a checkpoint did not show.
            if !left.ends_with(KEPT_PART) {
                return Err(refused(Operation::RemoveFolder, path, io::ErrorKind::DirectoryNotEmpty));
            }
            self.inner.remove_object(path, &place.join(left))?;
        }
        self.inner.names().forget(path);
        Ok(())
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        match meaning_of_folder(dir) {
            Means::Checkpoint => {
                let place = self.inner.place_of(Operation::List, dir)?;
                let files = place.map_or(Ok(Vec::new()), |place| self.inner.list_place(&place))?;
                let files = files.into_iter().filter(|name| !name.ends_with(KEPT_PART));
                Ok(files.chain([MANIFEST.to_owned()]).collect::<BTreeSet<_>>().into_iter().collect())
            }
            Means::Spare => {
                let names = self.inner.names();
                if names.doubtful.contains(dir) {
                    return Err(refused(Operation::List, dir, io::ErrorKind::ResourceBusy));
                }
                let missing = || Error::NotFound { operation: Operation::List, path: dir.to_owned() };
                let place = names.places.get(dir).cloned().ok_or_else(missing)?;
                drop(names);
                self.inner.list_place(&place)
            }
            _ => self.inner.list_checkpoints(dir),
        }
    }

    fn kind(&self, path: &Path) -> Result<Kind> {
        let failed = |error| failed(Operation::Open, path, error);
        match meaning(path) {
            Means::Checkpoint => self.inner.storage.size(&path.join(MANIFEST)).map(|_| Kind::Folder).map_err(failed),
            Means::Spare if self.inner.names().places.contains_key(path) => Ok(Kind::Folder),
            Means::Spare => Err(Error::NotFound { operation: Operation::Open, path: path.to_owned() }),
            _ => {
                let object = self.inner.object_of(Operation::Open, path)?;
                self.inner.storage.size(&object).map(|_| Kind::File).map_err(failed)
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.check_lease(from)?;
        match (meaning(from), meaning(to)) {
            (Means::Spare, Means::Checkpoint) => self.inner.publish(from, to),
            (Means::Checkpoint, Means::Spare) => self.inner.withdraw(from, to),
            _ => Err(refused(Operation::Rename, from, io::ErrorKind::Unsupported)),
        }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        if let Means::File(folder, MANIFEST) = meaning(path)
            && let Means::Spare = meaning_of_folder(folder)
        {
            self.inner.names().manifests.remove(folder);
            return Ok(());
        }
        let object = self.inner.object_of(Operation::Remove, path)?;
        self.inner.remove_object(path, &object)
    }

    /// An object is durable when the store has acknowledged it.
    fn sync_dir(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn sync_all(&self, dir: &Path) -> Result<()> {
        Err(refused(Operation::SyncFileSystem, dir, io::ErrorKind::Unsupported))
    }

    /// A store does not say how much it takes; a full one refuses a write.
    fn free_bytes(&self, _: &Path) -> Result<u64> {
        Ok(1 << 60)
    }

    fn lock(&self, path: &Path, holder: &str) -> Result<Box<dyn Guard>> {
        let lease = lease::take(&self.inner.bucket, path, holder, self.renewal)?;
        if let Some(dir) = path.parent() {
            self.inner.names().leases.insert(dir.to_owned(), Arc::downgrade(lease.lease()));
        }
        Ok(Box::new(lease))
    }
}

/// The checkpoint that a folder for writing or removing is for.
fn spare_name(path: &Path) -> Option<Name> {
    let name = path.file_name()?.to_str()?;
    let rest = name.strip_prefix(crate::tier::STAGING).or_else(|| name.strip_prefix(crate::tier::TRASH))?;
    Name::parse(rest.rsplit_once('-')?.0)
}
