//! Archives as tar writes them, compressed ones, and those that are not read.

use forebay_format::tar;
use forebay_format::tfrecord::{Compression, compress};

use crate::dir::Dir;
use crate::record;

/// The images of `set` as `tar cf x.tar .` packs a folder of them: every name begins with `./`.
fn archive(dir: &Dir) -> Vec<u8> {
    let mut archive = Vec::new();
    tar::append_file(&mut archive, "./", b"").unwrap();
    for (name, bytes) in dir.images("set") {
        tar::append_file(&mut archive, format!("./{name}"), &bytes).unwrap();
    }
    tar::finish(&mut archive);
    archive
}

/// Turns the entry that begins at an offset into one of another type.
fn retype(archive: &mut [u8], at: usize, kind: u8) {
    archive[at + 156] = kind;
    archive[at + 148..at + 156].copy_from_slice(b"        ");
    let sum: u32 = archive[at..at + 512].iter().map(|byte| u32::from(*byte)).sum();
    archive[at + 148..at + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

#[test]
fn names_with_a_dot_and_doubled_slashes_are_unpacked_below_the_folder() {
    let dir = Dir::with_set();
    dir.write("x.tar", archive(&dir));
    assert_eq!(dir.met("data pack x.tar back --to files"), "back: 24 files, 107.9 KB\n");
    assert_eq!(dir.images("back"), dir.images("set"));
    let (_, bytes) = dir.images("set").pop_first().unwrap();
    let mut odd = Vec::new();
    for name in [".//a//b.jpg", "c/./d.jpg", "../out.jpg", "/abs.jpg", "e/../f.jpg"] {
        tar::append_file(&mut odd, name, &bytes).unwrap();
    }
    tar::finish(&mut odd);
    dir.write("odd.tar", odd);
    let ran = dir.missed("data pack odd.tar odd --to files");
    assert_eq!(dir.names("odd"), ["a/b.jpg", "c/d.jpg", "list.txt"]);
    for name in ["../out.jpg", "/abs.jpg", "e/../f.jpg"] {
        assert!(ran.stderr.contains(&format!("file name \"{name}\" leads out of the folder\n")), "{}", ran.stderr);
    }
}

#[test]
fn links_are_left_out_and_named() {
    let dir = Dir::with_set();
    let (_, bytes) = dir.images("set").pop_first().unwrap();
    let mut archive = Vec::new();
    tar::append_file(&mut archive, "./a.jpg", &bytes).unwrap();
    let at = archive.len();
    for (name, kind) in [("./hard.jpg", b'1'), ("./soft.jpg", b'2')] {
        let at = archive.len();
        tar::append_file(&mut archive, name, b"").unwrap();
        retype(&mut archive, at, kind);
    }
    tar::finish(&mut archive);
    dir.write("x.tar", archive);
    let first = format!("x.tar at offset {at}: ./hard.jpg is a hard link, which is not supported\n");
    let ran = dir.missed("data pack x.tar back --to files");
    assert!(ran.stderr.starts_with(&format!("forebay: left out 2 bad inputs:\n  {first}")), "{}", ran.stderr);
    assert_eq!(dir.names("back"), ["a.jpg", "list.txt"]);
    assert!(dir.missed("data verify x.tar").stdout.contains(&first));
    let record = record::of(&dir, "x.tar --threads 1 --repeats 1 --warmups 0 --size 8");
    let note = "links and sparse files in tar archives are skipped: ./hard.jpg (a hard link) and 1 more";
    assert_eq!(record["notes"][0], note);
    assert_eq!(record["cells"][0]["samples"][0]["images"], 1);
}

#[test]
fn a_compressed_archive_is_read_as_the_plain_one_is() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar");
    let plain = dir.read("shards/set-00000-of-00001.tar");
    dir.write("x.tar", &plain);
    dir.met("data decode x.tar --to plain.npy --size 8");
    for name in ["x.tar.gz", "x.tgz", "x"] {
        dir.write(name, compress(&plain, Compression::Gzip).unwrap());
        let record = record::of(&dir, &format!("{name} --threads 2 --repeats 1 --warmups 0 --size 8"));
        let (dataset, cell) = (&record["dataset"], &record["cells"][0]);
        assert_eq!((&dataset["packing"], &dataset["n_samples"]), (&"tar (gzip)".into(), &24.into()));
        assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&24.into(), &0.into()));
        assert!(dir.met(&format!("data verify {name}")).starts_with(&format!("{name}: 24 samples good, 0 bad")));
        assert!(dir.met(&format!("data inspect {name}")).contains("classes   22: 0 (1), 1 (2), "));
        dir.met(&format!("data pack {name} {name}-back --to files"));
        assert_eq!(dir.images(&format!("{name}-back")), dir.images("set"));
        dir.met(&format!("data decode {name} --to {name}.npy --size 8"));
        assert_eq!(dir.read(&format!("{name}.npy")), dir.read("plain.npy"));
    }
    dir.write("d/1.tar", &plain);
    dir.write("d/2.tar.gz", compress(&plain, Compression::Gzip).unwrap());
    let said = dir.refused("ingest d");
    assert_eq!(said, "forebay: d/1.tar and d/2.tar.gz are compressed differently\n");
}

#[test]
fn other_archives_are_refused_by_name_with_what_unpacks_them() {
    let dir = Dir::new();
    for (name, head, how, with) in [
        ("x.zip", &b"PK\x03\x04\x14\0\0\0"[..], "zip", "unzip"),
        ("x.tar.zst", b"\x28\xb5\x2f\xfd\x04\x58", "zstd", "zstd -d"),
        ("x.tar.xz", b"\xfd7zXZ\0\0\x04", "xz", "xz -d"),
        ("x.tar.bz2", b"BZh91AY&SY\xff", "bzip2", "bunzip2"),
        ("x.idx.gz", &compress(&[7; 99], Compression::Gzip).unwrap(), "gzip", "gunzip"),
    ] {
        dir.write(name, head);
        dir.write(format!("{name}-folder/{name}"), head);
        let wanted = |path: &str| {
            format!(
                "forebay: {path}: expected images, a shard or a list, found {how} data\n\
                 hint: unpack it first, for example with `{with}`\n"
            )
        };
        for line in
            ["ingest X", "data inspect X", "data verify X", "data decode X --to a.npy", "data pack X out --to files"]
        {
            assert_eq!(dir.refused(&line.replace('X', name)), wanted(name), "{line}");
        }
        for line in ["ingest", "data inspect", "data verify"] {
            let said = dir.refused(&format!("{line} {name}-folder"));
            assert_eq!(said, wanted(&format!("{name}-folder/{name}")), "{line}");
        }
    }
}
