//! Examples as TensorFlow writes them, round trips, and damage.

use super::*;
use crate::image::ImageKind;
use proptest::prelude::*;

fn sample() -> Vec<u8> {
    ExampleWriter::new().bytes("b", &[b"xy", b""]).floats("f", &[1.5, -2.0]).ints("i", &[-1, 300]).finish()
}

/// Serialised by TensorFlow 2.21 with `SerializeToString(deterministic=True)`: b = [b"xy", b""], f = [1.5, -2.0],
/// i = [-1, 300].
const GOLDEN: &[u8] = b"\x0a\x39\
    \x0a\x0d\x0a\x01b\x12\x08\x0a\x06\x0a\x02xy\x0a\x00\
    \x0a\x11\x0a\x01f\x12\x0c\x12\x0a\x0a\x08\x00\x00\xc0\x3f\x00\x00\x00\xc0\
    \x0a\x15\x0a\x01i\x12\x10\x1a\x0e\x0a\x0c\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02";

/// Likewise, with empty lists of bytes and floats and a feature without a list.
const GOLDEN_EMPTY: &[u8] =
    b"\x0a\x19\x0a\x07\x0a\x01b\x12\x02\x0a\x00\x0a\x07\x0a\x01f\x12\x02\x12\x00\x0a\x05\x0a\x01i\x12\x00";

#[test]
fn a_message_is_written_as_tensorflow_writes_it() {
    assert_eq!(sample(), GOLDEN);
    let empty = ExampleWriter::new().bytes("b", &[]).floats("f", &[]).feature("i", &Feature::Unset);
    assert_eq!(empty.finish(), GOLDEN_EMPTY);
}

#[test]
fn a_message_of_tensorflow_is_read() {
    let example = Example::parse(GOLDEN).unwrap();
    assert_eq!(example.features().len(), 3);
    assert_eq!(example.get("b"), Some(&Feature::Bytes(vec![b"xy", b""])));
    assert_eq!(example.get("f"), Some(&Feature::Floats(vec![1.5, -2.0])));
    assert_eq!(example.get("i"), Some(&Feature::Ints(vec![-1, 300])));
    assert_eq!(example.get("j"), None);
}

/// Wraps a feature's body as the example { f: body }.
fn with_body(body: &[u8]) -> Vec<u8> {
    let (mut entry, mut features, mut out) = (Vec::new(), Vec::new(), Vec::new());
    wire::put_message(&mut entry, 1, b"f");
    wire::put_message(&mut entry, 2, body);
    wire::put_message(&mut features, 1, &entry);
    wire::put_message(&mut out, 1, &features);
    out
}

#[test]
fn unpacked_numbers_are_read_like_packed_ones() {
    let ints = with_body(&[0x1a, 4, 0x08, 7, 0x08, 9]);
    assert_eq!(Example::parse(&ints).unwrap().get("f"), Some(&Feature::Ints(vec![7, 9])));
    let floats = with_body(&[0x12, 5, 0x0d, 0, 0, 0x80, 0x3f]);
    assert_eq!(Example::parse(&floats).unwrap().get("f"), Some(&Feature::Floats(vec![1.0])));
}

#[test]
fn of_several_lists_in_a_feature_the_last_kind_counts() {
    let ints = [0x1a, 2, 0x08, 7];
    let bytes = [0x0a, 3, 0x0a, 1, b'z'];
    let both = with_body(&[&ints[..], &bytes, &ints, &ints].concat());
    assert_eq!(Example::parse(&both).unwrap().get("f"), Some(&Feature::Ints(vec![7, 7])));
    let view = find(&both, "f").unwrap().unwrap();
    assert_eq!(view.kind(), Some(FeatureKind::Ints));
    assert_eq!(view.first_int().unwrap(), Some(7));
    assert_eq!(view.first_bytes().unwrap(), None);
}

#[test]
fn of_two_features_with_one_name_the_last_counts() {
    let twice = [ExampleWriter::new().ints("f", &[1]).finish(), ExampleWriter::new().ints("f", &[2]).finish()].concat();
    assert_eq!(find(&twice, "f").unwrap().unwrap().first_int().unwrap(), Some(2));
    let example = Example::parse(&twice).unwrap();
    assert_eq!(example.features().collect::<Vec<_>>(), [("f", &Feature::Ints(vec![2]))]);
}

#[test]
fn a_feature_without_a_list_is_unset() {
    assert_eq!(Example::parse(&with_body(&[])).unwrap().get("f"), Some(&Feature::Unset));
}

#[test]
fn a_name_that_is_not_text_is_refused_with_its_offset() {
    let mut bytes = ExampleWriter::new().ints("f", &[1]).finish();
    let at = bytes.iter().position(|&byte| byte == b'f').unwrap();
    bytes[at] = 0xff;
    assert!(matches!(Example::parse(&bytes), Err(Error::Invalid { offset, .. }) if offset == at as u64));
}

#[test]
fn an_image_example_round_trips_and_leaves_unknown_fields_out() {
    let full = ImageExample {
        encoded: b"jpeg",
        format: Some(ImageKind::Png),
        label: Some(-4),
        filename: Some(b"a/\xff.png"),
        height: Some(3),
        width: Some(5),
    };
    assert_eq!(ImageExample::parse(&full.to_bytes()).unwrap(), full);
    let bare = ImageExample { encoded: b"", ..Default::default() };
    assert_eq!(ImageExample::parse(&bare.to_bytes()).unwrap(), bare);
    assert_eq!(Example::parse(&bare.to_bytes()).unwrap().features().len(), 1);
}

#[test]
fn an_example_without_an_image_says_which_feature_is_missing() {
    let text = ImageExample::parse(&sample()).unwrap_err().to_string();
    assert!(text.contains("image/encoded"), "{text}");
}

#[derive(Debug, Clone)]
enum Owned {
    Bytes(Vec<Vec<u8>>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

impl Owned {
    fn feature(&self) -> Feature<'_> {
        match self {
            Self::Bytes(values) => Feature::Bytes(values.iter().map(Vec::as_slice).collect()),
            Self::Floats(values) => Feature::Floats(values.clone()),
            Self::Ints(values) => Feature::Ints(values.clone()),
        }
    }
}

fn owned() -> impl Strategy<Value = Owned> {
    use proptest::collection::vec;
    prop_oneof![
        vec(vec(any::<u8>(), 0..200), 0..4).prop_map(Owned::Bytes),
        vec(-1e30_f32..1e30, 0..4).prop_map(Owned::Floats),
        vec(any::<i64>(), 0..4).prop_map(Owned::Ints),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_written_is_read_back(features in proptest::collection::btree_map("[a-z]{0,5}", owned(), 0..5)) {
        let writer = features.iter().fold(ExampleWriter::new(), |writer, (name, value)| writer.feature(name, &value.feature()));
        let bytes = writer.finish();
        let example = Example::parse(&bytes).unwrap();
        prop_assert_eq!(example.features().len(), features.len());
        for (name, value) in &features {
            prop_assert_eq!(example.get(name), Some(&value.feature()));
            prop_assert_eq!(find(&bytes, name).unwrap().unwrap().to_feature().unwrap(), value.feature());
        }
    }

    #[test]
    fn a_truncated_message_is_an_error(value in owned()) {
        let bytes = ExampleWriter::new().feature("name", &value.feature()).finish();
        for cut in 1..bytes.len() {
            prop_assert!(Example::parse(&bytes[..cut]).is_err(), "cut at {}", cut);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let _ = Example::parse(&bytes);
        let _ = ImageExample::parse(&bytes);
    }
}
