//! Checkpoints in a store over HTTP: what is there afterwards, whatever request fails or is the last.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use forebay_storage::{Access, Objects, Reading};
use forebay_testing::{S3Fault, S3Server};

use super::*;
use crate::format::{Format, Safetensors};
use crate::{Dtype, Header, Keep, Level, LocalFs, Mode, Options, Snapshot, Store, Tensor, Tier, restore};

/// More than one part, and not a multiple of a chunk.
const BYTES: usize = (9 << 20) + 77;
const DIR: &str = "s3://b/run";

fn tier(server: &S3Server, timeout: Duration, renewal: Duration) -> Tier {
    let access = Access::of_variables(server.variables()).with_timeout(timeout);
    let objects = Objects::with_access(access, Reading::default()).unwrap();
    let fs = ObjectFs::with_renewal(Arc::new(objects.clone()), Arc::new(objects), renewal);
    Tier { keep: Keep::last(2), ..Tier::new(Arc::new(fs), DIR) }
}

fn patient(server: &S3Server) -> Tier {
    tier(server, Duration::from_secs(6), Duration::from_secs(5))
}

fn bytes_of(step: u64) -> Vec<u8> {
    (0..BYTES as u64).map(|n| (n / 4096 * 31 + n + step * 7) as u8).collect()
}

fn with_state<T>(step: u64, work: impl FnOnce(&Snapshot<'_>) -> T) -> T {
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![BYTES as u64] };
    let bytes = bytes_of(step);
    work(&Snapshot { tensors: vec![Tensor::new(&header, &bytes[..])], ..Snapshot::default() })
}

fn options() -> Options {
    Options { drains_behind: false, ..Options::default() }
}

fn save(store: &Store, step: u64) -> Result<()> {
    with_state(step, |snapshot| {
        let layout = Safetensors.plan("model", snapshot).unwrap();
        store.save(step, None, snapshot, &layout)?.wait(Level::DurableSlow).map(drop)
    })
}

/// Saves a step in a store of its own, as a process would.
fn saved(tier: Tier, step: u64) -> Result<()> {
    save(&Store::open(vec![tier], options())?, step)
}

/// The step that is restored, with exactly its bytes.
fn restored(tier: Tier) -> u64 {
    let restored = restore(&[tier]).unwrap();
    let files = restored.by_name();
    let read = Safetensors.open("model", &files).unwrap().read(&files, "w").unwrap();
    assert!(read == bytes_of(restored.name.step), "step {}", restored.name.step);
    restored.name.step
}

/// The objects of a store without the names that are drawn.
fn shown(server: &S3Server) -> Vec<String> {
    let shorter = |name: String| {
        let parts = name.split('/').map(|part| if is_place(part) { "…" } else { part });
        parts.collect::<Vec<_>>().join("/")
    };
    server.names().into_iter().map(shorter).collect()
}

#[test]
fn a_checkpoint_is_its_files_and_a_manifest_that_says_where_they_are() {
    let server = S3Server::start().unwrap();
    saved(patient(&server), 7).unwrap();
    assert_eq!(
        shown(&server),
        ["b/run/step-000000000007/…/model.safetensors", "b/run/step-000000000007/manifest.forebay"],
        "neither a lock nor an upload stays"
    );
    assert_eq!((server.n_uploads(), restored(patient(&server))), (0, 7));
    let parts = server.log().iter().filter(|line| line.contains("partNumber")).count();
    assert_eq!(parts, 2, "a large file is sent in parts");
    let last_put = server.log().into_iter().rfind(|line| line.starts_with("PUT") && !line.contains("lock"));
    assert!(last_put.unwrap().contains("manifest.forebay"), "the manifest comes last");
}

#[test]
fn files_of_a_few_bytes_are_objects_too() {
    let server = S3Server::start().unwrap();
    let store = Store::open(vec![patient(&server)], options()).unwrap();
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![5_000] };
    let bytes = &bytes_of(7)[..5_000];
    let snapshot = Snapshot { tensors: vec![Tensor::new(&header, bytes)], ..Snapshot::default() };
    let format = crate::format::named("tensorflow").unwrap();
    let layout = format.plan("model", &snapshot).unwrap();
    store.save(7, None, &snapshot, &layout).unwrap().wait(Level::DurableSlow).unwrap();
    let restored = store.restore().unwrap();
    let files = restored.by_name();
    assert!(files.len() > 2 && format.open("model", &files).unwrap().read(&files, "w").unwrap() == bytes);
    assert_eq!(server.log().iter().filter(|line| line.contains("partNumber")).count(), 0);
}

