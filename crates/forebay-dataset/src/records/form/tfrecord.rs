//! tfrecord as DLIO fills it: an `Example` a sample, `image` its bytes and `size` its side. Beside each file lies the index that
//! DALI wants, a line "offset length" a record, in the folder `index`. A file may be cut between records.

use std::io::{self, Write};
use std::ops::Range;

use forebay_format::example::Around;
use forebay_format::tfrecord::{FOOTER_LEN, HEADER_LEN, frame_header, mask};

use super::{Beside, Draft, Form, Piece, Proof};

pub(super) struct TfRecord;

fn around(piece: &Piece) -> Around {
    let side = piece.shape.dims.first().copied().unwrap_or(0) as i64;
    Around::new(("image", piece.shape.sample_bytes), ("size", side))
}

fn frame_len(piece: &Piece) -> u64 {
    (HEADER_LEN + FOOTER_LEN) as u64 + around(piece).overhead() + piece.shape.sample_bytes
}

impl Form for TfRecord {
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
}
