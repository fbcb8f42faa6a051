//! `forebay data pack --to files`: shards back into the files they were made from.

use crate::dir::Dir;

#[test]
fn files_come_back_byte_by_byte_with_their_labels() {
    let dir = Dir::with_set();
    for (to, flags) in [("tfrecord", ""), ("tfrecord", "--compression gzip"), ("tar", "--shard-size 64KiB")] {
        let (shards, back) = (format!("{to}{}", flags.len()), format!("{to}{}-files", flags.len()));
        dir.met(&format!("data pack set {shards} --to {to} {flags}"));
        assert_eq!(dir.met(&format!("data pack {shards} {back} --to files")), format!("{back}: 24 files, 107.9 KB\n"));
        assert_eq!(dir.images(&back), dir.images("set"));
        let lines = |name: &str| {
            let list = String::from_utf8(dir.read(&format!("{name}/list.txt"))).unwrap();
            let mut lines: Vec<String> = list.lines().map(str::to_owned).collect();
            lines.sort_unstable();
            lines
        };
        assert_eq!(lines(&back), lines("set"));
    }
}

#[test]
fn a_second_run_keeps_what_is_there() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar");
    dir.met("data pack shards back --to files");
    std::fs::remove_file(dir.path("back/class_003/class_003_000003.jpg")).unwrap();
    let said = dir.met("data pack shards back --to files");
    assert_eq!(said, "back: 24 files, 107.9 KB; 23 already there\n");
    assert_eq!(dir.images("back"), dir.images("set"));
}

#[test]
fn any_number_of_threads_writes_the_same_files() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar --shard-size 64KiB");
    dir.met("data pack shards one --to files --threads 1");
    dir.met("data pack shards many --to files --threads 3");
    assert_eq!(dir.tree("one"), dir.tree("many"));
}

#[test]
fn decoded_images_cannot_be_turned_back() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tensor --size 8");
    let said = dir.refused("data pack shards back --to files");
    assert_eq!(
        said,
        "forebay: shards/set-00000-of-00001.fbt: cannot recover the original files from decoded and resized \
        images\n"
    );
    assert!(!dir.path("back").exists());
}

#[test]
fn flags_that_unpacking_has_no_use_for_are_refused() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tar");
    for flag in ["--shard-size 64KiB", "--keep-order", "--seed 3", "--compression gzip", "--size 8", "--dry-run"] {
        let said = dir.refused(&format!("data pack shards back --to files {flag}"));
        let name = flag.split(' ').next().unwrap();
        assert!(said.contains(name), "{flag}: {said}");
    }
    assert!(!dir.path("back").exists());
}
