//! tfrecord as DLIO fills it: one `Example` per sample, with its bytes in `image` and its side in `size`. Each file has an
//! index for DALI in the folder `index`, with a line "offset length" per record. A file may be split between records.
//!
//! Records of one length, as workloads have them, need no index: the first and the last record show it. Any other file is
//! walked once by its frame headers when it is first opened.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use forebay_format::example::{self, Around};
use forebay_format::tfrecord::{FOOTER_LEN, FrameScanner, HEADER_LEN, frame_header, mask, masked_crc32c, parse_frame};
use forebay_format::{Scanner, Span};
use forebay_storage::{Buffer, Object};
use forebay_workload::Dataset;

use super::{Beside, DataFormat, Draft, Files, OpenFiles, Piece, Proof, ReadError, Reader, Sink, Step, Tools};

#[derive(Default)]
struct TfRecord {
    /// The places of records in files with records of different lengths.
    walked: Walked,
}

type Walked = Arc<Mutex<HashMap<u32, Arc<[Span]>>>>;

pub(super) fn new(_: &Dataset) -> Box<dyn DataFormat> {
    Box::new(TfRecord::default())
}

fn around(piece: &Piece) -> Around {
    let side = piece.shape.dims.first().copied().unwrap_or(0) as i64;
    Around::new(("image", piece.shape.sample_bytes), ("size", side))
}

fn frame_len(piece: &Piece) -> u64 {
    (HEADER_LEN + FOOTER_LEN) as u64 + around(piece).overhead() + piece.shape.sample_bytes
}

impl DataFormat for TfRecord {
    fn proof(&self, piece: &Piece) -> Proof {
        Proof::Length(self.room(piece))
    }

    fn room(&self, piece: &Piece) -> u64 {
        frame_len(piece) * piece.shape.n_samples
    }

    fn grain(&self, piece: &Piece) -> Option<u64> {
        Some(frame_len(piece))
    }

    fn write(&self, piece: &Piece, range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let (around, frame) = (around(piece), frame_len(piece));
        let bytes = piece.shape.sample_bytes;
        let header = frame_header(around.overhead() + bytes);
        for sample in range.start / frame..range.end / frame {
            let mut noise = piece.noise.from(sample * bytes);
            let mut crc = crc32c::crc32c(&around.before);
            draft.write_all(&header)?;
            draft.write_all(&around.before)?;
            draft.fill(bytes, |out| {
                noise(out);
                crc = crc32c::crc32c_append(crc, out);
            })?;
            draft.write_all(&around.behind)?;
            draft.write_all(&mask(crc32c::crc32c_append(crc, &around.behind)).to_le_bytes())?;
        }
        Ok(())
    }

    fn beside(&self, piece: &Piece) -> Vec<Beside> {
        let name = piece.path.rsplit('/').next().unwrap_or(&piece.path);
        let path = format!("index/{}/{name}.idx", piece.part.folder());
        let digits = |number: u64| u64::from(number.max(1).ilog10()) + 1;
        let line = digits(self.room(piece)) + digits(frame_len(piece)) + 2;
        vec![Beside { path, proof: Proof::Tail(|tail| tail.ends_with(b"\n")), room: line * piece.shape.n_samples }]
    }

    fn write_beside(&self, piece: &Piece, _which: usize, draft: &mut Draft<'_>) -> io::Result<()> {
        let frame = frame_len(piece);
        (0..piece.shape.n_samples).try_for_each(|sample| writeln!(draft, "{} {frame}", sample * frame))
    }

    fn reader(&self, files: Arc<Files>) -> Box<dyn Reader> {
        Box::new(TfRecordReader {
            files,
            walked: Arc::clone(&self.walked),
            open: OpenFiles::default(),
            buffer: Buffer::default(),
            gathered: Vec::new(),
        })
    }
}

struct TfRecordReader {
    files: Arc<Files>,
    walked: Walked,
    open: OpenFiles<(Box<dyn Object>, Places)>,
    buffer: Buffer,
    /// Records that were read in several pieces.
    gathered: Vec<u8>,
}

enum Places {
    Even { frame: u64 },
    Walked(Arc<[Span]>),
}

impl Places {
    fn of(&self, sample: u32) -> Option<Span> {
        match self {
            Self::Even { frame } => Some(Span { offset: u64::from(sample) * frame, len: *frame }),
            Self::Walked(spans) => spans.get(sample as usize).copied(),
        }
    }
}

