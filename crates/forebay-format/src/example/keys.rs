//! Which features of a record hold its image and its label.
//!
//! TensorFlow prescribes no names: its own research code writes `image/encoded` and `image/class/label`, TFDS writes
//! `image` and `label`, and others use their own names. So the features are found by content and type in the first
//! record, common names first, and looked up by name in all other records without allocating. In a record without a
//! feature of that name, they are searched for again. A record may also be a bare image file.

use super::wire::Slice;
use super::{Example, Feature, FeatureView, each_entry, sequence_names};
use crate::{Error, image};

/// Names of image features, the most specific first.
const IMAGE_NAMES: [&str; 12] = [
    "image/encoded",
    "image",
    "image_raw",
    "jpg",
    "jpeg",
    "png",
    "encoded",
    "image/data",
    "image_bytes",
    "image/raw",
    "img",
    "image_encoded",
];
/// Names of label features, the most specific first.
const LABEL_NAMES: [&str; 5] = ["image/class/label", "label", "class", "labels", "fine_label"];
/// Last parts of names that are never a label.
const NO_LABELS: [&str; 8] = ["height", "width", "depth", "channels", "id", "index", "rows", "cols"];
/// Number of records examined before giving up.
const LOOKED_AT: usize = 16;
/// A message names at most this many features.
const NAMED: usize = 12;

/// Feature names known to the caller; `None` means to search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyNames {
    pub image: Option<String>,
    pub label: Option<String>,
}

impl KeyNames {
    /// Whether the labels may be forebay's own, in which case the class names in the file next to the shard apply.
    pub fn has_usual_label(&self) -> bool {
        self.label.as_deref().is_none_or(|name| name == LABEL_NAMES[0])
    }

    pub fn is_empty(&self) -> bool {
        self.image.is_none() && self.label.is_none()
    }
}

/// The features that hold image and label, found in the first record.
///
/// ```
/// use forebay_format::example::{ExampleWriter, KeyNames, Keys};
///
/// let jpeg = b"\xff\xd8\xff\xe0 and so on";
/// let payload = ExampleWriter::new().bytes("image", &[jpeg]).ints("label", &[7]).finish();
/// let keys = Keys::decide(&payload, &KeyNames::default())?;
/// let record = keys.read(&payload)?;
/// assert_eq!((record.image, record.label), (&jpeg[..], Some(7)));
/// # Ok::<(), forebay_format::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    given: KeyNames,
    image: Option<String>,
    label: Option<String>,
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageRecord<'a> {
    pub image: &'a [u8],
    pub label: Option<i64>,
}

impl Keys {
    /// Finds the features in one record.
    ///
    /// # Errors
    /// When the record has no image, has several of which none has a common name, or lacks a given feature of the right
    /// type.
    pub fn decide(payload: &[u8], given: &KeyNames) -> Result<Self, Error> {
        let undecided = Self { given: given.clone(), ..Self::default() };
        if image::sniff(payload).is_some() {
            return match given.image.as_ref().or(given.label.as_ref()) {
                None => Ok(undecided),
                Some(name) => Err(no_feature(format!("no feature `{name}`: the record is an image file"), "none")),
            };
        }
        let example = Example::parse(payload).map_err(|error| not_an_example(payload, error))?;
        let image = match &given.image {
            Some(name) => given_feature(&example, payload, name, "bytes", is_bytes),
            None => find_image(&example, payload),
        }?;
        let (label, note) = match &given.label {
            Some(name) => (given_feature(&example, payload, name, "one int64", is_one_int).map(Some)?, None),
            None => find_label(&example),
        };
        Ok(Self { image: Some(image.to_owned()), label: label.map(str::to_owned), note, ..undecided })
    }

