//! Ctrl-C during `forebay checkpoint verify`, `prune` and `restore`: within a chunk, and nothing is left half done.

use std::fs;

use forebay_checkpoint::format::named;
use forebay_checkpoint::{Dtype, Header, Mode, Options, Snapshot, Store, Tensor};

use crate::checkpoint::tier;
use crate::dir::{Dir, Ran};
use crate::process::Running;

/// Bytes of a state that an emulated hard disk takes more than half a second to read.
const LARGE: usize = 100_000_000;

/// A folder with two steps of it.
fn saved() -> Dir {
    let dir = Dir::new();
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![LARGE as u64] };
    let values: Vec<u8> = (0..LARGE).map(|n| (n % 251) as u8).collect();
    let snapshot = Snapshot { tensors: vec![Tensor::new(&header, &values)], ..Snapshot::default() };
    let layout = named("safetensors").unwrap().plan("model", &snapshot).unwrap();
    let options = Options { mode: Mode::Direct, ..Options::default() };
    let store = Store::open(vec![tier(&dir.path("slow"))], options).unwrap();
    for step in [20, 40] {
        store.save(step, None, &snapshot, &layout).unwrap();
    }
    assert!(store.close().errors.is_empty());
    dir
}

/// Runs a command until it has read some of the first checkpoint, and stops it.
fn stopped(dir: &Dir, line: &str) -> Ran {
    let mut running = Running::start(dir, line);
    running.wait_until("some of a checkpoint", |running| running.bytes_read() > 16 << 20);
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran
}

fn names(dir: &Dir, folder: &str) -> Vec<String> {
    let found = fs::read_dir(dir.path(folder)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = found.collect();
    names.sort();
    names
}

#[test]
fn a_verification_stops_in_the_middle_of_a_checkpoint_and_judges_none() {
    let dir = saved();
    let ran = stopped(&dir, "checkpoint verify slow --tier hdd");
    assert_eq!(ran.stdout, "0 good, 0 damaged; 0 B verified\n");
    assert_eq!(ran.stderr, "forebay: stopped before the end\n");
}

#[test]
fn a_prune_stops_before_it_removes_anything_on_account_of_what_it_has_not_read() {
    let dir = saved();
    let before = names(&dir, "slow");
    let ran = stopped(&dir, "checkpoint prune slow --keep 1 --tier hdd");
    assert!(ran.stdout.starts_with("0 checkpoints removed, 0 B; 2 kept\n"), "{ran:?}");
    assert_eq!(ran.stderr, "forebay: stopped before the end\n");
    assert_eq!(names(&dir, "slow"), before);
    assert!(dir.met("checkpoint prune slow --keep 1").contains("1 checkpoint removed"));
}

#[test]
fn a_restore_that_is_stopped_leaves_nothing() {
    let dir = saved();
    fs::create_dir(dir.path("out")).unwrap();
    for to in ["out/model.safetensors", "out/model"] {
        let ran = stopped(&dir, &format!("checkpoint restore slow --tier hdd --to {to}"));
        assert!(ran.stdout.is_empty() && ran.stderr.starts_with("forebay: "), "{ran:?}");
        assert_eq!(names(&dir, "out"), [] as [&str; 0], "{to}");
    }
}

#[test]
fn a_restore_holds_pieces_of_the_state_in_memory_and_never_all() {
    let dir = saved();
    let mut running = Running::start(&dir, "checkpoint restore slow --tier hdd --to out.safetensors");
    let mut peak = 0;
    running.wait_until("nearly all of it", |running| {
        peak = running.peak_bytes();
        running.bytes_read() > 9 * LARGE as u64 / 10
    });
    let ran = running.finish();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(0 < peak && peak < LARGE as u64 / 2, "{peak} bytes");
    assert_eq!(dir.read("out.safetensors"), dir.read("slow/step-000000000040/model.safetensors"));
}

#[test]
fn one_that_is_damaged_at_its_end_leaves_nothing_and_the_next_is_restored() {
    let dir = saved();
    dir.edit("slow/step-000000000040/model.safetensors", |bytes| *bytes.last_mut().unwrap() ^= 1);
    fs::create_dir(dir.path("out")).unwrap();
    let ran = dir.run("checkpoint restore slow --to out/model.safetensors");
    assert!(
        ran.code == Some(0) && ran.stderr.contains("step-000000000040: ") && ran.stderr.contains("checksum"),
        "{ran:?}"
    );
    assert!(ran.stdout.starts_with("step 20 of slow, verified\n"), "{ran:?}");
    assert_eq!(names(&dir, "out"), ["model.safetensors"]);
    let ran = dir.missed("checkpoint restore slow --step 40 --to out/other.safetensors");
    assert!(ran.stderr.starts_with("forebay: no valid checkpoint"), "{ran:?}");
    assert_eq!(names(&dir, "out"), ["model.safetensors"]);
}
