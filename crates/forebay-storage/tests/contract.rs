//! Every backend and wrapper passes the same suite.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::path::Path;

use forebay_storage::contract::{Keeps, check};
use forebay_storage::{Buffer, Capabilities, Counted, Faulty, Local, Memory, Mode, Null, Profile, Shaped, Storage};
use forebay_testing::{Reason, not_run};

/// A folder on a disk file system: in-memory file systems may lack direct I/O.
fn disk_folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

#[test]
fn memory_obeys_the_laws() {
    check(&Memory::default(), Path::new("x"), Keeps::Everything);
}

#[test]
fn null_obeys_the_laws() {
    check(&Null::new(10, 1_000), Path::new("null"), Keeps::Nothing);
}

#[test]
fn local_obeys_the_laws_in_every_mode_this_machine_has() {
    for mode in Mode::ALL {
        let folder = disk_folder();
        let probe = folder.path().join("probe");
        std::fs::write(&probe, b"x").unwrap();
        let capabilities = Capabilities::probe(&probe);
        std::fs::remove_file(&probe).unwrap();
        if capabilities.allows(mode) {
            check(&Local::new(mode), folder.path(), Keeps::Everything);
        } else {
            let reason = if mode == Mode::Direct { Reason::NoDirectIo } else { Reason::NoIoUring };
            not_run(reason, format!("{} ({capabilities:?})", mode.name()));
        }
    }
}

#[test]
fn wrappers_obey_the_laws() {
    check(&Counted::new(Memory::default()), Path::new("x"), Keeps::Everything);
    check(&Faulty::new(Memory::default(), vec![]), Path::new("x"), Keeps::Everything);
    for name in Profile::NAMES {
        let folder = disk_folder();
        let shaped = Shaped::new(Local::default(), name.parse().unwrap());
        check(&shaped, folder.path(), Keeps::Everything);
    }
    let folder = disk_folder();
    check(&Counted::new(Local::new(Mode::Direct)), folder.path(), Keeps::Everything);
}

#[cfg(feature = "object")]
#[test]
fn objects_obey_the_laws_in_memory_and_over_http_wrapped_or_not() {
    use forebay_storage::{Access, Objects, Reading};
    let store: std::sync::Arc<dyn object_store::ObjectStore> =
        std::sync::Arc::new(object_store::memory::InMemory::new());
    let memory = Objects::over("s3://bucket", &store, Access::default(), Reading::default()).unwrap();
    check(&memory, Path::new("s3://bucket/x"), Keeps::Everything);
    let server = forebay_testing::S3Server::start().unwrap();
    let objects = Objects::with_access(Access::of_variables(server.variables()), Reading::default()).unwrap();
    check(&objects, Path::new("s3://bucket/x y/ü"), Keeps::Everything);
    check(&Counted::new(objects.clone()), Path::new("s3://bucket/counted"), Keeps::Everything);
    check(&Faulty::new(objects.clone(), vec![]), Path::new("s3://bucket/faulty"), Keeps::Everything);
    check(&Shaped::new(objects.clone(), "optane".parse().unwrap()), Path::new("s3://bucket/shaped"), Keeps::Everything);
    forebay_storage::contract::check_bucket(&objects, &objects, Path::new("s3://bucket/conditions"));
    assert_eq!(server.n_uploads(), 0);
}

#[test]
fn a_direct_read_moves_whole_pages_and_says_so_through_every_wrapper() {
    let folder = disk_folder();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![1; 10_000]).unwrap();
    let moved = |storage: &dyn Storage| {
        let object = storage.open(&path).unwrap();
        [(0, 4_096), (0, 10_000), (4_000, 200), (8_192, 1), (5_000, 0)].map(|(at, len)| object.moved_for(at, len))
    };
    let asked = [4_096, 10_000, 200, 1, 0];
    assert_eq!(moved(&Local::default()), asked);
    assert_eq!(moved(&Counted::new(Local::default())), asked);
    let pages = [4_096, 12_288, 8_192, 4_096, 0];
    assert_eq!(moved(&Local::new(Mode::Direct)), pages);
    assert_eq!(moved(&Counted::new(Local::new(Mode::Direct))), pages);
    assert_eq!(moved(&Faulty::new(Local::new(Mode::Direct), vec![])), pages);
    assert_eq!(moved(&Shaped::new(Local::new(Mode::Direct), "ssd".parse().unwrap())), pages);
}

#[test]
fn pipes_and_devices_are_refused_and_never_waited_for() {
    let folder = disk_folder();
    let pipe = folder.path().join("pipe.jpg");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for mode in Mode::ALL {
        let storage = Local::new(mode);
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let mut buffers = [Buffer::default()];
            let outcome = storage.read_many(&[path], u64::MAX, &mut buffers).remove(0);
            let error = outcome.unwrap_err().to_string();
            // Direct I/O may be refused before anything else is.
            let refused = error.contains("not a regular file") || mode.is_direct() || error.contains("io_uring");
            assert!(refused, "{}: {error}", mode.name());
            assert!(storage.size(path).is_err());
        }
    }
    let listed = Local::default().list(folder.path()).unwrap();
    assert_eq!(listed.len(), 1, "it is listed, so that whoever opens it is told");
}
