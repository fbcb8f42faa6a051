//! The state of a network or emulated accelerator, as tensors and back.

use std::borrow::Cow;

use forebay_checkpoint::format::{Catalog, Error as FormatError};
use forebay_checkpoint::{Dtype, Header, Restored, Tensor};
use forebay_train::{Entry, State};
use forebay_units::random::Random;

/// Bytes per tensor of a synthetic state.
const MADE_TENSOR: u64 = 16 << 20;

pub(super) fn loaded<'a>(restored: &'a Restored, catalog: &Catalog) -> Result<State<'a>, FormatError> {
    let mut entries = Vec::with_capacity(catalog.tensors.len());
    for tensor in &catalog.tensors {
        let name = tensor.header.name.clone();
        let file = restored.file(&catalog.files[tensor.file]).unwrap_or_default();
        let bytes = file.get(tensor.offset as usize..(tensor.offset + tensor.n_bytes) as usize);
        let bytes = bytes.ok_or_else(|| FormatError::NoTensor { name: name.clone() })?;
        let shape = tensor.header.shape.iter().map(|n| *n as usize).collect();
        entries.push(Entry { name, shape, values: as_floats(bytes) });
    }
    Ok(State { n_steps: restored.name.step, entries })
}

/// Borrowed if aligned; only files of other programs are not.
fn as_floats(bytes: &[u8]) -> Cow<'_, [f32]> {
    // SAFETY: every bit pattern is a float.
    let (before, floats, after) = unsafe { bytes.align_to::<f32>() };
    if before.is_empty() && after.is_empty() {
        return Cow::Borrowed(floats);
    }
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

/// A synthetic state of random bytes, which do not compress.
pub(super) struct Made {
    headers: Vec<Header>,
    values: Vec<Vec<u8>>,
}

impl Made {
    pub(super) fn new(n_bytes: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let lens = (0..n_bytes.div_ceil(MADE_TENSOR)).map(|at| MADE_TENSOR.min(n_bytes - at * MADE_TENSOR));
        let (mut headers, mut values) = (Vec::new(), Vec::new());
        for (at, len) in lens.enumerate() {
            headers.push(Header { name: format!("state.{at:04}"), dtype: Dtype::U8, shape: vec![len] });
            let mut bytes = vec![0; len as usize];
            random.fill(&mut bytes);
            values.push(bytes);
        }
        Self { headers, values }
    }

    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        self.headers.iter().zip(&self.values).map(|(header, bytes)| Tensor { header, bytes: bytes.into() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_that_is_made_up_has_the_size_that_was_asked_for() {
        let made = Made::new((16 << 20) + 5, 3);
        let lens: Vec<u64> = made.tensors().iter().map(|tensor| tensor.bytes.n_bytes()).collect();
        assert_eq!(lens, [16 << 20, 5]);
        assert!(made.tensors().iter().all(|tensor| tensor.header.n_bytes() == Some(tensor.bytes.n_bytes())));
        assert_ne!(made.values[0][..8], made.values[0][8..16]);
    }

    #[test]
    fn floats_are_the_same_wherever_they_lie() {
        let bytes: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        for at in 0..4 {
            let shifted: Vec<u8> = std::iter::repeat_n(0, at).chain(bytes.iter().copied()).collect();
            assert_eq!(as_floats(&shifted[at..]).as_ref(), [1.5, -2.0], "{at} bytes further on");
        }
    }
}
