//! Image and label found in records of several conventions.

use super::*;

const JPEG: &[u8] = b"\xff\xd8\xff\xe0 a photograph";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n a drawing";

fn keys(payload: &[u8]) -> Result<Keys, Error> {
    Keys::decide(payload, &KeyNames::default())
}

fn named(image: Option<&str>, label: Option<&str>) -> KeyNames {
    KeyNames { image: image.map(str::to_owned), label: label.map(str::to_owned) }
}

fn refusal(payload: &[u8], given: &KeyNames) -> String {
    Keys::decide(payload, given).unwrap_err().to_string()
}

/// A record as TFDS writes it.
fn tfds(label: i64) -> ExampleWriter {
    ExampleWriter::new()
        .bytes("image", &[JPEG])
        .bytes("file_name", &[b"cats/1.jpg"])
        .ints("label", &[label])
        .ints("objects/area", &[3, 4])
        .floats("objects/bbox", &[0.0, 0.5, 1.0, 1.0])
}

#[test]
fn tfds_names_and_the_research_names_are_found_with_the_better_name_first() {
    let payload = tfds(7).finish();
    let found = keys(&payload).unwrap();
    assert_eq!((found.image(), found.label(), found.note()), (Some("image"), Some("label"), None));
    assert_eq!(found.read(&payload).unwrap(), ImageRecord { image: JPEG, label: Some(7) });
    let both = tfds(7).bytes("image/encoded", &[PNG]).ints("image/class/label", &[9]).finish();
    assert_eq!(keys(&both).unwrap().read(&both).unwrap(), ImageRecord { image: PNG, label: Some(9) });
}

#[test]
fn a_single_image_and_a_single_number_are_taken_whatever_their_names() {
    let payload = ExampleWriter::new().bytes("photo", &[JPEG]).bytes("text", &[b"a cat"]).ints("species", &[4]);
    let payload = payload.ints("photo/height", &[20]).ints("record_id", &[99]).finish();
    let found = keys(&payload).unwrap();
    assert_eq!((found.image(), found.label()), (Some("photo"), Some("species")));
    assert_eq!(found.note(), Some("labels are read from the feature `species`"));
    assert_eq!(found.read(&payload).unwrap(), ImageRecord { image: JPEG, label: Some(4) });
}

#[test]
fn several_images_without_a_common_name_are_refused_with_their_names() {
    let payload = ExampleWriter::new().bytes("left", &[JPEG]).bytes("right", &[PNG]).finish();
    assert_eq!(refusal(&payload, &KeyNames::default()), "several features hold images: left, right");
    let found = Keys::decide(&payload, &named(Some("right"), None)).unwrap();
    assert_eq!(found.read(&payload).unwrap().image, PNG);
}

#[test]
fn several_labels_without_a_common_name_are_unknown_with_a_note() {
    let payload = ExampleWriter::new().bytes("image", &[JPEG]).ints("breed", &[1]).ints("species", &[2]).finish();
    let found = keys(&payload).unwrap();
    assert_eq!(found.read(&payload).unwrap().label, None);
    let note = "labels are unknown: several features could hold them (breed, species); pass --label-key NAME";
    assert_eq!(found.note(), Some(note));
    let found = Keys::decide(&payload, &named(None, Some("breed"))).unwrap();
    assert_eq!((found.read(&payload).unwrap().label, found.note()), (Some(1), None));
}

#[test]
fn a_given_name_that_is_missing_or_of_another_type_is_refused_with_what_is_there() {
    let payload = tfds(7).finish();
    let there = "features found: file_name (bytes: 10 bytes beginning with \"cats/1.j\"), image (bytes: an image), \
                 label (int64), objects/area (2 int64), objects/bbox (4 float)";
    assert_eq!(refusal(&payload, &named(Some("img"), None)), format!("no feature `img`; {there}"));
    assert_eq!(refusal(&payload, &named(None, Some("y"))), format!("no feature `y`; {there}"));
    let said = refusal(&payload, &named(Some("label"), None));
    assert_eq!(said, format!("feature `label`: expected bytes, found int64; {there}"));
    let said = refusal(&payload, &named(None, Some("objects/area")));
    assert_eq!(said, format!("feature `objects/area`: expected one int64, found 2 int64; {there}"));
    let said = refusal(JPEG, &named(Some("image"), None));
    assert_eq!(said, "no feature `image`: the record is an image file; features found: none");
}