    /// Finds the features in the first record that has them. [`read`](Self::read) reports records without an image one by
    /// one, unless names are given: then at least one of the first records must have them.
    ///
    /// # Errors
    /// When a record has several images of which none has a common name, or none of the first records has a given feature
    /// of the right type.
    pub fn decide_first<P: AsRef<[u8]>>(
        payloads: impl IntoIterator<Item = P>,
        given: &KeyNames,
    ) -> Result<Self, Error> {
        let mut first = None;
        for payload in payloads.into_iter().take(LOOKED_AT) {
            match Self::decide(payload.as_ref(), given) {
                Ok(keys) => return Ok(keys),
                Err(error @ Error::SeveralImages { .. }) => return Err(error),
                Err(error) => first = first.or(Some(error)),
            }
        }
        match first {
            Some(error) if !given.is_empty() => Err(error),
            _ => Ok(Self { given: given.clone(), ..Self::default() }),
        }
    }

    /// The name of the image's feature, if found.
    pub fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }

    /// The name of the label's feature, if found.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// A note for the user about the labels: which feature they come from, or why there are none.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The image and the label of a record. Does not allocate if the record has the image's feature.
    ///
    /// # Errors
    /// When the record has no image, or several candidates.
    pub fn read<'a>(&self, payload: &'a [u8]) -> Result<ImageRecord<'a>, Error> {
        if self.given.is_empty() && image::sniff(payload).is_some() {
            return Ok(ImageRecord { image: payload, label: None });
        }
        if let Ok(Some(record)) = self.look_up(payload) {
            return Ok(record);
        }
        let image_alone = KeyNames { image: self.given.image.clone(), label: None };
        let mut keys = Self::decide(payload, &image_alone)?;
        keys.label = self.given.label.clone().or(keys.label);
        keys.look_up(payload)?.ok_or_else(|| no_feature("no image".to_owned(), "none"))
    }

    /// The features of the decided names, in one pass.
    fn look_up<'a>(&self, payload: &'a [u8]) -> Result<Option<ImageRecord<'a>>, Error> {
        let Some(key) = &self.image else { return Ok(None) };
        let (mut image, mut label) = (None, None);
        let mut rank = LABEL_NAMES.len();
        each_entry(payload, |name: Slice<'a>, body: Slice<'a>| {
            if name.bytes == key.as_bytes() {
                image = Some(body);
            } else if self.is_label(name.bytes, &mut rank) {
                label = Some(body);
            }
            Ok(())
        })?;
        let Some(image) = image.map(FeatureView::new).transpose()?.map_or(Ok(None), |view| view.first_bytes())? else {
            return Ok(None);
        };
        let label = label.map(FeatureView::new).transpose()?.map_or(Ok(None), |view| view.one_int())?;
        Ok(Some(ImageRecord { image, label }))
    }

    /// Whether a feature of this name is the label, or a better candidate than the one of `rank`.
    fn is_label(&self, name: &[u8], rank: &mut usize) -> bool {
        if let Some(key) = &self.label {
            return name == key.as_bytes();
        }
        let better = LABEL_NAMES.iter().position(|known| known.as_bytes() == name).filter(|found| found <= rank);
        better.map(|found| *rank = found).is_some()
    }
}

fn is_bytes(feature: &Feature<'_>) -> bool {
    matches!(feature, Feature::Bytes(values) if !values.is_empty())
}

fn is_one_int(feature: &Feature<'_>) -> bool {
    matches!(feature, Feature::Ints(values) if values.len() == 1)
}

/// The feature of a given name, if it has the right type.
fn given_feature<'a>(
    example: &Example<'a>,
    payload: &[u8],
    name: &'a str,
    expected: &str,
    fits: fn(&Feature<'_>) -> bool,
) -> Result<&'a str, Error> {
    match example.get(name) {
        Some(feature) if fits(feature) => Ok(name),
        Some(feature) => {
            let what = format!("feature `{name}`: expected {expected}, found {}", type_of(feature));
            Err(no_feature(what, &listed(example, payload)))
        }
        None => Err(no_feature(format!("no feature `{name}`"), &listed(example, payload))),
    }
}

