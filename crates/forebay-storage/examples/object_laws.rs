//! The laws of storage, checked on an object store that is given by a URL and the environment.
//!
//! `cargo xtask objects` runs this against real servers. It also covers what the server of the unit tests does not decide:
//! listings of several pages, uploads in parts, odd names, and what is said about a missing bucket.

#![allow(clippy::print_stdout, reason = "it prints what it checked")]

use std::path::{Path, PathBuf};

use forebay_storage::contract::{Keeps, check, check_bucket};
use forebay_storage::{Access, Buffer, Error, NextRead, Objects, Reading, Storage};

/// More than a page of a listing has.
const MANY: usize = 1_500;
const NAMES: [&str; 6] = ["a b.jpg", "ü/ß.jpg", "100%25.jpg", "a+b&c=d.jpg", "(x) [y].jpg", "日本.jpg"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("give the URL of an empty bucket")?;
    let objects = Objects::with_access(Access::of_variables(std::env::vars()), Reading::default())?;
    let below = |name: &str| PathBuf::from(format!("{url}/{name}"));
    check(&objects, &below("laws"), Keeps::Everything);
    check_bucket(&objects, &objects, &below("bucket"));
    odd_names(&objects, &below("names"))?;
    large(&objects, &below("large.bin"))?;
    many(&objects, &below("many"))?;
    let (scheme, _) = url.split_once("://").ok_or("give a URL")?;
    let missing = objects.list(Path::new(&format!("{scheme}://forebay-no-such-bucket/x")));
    let said = missing.map(drop).expect_err("a bucket that does not exist has no objects").to_string();
    assert!(said.contains("there is no such bucket"), "{said}");
    println!("{url}: the laws hold; {:?}", objects.requests());
    Ok(())
}

fn write(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut writer = storage.create(path)?;
    writer.write(bytes)?;
    writer.commit()
}

fn odd_names(objects: &Objects, dir: &Path) -> Result<(), Error> {
    for name in NAMES {
        write(objects, &dir.join(name), name.as_bytes())?;
    }
    let listed: Vec<PathBuf> = objects.list(dir)?.into_iter().map(|entry| entry.path).collect();
    let mut wanted: Vec<PathBuf> = NAMES.iter().map(|name| dir.join(name)).collect();
    wanted.sort();
    assert_eq!(listed, wanted, "odd names are listed as they were written");
    let mut buffer = Buffer::default();
    for name in NAMES {
        objects.open(&dir.join(name))?.read_all(&mut buffer)?;
        assert_eq!(buffer.as_slice(), name.as_bytes());
    }
    Ok(())
}

fn large(objects: &Objects, path: &Path) -> Result<(), Error> {
    let bytes: Vec<u8> = (0..(20 << 20) + 7).map(|n: u32| (n % 251) as u8).collect();
    write(objects, path, &bytes)?;
    let parts = (0..20u64).map(|n| n << 20..(n + 1) << 20);
    let reads = parts.clone().map(|range| NextRead { path: path.to_owned(), range: Some(range) }).collect::<Vec<_>>();
    let ahead = objects
        .read_ahead(&|| Box::new(reads.clone().into_iter()), u64::MAX, 4)
        .expect("reads ahead are on by default");
    let (object, mut buffer) = (ahead.storage.open(path)?, Buffer::default());
    for part in parts {
        object.read_at(part.start, 1 << 20, &mut buffer)?;
        assert!(buffer.as_slice() == &bytes[part.start as usize..part.end as usize], "{part:?}");
    }
    let opened = objects.open(path)?;
    write(objects, path, b"another version")?;
    let changed = opened.read_at(5 << 20, 10, &mut buffer).expect_err("the object changed").to_string();
    assert!(changed.contains("it changed since it was opened"), "{changed}");
    Ok(())
}

fn many(objects: &Objects, dir: &Path) -> Result<(), Error> {
    let failed = std::sync::Mutex::new(None);
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let failed = &failed;
            scope.spawn(move || {
                for n in (thread..MANY).step_by(16) {
                    let written = write(objects, &dir.join(format!("{n}")), &[7; 100]);
                    if let (Err(error), Ok(mut failed)) = (written, failed.lock()) {
                        *failed = Some(error);
                    }
                }
            });
        }
    });
    if let Some(error) = failed.into_inner().ok().flatten() {
        return Err(error);
    }
    let listed = objects.list(dir)?;
    assert_eq!(listed.len(), MANY, "a listing of several pages is whole");
    let paths: Vec<&Path> = listed.iter().map(|entry| entry.path.as_path()).collect();
    let mut buffers: Vec<Buffer> = paths.iter().map(|_| Buffer::default()).collect();
    for (outcome, buffer) in objects.read_many(&paths, 100, &mut buffers).into_iter().zip(&buffers) {
        outcome?;
        assert_eq!(buffer.as_slice(), [7; 100]);
    }
    Ok(())
}