#[test]
fn an_example_without_an_image_lists_its_features_and_a_sequence_example_its_sequences() {
    let text = ExampleWriter::new().bytes("text", &[b"%PDF-1."]).ints("n", &[1, 2]).finish();
    let wanted = "no feature holds an image that can be decoded; features found: n (2 int64), text (bytes: ";
    assert!(refusal(&text, &KeyNames::default()).starts_with(wanted), "{}", refusal(&text, &KeyNames::default()));
    let avif = ExampleWriter::new().bytes("image", &[b"\0\0\0\x10ftypavif\0\0\0\0"]).finish();
    assert!(refusal(&avif, &KeyNames::default()).ends_with("features found: image (bytes: AVIF is not supported)"));
    // A sequence example is { context = 1, feature_lists = 2 }, and both are maps from names.
    let mut lists = ExampleWriter::new().ints("frames", &[1]).finish();
    lists[0] = 2 << 3 | 2;
    let sequence = [&lists[..], &ExampleWriter::new().ints("length", &[3]).finish()].concat();
    let wanted = "no feature holds an image that can be decoded; features found: length (int64), and the \
    tf.SequenceExample sequences frames, which are not supported";
    assert_eq!(refusal(&sequence, &KeyNames::default()), wanted);
    let with_image = [&lists[..], &ExampleWriter::new().bytes("image/data", &[JPEG]).finish()].concat();
    assert_eq!(keys(&with_image).unwrap().read(&with_image).unwrap().image, JPEG);
}

#[test]
fn a_payload_that_is_no_message_is_said_to_be_none() {
    let wanted = "not recognised: expected an image file or a tf.Example, found 7 bytes beginning with \"payload\"";
    assert_eq!(refusal(b"payload", &KeyNames::default()), wanted);
}

#[test]
fn a_record_that_is_an_image_file_is_that_image() {
    let found = keys(JPEG).unwrap();
    assert_eq!(found.read(JPEG).unwrap(), ImageRecord { image: JPEG, label: None });
    // Records of both kinds may lie side by side.
    assert_eq!(found.read(&tfds(3).finish()).unwrap(), ImageRecord { image: JPEG, label: Some(3) });
    assert_eq!(keys(&tfds(3).finish()).unwrap().read(PNG).unwrap().image, PNG);
}

#[test]
fn a_record_with_other_names_than_the_first_is_judged_by_itself_unless_a_name_is_given() {
    let found = keys(&tfds(7).finish()).unwrap();
    let other = ExampleWriter::new().bytes("image/encoded", &[PNG]).ints("image/class/label", &[5]).finish();
    assert_eq!(found.read(&other).unwrap(), ImageRecord { image: PNG, label: Some(5) });
    let given = Keys::decide(&tfds(7).finish(), &named(Some("image"), Some("label"))).unwrap();
    assert!(given.read(&other).unwrap_err().to_string().starts_with("no feature `image`; features found: "));
    let unlabelled = ExampleWriter::new().bytes("image", &[PNG]).finish();
    assert_eq!(given.read(&unlabelled).unwrap(), ImageRecord { image: PNG, label: None });
}

#[test]
fn a_label_that_the_first_record_lacks_is_found_in_those_that_have_it() {
    let first = ExampleWriter::new().bytes("image", &[JPEG]).finish();
    let found = keys(&first).unwrap();
    assert_eq!((found.label(), found.read(&tfds(6).finish()).unwrap().label), (None, Some(6)));
}

#[test]
fn the_first_record_that_shows_the_features_decides() {
    let (text, image) = (ExampleWriter::new().bytes("text", &[b"a cat"]).finish(), tfds(1).finish());
    let found = Keys::decide_first([&text, &image], &KeyNames::default()).unwrap();
    assert_eq!(found.image(), Some("image"));
    assert_eq!(Keys::decide_first([&text], &KeyNames::default()).unwrap(), Keys::default());
    assert!(Keys::decide_first([&text, &image], &named(Some("image"), None)).is_ok());
    assert!(Keys::decide_first([&text, &image], &named(Some("img"), None)).is_err());
    let none: [&[u8]; 0] = [];
    assert!(Keys::decide_first(none, &named(Some("img"), None)).is_ok(), "nothing is known, and nothing refused");
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..100)) {
        let _ = keys(&bytes);
        let _ = keys(&tfds(1).finish()).unwrap().read(&bytes);
    }
}
