//! A batch in the memory of the device: what the host writes, what the kernels need, and the order they run in.

use std::ops::Range;

use super::layout::{Arguments, Code, Image, Record, Segment, bytes_of};
use super::prepare::Prepared;
use crate::huffman::CodeSpec;

/// MCUs whose DC differences one thread sums up.
const MCUS_PER_RUN: u32 = 32;
/// Entries of a code's table; see `FAST_BITS` of the kernels.
const FAST_ENTRIES: u32 = 1 << 10;
/// Alignment of each array.
const ALIGNMENT: usize = 256;

/// The type of a sample's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dtype {
    /// Rounded to nearest, ties to even.
    U8,
    F32,
    F16,
    Bf16,
}

impl Dtype {
    pub fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// What all samples of a batch have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    pub dtype: Dtype,
    /// Whether each channel has its own plane; otherwise the three values of a pixel are neighbours.
    pub is_planar: bool,
    /// Per channel, what a value from 0 to 255 is multiplied by, and what is added then.
    pub factors: [f32; 3],
    pub summands: [f32; 3],
}

impl Target {
    /// Values from 0 to 255.
    pub fn plain(dtype: Dtype) -> Self {
        Self { dtype, is_planar: false, factors: [1.0; 3], summands: [0.0; 3] }
    }
}

/// Which part of an image becomes a sample, and how large. Bilinear, without antialiasing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Left, top, width and height of the part that is resized.
    pub crop: [u32; 4],
    pub resized: [u32; 2],
    /// Upper left corner of the sample in the resized part.
    pub offset: [u32; 2],
    pub is_mirrored: bool,
    /// Whether places between pixels are computed in double precision; in single precision as in TensorFlow if not.
    pub is_precise: bool,
    /// Width and height of the sample.
    pub sample: [u32; 2],
}

impl View {
    /// The whole image, resized to the size of the sample.
    pub fn whole(image: [u32; 2], sample: [u32; 2]) -> Self {
        let crop = [0, 0, image[0], image[1]];
        Self { crop, resized: sample, offset: [0, 0], is_mirrored: false, is_precise: false, sample }
    }

    /// Whether the crop lies within the image and the sample within the resized crop.
    fn fits(&self, image: [u32; 2]) -> bool {
        let within = |start: u32, n: u32, of: u32| n > 0 && start.checked_add(n).is_some_and(|end| end <= of);
        (0..2).all(|i| {
            within(self.crop[i], self.crop[2 + i], image[i]) && within(self.offset[i], self.sample[i], self.resized[i])
        })
    }
}

/// How the work is divided. The results do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Division {
    /// Bits of entropy-coded data per thread; at least 64.
    pub chunk_bits: u32,
    /// Rounds of synchronisation before a single thread per segment does the rest; at least 1.
    pub n_rounds: u32,
}

impl Default for Division {
    fn default() -> Self {
        // The slowest chunk of a photograph needs 15 to 20 rounds; a round without work takes microseconds.
        Self { chunk_bits: 1024, n_rounds: 32 }
    }
}

/// A kernel to run, over a number of independent items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    pub kernel: &'static str,
    pub n_items: u32,
    /// The second argument of the kernel.
    pub round: u32,
}

/// Files to decode together.
#[derive(Debug)]
pub struct Batch<'a> {
    files: Vec<(&'a Prepared, View)>,
    target: Target,
    division: Division,
    images: Vec<Image>,
    segments: Vec<Segment>,
    codes: Vec<CodeSpec>,
    quant: Vec<i16>,
    n_chunks: u32,
    n_runs: u32,
    n_blocks: u32,
    n_pixels: u32,
    ranges: Ranges,
}

/// Ranges of bytes in the memory of the device.
#[derive(Debug, Default, Clone)]
struct Ranges {
    images: Range<usize>,
    segments: Range<usize>,
    codes: Range<usize>,
    quant: Range<usize>,
    bytes: Range<usize>,
    faults: Range<usize>,
    moved: Range<usize>,
    coefficients: Range<usize>,
    fast: Range<usize>,
    entries: Range<usize>,
    exits: Range<usize>,
    counts: Range<usize>,
    dc: Range<usize>,
    sums: Range<usize>,
    samples: Range<usize>,
    out: Range<usize>,
}

