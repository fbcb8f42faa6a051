//! Files that are not what their name says: each is named with its reason, and the others are used.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran};
use crate::process::is_root;
use crate::record::{self, failures};

const TRUNCATED: &str = "set/class_001/class_001_000000.jpg";
const EMPTY: &str = "set/class_002/class_002_000001.jpg";
const TEXT: &str = "set/class_003/class_003_000003.jpg";
const GARBAGE: &str = "set/class_004/class_004_000004.jpg";
const RENAMED: &str = "set/class_005/class_005_000005.jpg";

/// The usual set with a truncated, an empty, a text, a garbage and a renamed PNG file in it.
fn set_with_bad_files() -> Dir {
    let dir = Dir::with_set();
    dir.edit(TRUNCATED, |bytes| bytes.truncate(700));
    dir.write(EMPTY, "");
    dir.write(TEXT, "hello world\n");
    dir.write(GARBAGE, [0xB0, 0x0A, 0x9C, 0xEE].repeat(700));
    dir.write(RENAMED, png());
    dir
}

/// A PNG of four by four red pixels.
fn png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 4, 4);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&[255, 0, 0].repeat(16)).unwrap();
    writer.finish().unwrap();
    bytes
}

const VERIFIED: &str = "\
4 bad:
  set/class_001/class_001_000000.jpg: jpeg image cannot be decoded: JPEG data ends at byte 700, before the image is complete
  set/class_002/class_002_000001.jpg: empty file
  set/class_003/class_003_000003.jpg: not an image: text file
  set/class_004/class_004_000004.jpg: not an image: begins with \"\\xb0\\n\\x9c\\xee\\xb0\\n\\x9c\\xee\"
set: 20 samples good, 4 bad; 24 files, ";

#[test]
fn verify_names_each_and_exits_with_one() {
    let ran = set_with_bad_files().missed("data verify set");
    assert!(ran.stdout.starts_with(VERIFIED), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn ingest_counts_and_names_them_and_goes_on() {
    let dir = set_with_bad_files();
    let record = record::of(&dir, "set --threads 2 --batch 8 --repeats 1 --warmups 0");
    let cell = &record["cells"][0];
    assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&20.into(), &4.into()));
    let mut named = failures(cell);
    named.sort_unstable();
    let reasons: Vec<(&str, &str)> = named.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (TRUNCATED, "jpeg image cannot be decoded: JPEG data ends at byte 700, before the image is complete"),
            (EMPTY, "not recognised: expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, found an empty file"),
            (
                TEXT,
                "not recognised: expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, found 12 bytes beginning with \"hello wo\""
            ),
            (
                GARBAGE,
                "not recognised: expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, found 2800 bytes beginning with \
             \"\\xb0\\n\\x9c\\xee\\xb0\\n\\x9c\\xee\""
            ),
        ]
    );
}

#[test]
fn ingest_shows_them_under_its_table() {
    let dir = set_with_bad_files();
    let said = dir.met("ingest set --threads 1 --batch 8 --repeats 1 --warmups 0");
    assert!(said.contains("\n  4 samples failed and were left out.\n"), "{said}");
    assert!(
        [TRUNCATED, EMPTY, TEXT, GARBAGE].iter().all(|name| said.contains(&format!("\nnote: failed: {name}: "))),
        "{said}"
    );
}

#[test]
fn packing_tensors_leaves_them_out_and_exits_with_one() {
    let dir = set_with_bad_files();
    let ran = dir.missed("data pack set out --to tensor --size 8");
    assert!(ran.stdout.starts_with("out: 20 samples in 1 tensor shard, "), "{}", ran.stdout);
    assert!(ran.stderr.starts_with("forebay: left out 4 bad inputs:\n"), "{}", ran.stderr);
    for name in [TRUNCATED, EMPTY, TEXT, GARBAGE] {
        assert!(ran.stderr.contains(&format!("\n  {name}: ")), "{name}: {}", ran.stderr);
    }
    assert!(dir.met("data verify out").starts_with("out: 20 samples good, 0 bad"));
    let again = dir.missed("data pack set out --to tensor --size 8");
    assert_eq!(again.stderr, ran.stderr, "a second run does not forget them");
}

#[test]
fn packing_files_as_they_are_leaves_out_what_is_cut_off() {
    let dir = set_with_bad_files();
    for to in ["tfrecord", "tar"] {
        let ran = dir.missed(&format!("data pack set {to} --to {to}"));
        assert!(ran.stderr.contains(&format!("\n  {TRUNCATED}: jpeg image cannot be decoded: ")), "{}", ran.stderr);
        assert!(dir.met(&format!("data verify {to}")).starts_with(&format!("{to}: 20 samples good, 0 bad")));
    }
}