impl Reader for TfRecordReader {
    fn read(&mut self, file: u32, samples: Range<u32>, out: &mut [u8], tools: &mut Tools<'_>) -> Result<(), ReadError> {
        let Self { files, walked, open, buffer, gathered } = self;
        let mut find = |tools: &mut Tools<'_>| {
            let object = tools.open(files, file)?;
            let places = locate(files, walked, file, object.as_ref(), buffer, tools)?;
            Ok((object, places))
        };
        // A file of one sample is not come back to.
        let (fresh, kept);
        let (object, places) = if files.dataset.n_samples_per_file <= 1 {
            fresh = find(tools)?;
            (&fresh.0, &fresh.1)
        } else {
            kept = open.get(file, || find(tools))?;
            (&kept.0, &kept.1)
        };
        let spans: Option<Vec<Span>> = samples.clone().map(|sample| places.of(sample)).collect();
        let Some(spans) = spans.filter(|spans| !spans.is_empty()) else {
            let wanted = samples.end.saturating_sub(1);
            let what = format!("record {wanted} is missing: the file is truncated or was made with fewer samples");
            return Err(ReadError::Refused(what));
        };
        read_frames(object.as_ref(), &spans, out, files, (buffer, gathered), tools)
    }
}

/// Contiguous records, in one read, or in several if the workload limits the size of a read.
fn read_frames(
    object: &dyn Object,
    spans: &[Span],
    out: &mut [u8],
    files: &Files,
    (buffer, gathered): (&mut Buffer, &mut Vec<u8>),
    tools: &mut Tools<'_>,
) -> Result<(), ReadError> {
    let verify = files.verify;
    let (first, last) = (spans[0], spans[spans.len() - 1]);
    let len = last.offset + last.len - first.offset;
    let bytes = match files.transfer {
        Some(most) if len > most as u64 => {
            gathered.clear();
            tools.stream(object, first.offset..first.offset + len, (most, false), buffer, |bytes| {
                gathered.extend_from_slice(bytes);
                Ok(())
            })?;
            gathered.as_slice()
        }
        _ => tools.look(object, first.offset, len as usize, verify, buffer)?,
    };
    tools.enter(Step::Decoding);
    let room = out.len() / spans.len();
    for (span, place) in spans.iter().zip(out.chunks_mut(room.max(1))) {
        let frame = &bytes[(span.offset - first.offset) as usize..][..span.len as usize];
        Sink::put(place, value(payload(frame, span.offset, verify)?));
    }
    Ok(())
}

fn payload(frame: &[u8], offset: u64, verify: bool) -> Result<&[u8], ReadError> {
    match verify {
        true => Ok(parse_frame(frame, offset)?.payload),
        false => Ok(frame.get(HEADER_LEN..frame.len().saturating_sub(FOOTER_LEN)).unwrap_or_default()),
    }
}

/// The sample in a record: its feature `image`, or the record itself if it is in the user's own format.
fn value(payload: &[u8]) -> &[u8] {
    let image = example::find(payload, "image").ok().flatten().and_then(|feature| feature.first_bytes().ok().flatten());
    image.unwrap_or(payload)
}

fn locate(
    files: &Files,
    walked: &Walked,
    file: u32,
    object: &dyn Object,
    buffer: &mut Buffer,
    tools: &mut Tools<'_>,
) -> Result<Places, ReadError> {
    let n = files.dataset.n_samples_per_file.max(1);
    let len = object.len()?;
    if n == 1 {
        return Ok(Places::Even { frame: len });
    }
    if len.is_multiple_of(n) && len / n >= (HEADER_LEN + FOOTER_LEN) as u64 {
        let frame = len / n;
        if has_frame(object, 0, frame, buffer, tools)? && has_frame(object, (n - 1) * frame, frame, buffer, tools)? {
            return Ok(Places::Even { frame });
        }
    }
    if let Some(spans) = walked.lock().expect("no holder of this lock panics").get(&file) {
        return Ok(Places::Walked(Arc::clone(spans)));
    }
    let spans: Arc<[Span]> = walk(object, len, buffer, tools)?.into();
    walked.lock().expect("no holder of this lock panics").insert(file, Arc::clone(&spans));
    Ok(Places::Walked(spans))
}

/// Whether a frame of this length begins there.
fn has_frame(
    object: &dyn Object,
    offset: u64,
    frame: u64,
    buffer: &mut Buffer,
    tools: &mut Tools<'_>,
) -> Result<bool, ReadError> {
    tools.read(object, offset, HEADER_LEN, buffer)?;
    let (length, sum) = buffer.as_slice().split_at(8);
    let expected = (frame - (HEADER_LEN + FOOTER_LEN) as u64).to_le_bytes();
    Ok(length == expected && sum == masked_crc32c(length).to_le_bytes())
}

fn walk(object: &dyn Object, len: u64, buffer: &mut Buffer, tools: &mut Tools<'_>) -> Result<Vec<Span>, ReadError> {
    let mut scanner = FrameScanner::new(len);
    let mut spans = Vec::new();
    while let Some(want) = scanner.want() {
        tools.read(object, want.offset, want.len, buffer)?;
        spans.extend(scanner.feed(buffer.as_slice())?);
    }
    Ok(spans)
}
