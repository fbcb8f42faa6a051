//! The folder of a cache: what programs that are killed, or share it, leave and find.

use std::path::Path;

use forebay_units::Bytes;

use super::*;

fn place(dir: &Path, size: u64) -> CachePlace {
    CachePlace { dir: dir.to_owned(), size: Some(Bytes(size)) }
}

/// As another program would open it.
fn open(dir: &Path, size: u64) -> NearCache {
    NearCache::open_folder(&place(dir, size)).unwrap()
}

fn key(n: u64) -> Key {
    Key::of(Path::new("s3://b/k"), None, n)
}

fn keep(cache: &NearCache, n: u64, bytes: &[u8]) -> bool {
    cache.keep(&key(n), bytes, on_disk((bytes.len() + key::TRAILER) as u64), &[])
}

fn read(cache: &NearCache, n: u64) -> Option<Vec<u8>> {
    let mut buffer = Buffer::default();
    cache.read(&key(n), &mut buffer).then(|| buffer.as_slice().to_vec())
}

#[test]
fn what_is_kept_is_read_by_the_next_program() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1 << 20);
    assert!(keep(&cache, 1, b"one") && keep(&cache, 2, b""));
    drop(cache);
    let cache = open(folder.path(), 1 << 20);
    assert_eq!((read(&cache, 1).as_deref(), read(&cache, 2).as_deref()), (Some(&b"one"[..]), Some(&b""[..])));
    assert_eq!((read(&cache, 3), cache.usage.seen()), (None, 8192));
    let counts = cache.counts();
    assert_eq!((counts.read, counts.read_bytes, counts.kept), (2, 3, 0));
}

#[test]
fn the_limit_holds_for_all_programs_together() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path(), 3 * 4096), open(folder.path(), 3 * 4096));
    assert!(keep(&one, 1, b"1") && keep(&other, 2, b"2") && keep(&one, 3, b"3"));
    assert!(!keep(&other, 4, b"4"));
    assert_eq!(read(&other, 1).as_deref(), Some(&b"1"[..]), "each finds what the others keep");
    assert!(one.remove(key(2).name) && !other.remove(key(2).name), "one of them removes it");
    assert!(keep(&other, 4, b"4"));
    assert_eq!(one.find(key(4).name), Some(4096));
}

#[test]
fn a_damaged_entry_is_removed_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1 << 20);
    assert!(keep(&cache, 1, b"content"));
    let path = cache.path_of(key(1).name);
    let whole = fs::read(&path).unwrap();
    for bytes in [&whole[..3], &[0; 39], b""] {
        fs::write(&path, bytes).unwrap();
        assert_eq!((read(&cache, 1), path.exists()), (None, false), "{bytes:?}");
        assert!(keep(&cache, 1, b"content"));
    }
    assert_eq!((cache.counts().damaged, read(&cache, 1).as_deref()), (3, Some(&b"content"[..])));
}

#[test]
fn what_a_killed_program_left_is_removed_by_one_that_is_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), 1 << 20);
    assert!(keep(&cache, 1, b"one"));
    // Killed between reserving and naming.
    assert!(cache.usage.reserve(500_000, 1 << 20).unwrap());
    let left = cache.path_of(key(2).name).with_file_name("new-1-1");
    fs::write(&left, b"half").unwrap();
    let other = open(folder.path(), 1 << 20);
    assert!(left.exists() && other.usage.seen() > 500_000, "its maker may still be at work");
    drop((cache, other));
    let cache = open(folder.path(), 1 << 20);
    assert_eq!((left.exists(), cache.usage.seen(), read(&cache, 1).is_some()), (false, 4096, true));
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.tex"), b"x").unwrap();
    let said = NearCache::open_folder(&place(folder.path(), 1)).unwrap_err().to_string();
    assert!(said.ends_with("the folder is not empty and not a cache: give a new or empty folder"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let file = folder.path().join("thesis.tex");
    assert!(NearCache::open_folder(&place(&file, 1)).is_err());
}

#[test]
fn a_program_opens_a_folder_once() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [0, 1].map(|_| NearCache::open(&place(folder.path(), 4096)).unwrap());
    assert!(Arc::ptr_eq(&one, &two) && one.is_alone());
    let other = open(folder.path(), 4096);
    assert!(!one.is_alone() && !other.is_alone());
}

#[test]
fn without_a_size_most_of_the_free_space_is_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let cache = NearCache::open_folder(&CachePlace { dir: folder.path().to_owned(), size: None }).unwrap();
    let free = crate::tier::free(folder.path()).unwrap();
    assert!(cache.limit < free && cache.limit > free / 2, "{} of {free}", cache.limit);
}