#[test]
fn a_copy_of_its_folder_on_a_disk_is_a_checkpoint() {
    let (server, dir) = (S3Server::start().unwrap(), tempfile::tempdir().unwrap());
    saved(patient(&server), 7).unwrap();
    let folder = dir.path().join("step-000000000007");
    std::fs::create_dir(&folder).unwrap();
    for name in server.names() {
        let file = name.rsplit('/').next().unwrap();
        std::fs::write(folder.join(file), server.get(&name).unwrap()).unwrap();
    }
    assert_eq!(restored(Tier::new(Arc::new(LocalFs), dir.path())), 7);
}

#[test]
fn a_burst_buffer_is_drained_there_and_what_is_not_kept_goes() {
    let (server, dir) = (S3Server::start().unwrap(), tempfile::tempdir().unwrap());
    let tiers = vec![Tier::new(Arc::new(LocalFs), dir.path()), patient(&server)];
    let store = Store::open(tiers, Options { mode: Mode::Burst, ..Options::default() }).unwrap();
    (1..=4).for_each(|step| save(&store, step).unwrap());
    store.drain().unwrap();
    assert_eq!(store.close().n_undrained, 0);
    assert_eq!((server.names().len(), restored(patient(&server))), (4, 4), "{:?}", shown(&server));
    assert_eq!(patient(&server).names().unwrap().iter().map(|name| name.step).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn of_two_writers_of_one_checkpoint_one_wins() {
    let server = S3Server::start().unwrap();
    let (first, second) = (patient(&server), patient(&server));
    let name = Name { step: 7, take: 0 };
    let staging = |tier: &Tier| tier.dir.join(".staging-step-000000000007-0");
    let write = |tier: &Tier, bytes: &[u8]| {
        tier.fs.make_dir(&staging(tier)).unwrap();
        let file = tier.fs.create(&staging(tier).join("f")).unwrap();
        file.allocate(bytes.len() as u64).unwrap();
        file.write_at(0, bytes).unwrap();
        file.sync().unwrap();
        let sum = crate::FileSum { name: "f".to_owned(), len: bytes.len() as u64, crcs: vec![crc32c::crc32c(bytes)] };
        let manifest = Manifest { step: 7, metric: None, chunk_bytes: 4096, files: vec![sum] };
        tier.fs.create(&staging(tier).join(MANIFEST)).unwrap().write_at(0, &manifest.encode()).unwrap();
    };
    write(&first, b"first");
    write(&second, b"second");
    // The answer to the winner is lost, so that it has to look.
    server.fail("PUT", "manifest", 1, S3Fault::LostAnswer);
    first.fs.rename(&staging(&first), &first.path_of(name)).unwrap();
    let refused = second.fs.rename(&staging(&second), &second.path_of(name)).unwrap_err();
    assert!(matches!(&refused, Error::Io { source, .. } if source.kind() == io::ErrorKind::AlreadyExists), "{refused}");
    assert_eq!(restore(&[patient(&server)]).unwrap().file("f"), Some(&b"first"[..]));
    // The next store removes what the loser left.
    drop(Store::open(vec![patient(&server)], options()).unwrap());
    assert_eq!(shown(&server), ["b/run/step-000000000007/…/f", "b/run/step-000000000007/manifest.forebay"]);
}

#[test]
fn a_folder_in_use_is_refused_and_one_whose_holder_is_gone_is_taken_over() {
    let server = S3Server::start().unwrap();
    let quick = || tier(&server, Duration::from_secs(6), Duration::from_millis(40));
    let holder = Store::open(vec![quick()], options()).unwrap();
    let refused = Store::open(vec![quick()], options()).unwrap_err().to_string();
    assert!(refused.starts_with("s3://b/run is in use by process"), "{refused}");
    drop(holder);
    let lock = "b/run/.forebay.lock";
    assert_eq!(server.get(lock), None);
    // A holder on another machine that no longer renews it.
    server.put(lock, "process 1 on elsewhere\nother pid:[1] 1 1\nabc 0\n");
    let taken = Store::open(vec![quick()], options()).unwrap();
    assert!(!String::from_utf8(server.get(lock).unwrap()).unwrap().contains("elsewhere"));
    // Someone takes it over from here: nothing more is published.
    server.put(lock, "process 2 on elsewhere\nother pid:[1] 2 1\nabd 0\n");
    let refused = (0..100).find_map(|step| {
        std::thread::sleep(Duration::from_millis(20));
        save(&taken, step).err()
    });
    let refused = refused.unwrap().to_string();
    assert_eq!(refused, "s3://b/run is in use by another process: this one could not renew its lock");
    drop(taken);
    assert!(server.get(lock).is_some(), "another's lock stays");
}

#[test]
fn a_holder_elsewhere_that_renews_its_lock_is_reported() {
    let server = S3Server::start().unwrap();
    let lock = "b/run/.forebay.lock";
    server.put(lock, "process 1 on elsewhere\nother pid:[1] 1 1\nabc 0\n");
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let tier = tier(&server, Duration::from_secs(6), Duration::from_millis(400));
            Store::open(vec![tier], options()).map(drop).unwrap_err().to_string()
        });
        let mut n = 0;
        while !opening.is_finished() {
            n += 1;
            std::thread::sleep(Duration::from_millis(50));
            server.put(lock, format!("process 1 on elsewhere\nother pid:[1] 1 1\nabc {n}\n"));
        }
        assert_eq!(opening.join().unwrap(), "s3://b/run is in use by process 1 on elsewhere");
    });
}

