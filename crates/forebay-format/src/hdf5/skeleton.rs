//! Files to be written: everything except the values, and the places of the values.

use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use hdf5_metno::types::{FloatSize, IntSize, TypeDescriptor};
use hdf5_metno::{Dataset, Extent, File, SimpleExtents};

use super::Index;
use super::index::{Lies, failed};
use super::memory_file::MemoryFile;
use crate::{Element, Error};

/// Values begin at multiples of this, so that direct reads need not read extra bytes.
const ALIGNMENT: u64 = 4096;

/// A file of samples, as DLIO makes it: datasets of `shape` each, and a label of 0 for every sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The sides of each dataset; the first counts samples.
    pub shape: Vec<u64>,
    /// Number of datasets: one is named `records`, several `records_0` and so on.
    pub n_sets: u64,
    pub element: Element,
    /// The sides of a chunk, one for each side; `None`: contiguous.
    pub chunk: Option<Vec<u64>>,
    /// Maximum length of each side, 0 for unlimited; `None` if it cannot grow. Requires chunks.
    pub max_shape: Option<Vec<u64>>,
    /// Gzip level of the chunks; `None` for no compression.
    pub gzip: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Bytes(Vec<u8>),
    /// Values, starting with the value of this number.
    Values(Range<u64>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skeleton {
    pub len: u64,
    /// Its consecutive parts with their offsets.
    pub segments: Vec<(u64, Segment)>,
}

impl Skeleton {
    /// Lets the library lay out the file. Values of edge chunks continue beyond the dataset's edge.
    ///
    /// # Errors
    /// When the shape is not possible in HDF5, or compression is requested.
    pub fn new(spec: &Spec) -> Result<Self, Error> {
        if spec.gzip.is_some() {
            return Err(Error::unsupported("the places of compressed chunks before they are compressed"));
        }
        let memory = create(spec, |_, _| Ok(()))?;
        let path = memory.path();
        let index = Index::of_file(&path, spec.shape.first().copied().unwrap_or(0))?;
        let io =
            |error: std::io::Error| Error::Library { library: "HDF5", path: path.clone(), what: error.to_string() };
        let len = memory.file.metadata().map_err(io)?.len();
        let mut segments = Vec::new();
        let (mut at, mut value) = (0, 0);
        for place in places(&index) {
            let mut bytes = vec![0; (place.start - at) as usize];
            memory.file.read_exact_at(&mut bytes, at).map_err(io)?;
            let n = place.end - place.start;
            segments.push((at, Segment::Bytes(bytes)));
            segments.push((place.start, Segment::Values(value..value + n)));
            (at, value) = (place.end, value + n);
        }
        let mut bytes = vec![0; (len - at) as usize];
        memory.file.read_exact_at(&mut bytes, at).map_err(io)?;
        segments.push((at, Segment::Bytes(bytes)));
        segments.retain(|(_, segment)| !matches!(segment, Segment::Bytes(bytes) if bytes.is_empty()));
        Ok(Self { len, segments })
    }

    pub fn value_bytes(&self) -> u64 {
        let len = |segment: &Segment| match segment {
            Segment::Values(range) => range.end - range.start,
            Segment::Bytes(_) => 0,
        };
        self.segments.iter().map(|(_, segment)| len(segment)).sum()
    }
}

/// The ranges of a file that hold values, in the file's order.
fn places(index: &Index) -> Vec<Range<u64>> {
    let mut places = Vec::new();
    for set in &index.sets {
        match &set.lies {
            Lies::Contiguous(offset) => {
                let bytes = set.sample_bytes() * set.shape[0];
                places.push(*offset..offset + bytes);
            }
            Lies::Chunked(chunks) => places.extend(chunks.all().map(|chunk| chunk.offset..chunk.offset + chunk.len)),
            Lies::Nowhere => {}
        }
    }
    places.sort_by_key(|place| place.start);
    places
}

/// Writes a compressed file. `values` fills in values from a given number on, chunk by chunk, and `out` takes the file's
/// bytes in order. The file is held in memory until it is complete.
///
/// # Errors
/// When `out` or the library fails.
pub fn compressed<E: From<Error>>(
    spec: &Spec,
    values: &mut dyn FnMut(u64, &mut [u8]),
    out: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let level = flate2::Compression::new(spec.gzip.unwrap_or(4).min(9));
    let mut place = 0;
    let memory = create(spec, |set, chunk| {
        let mut bytes = vec![0; chunk.iter().product::<u64>() as usize * spec.element.bytes() as usize];
        let mut packed = Vec::new();
        for corner in corners(&spec.shape, chunk) {
            values(place, &mut bytes);
            place += bytes.len() as u64;
            packed.clear();
            let mut encoder = flate2::read::ZlibEncoder::new(&bytes[..], level);
            encoder.read_to_end(&mut packed).expect("memory is read without fail");
            write_chunk(set, &corner, &packed)?;
        }
        Ok(())
    })?;
    let path = memory.path();
    let io = |error: std::io::Error| Error::Library { library: "HDF5", path: path.clone(), what: error.to_string() };
    let len = memory.file.metadata().map_err(io)?.len();
    let mut buffer = vec![0; 1 << 20];
    for at in (0..len).step_by(buffer.len()) {
        let n = (len - at).min(buffer.len() as u64) as usize;
        memory.file.read_exact_at(&mut buffer[..n], at).map_err(io)?;
        out(&buffer[..n])?;
    }
    Ok(())
}

/// Where the chunks of a dataset begin, in the order of its values.
fn corners(shape: &[u64], chunk: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let counts: Vec<u64> = shape.iter().zip(chunk).map(|(n, side)| n.div_ceil(*side)).collect();
    let chunk = chunk.to_vec();
    (0..counts.iter().product()).map(move |number: u64| {
        let mut rest = number;
        let mut corner = vec![0; counts.len()];
        for i in (0..counts.len()).rev() {
            corner[i] = rest % counts[i] * chunk[i];
            rest /= counts[i];
        }
        corner
    })
}

fn write_chunk(set: &Dataset, corner: &[u64], bytes: &[u8]) -> Result<(), hdf5_metno::Error> {
    // SAFETY: the dataset is open, the corner has as many sides as it, and the library only reads the bytes, within the call and its lock.
    let code = hdf5_metno::sync::sync(|| unsafe {
        hdf5_metno_sys::h5d::H5Dwrite_chunk(set.id(), 0, 0, corner.as_ptr(), bytes.len(), bytes.as_ptr().cast())
    });
    if code < 0 { Err(hdf5_metno::Error::from("a chunk cannot be written")) } else { Ok(()) }
}

/// Makes the file in memory; `fill` is called with each dataset and its chunk.
fn create(
    spec: &Spec,
    mut fill: impl FnMut(&Dataset, &[u64]) -> Result<(), hdf5_metno::Error>,
) -> Result<MemoryFile, Error> {
    check(spec)?;
    let named = |path: std::path::PathBuf, what: String| Error::Library { library: "HDF5", path, what };
    let memory = MemoryFile::new().map_err(|error| named("memory".into(), error.to_string()))?;
    let path = memory.path();
    let library = |error: hdf5_metno::Error| failed(&path, &error);
    let file = File::with_options()
        .with_fapl(|plist| plist.alignment(64 << 10, ALIGNMENT).libver_v18())
        .create(&path)
        .map_err(library)?;
    for i in 0..spec.n_sets {
        let name = if spec.n_sets == 1 { "records".to_owned() } else { format!("records_{i}") };
        let set = dataset(&file, spec, &name).map_err(library)?;
        fill(&set, spec.chunk.as_deref().unwrap_or_default()).map_err(library)?;
    }
    if spec.n_sets == 1 {
        // The name in newer versions of DLIO.
        file.link_hard("records", "records_0").map_err(library)?;
    }
    let labels = vec![0_i64; spec.shape[0] as usize];
    file.new_dataset_builder().with_data(&labels).obj_track_times(false).create("labels").map_err(library)?;
    file.close().map_err(library)?;
    Ok(memory)
}

fn check(spec: &Spec) -> Result<(), Error> {
    let wrong = |expected: &str, found: String| Err(Error::invalid("HDF5 file", 0, expected, found));
    let bytes = spec.shape.iter().try_fold(spec.element.bytes(), |bytes, side| bytes.checked_mul(*side));
    if spec.shape.is_empty() || spec.n_sets == 0 || bytes.is_none_or(|bytes| bytes == 0 || bytes > 1 << 60) {
        return wrong("datasets with values", format!("{} of shape {:?}", spec.n_sets, spec.shape));
    }
    let same = |sides: &Option<Vec<u64>>| sides.as_ref().is_none_or(|sides| sides.len() == spec.shape.len());
    if !same(&spec.chunk) || !same(&spec.max_shape) || spec.chunk.as_ref().is_some_and(|sides| sides.contains(&0)) {
        let found = format!("chunks {:?}, at most {:?}", spec.chunk, spec.max_shape);
        return wrong("a side of chunks and a greatest length for every side", found);
    }
    if spec.chunk.is_none() && (spec.gzip.is_some() || spec.max_shape.is_some()) {
        return wrong("chunks, for what is compressed or may grow", "none".to_owned());
    }
    if spec.element == Element::Bf16 {
        return Err(Error::unsupported("bfloat16 in HDF5, which has no such type"));
    }
    Ok(())
}

fn dataset(file: &File, spec: &Spec, name: &str) -> Result<Dataset, hdf5_metno::Error> {
    use hdf5_metno::dataset::{AllocTime, FillTime};
    let sides =
        |i: usize| spec.max_shape.as_ref().map_or(Some(spec.shape[i]), |max| Some(max[i]).filter(|max| *max > 0));
    let extent = |(i, dim): (usize, &u64)| Extent::new(*dim as usize, sides(i).map(|max| max as usize));
    let extents = SimpleExtents::new(spec.shape.iter().enumerate().map(extent));
    let mut builder = file.new_dataset_builder().empty_as(descriptor(spec.element)).shape(extents);
    builder = builder.fill_time(FillTime::Never).obj_track_times(false);
    builder = match &spec.chunk {
        Some(chunk) => builder.chunk(chunk.iter().map(|side| *side as usize).collect::<Vec<_>>()),
        None => builder.no_chunk(),
    };
    builder = match spec.gzip {
        Some(level) => builder.deflate(level.min(9) as u8).alloc_time(Some(AllocTime::Incr)),
        None => builder.alloc_time(Some(AllocTime::Early)),
    };
    builder.create(name)
}

fn descriptor(element: Element) -> TypeDescriptor {
    match element {
        Element::U8 => TypeDescriptor::Unsigned(IntSize::U1),
        Element::I8 => TypeDescriptor::Integer(IntSize::U1),
        Element::U16 => TypeDescriptor::Unsigned(IntSize::U2),
        Element::I16 => TypeDescriptor::Integer(IntSize::U2),
        Element::U32 => TypeDescriptor::Unsigned(IntSize::U4),
        Element::I32 => TypeDescriptor::Integer(IntSize::U4),
        Element::U64 => TypeDescriptor::Unsigned(IntSize::U8),
        Element::I64 => TypeDescriptor::Integer(IntSize::U8),
        Element::F16 | Element::Bf16 => TypeDescriptor::Float(FloatSize::U2),
        Element::F32 => TypeDescriptor::Float(FloatSize::U4),
        Element::F64 => TypeDescriptor::Float(FloatSize::U8),
    }
}
