//! Checkpoints that TensorFlow and safetensors wrote, with what they hold in `expected.tsv`; see `golden/make.py`.

use std::collections::BTreeMap;
use std::path::Path;

use forebay_checkpoint::format::{Files, named, recognise};
use forebay_checkpoint::{Dtype, Header};

use super::{State, read, write};

fn golden() -> Files {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(dir).expect("is in the repository").map(|entry| entry.expect("can be listed"));
    let name = |entry: &std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| (name(&entry), std::fs::read(entry.path()).expect("can be read"))).collect()
}

/// What each checkpoint holds, by the file that opens it.
fn expected() -> BTreeMap<String, Vec<(Header, Vec<u8>)>> {
    let text = String::from_utf8(golden().remove("expected.tsv").expect("is there")).expect("is text");
    let mut expected: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for line in text.lines() {
        let [file, name, dtype, shape, hex] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("five columns: {line}")
        };
        let shape = shape.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().expect("a number")).collect();
        let bytes = hex.as_bytes().chunks(2).map(|pair| {
            u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("a hexadecimal number")
        });
        let header = Header { name: name.to_owned(), dtype: dtype_named(dtype), shape };
        expected.entry(file.to_owned()).or_default().push((header, bytes.collect()));
    }
    expected
}

fn dtype_named(name: &str) -> Dtype {
    match name {
        "bool" => Dtype::Bool,
        "uint8" => Dtype::U8,
        "int8" => Dtype::I8,
        "uint16" => Dtype::U16,
        "int16" => Dtype::I16,
        "float16" => Dtype::F16,
        "bfloat16" => Dtype::Bf16,
        "uint32" => Dtype::U32,
        "int32" => Dtype::I32,
        "float32" => Dtype::F32,
        "uint64" => Dtype::U64,
        "int64" => Dtype::I64,
        "float64" => Dtype::F64,
        "complex64" => Dtype::C64,
        "float8_e5m2" => Dtype::F8E5m2,
        "float8_e4m3fn" => Dtype::F8E4m3,
        _ => panic!("no type is named {name}"),
    }
}

#[test]
fn their_checkpoints_hold_what_they_say() {
    let files = golden();
    let expected = expected();
    assert_eq!(expected.len(), 6);
    for (file, tensors) in expected {
        let (format, stem) = recognise(&file).expect("is a checkpoint");
        let state = read(format, stem, &files).expect("their own library wrote it");
        let notes = match file.as_str() {
            "every.safetensors" => [("step", "20"), ("größe", "ä\n")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            _ => BTreeMap::new(),
        };
        assert_eq!(state.sorted(), State { tensors, notes }.sorted(), "{file}");
    }
}

#[test]
fn our_bundle_has_the_bytes_of_tensorflows() {
    let tensors = expected().remove("every.index").expect("is there");
    let bundle = named("tensorflow").expect("is in the table");
    let ours = write(bundle, &State { tensors, notes: BTreeMap::new() }, 64);
    let theirs = golden();
    for extension in ["index", "data-00000-of-00001"] {
        assert_eq!(ours[&format!("model.{extension}")], theirs[&format!("every.{extension}")], "{extension}");
    }
}

#[test]
fn tensors_of_strings_are_read() {
    let bundle = named("tensorflow").expect("is in the table");
    let files = golden();
    let catalog = bundle.open("strings", &files).expect("TensorFlow wrote it");
    let [text] = &catalog.strings[..] else { panic!("one tensor of strings: {:?}", catalog.strings) };
    assert_eq!((text.name.as_str(), &text.shape[..]), ("text", &[2, 2][..]));
    assert_eq!(text.values, [b"a".to_vec(), Vec::new(), "größe".as_bytes().to_vec(), vec![b'x'; 130]]);
    let objects = bundle.open("objects", &files).expect("TensorFlow wrote it");
    let names: Vec<&str> = objects.strings.iter().map(|strings| strings.name.as_str()).collect();
    assert_eq!(names, ["_CHECKPOINTABLE_OBJECT_GRAPH"]);
}

#[test]
fn slices_are_refused_by_the_name_of_their_variable() {
    let bundle = named("tensorflow").expect("is in the table");
    let said = bundle.open("sliced", &golden()).expect_err("is in slices").to_string();
    assert_eq!(said, "sliced.index: not supported: variable \"w\" in 2 slices");
}

#[test]
fn shards_are_listed() {
    let bundle = named("tensorflow").expect("is in the table");
    let catalog = bundle.open("shards", &golden()).expect("TensorFlow wrote it");
    assert_eq!(catalog.files, ["shards.index", "shards.data-00000-of-00002", "shards.data-00001-of-00002"]);
}
