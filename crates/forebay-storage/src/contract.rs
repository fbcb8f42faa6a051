//! The laws of [`Storage`](crate::Storage), as a suite that every backend and wrapper calls in its tests.

use std::path::Path;

use forebay_units::PathText;

use crate::{Bucket, Buffer, Error, Storage};

/// What a backend does with committed bytes. This decides which laws apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    Everything,
    /// They are dropped, as in the null storage, or objects cannot be created.
    Nothing,
}

/// Checks every law on `storage`, using names below `dir`; panics with the broken law.
pub fn check(storage: &dyn Storage, dir: &Path, keeps: Keeps) {
    assert!(!storage.description().is_empty(), "a storage says what it is");
    if keeps == Keeps::Everything {
        for (name, len) in [("a/1", 0), ("a/2", 5), ("b/3", 4_096), ("b/4", 300_001)] {
            write(storage, &dir.join(name), &content(len));
        }
        written_objects_read_back(storage, dir);
        objects_larger_than_the_limit_are_refused(storage, dir);
        uncommitted_objects_are_invisible(storage, dir);
        replaced_objects_change_whole(storage, dir);
    }
    listed_objects_obey_the_reading_laws(storage, dir);
    missing_objects_are_not_found(storage, dir);
    accepted_writes_commit(storage, dir);
}

/// Checks the laws of [`Bucket`] on a store, with objects below `dir`; panics with the broken law.
pub fn check_bucket(bucket: &dyn Bucket, storage: &dyn Storage, dir: &Path) {
    of_writers_at_the_same_time_one_creates(bucket, dir);
    only_a_known_version_is_replaced(bucket, dir);
    an_upload_appears_when_it_is_complete(bucket, storage, dir);
}

fn of_writers_at_the_same_time_one_creates(bucket: &dyn Bucket, dir: &Path) {
    for round in 0..10 {
        let path = dir.join(format!("once-{round}"));
        let text = |writer: usize| format!("writer {writer}").into_bytes();
        let won: Vec<usize> = std::thread::scope(|scope| {
            let create = |writer| (writer, bucket.create_once(&path, &text(writer)).expect("a store answers"));
            let writers: Vec<_> = (0..8).map(|writer| scope.spawn(move || create(writer))).collect();
            let joined = writers.into_iter().map(|writer| writer.join().expect("no writer panics"));
            joined.filter_map(|(writer, has_won)| has_won.then_some(writer)).collect()
        });
        assert_eq!(won.len(), 1, "one of several writers creates an object");
        assert_eq!(bucket.read(&path).expect("it is there").bytes, text(won[0]), "its bytes are the winner's");
    }
}

fn only_a_known_version_is_replaced(bucket: &dyn Bucket, dir: &Path) {
    let path = dir.join("versions");
    assert!(bucket.create_once(&path, b"first").expect("an object can be created"));
    let first = bucket.read(&path).expect("it is there").version;
    let second = bucket.replace(&path, &first, b"second").expect("a store answers");
    let second = second.expect("the version that is there is replaced");
    let found = bucket.read(&path).expect("it is there");
    assert_eq!((found.bytes.as_slice(), &found.version), (&b"second"[..], &second));
    assert_eq!(bucket.replace(&path, &first, b"third").expect("a store answers"), None, "an older version is gone");
    assert_eq!(bucket.read(&path).expect("it is there").bytes, b"second");
    (0..2).for_each(|_| bucket.clear(&path).expect("removing what is gone is no error"));
    assert_eq!(bucket.replace(&path, &second, b"fourth").expect("a store answers"), None, "so is a removed one");
    assert!(matches!(bucket.read(&path), Err(Error::NotFound { .. })));
}