/// One save with a fault, and everything that must hold whatever comes of it.
fn survive(what: &str, spoil: impl Fn(&S3Server)) -> bool {
    let server = S3Server::start().unwrap();
    saved(patient(&server), 1).unwrap();
    let hasty = tier(&server, Duration::from_millis(600), Duration::from_secs(5));
    spoil(&server);
    let outcome = saved(hasty, 2);
    server.heal();
    let found = restored(patient(&server));
    assert!(found == 2 || outcome.is_err(), "{what}: it was saved, and step {found} is restored");
    // This process still runs; the lock of a killed one is recognised by that. A request that was late may make it again.
    let mut last = Err(String::new());
    for _ in 0..3 {
        server.remove("b/run/.forebay.lock");
        last = saved(patient(&server), 3).map_err(|error| error.to_string());
        if !matches!(&last, Err(error) if error.contains("is in use by")) {
            break;
        }
    }
    last.unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(restored(patient(&server)), 3, "{what}");
    let kept = if found == 2 { [2, 3] } else { [1, 3] };
    let expected = kept.map(|step| {
        let of = format!("b/run/step-{step:012}");
        [format!("{of}/manifest.forebay"), format!("{of}/…/model.safetensors")]
    });
    let mut expected = expected.concat();
    expected.sort();
    let mut left = shown(&server);
    // The name of a finished upload that could not be removed goes with its checkpoint.
    left.retain(|name| found != 2 || !name.ends_with(KEPT_PART));
    left.sort();
    assert_eq!(left, expected, "{what}: nothing else stays");
    assert_eq!(server.n_parts(), 0, "{what}: no parts stay");
    outcome.is_err()
}

/// Requests of a save, with the lock and the removal of what is not kept.
const MOST_REQUESTS: usize = 44;

/// Runs a case for every request, a few at a time; returns how many saves failed.
fn at_every_request(case: impl Fn(usize) -> bool + Sync) -> usize {
    let next = std::sync::atomic::AtomicUsize::new(0);
    let failed = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if n >= MOST_REQUESTS {
                        return;
                    }
                    failed.fetch_add(usize::from(case(n)), std::sync::atomic::Ordering::Relaxed);
                }
            });
        }
    });
    failed.into_inner()
}

#[test]
fn a_fault_of_any_request_leaves_the_old_checkpoint_or_the_new_one() {
    let faults = [
        S3Fault::Reset,
        S3Fault::LostAnswer,
        S3Fault::Status(500, "InternalError"),
        S3Fault::Status(503, "SlowDown"),
        S3Fault::Truncated(3),
        S3Fault::TooLong(9),
        S3Fault::Late(Duration::from_millis(900)),
    ];
    for fault in faults {
        at_every_request(|n| survive(&format!("{fault:?} at {n}"), |server| server.fail_after(n, fault.clone())));
    }
}

#[test]
fn a_stop_before_any_request_leaves_the_old_checkpoint_or_the_new_one() {
    let n_failed = at_every_request(|n| survive(&format!("stopped before {n}"), |server| server.stop_after(n)));
    assert!(n_failed >= 8, "only {n_failed} stops were met");
}

#[test]
fn a_store_that_ignores_conditions_is_refused() {
    let server = S3Server::start().unwrap();
    server.ignore_conditions();
    let refused = forebay_units::chain(&Store::open(vec![patient(&server)], options()).unwrap_err());
    assert!(refused.contains("s3://b/run") && refused.contains("If-None-Match"), "{refused}");
    assert!(server.names().is_empty());
}

#[test]
fn urls_are_refused_where_they_mean_nothing() {
    let server = S3Server::start().unwrap();
    let fs = patient(&server).fs;
    let dir = PathBuf::from(DIR);
    assert!(fs.create(&dir.join("step-000000000007/f")).is_err(), "a finished checkpoint does not change");
    assert!(fs.rename(&dir.join("a"), &dir.join("b")).is_err());
    assert!(fs.sync_all(&dir).is_err());
    assert!(matches!(fs.list(Path::new("s3://b/none")), Ok(names) if names.is_empty()));
}
