//! Whole records as samples, for data that is not images.
//!
//! A field of a fixed size, such as 28 x 28 bytes or a label, is written into the sample's slot. What has another length in
//! each record is kept beside the ring until the consumer takes it with the batch; the ring's slots bound how much that is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use forebay_format::example::{Example, Feature, find};
use forebay_format::tar;
use forebay_units::Element;

use crate::error::{Error, SampleError};
use crate::exec::activity::{Activity, Stopwatch};
use crate::field::Field;
use crate::map::{Map, MapWorker, Sample, Wants};
use crate::source::{Packing, Source};

/// What is wanted of a record: the feature of a `tf.Example` or the file of a tar sample with this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordField {
    pub name: String,
    /// Numbers of this type and shape; `None` for bytes of any length.
    pub numbers: Option<(Element, Vec<u64>)>,
}

/// Contents of one record by name; a record without named parts has one, of no name.
pub type Parts = Vec<(String, Vec<u8>)>;

/// How the parts of a record are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Example,
    Tar,
    /// No names.
    Plain,
}

/// Takes records whole, or the wanted fields of each.
#[derive(Debug, Clone)]
pub struct Records {
    kind: Kind,
    fixed: Arc<Vec<Field>>,
    /// Names of the fields without a fixed size.
    free: Arc<Vec<String>>,
    /// Whether no fields were named: the whole record is wanted.
    is_whole: bool,
    slot_bytes: usize,
    beside: Arc<Mutex<HashMap<u32, Parts>>>,
}

impl Records {
    /// # Errors
    /// When fields are wanted of records without names, or a field has an impossible shape.
    pub fn of(source: &Source, fields: &[RecordField]) -> Result<Self, Error> {
        let refused = |reason| Error::Plan { stage: "fields", reason };
        let kind = match source.index.packing {
            Packing::TfRecord | Packing::CompressedTfRecord(_) => Kind::Example,
            Packing::Tar | Packing::CompressedTar(_) => Kind::Tar,
            _ => Kind::Plain,
        };
        if kind == Kind::Plain && !fields.is_empty() {
            let reason = format!("{} data has records without names; omit the fields", source.packing());
            return Err(refused(reason));
        }
        let fixed = |field: &RecordField| {
            field.numbers.as_ref().map(|(element, shape)| (field.name.clone(), *element, shape.clone()))
        };
        let (fixed, slot_bytes) = Field::lay_out(fields.iter().filter_map(fixed).collect()).map_err(refused)?;
        let free = fields.iter().filter(|field| field.numbers.is_none()).map(|field| field.name.clone()).collect();
        Ok(Self {
            kind,
            fixed: Arc::new(fixed),
            free: Arc::new(free),
            is_whole: fields.is_empty(),
            // A slot is never empty.
            slot_bytes: slot_bytes.max(1),
            beside: Arc::default(),
        })
    }

    /// The fields of a fixed size, in the order of the slot.
    pub fn fixed(&self) -> &[Field] {
        &self.fixed
    }

    /// The parts of a sample that are not in its slot. They can be taken once, with the batch that the sample is in.
    pub fn take(&self, sample: u32) -> Parts {
        self.beside.lock().expect("no holder of this lock panics").remove(&sample).unwrap_or_default()
    }

    /// Forgets the parts of samples whose batches nobody took.
    pub fn forget(&self) {
        self.beside.lock().expect("no holder of this lock panics").clear();
    }
}

impl Map for Records {
    fn sample_bytes(&self) -> usize {
        self.slot_bytes
    }

    fn worker(&self) -> Box<dyn MapWorker> {
        Box::new(self.clone())
    }

    fn wants(&self) -> Wants {
        Wants::Whole
    }

    fn description(&self) -> Option<String> {
        // Parts beside the slot are not in a cache of finished samples.
        self.free.is_empty().then(|| format!("fields {:?}", self.fixed)).filter(|_| !self.is_whole)
    }
}