fn an_upload_appears_when_it_is_complete(bucket: &dyn Bucket, storage: &dyn Storage, dir: &Path) {
    const PART: usize = 5 << 20;
    let (path, bytes) = (dir.join("upload"), content(2 * PART + 7));
    let upload = bucket.begin(&path).expect("an upload can begin");
    for index in [2, 0, 1] {
        let part = &bytes[index * PART..bytes.len().min((index + 1) * PART)];
        upload.put(index, part.to_vec()).expect("a part can be sent");
    }
    assert!(matches!(storage.size(&path), Err(Error::NotFound { .. })), "an upload is invisible until it is complete");
    upload.complete().expect("an upload can be completed");
    assert!(read(storage, &path) == bytes, "its parts are in their order");
    let other = dir.join("abandoned");
    let upload = bucket.begin(&other).expect("an upload can begin");
    upload.put(0, bytes[..PART].to_vec()).expect("a part can be sent");
    (0..2).for_each(|_| bucket.abandon(&other, upload.id()).expect("abandoning what is gone is no error"));
    assert!(upload.complete().is_err(), "an abandoned upload cannot be completed");
    assert!(matches!(storage.size(&other), Err(Error::NotFound { .. })));
}

/// Bytes that differ at every offset modulo a prime, so that a shifted read is noticed.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

fn write(storage: &dyn Storage, path: &Path, bytes: &[u8]) {
    let mut writer = storage.create(path).expect("an object can be created");
    for part in bytes.chunks(100_000) {
        writer.write(part).expect("bytes can be written");
    }
    writer.commit().expect("an object can be committed");
}

fn read(storage: &dyn Storage, path: &Path) -> Vec<u8> {
    let mut buffer = Buffer::default();
    storage.open(path).expect("an object opens").read_all(&mut buffer).expect("an object reads");
    buffer.as_slice().to_vec()
}

fn written_objects_read_back(storage: &dyn Storage, dir: &Path) {
    let found: Vec<_> = storage.list(dir).expect("a folder lists").into_iter().map(|e| (e.path, e.size)).collect();
    let names = ["a/1", "a/2", "b/3", "b/4"].map(|n| dir.join(n));
    let expected: Vec<_> = names.iter().cloned().zip([0, 5, 4_096, 300_001]).collect();
    assert_eq!(found, expected, "list names what was written, sorted, with sizes");
    for (path, size) in expected {
        assert_eq!(read(storage, &path), content(size as usize), "{} reads back", path.escaped());
    }
    let paths: Vec<&Path> = names.iter().map(AsRef::as_ref).collect();
    let mut buffers: Vec<Buffer> = (0..paths.len()).map(|_| Buffer::default()).collect();
    for (outcome, (path, buffer)) in
        storage.read_many(&paths, u64::MAX, &mut buffers).into_iter().zip(paths.iter().zip(&buffers))
    {
        outcome.expect("an object reads among many");
        assert_eq!(buffer.as_slice(), read(storage, path), "read_many gives what read_all gives");
    }
}

fn objects_larger_than_the_limit_are_refused(storage: &dyn Storage, dir: &Path) {
    for (name, size) in [("a/2", 5), ("b/3", 4_096), ("b/4", 300_001)] {
        let path = dir.join(name);
        let read = |limit: u64| {
            let mut buffers = [Buffer::default(), Buffer::default()];
            let alone = storage.open(&path).expect("an object opens").read_within(limit, &mut buffers[0]);
            [alone, storage.read_many(&[path.as_path()], limit, &mut buffers[1..]).remove(0)]
        };
        assert!(read(size).iter().all(Result::is_ok), "{name} has as many bytes as the limit allows");
        for outcome in read(size - 1) {
            let refused = matches!(&outcome, Err(Error::TooLarge { path: of, size: found, limit })
                if *of == path && found.0 == size && limit.0 == size - 1);
            assert!(refused, "{name} has one byte more than the limit allows: {outcome:?}");
        }
    }
}

fn uncommitted_objects_are_invisible(storage: &dyn Storage, dir: &Path) {
    let path = dir.join("c/never");
    let mut writer = storage.create(&path).expect("an object can be created");
    writer.write(b"half").expect("bytes can be written");
    assert!(matches!(storage.size(&path), Err(Error::NotFound { .. })), "invisible before commit");
    drop(writer);
    let names: Vec<_> = storage.list(dir).expect("a folder lists").into_iter().map(|e| e.path).collect();
    assert_eq!(names.len(), 4, "a dropped writer leaves nothing: {names:?}");
}

