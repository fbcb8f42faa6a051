//! npz as NumPy's `savez` makes it: the values as `x`, a label of 0 a sample as `y`.

use std::io::{self, Write};
use std::ops::Range;

use forebay_format::npy::write::header;
use forebay_format::npz::write::{Archive, Method, stored_len};
use forebay_workload::Element;

use super::{Draft, Form, Piece, Proof, descr};

pub(super) struct Npz {
    pub(super) element: Element,
    /// How hard it is deflated; `None`: stored.
    pub(super) level: Option<u32>,
}

impl Npz {
    fn header(&self, piece: &Piece) -> Vec<u8> {
        header(descr(self.element), &piece.array_shape())
    }

    fn labels(piece: &Piece) -> Vec<u8> {
        let mut labels = header("<i8", &[piece.shape.n_samples]);
        labels.resize(labels.len() + 8 * piece.shape.n_samples as usize, 0);
        labels
    }

    fn lengths(&self, piece: &Piece) -> [(&'static str, u64); 2] {
        let values = self.header(piece).len() as u64 + piece.bytes();
        [("x.npy", values), ("y.npy", Self::labels(piece).len() as u64)]
    }

    fn method(&self) -> Method {
        self.level.map_or(Method::Stored, |level| Method::Deflated { level })
    }

    fn write_values(&self, piece: &Piece, archive: &mut Archive, draft: &mut Draft<'_>) -> io::Result<()> {
        let (header, mut noise) = (self.header(piece), piece.noise.from(0));
        if self.level.is_none() {
            archive.stored(&header);
            draft.write_all(&header)?;
            return draft.fill(piece.bytes(), |out| {
                noise(out);
                archive.stored(out);
            });
        }
        let (mut values, mut packed) = (header, Vec::new());
        let mut left = piece.bytes();
        loop {
            archive.deflated(&values, &mut packed);
            draft.write_all(&packed)?;
            packed.clear();
            if left == 0 {
                return Ok(());
            }
            values.resize(left.min(128 << 10) as usize, 0);
            noise(&mut values);
            left -= values.len() as u64;
        }
    }

    /// The whole second member; it is short enough to be held.
    fn labels_member(&self, piece: &Piece, archive: &mut Archive) -> Vec<u8> {
        let labels = Self::labels(piece);
        let mut out = archive.begin("y.npy", labels.len() as u64, self.method());
        match self.level {
            None => {
                archive.stored(&labels);
                out.extend_from_slice(&labels);
            }
            Some(_) => archive.deflated(&labels, &mut out),
        }
        let patch = archive.end(&mut out);
        out[..patch.bytes.len()].copy_from_slice(&patch.bytes);
        out
    }
}

impl Form for Npz {
    fn proof(&self, piece: &Piece) -> Proof {
        match self.level {
            None => Proof::Length(stored_len(&self.lengths(piece))),
            // The record that ends an archive, without a comment behind it.
            Some(_) => Proof::Tail(|tail| {
                let end = tail.len().checked_sub(22).map(|at| &tail[at..]);
                end.is_some_and(|end| end.starts_with(b"PK\x05\x06") && end.ends_with(&[0, 0]))
            }),
        }
    }

    fn room(&self, piece: &Piece) -> u64 {
        let stored = stored_len(&self.lengths(piece));
        if self.level.is_some() { stored + stored / 1000 + 4096 } else { stored }
    }

    fn write(&self, piece: &Piece, _range: Range<u64>, draft: &mut Draft<'_>) -> io::Result<()> {
        let mut archive = Archive::default();
        let (name, len) = self.lengths(piece)[0];
        draft.write_all(&archive.begin(name, len, self.method()))?;
        self.write_values(piece, &mut archive, draft)?;
        let mut rest = Vec::new();
        let patch = archive.end(&mut rest);
        rest.extend(self.labels_member(piece, &mut archive));
        rest.extend(archive.finish());
        draft.write_all(&rest)?;
        draft.patch(patch.offset as usize, &patch.bytes);
        Ok(())
    }
}