impl<'a> Batch<'a> {
    /// Lays out a batch; `None` if it has no files, is beyond 2³¹ chunks, blocks or pixels, if a view does not fit its
    /// file, or if a file was refused.
    pub fn new(files: Vec<(&'a Prepared, View)>, target: Target, division: Division) -> Option<Self> {
        if files.is_empty() || division.chunk_bits < 64 || division.n_rounds == 0 {
            return None;
        }
        let mut batch = Batch {
            files: Vec::new(),
            target,
            division,
            images: Vec::with_capacity(files.len()),
            segments: Vec::new(),
            codes: Vec::new(),
            quant: Vec::new(),
            n_chunks: 0,
            n_runs: 0,
            n_blocks: 0,
            n_pixels: 0,
            ranges: Ranges::default(),
        };
        let (mut n_units, mut n_sample_blocks) = (0, 0);
        for (file, view) in &files {
            batch.push(file, view, &mut n_units, &mut n_sample_blocks)?;
        }
        batch.files = files;
        batch.lay_out(n_units, n_sample_blocks);
        Some(batch)
    }

    fn push(&mut self, file: &Prepared, view: &View, n_units: &mut u32, n_sample_blocks: &mut u32) -> Option<()> {
        let info = file.info()?;
        if !view.fits([info.width, info.height]) {
            return None;
        }
        let codes: Vec<u32> = file.codes.iter().map(|spec| self.code(spec)).collect();
        let mut image = file.image;
        for slot in 0..image.n_slots as usize {
            image.dc[slot] = codes[image.dc[slot] as usize];
            image.ac[slot] = codes[image.ac[slot] as usize];
        }
        for component in &mut image.components {
            component.first += *n_sample_blocks;
            component.quant += (self.quant.len() / 64) as u32;
        }
        (image.first_block, image.first_pixel) = (self.n_blocks, self.n_pixels);
        (image.crop, image.resized, image.offset) = (view.crop, view.resized, view.offset);
        (image.is_mirrored, image.is_precise) = (view.is_mirrored.into(), view.is_precise.into());
        image.out = view.sample;
        for segment in &file.segments {
            let n_chunks = segment.n_bits.div_ceil(self.division.chunk_bits);
            let n_runs = (segment.n_blocks / image.n_slots).div_ceil(MCUS_PER_RUN);
            self.segments.push(Segment {
                image: self.images.len() as u32,
                first_bytes: segment.first_bytes + *n_units,
                first_chunk: self.n_chunks,
                n_chunks,
                first_run: self.n_runs,
                n_runs,
                ..*segment
            });
            self.n_chunks = below_2_31(self.n_chunks, n_chunks.into())?;
            self.n_runs = below_2_31(self.n_runs, n_runs.into())?;
        }
        self.images.push(image);
        self.quant.extend(file.quant.iter().flatten());
        *n_units = below_2_31(*n_units, (file.bytes.len() / 16) as u64)?;
        *n_sample_blocks = below_2_31(*n_sample_blocks, file.n_sample_blocks)?;
        self.n_blocks = below_2_31(self.n_blocks, file.n_blocks)?;
        self.n_pixels = below_2_31(self.n_pixels, u64::from(view.sample[0]) * u64::from(view.sample[1]))?;
        // A code's number has 16 bits on the device.
        (self.codes.len() < 1 << 16 && self.segments.len() < 1 << 28).then_some(())
    }

    /// The number of a code within the batch.
    fn code(&mut self, spec: &CodeSpec) -> u32 {
        // Files of one source have the same codes, so the first few are nearly always the ones.
        let known = self.codes.iter().take(64).position(|known| known == spec);
        known.unwrap_or_else(|| {
            self.codes.push(spec.clone());
            self.codes.len() - 1
        }) as u32
    }

    fn lay_out(&mut self, n_units: u32, n_sample_blocks: u32) {
        let mut end = 0;
        let mut array = |n: usize, size: usize| {
            let start = end;
            end = (start + n * size).next_multiple_of(ALIGNMENT);
            start..start + n * size
        };
        let (n_chunks, n_blocks, n_images) = (self.n_chunks as usize, self.n_blocks as usize, self.images.len());
        self.ranges = Ranges {
            images: array(n_images, size_of::<Image>()),
            segments: array(self.segments.len(), size_of::<Segment>()),
            codes: array(self.codes.len(), size_of::<Code>()),
            quant: array(self.quant.len(), 2),
            bytes: array(n_units as usize, 16),
            faults: array(n_images, 4),
            moved: array(n_images * self.division.n_rounds as usize, 4),
            coefficients: array(n_blocks, 128),
            fast: array(self.codes.len(), 2 * FAST_ENTRIES as usize),
            entries: array(n_chunks, 4),
            exits: array(n_chunks, 8),
            counts: array(n_chunks, 4),
            dc: array(n_blocks, 2),
            sums: array(self.n_runs as usize, 12),
            samples: array(n_sample_blocks as usize, 64),
            out: array(self.n_pixels as usize, 3 * self.target.dtype.bytes()),
        };
    }

    /// Bytes that [`Batch::upload`] writes; they belong at the beginning of the device's memory.
    pub fn n_upload_bytes(&self) -> usize {
        self.ranges.bytes.end
    }

    /// Bytes needed on the device.
    pub fn n_device_bytes(&self) -> usize {
        self.ranges.out.end
    }

    /// The bytes that must be zero before the first kernel.
    pub fn zeroed(&self) -> Range<usize> {
        self.ranges.faults.start..self.ranges.coefficients.end
    }

    /// Per file a number of 32 bits that is not zero if the file must go to the [`Decoder`](crate::Decoder).
    pub fn faults(&self) -> Range<usize> {
        self.ranges.faults.clone()
    }

    /// The samples, one after the other; those of files with a fault are unspecified.
    pub fn out(&self) -> Range<usize> {
        self.ranges.out.clone()
    }

    /// Writes what the device needs to know.
    ///
    /// # Panics
    /// When `out` has not [`Batch::n_upload_bytes`] bytes.
    pub fn upload(&self, out: &mut [u8]) {
        assert_eq!(out.len(), self.n_upload_bytes(), "the bytes to upload");
        let codes: Vec<Code> = self.codes.iter().map(Code::new).collect();
        put(out, &self.ranges.images, &self.images);
        put(out, &self.ranges.segments, &self.segments);
        put(out, &self.ranges.codes, &codes);
        put(out, &self.ranges.quant, &self.quant);
        let mut at = self.ranges.bytes.start;
        for (file, _) in &self.files {
            put(out, &(at..at + file.bytes.len()), &file.bytes);
            at += file.bytes.len();
        }
    }

    /// The argument of all kernels, if the device's memory begins at `base`, a multiple of 256.
    pub fn arguments(&self, base: u64) -> Arguments {
        let at = |range: &Range<usize>| base + range.start as u64;
        let r = &self.ranges;
        Arguments {
            images: at(&r.images),
            segments: at(&r.segments),
            codes: at(&r.codes),
            quant: at(&r.quant),
            bytes: at(&r.bytes),
            faults: at(&r.faults),
            moved: at(&r.moved),
            coefficients: at(&r.coefficients),
            fast: at(&r.fast),
            entries: at(&r.entries),
            exits: at(&r.exits),
            counts: at(&r.counts),
            dc: at(&r.dc),
            sums: at(&r.sums),
            samples: at(&r.samples),
            out: at(&r.out),
            n_images: self.images.len() as u32,
            n_segments: self.segments.len() as u32,
            n_codes: self.codes.len() as u32,
            n_chunks: self.n_chunks,
            n_runs: self.n_runs,
            n_blocks: self.n_blocks,
            n_pixels: self.n_pixels,
            chunk_bits: self.division.chunk_bits,
            n_rounds: self.division.n_rounds,
            mcus_per_run: MCUS_PER_RUN,
            dtype: match self.target.dtype {
                Dtype::U8 => 0,
                Dtype::F32 => 1,
                Dtype::F16 => 2,
                Dtype::Bf16 => 3,
            },
            is_planar: self.target.is_planar.into(),
            factors: self.target.factors,
            summands: self.target.summands,
        }
    }

    /// The kernels in their order; each needs the results of the ones before.
    pub fn launches(&self) -> Vec<Launch> {
        let launch = |kernel, n_items| Launch { kernel, n_items, round: 0 };
        let rounds = (0..self.division.n_rounds).map(|round| Launch { round, ..launch("synchronise", self.n_chunks) });
        let n_segments = self.segments.len() as u32;
        let mut launches = vec![launch("build_codes", self.codes.len() as u32 * FAST_ENTRIES)];
        launches.extend(rounds);
        launches.extend([
            launch("place_blocks", n_segments),
            launch("write_coefficients", self.n_chunks),
            launch("sum_runs", self.n_runs),
            launch("sum_segments", 3 * n_segments),
            launch("add_sums", self.n_runs),
            launch("reconstruct", self.n_blocks),
            launch("render", self.n_pixels),
        ]);
        launches
    }
}

fn below_2_31(sum: u32, n: u64) -> Option<u32> {
    u32::try_from(u64::from(sum) + n).ok().filter(|&sum| sum < 1 << 31)
}

fn put<T: Record>(out: &mut [u8], range: &Range<usize>, records: &[T]) {
    out[range.clone()].copy_from_slice(bytes_of(records));
}