fn replaced_objects_change_whole(storage: &dyn Storage, dir: &Path) {
    let path = dir.join("a/2");
    write(storage, &path, b"new content");
    assert_eq!(read(storage, &path), b"new content");
    write(storage, &path, &content(5));
    let gone = dir.join("a/gone");
    write(storage, &gone, b"x");
    storage.remove(&gone).expect("an object can be removed");
    assert!(matches!(storage.open(&gone), Err(Error::NotFound { .. })), "removed is not found");
}

fn listed_objects_obey_the_reading_laws(storage: &dyn Storage, dir: &Path) {
    let entries = storage.list(dir).expect("a folder lists");
    assert!(entries.is_sorted(), "list is sorted");
    for entry in entries.iter().take(8) {
        let whole = read(storage, &entry.path);
        assert_eq!(whole.len() as u64, entry.size, "list and read agree on the length");
        assert_eq!(storage.size(&entry.path).expect("a size"), entry.size, "list and size agree");
        let object = storage.open(&entry.path).expect("an object opens");
        assert_eq!(object.len().expect("a length"), entry.size, "the open object knows its length");
        let mut buffer = Buffer::default();
        for (offset, len) in ranges(entry.size) {
            object.read_at(offset, len, &mut buffer).expect("a range within the object reads");
            assert_eq!(buffer.as_slice(), &whole[offset as usize..][..len], "a range is that part of the whole");
            let lent = object.lend(offset, len, &mut buffer).expect("a range within the object is lent");
            assert_eq!(lent, &whole[offset as usize..][..len], "what is lent is what is read");
        }
        let lent = object.lend(0, entry.size as usize + 1, &mut buffer);
        assert!(matches!(lent, Err(Error::Truncated { .. })), "nothing past the end is lent: {lent:?}");
        let past = object.read_at(entry.size, 1, &mut buffer);
        assert!(matches!(past, Err(Error::Truncated { found: 0, .. })), "a range past the end is truncated: {past:?}");
        let across = object.read_at(entry.size.saturating_sub(3), 4, &mut buffer);
        assert!(matches!(across, Err(Error::Truncated { .. })), "a range across the end is truncated: {across:?}");
    }
}

/// Ranges at the start, in the middle, unaligned, and up to the very end.
fn ranges(size: u64) -> Vec<(u64, usize)> {
    let all = [
        (0, size as usize),
        (size / 3, (size / 3) as usize),
        (1.min(size), 0),
        (size - size.min(2), size.min(2) as usize),
    ];
    all.into_iter().filter(|(offset, len)| offset + *len as u64 <= size).collect()
}

fn missing_objects_are_not_found(storage: &dyn Storage, dir: &Path) {
    let missing = dir.join("no-such-object");
    assert!(matches!(storage.open(&missing), Err(Error::NotFound { .. })), "open of a missing object");
    assert!(matches!(storage.size(&missing), Err(Error::NotFound { .. })), "size of a missing object");
    assert!(matches!(storage.remove(&missing), Err(Error::NotFound { .. })), "remove of a missing object");
    let Err(error) = storage.list(&missing) else { panic!("a missing folder does not list") };
    assert!(error.path().starts_with(&missing), "an error names its path");
    let mut buffers = [Buffer::default()];
    let outcome = storage.read_many(&[missing.as_path()], u64::MAX, &mut buffers);
    assert!(matches!(outcome[0], Err(Error::NotFound { .. })), "read_many of a missing object: {outcome:?}");
}

fn accepted_writes_commit(storage: &dyn Storage, dir: &Path) {
    let mut writer = match storage.create(&dir.join("z/last")) {
        Err(Error::Unsupported { .. }) => return,
        created => created.expect("an object can be created where the storage is not only read"),
    };
    writer.write(b"bytes").expect("bytes can be written");
    writer.commit().expect("an object can be committed");
}
