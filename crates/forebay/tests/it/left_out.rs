//! Images of every supported format are samples; what is left out of a folder is counted by kind and said.

use serde_json::Value;

use crate::dir::{Dir, found};
use crate::record;

const AVIF: &[u8] = b"\0\0\0\x10ftypavif\0\0\0\0";
/// Five by six pixels, as libwebp writes them.
const WEBP: &[u8] = b"RIFFH\0\0\0WEBPVP8 \x3c\0\0\0\xb0\x01\0\x9d\x01\x2a\x05\0\x06\0\x01\x40\x26\x25\xa8\x02\x74\x01\x0e\xbb\
    \x04\x80\0\xfe\xfb\x27\x30\x63\x0e\x98\x11\x91\x84\x3d\x46\x40\xcb\x6a\xc2\x0e\x75\xdf\xf7\xe0\x85\x77\x4f\x1d\x5f\xa8\
    \x5c\x3f\xf6\x2f\xe5\x96\xef\x80\0\0";
/// Five by six pixels, as Pillow writes them.
const GIF: &[u8] =
    b"GIF89a\x05\0\x06\0\x82\0\0\x78\xb4\x96\x78\x78\x78\x14\xb4\x64\x14\x78\x46\x50\x50\x50\x8c\x14\x50\x50\x14\
    \x32\x14\x14\x14\x21\xf9\x04\x01\0\0\x03\0\x2c\0\0\0\0\x05\0\x06\0\0\x08\x1d\0\x0f\x1c\x30\x50\xa0\x80\x40\x82\
    \x05\x06\x10\x58\x18\x60\xc0\x80\0\x10\x05\x08\0\x40\x51\x22\x45\0\x01\x01\0\x3b";

/// Two pixels of one row: blue, then red.
fn bitmap() -> Vec<u8> {
    let mut bytes = vec![0; 62];
    bytes[..2].copy_from_slice(b"BM");
    for (at, value) in [(2, 62_u32), (10, 54), (14, 40), (18, 2), (22, 1), (26, 1 | 24 << 16), (34, 8)] {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes[54..60].copy_from_slice(&[255, 0, 0, 0, 0, 255]);
    bytes
}

/// A WebP, a GIF and a bitmap among three AVIF images, an archive, a note and a hidden file.
fn mixed() -> Dir {
    let dir = Dir::new();
    dir.write("set/a/1.webp", WEBP);
    dir.write("set/a/2.GIF", GIF);
    dir.write("set/b/3.bmp", bitmap());
    dir.write("set/b/4.avif", AVIF);
    dir.write("set/b/5.avif", AVIF);
    dir.write("set/b/unnamed", AVIF);
    dir.write("set/archive.zip", b"PK\x03\x04");
    dir.write("set/README.md", "text");
    dir.write("set/.hidden", AVIF);
    dir
}

const NOTE: &str = "4 files left out: 3 AVIF images (not supported), 1 other file (archive.zip)";

#[test]
fn every_command_says_what_was_left_out() {
    let dir = mixed();
    let record = record::of(&dir, "set --threads 1 --batch 8 --repeats 1 --warmups 0");
    assert_eq!(record["cells"][0]["samples"][0]["images"], 3);
    assert_eq!(record::notes(&record), [NOTE]);
    for line in ["data verify set", "data inspect set"] {
        assert!(dir.met(line).ends_with(&format!("note: {NOTE}\n")), "{line}");
        assert_eq!(found(&dir.met(&format!("{line} --json -")))["notes"], Value::from(vec![NOTE]), "{line}");
    }
    for line in ["data decode set --to set.npy", "data pack set tar --to tar", "data pack set dry --to tar --dry-run"] {
        let ran = dir.run(line);
        assert_eq!((ran.code, ran.stderr), (Some(0), format!("note: {NOTE}\n")), "{line}");
    }
    let said = dir.met("train set --accelerator emulated:1ms --batch 1 --steps 2");
    assert!(said.contains(&format!("note: {NOTE}\n")), "{said}");
}

#[test]
fn unpacking_says_what_lies_beside_the_shards() {
    let dir = mixed();
    assert_eq!(dir.run("data pack set tar --to tar").code, Some(0));
    dir.write("tar/archive.zip", b"PK\x03\x04");
    let ran = dir.run("data pack tar back --to files");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "note: 1 file left out: 1 other file (archive.zip)\n"));
    assert!(ran.stdout.starts_with("back: 3 files"), "{}", ran.stdout);
}

