//! How files are read: each mode reads the same bytes, and the record names the mode.

use forebay_testing::{Reason, not_run};

use crate::dir::Dir;
use crate::process::bytes_read;
use crate::record::{self, cell_of};

/// Whether io_uring is there, which some kernels and sandboxes forbid.
fn has_uring() -> bool {
    // SAFETY: no memory is passed; a ring with no parameters is refused with EFAULT where there are rings at all.
    let code = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null::<u8>()) };
    code == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

#[test]
fn every_mode_reads_the_same_bytes_and_is_named() {
    let dir = Dir::with_set();
    let bytes: usize = dir.images("set").values().map(Vec::len).sum();
    for mode in ["buffered", "direct", "uring", "uring-direct"] {
        if mode.starts_with("uring") && !has_uring() {
            not_run(Reason::NoIoUring, mode);
            continue;
        }
        let record = record::of(&dir, &format!("set --io {mode} --threads 2 --repeats 1"));
        let cell = &record["cells"][0];
        assert_eq!(cell["medium"]["storage"], format!("local, {mode}"));
        let sample = &cell["samples"][0];
        assert_eq!((&sample["images"], &sample["bytes"], &sample["failed"]), (&24.into(), &bytes.into(), &0.into()));
        let on_disk = !record["environment"]["data_file_system"].as_str().unwrap().starts_with("tmpfs");
        if on_disk {
            // Only direct reads get to the device although the files are in memory.
            let expected = if mode.ends_with("direct") { "cold" } else { "warm" };
            assert_eq!(cell["medium"]["cache"], expected, "{mode}");
        }
    }
    assert_eq!(cell_of(&dir, "set --threads 1 --repeats 1")["medium"]["storage"], "local, buffered");
}

#[test]
fn auto_measures_and_notes_what_it_chose_from() {
    let dir = Dir::with_set();
    let record = record::of(&dir, "set --io auto --threads 1 --repeats 1 --warmups 0");
    let note = record["notes"][0].as_str().unwrap();
    let start = "read mode chosen by measurement on 24 files, cold, 8 threads: ";
    let rest = note.strip_prefix(start).unwrap_or_else(|| panic!("{note}"));
    let (mode, rates) = rest.split_once(" (MB/s: ").unwrap();
    assert_eq!(record["cells"][0]["medium"]["storage"], format!("local, {mode}"));
    assert!(rates.starts_with("buffered ") && rates.contains(mode), "{note}");
}

#[test]
fn shards_can_be_read_in_every_mode_too() {
    let dir = Dir::with_set();
    for to in ["tfrecord", "tar", "tensor"] {
        dir.met(&format!("data pack set {to} --to {to} --shard-size 64KiB"));
        for mode in ["buffered", "direct"] {
            let record = record::of(&dir, &format!("{to} --io {mode} --threads 2 --repeats 1 --warmups 0"));
            assert_eq!(record["dataset"]["packing"], to);
            let cell = &record["cells"][0];
            assert_eq!(
                (&cell["samples"][0]["images"], &cell["failed_samples"]),
                (&24.into(), &0.into()),
                "{to} {mode}"
            );
        }
    }
}

#[test]
fn a_map_reads_nothing_and_is_named() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tensor");
    let pixels = 24 * 256 * 256 * 3;
    let line = |flags: &str| format!("ingest shards --threads 1 --repeats 1 --warmups 0 {flags}");
    let (read, mapped) = (bytes_read(&dir, &line("")), bytes_read(&dir, &line("--mmap")));
    assert!(read >= pixels && mapped < pixels / 4, "{read} bytes read, {mapped} with a map");
    let cell = cell_of(&dir, "shards --threads 1 --repeats 1 --warmups 0 --mmap");
    assert_eq!((&cell["medium"]["storage"], &cell["samples"][0]["images"]), (&"local, mapped".into(), &24.into()));
}

#[test]
fn only_tensor_shards_can_be_mapped() {
    let dir = Dir::with_set();
    let said = dir.refused("ingest set --mmap");
    assert_eq!(said, "forebay: set: only tensor shards can be mapped into memory\n");
}
