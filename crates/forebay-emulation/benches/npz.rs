//! Rate per core of reading npz files from the page cache, checksums verified: `cargo bench -p forebay-emulation
//! --bench npz`.
//!
//! Cases: lent in place or copied into a buffer, with the CRC-32; copied without it; and the CRC-32 alone, in memory.
//! Time is the thread's CPU time, so a busy machine gives the same figures.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints its results")]

use std::path::{Path, PathBuf};

use forebay_format::npz::read::{Content, Entry, Finder, LOCAL_LEN};
use forebay_format::npz::write::{Archive, Method};
use forebay_storage::{Buffer, Local, Object, Storage};

const N_FILES: usize = 6;
const FILE_BYTES: usize = 64 << 20;
const PIECE: u64 = 2 << 20;
const ROUNDS: usize = 5;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let values = noise(FILE_BYTES);
    let files: Vec<PathBuf> = (0..N_FILES).map(|i| make(dir.path(), i, &values)).collect();
    let total = (N_FILES * FILE_BYTES) as f64;
    for (name, lent, verify) in
        [("lent, verified", true, true), ("copied, verified", false, true), ("copied, not verified", false, false)]
    {
        let seconds = best(|| files.iter().for_each(|file| read(file, lent, verify)));
        println!("{name:24} {:6.1} GB/s per core", total / seconds / 1e9);
    }
    let seconds = best(|| {
        std::hint::black_box(crc32fast::hash(&values));
    });
    println!("{:24} {:6.1} GB/s", "CRC-32 alone, in memory", FILE_BYTES as f64 / seconds / 1e9);
}

fn best(mut run: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = core_seconds();
        run();
        core_seconds() - start
    });
    rounds.fold(f64::MAX, f64::min)
}

/// CPU time of this thread.
fn core_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn read(path: &Path, lent: bool, verify: bool) {
    let object = Local::default().open(path).unwrap();
    let mut buffer = Buffer::default();
    let (entry, start) = find(object.as_ref(), &mut buffer);
    let mut content = Content::new(&entry, verify);
    let mut sum = 0_u64;
    let mut at = 0;
    while at < entry.packed_bytes {
        let len = PIECE.min(entry.packed_bytes - at) as usize;
        let bytes = if lent {
            object.lend(start + at, len, &mut buffer).unwrap()
        } else {
            object.read_at(start + at, len, &mut buffer).unwrap();
            buffer.as_slice()
        };
        content
            .feed(bytes, |bytes| {
                sum += u64::from(bytes[0]);
                Ok(())
            })
            .unwrap();
        at += len as u64;
    }
    content.finish().unwrap();
    std::hint::black_box(sum);
}

fn find(object: &dyn Object, buffer: &mut Buffer) -> (Entry, u64) {
    let len = object.len().unwrap();
    let mut finder = Finder::new(len).unwrap();
    while let Some(want) = finder.want() {
        object.read_at(want.offset, want.len, buffer).unwrap();
        finder.feed(buffer.as_slice()).unwrap();
    }
    let entry = finder.finish().remove(0);
    object.read_at(entry.offset, LOCAL_LEN, buffer).unwrap();
    let start = entry.data_offset(buffer.as_slice(), len).unwrap();
    (entry, start)
}

fn make(dir: &Path, number: usize, values: &[u8]) -> PathBuf {
    let mut archive = Archive::default();
    let mut bytes = archive.begin("x.npy", values.len() as u64, Method::Stored);
    archive.stored(values);
    bytes.extend_from_slice(values);
    let patch = archive.end(&mut bytes);
    bytes[..patch.bytes.len()].copy_from_slice(&patch.bytes);
    bytes.extend(archive.finish());
    let path = dir.join(format!("{number}.npz"));
    std::fs::write(&path, bytes).unwrap();
    path
}

fn noise(n: usize) -> Vec<u8> {
    let mut bytes = vec![0; n];
    forebay_units::random::Random::new(1).fill(&mut bytes);
    bytes
}