impl MapWorker for Records {
    fn map(&mut self, sample: Sample<'_>, slot: &mut [u8], watch: &mut Stopwatch) -> Result<(), SampleError> {
        watch.enter(Activity::Decoding);
        let parts = match self.kind {
            Kind::Plain => vec![(String::new(), sample.bytes.to_vec())],
            Kind::Example if self.is_whole => vec![(String::new(), sample.bytes.to_vec())],
            Kind::Example => self.of_example(sample.bytes, slot)?,
            Kind::Tar => self.of_tar(sample.bytes, slot)?,
        };
        if !parts.is_empty() {
            self.beside.lock().expect("no holder of this lock panics").insert(sample.index, parts);
        }
        Ok(())
    }
}

fn refused(what: impl Into<String>) -> SampleError {
    SampleError::Refused(what.into())
}

impl Records {
    fn of_example(&self, payload: &[u8], slot: &mut [u8]) -> Result<Parts, SampleError> {
        let absent = |name: &str| match Example::parse(payload) {
            Err(error) => error.into(),
            Ok(example) => {
                let there: Vec<&str> = example.features().map(|(name, _)| name).collect();
                refused(format!("no feature {name}, only {}", there.join(", ")))
            }
        };
        for field in self.fixed.iter() {
            let found = find(payload, &field.name)?.ok_or_else(|| absent(&field.name))?.to_feature()?;
            let out = &mut slot[field.offset..][..field.n_bytes()];
            match (&found, field.element) {
                (Feature::Bytes(values), _) if values.len() == 1 => put(field, values[0], out)?,
                (Feature::Floats(values), Element::F32) => {
                    put(field, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>(), out)?;
                }
                (Feature::Ints(values), Element::I64) => {
                    put(field, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>(), out)?;
                }
                (other, element) => {
                    let found = match other {
                        Feature::Bytes(values) => format!("{} byte strings", values.len()),
                        Feature::Floats(_) => "float32 values".to_owned(),
                        Feature::Ints(_) => "int64 values".to_owned(),
                        Feature::Unset => "no values".to_owned(),
                    };
                    return Err(refused(format!("{} is wanted as {} and has {found}", field.name, element.name())));
                }
            }
        }
        let free = |name: &String| {
            let found = find(payload, name)?.ok_or_else(|| absent(name))?.first_bytes()?;
            let found = found.ok_or_else(|| refused(format!("{name} has no bytes; give its type and shape")))?;
            Ok((name.clone(), found.to_vec()))
        };
        self.free.iter().map(free).collect()
    }

    fn of_tar(&self, stored: &[u8], slot: &mut [u8]) -> Result<Parts, SampleError> {
        let sample = tar::parse_sample(stored, 0)?;
        if self.is_whole {
            return Ok(sample.parts.iter().map(|part| (part.extension.clone(), part.data.to_vec())).collect());
        }
        let part = |name: &String| {
            let there: Vec<&str> = sample.parts.iter().map(|part| part.extension.as_str()).collect();
            sample.part(name).ok_or_else(|| refused(format!("no file .{name}, only .{}", there.join(", ."))))
        };
        for field in self.fixed.iter() {
            put(field, part(&field.name)?, &mut slot[field.offset..][..field.n_bytes()])?;
        }
        self.free.iter().map(|name| Ok((name.clone(), part(name)?.to_vec()))).collect()
    }
}

fn put(field: &Field, bytes: &[u8], out: &mut [u8]) -> Result<(), SampleError> {
    if bytes.len() != out.len() {
        let (name, of, shape) = (&field.name, field.element.name(), &field.shape);
        let (wanted, found) = (out.len(), bytes.len());
        return Err(refused(format!("{name} is wanted as {of} {shape:?}, {wanted} bytes, and has {found}")));
    }
    out.copy_from_slice(bytes);
    Ok(())
}