#[test]
fn a_folder_of_unsupported_images_alone_says_so() {
    let dir = Dir::new();
    dir.write("set/1.avif", AVIF);
    dir.write("set/2.jxl", b"\xff\x0a");
    let note = "2 files left out: 1 AVIF image (not supported), 1 JPEG XL image (not supported)\n";
    for line in ["ingest set", "data verify set", "data inspect set", "data pack set out --to tar"] {
        let said = dir.refused(line);
        assert!(said.ends_with(note), "{line}: {said}");
    }
}

#[test]
fn a_single_file_says_what_it_is() {
    let dir = Dir::new();
    dir.write("a.avif", AVIF);
    dir.write("b.zip", b"PK\x03\x04\x14\0\0\0\0\0");
    assert_eq!(dir.refused("ingest a.avif"), "forebay: a.avif: AVIF is not supported\n");
    let said = dir.refused("data decode b.zip --to b.npy");
    let wanted = "forebay: b.zip: expected images, a shard or a list, found zip data\n\
                  hint: unpack it first, for example with `unzip`\n";
    assert_eq!(said, wanted);
    dir.write("c", b"%PDF-1.7\n\x93\x8c\x8b\x9e\0\n");
    let said = dir.refused("ingest c");
    assert_eq!(said, "forebay: c: expected images, a shard or a list, found a PDF document\n");
    assert!(dir.missed("data verify a.avif").stdout.starts_with("1 bad:\n  a.avif: AVIF is not supported\n"));
}

#[test]
fn an_unsupported_image_by_a_supported_name_is_a_bad_sample() {
    let dir = mixed();
    dir.write("set/a/photo.jpg", AVIF);
    let said = dir.missed("data verify set").stdout;
    assert!(said.starts_with("1 bad:\n  set/a/photo.jpg: AVIF is not supported\nset: 3 samples good, 1 bad"), "{said}");
    let record = record::of(&dir, "set --threads 1 --repeats 1 --warmups 0");
    let failed = record::failures(&record["cells"][0]);
    assert_eq!(failed, [("set/a/photo.jpg".to_owned(), "AVIF is not supported".to_owned())]);
}

#[test]
fn new_formats_are_inspected_packed_and_unpacked_like_others() {
    let dir = mixed();
    let json = found(&dir.met("data inspect set --json -"));
    assert_eq!(json["sample_formats"], serde_json::json!({ "bmp": 1, "gif": 1, "webp": 1 }));
    assert_eq!(json["classes"].as_array().unwrap().len(), 2);
    for to in ["tfrecord", "tar"] {
        assert_eq!(dir.run(&format!("data pack set {to} --to {to}")).code, Some(0));
        assert!(dir.met(&format!("data verify {to}")).starts_with(&format!("{to}: 3 samples good, 0 bad")));
        dir.met(&format!("data pack {to} back-{to} --to files"));
        let back = dir.tree(&format!("back-{to}"));
        for name in ["a/1.webp", "a/2.GIF", "b/3.bmp"] {
            assert_eq!(back.get(name), Some(&dir.read(&format!("set/{name}"))), "{to}: {name}");
        }
        let cell = record::cell_of(&dir, &format!("{to} --threads 1 --repeats 1 --warmups 0"));
        assert_eq!((&cell["samples"][0]["images"], &cell["failed_samples"]), (&3.into(), &0.into()), "{to}");
    }
    let shard = dir.tree("tfrecord").into_iter().find(|(name, _)| name.ends_with(".tfrecord")).unwrap().1;
    let has = |name: &[u8]| shard.windows(name.len()).any(|window| window == name);
    assert!([&b"WEBP"[..], b"GIF", b"BMP"].iter().all(|name| has(name)), "image/format is written");
}

#[test]
fn a_damaged_image_of_a_new_format_is_a_bad_sample() {
    let dir = mixed();
    dir.edit("set/a/1.webp", |bytes| bytes.truncate(60));
    dir.edit("set/a/2.GIF", |bytes| bytes.truncate(80));
    dir.edit("set/b/3.bmp", |bytes| bytes.truncate(57));
    let said = dir.missed("data verify set").stdout;
    assert!(said.starts_with("3 bad:\n"), "{said}");
    for to in ["tfrecord", "tar", "tensor"] {
        let ran = dir.missed(&format!("data pack set {to} --to {to}"));
        assert!(ran.stderr.contains("left out 3 bad inputs"), "{to}: {}", ran.stderr);
    }
    let said = dir.met("data inspect set");
    assert!(said.contains("\n3 bad:\n"), "{said}");
}

#[test]
fn the_pixels_of_a_bitmap_are_those_it_holds() {
    let dir = Dir::new();
    dir.write("a.bmp", bitmap());
    dir.met("data decode a.bmp --to a.npy --size 2x1 --dtype u8");
    assert_eq!(dir.read("a.npy")[128..], [0, 0, 255, 255, 0, 0]);
}
