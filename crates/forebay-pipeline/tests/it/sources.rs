//! Folders and lists as sources.

use std::path::Path;
use std::sync::Arc;

use forebay_pipeline::{Dataset, NO_LABEL, Source};
use forebay_storage::{Local, Memory, Mode};
use forebay_testing::{Reason, not_run};

use crate::copied;

#[test]
fn the_folder_is_the_class() {
    let memory = Memory::default();
    for name in ["d/cat/1.jpg", "d/cat/2.JPEG", "d/ant/3.png", "d/readme.txt", "d/list.txt"] {
        memory.insert(name, b"\xff\xd8\xff\xe0".to_vec());
    }
    let source = Source::discover(Arc::new(memory), Path::new("d")).unwrap();
    assert_eq!(source.classes(), ["ant", "cat"]);
    assert_eq!(source.n_samples(), 3);
    let mut batches = copied(Dataset::new(source)).batch(3).iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().labels(), [0, 1, 1]);
}

#[test]
fn a_list_names_paths_relative_to_itself_with_labels() {
    let memory = Memory::default();
    for i in 0..3u32 {
        memory.insert(format!("d/img/{i} x.jpg"), i.to_le_bytes().to_vec());
    }
    memory.insert("d/list.txt", b"# images\nimg/0 x.jpg 0\nimg/1 x.jpg 1\n\nimg/2 x.jpg\n".to_vec());
    let source = Source::discover(Arc::new(memory), Path::new("d/list.txt")).unwrap();
    let mut batches = copied(Dataset::new(source)).batch(3).iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().labels(), [0, 1, NO_LABEL]);
}

#[test]
fn a_missing_path_of_a_list_fails_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.jpg"), 0u32.to_le_bytes()).unwrap();
    std::fs::write(folder.path().join("list.txt"), "a.jpg 0\ngone.jpg 1\n").unwrap();
    let source = Source::discover(Arc::new(Local::default()), &folder.path().join("list.txt")).unwrap();
    let mut batches = copied(Dataset::new(source)).ignore_errors().batch(2).iter().unwrap();
    assert_eq!(batches.next().unwrap().unwrap().len(), 1);
    assert!(batches.stats().failures[0].name.ends_with("gone.jpg"));
}

#[test]
fn the_same_source_through_io_uring_gives_the_same_stream() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for i in 0..100u32 {
        let class = folder.path().join((i % 10).to_string());
        std::fs::create_dir_all(&class).unwrap();
        std::fs::write(class.join(format!("{i:03}.jpg")), i.to_le_bytes()).unwrap();
    }
    let probe = folder.path().join("0/000.jpg");
    let capabilities = forebay_storage::Capabilities::probe(&probe);
    let stream = |mode| {
        let source = Source::folder(Arc::new(Local::new(mode)), folder.path()).unwrap();
        let batches = copied(Dataset::new(source).shuffle(3)).batch(32).prefetch(1).iter().unwrap();
        batches.flat_map(|batch| batch.unwrap().data().to_vec()).collect::<Vec<u8>>()
    };
    let plain = stream(Mode::Buffered);
    assert_eq!(plain.len(), 400);
    for mode in Mode::ALL {
        if !capabilities.allows(mode) {
            let reason = if mode == Mode::Direct { Reason::NoDirectIo } else { Reason::NoIoUring };
            not_run(reason, format!("{} ({capabilities:?})", mode.name()));
            continue;
        }
        assert_eq!(stream(mode), plain, "{}", mode.name());
    }
}