#[test]
fn pipes_devices_and_dangling_links_are_named_and_never_waited_for() {
    let dir = Dir::with_set();
    let class = dir.path("set/class_003");
    assert!(std::process::Command::new("mkfifo").arg(class.join("pipe.jpg")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", class.join("zero.jpg")).unwrap();
    std::os::unix::fs::symlink("nowhere", class.join("link.jpg")).unwrap();
    let said = dir.missed("data verify set").stdout;
    assert!(said.starts_with("3 bad:\n  set/class_003/link.jpg: no such file\n"), "{said}");
    for name in ["pipe", "zero"] {
        assert!(said.contains(&format!("\n  set/class_003/{name}.jpg: ")), "{said}");
    }
    let cell = record::cell_of(&dir, "set --threads 2 --repeats 1 --warmups 0");
    assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&24.into(), &3.into()));
    assert!(dir.refused("data inspect set/class_003/pipe.jpg").contains("not a regular file"));
}

#[test]
fn strict_packing_stops_at_the_first_of_them() {
    let dir = set_with_bad_files();
    for to in ["tfrecord", "tar", "tensor"] {
        let said = dir.refused(&format!("data pack set {to} --to {to} --strict --keep-order --threads 1"));
        assert!(said.starts_with(&format!("forebay: bad input: {TRUNCATED}: ")), "{said}");
        assert_eq!(dir.names(to), [] as [&str; 0], "nothing that looks whole");
    }
}

#[test]
fn when_all_files_are_bad_ingest_cannot_run_and_says_why() {
    let dir = Dir::new();
    dir.write("set/a.jpg", "");
    dir.write("set/b.jpg", "");
    let said = dir.refused("ingest set --threads 1 --repeats 1 --json record.json");
    let tail = ".jpg: not recognised: expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, found an empty file\n";
    assert!(said.starts_with("forebay: none of 2 samples could be used; the first: set/"), "{said}");
    assert!(said.ends_with(tail), "{said}");
    assert!(!dir.path("record.json").exists(), "an empty file is no record");
}

#[test]
fn a_list_with_a_missing_path_names_it() {
    let dir = Dir::with_set();
    dir.write("list.txt", "set/class_003/class_003_000003.jpg 3\nset/gone.jpg 1\n");
    let ran = dir.missed("data verify list.txt");
    assert!(ran.stdout.starts_with("1 bad:\n  set/gone.jpg: no such file\nlist.txt: 1 sample good, 1 bad"), "{ran:?}");
    let ran = dir.missed("data pack list.txt out --to tar");
    assert_eq!(ran.stderr, "forebay: left out 1 bad input:\n  set/gone.jpg: no such file\n");
    let said = dir.met("data inspect list.txt");
    assert!(said.ends_with("\n1 bad:\n  set/gone.jpg: no such file\n"), "{said}");
    for flags in ["", "--cold", "--io uring", "--io auto", "--readers 1", "--read-only"] {
        let record = record::of(&dir, &format!("list.txt --threads 1 --repeats 1 --warmups 0 {flags}"));
        let cell = &record["cells"][0];
        assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&1.into(), &1.into()), "{flags}");
        let (name, reason) = &failures(cell)[0];
        assert!(name == "set/gone.jpg" && reason.ends_with("no such file or folder"), "{name}: {reason}");
    }
}

/// Runs as somebody who is not root, who may read every file.
pub(crate) fn run_without_rights(dir: &Dir, line: &str) -> Option<Ran> {
    let mut command = dir.command(line);
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        Ok(output) => Some(output.into()),
        Err(error) => {
            not_run(Reason::NoOtherUser, error);
            None
        }
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named_and_the_others_are_used() {
    let dir = Dir::with_set();
    let set_mode = |name: &str, mode| {
        std::fs::set_permissions(dir.path(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode("", 0o755);
    set_mode(GARBAGE, 0o000);
    let Some(ran) = run_without_rights(&dir, "data verify set") else { return };
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.starts_with(&format!("1 bad:\n  {GARBAGE}: permission denied\nset: 23 ")), "{}", ran.stdout);
    for flags in ["--warm", "--cold", "--io auto"] {
        let line = format!("ingest set --threads 1 --repeats 1 --warmups 0 --json - {flags}");
        let Some(ran) = run_without_rights(&dir, &line) else { return };
        assert_eq!(ran.code, Some(0), "{flags}: {ran:?}");
        let record: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        let cell = &record["cells"][0];
        assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&23.into(), &1.into()), "{flags}");
        let (name, reason) = &failures(cell)[0];
        assert!(name == GARBAGE && reason.ends_with("permission denied"), "{flags}: {name}: {reason}");
    }
}
