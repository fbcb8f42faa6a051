//! Token files: numbers without a header, or the one side of an npy file, cut into sequences of equal length.
//!
//! The tokens of a file are one stream, in which documents follow each other with whatever the tokeniser put between them. A
//! sequence has one token more than its length: its first `length` tokens are the input, its last `length` the targets. The
//! next sequence begins with the last token of the one before. What does not fill a sequence at a file's end is left out.

use std::path::PathBuf;

use forebay_storage::Storage;
use forebay_units::{Element, PathText};

use super::arrays::{Arrays, Lane, Part, files_of, refused};
use super::npy;
use crate::error::{Error, SampleError};

const ENDINGS: [&str; 2] = ["bin", "npy"];

/// How token files are read.
#[derive(Debug, Clone, Copy)]
pub struct TokenFiles {
    /// The type of the tokens in files without a header.
    pub stored: Element,
    /// The type of the tokens in a batch.
    pub element: Element,
    /// Tokens of a sequence that are input.
    pub length: u64,
    /// Neighbouring sequences that stay together when blocks are shuffled.
    pub block: u64,
}

pub(super) fn open(storage: &dyn Storage, paths: &[PathBuf], of: &TokenFiles) -> Result<Arrays, Error> {
    let mut arrays = Arrays::default();
    let mut parts = Vec::new();
    let (mut first_row, mut n_tokens_all, mut element) = (0, 0, None);
    for path in files_of(storage, paths, &ENDINGS)? {
        let object = storage.open(&path)?;
        let is_npy = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"));
        let (found, offset, n_tokens) = if is_npy {
            let header = npy::header_at(object.as_ref(), &path)?;
            if header.shape.len() != 1 {
                return Err(refused(&path, format_args!("tokens have one side, found the shape {:?}", header.shape)));
            }
            (npy::element_of(&header, "tokens", &path)?, header.data_offset, header.shape[0])
        } else {
            (of.stored, 0, object.len()? / of.stored.bytes())
        };
        let (bytes, needed) = (object.len()?, offset + n_tokens * found.bytes());
        if bytes != needed && (!is_npy || bytes < needed) {
            let what = format_args!("{bytes} bytes are no whole number of {} tokens", found.name());
            return Err(refused(&path, what));
        }
        if !is_integer(found) {
            return Err(refused(&path, format_args!("tokens are integers, found {}", found.name())));
        }
        let wanted = *element.get_or_insert(found);
        if wanted != found {
            let first = paths[0].escaped().into_owned();
            let (here, there) = (found.name(), wanted.name());
            return Err(refused(&path, format_args!("tokens of {here}, but those of {first} are {there}")));
        }
        n_tokens_all += n_tokens;
        let file = arrays.files.len() as u32;
        arrays.files.push(path);
        let n_rows = n_tokens.saturating_sub(1) / of.length;
        if n_rows > 0 {
            let stride = of.length * found.bytes();
            parts.push(Part { first_row, n_rows, file, piece: None, offset, stride });
            first_row += n_rows;
        }
    }
    if parts.is_empty() {
        let (first, needed) = (arrays.files[0].escaped().into_owned(), of.length + 1);
        let what = format!("{first}: {n_tokens_all} tokens make no sequence of {needed}");
        return Err(Error::Source { what, source: None });
    }
    let element = element.unwrap_or(of.stored);
    arrays.lanes.push(Lane { name: "tokens".to_owned(), element, shape: vec![of.length + 1], parts });
    Ok(arrays)
}

fn is_integer(element: Element) -> bool {
    !matches!(element, Element::F16 | Element::Bf16 | Element::F32 | Element::F64)
}

/// Writes tokens as another type.
pub(super) fn convert(from: Element, to: Element, bytes: &[u8], out: &mut [u8]) -> Result<(), SampleError> {
    match (from, to) {
        (Element::U8, _) => each(bytes, to, out, |[one]: [u8; 1]| i64::from(one)),
        (Element::I8, _) => each(bytes, to, out, |one: [u8; 1]| i64::from(i8::from_le_bytes(one))),
        (Element::U16, _) => each(bytes, to, out, |two| i64::from(u16::from_le_bytes(two))),
        (Element::I16, _) => each(bytes, to, out, |two| i64::from(i16::from_le_bytes(two))),
        (Element::U32, _) => each(bytes, to, out, |four| i64::from(u32::from_le_bytes(four))),
        (Element::I32, _) => each(bytes, to, out, |four| i64::from(i32::from_le_bytes(four))),
        // A token above 2^63 is damage; as a negative number it cannot be overlooked.
        (Element::U64 | Element::I64, _) => each(bytes, to, out, i64::from_le_bytes),
        _ => Err(SampleError::Refused(format!("{} values are no tokens", from.name()))),
    }
}

fn each<const N: usize>(
    bytes: &[u8],
    to: Element,
    out: &mut [u8],
    read: impl Fn([u8; N]) -> i64,
) -> Result<(), SampleError> {
    let tokens = bytes.as_chunks::<N>().0.iter().map(|token| read(*token));
    if to == Element::I64 {
        out.as_chunks_mut::<8>().0.iter_mut().zip(tokens).for_each(|(place, token)| *place = token.to_le_bytes());
        return Ok(());
    }
    for (place, token) in out.as_chunks_mut::<4>().0.iter_mut().zip(tokens) {
        let token = i32::try_from(token)
            .map_err(|_| SampleError::Refused(format!("token {token} does not fit into {}", to.name())))?;
        *place = token.to_le_bytes();
    }
    Ok(())
}