fn find_image<'a>(example: &Example<'a>, payload: &[u8]) -> Result<&'a str, Error> {
    let begins_like_one = |feature: &Feature<'_>| match feature {
        Feature::Bytes(values) => values.first().is_some_and(|value| image::sniff(value).is_some()),
        _ => false,
    };
    let found: Vec<&str> = example.features().filter(|(_, of)| begins_like_one(of)).map(|(name, _)| name).collect();
    match (preferred(&found, &IMAGE_NAMES), found.as_slice()) {
        (Some(name), _) => Ok(name),
        (None, [name]) => Ok(*name),
        // The conventional name is trusted; if the bytes are not an image, the decoder reports what they are.
        (None, []) => match example.get(IMAGE_NAMES[0]) {
            Some(feature) if is_bytes(feature) => Ok(IMAGE_NAMES[0]),
            _ => {
                let what = "no feature holds an image that can be decoded".to_owned();
                Err(no_feature(what, &listed(example, payload)))
            }
        },
        (None, several) => {
            Err(Error::SeveralImages { candidates: several.iter().map(|name| (*name).to_owned()).collect() })
        }
    }
}

/// The label's feature, and the note about it.
fn find_label<'a>(example: &Example<'a>) -> (Option<&'a str>, Option<String>) {
    let found: Vec<&str> = example.features().filter(|(_, of)| is_one_int(of)).map(|(name, _)| name).collect();
    if let Some(name) = preferred(&found, &LABEL_NAMES) {
        return (Some(name), None);
    }
    let is_possible = |name: &&&str| !NO_LABELS.contains(&name.rsplit(['/', '_']).next().unwrap_or(name));
    match found.iter().filter(is_possible).copied().collect::<Vec<_>>().as_slice() {
        [] => (None, None),
        [name] => (Some(name), Some(format!("labels are read from the feature `{name}`"))),
        several => {
            let names = several.join(", ");
            (
                None,
                Some(format!("labels are unknown: several features could hold them ({names}); pass --label-key NAME")),
            )
        }
    }
}

fn preferred<'a>(found: &[&'a str], names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| found.iter().find(|found| *found == name)).copied()
}

fn no_feature(what: String, found: &str) -> Error {
    Error::NoFeature { what, found: found.to_owned() }
}

/// Why a payload is neither an image nor a message.
fn not_an_example(payload: &[u8], error: Error) -> Error {
    // A message begins with the tag of its only field, so bytes that begin with it are a broken message.
    let is_message = payload.first().is_none_or(|byte| *byte == 0x0a);
    match image::info(payload) {
        Err(Error::NotRecognised { found, .. }) if !is_message => {
            Error::NotRecognised { expected: "an image file or a tf.Example", found }
        }
        _ => error,
    }
}

/// The features of a record, for an error message.
fn listed(example: &Example<'_>, payload: &[u8]) -> String {
    let described = |(name, feature): (&str, &Feature<'_>)| format!("{name} ({})", type_of(feature));
    let mut names: Vec<String> = example.features().take(NAMED).map(described).collect();
    let more = example.features().len().saturating_sub(NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let sequences = sequence_names(payload);
    if !sequences.is_empty() {
        names.push(format!("and the tf.SequenceExample sequences {}, which are not supported", sequences.join(", ")));
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What a feature holds, in TensorFlow's terms.
fn type_of(feature: &Feature<'_>) -> String {
    let counted = |n: usize, of: &str| if n == 1 { of.to_owned() } else { format!("{n} {of}") };
    match feature {
        Feature::Bytes(values) => match values.as_slice() {
            [value] => match image::info(value) {
                Err(Error::NotRecognised { found, .. }) => format!("bytes: {found}"),
                Err(error @ Error::UnsupportedImage { .. }) => format!("bytes: {error}"),
                _ => "bytes: an image".to_owned(),
            },
            values => counted(values.len(), "bytes"),
        },
        Feature::Floats(values) => counted(values.len(), "float"),
        Feature::Ints(values) => counted(values.len(), "int64"),
        Feature::Unset => "unset".to_owned(),
    }
}
