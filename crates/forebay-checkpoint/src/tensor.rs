//! The content of a checkpoint: named tensors and a few strings.

use std::collections::BTreeMap;

use crate::{Elsewhere, Values};

/// The type of a tensor's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Dtype {
    Bool,
    U8,
    I8,
    U16,
    I16,
    F16,
    Bf16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
    F4,
    F6E2m3,
    F6E3m2,
    F8E5m2,
    F8E4m3,
    F8E8m0,
    F8E4m3Fnuz,
    F8E5m2Fnuz,
    C64,
    C128,
}

impl Dtype {
    pub fn bits(self) -> usize {
        match self {
            Self::F4 => 4,
            Self::F6E2m3 | Self::F6E3m2 => 6,
            Self::Bool | Self::U8 | Self::I8 => 8,
            Self::F8E5m2 | Self::F8E4m3 | Self::F8E8m0 | Self::F8E4m3Fnuz | Self::F8E5m2Fnuz => 8,
            Self::U16 | Self::I16 | Self::F16 | Self::Bf16 => 16,
            Self::U32 | Self::I32 | Self::F32 => 32,
            Self::U64 | Self::I64 | Self::F64 | Self::C64 => 64,
            Self::C128 => 128,
        }
    }

    /// Bytes per value, rounded up. Values below one byte are packed; [`Header::n_bytes`] accounts for that.
    pub fn size(self) -> usize {
        self.bits().div_ceil(8)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Unique in a checkpoint.
    pub name: String,
    pub dtype: Dtype,
    /// Its dimensions; empty for a scalar.
    pub shape: Vec<u64>,
}

impl Header {
    /// Bytes of its values; `None` on overflow or if the packed values do not fill whole bytes.
    pub fn n_bytes(&self) -> Option<u64> {
        let n_values = self.shape.iter().try_fold(1_u64, |values, n| values.checked_mul(*n))?;
        let bits = u128::from(n_values) * self.dtype.bits() as u128;
        bits.is_multiple_of(8).then(|| u64::try_from(bits / 8).ok()).flatten()
    }
}

/// A tensor with values in memory or on a device, little-endian, in row-major order.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'a> {
    pub header: &'a Header,
    pub bytes: Values<'a>,
}

impl<'a> Tensor<'a> {
    /// A tensor with these values: bytes in memory, or [`Values::There`].
    pub fn new(header: &'a Header, bytes: impl Into<Values<'a>>) -> Self {
        Self { header, bytes: bytes.into() }
    }
}

/// The state of a program at one moment, borrowed for a save.
#[derive(Debug, Clone, Default)]
pub struct Snapshot<'a> {
    /// Its tensors, in the order in which they are written.
    pub tensors: Vec<Tensor<'a>>,
    /// Everything else: the step, the state of the input pipeline, seeds.
    pub notes: BTreeMap<String, String>,
}

impl<'a> Snapshot<'a> {
    pub fn n_bytes(&self) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes.n_bytes()).sum()
    }

    /// The first device that holds values, if any.
    pub fn device(&self) -> Option<&'a dyn Elsewhere> {
        self.tensors.iter().find_map(|tensor| match tensor.bytes {
            Values::Here(_) => None,
            Values::There { device, .. } => Some(device),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_that_no_machine_could_hold_has_no_size() {
        let header = |shape: &[u64]| Header { name: "w".to_owned(), dtype: Dtype::F32, shape: shape.to_vec() };
        assert_eq!(header(&[]).n_bytes(), Some(4));
        assert_eq!(header(&[3, 5]).n_bytes(), Some(60));
        assert_eq!(header(&[3, 0, 5]).n_bytes(), Some(0));
        assert_eq!(header(&[u64::MAX, 2]).n_bytes(), None);
        assert_eq!(header(&[u64::MAX / 2]).n_bytes(), None);
    }

    #[test]
    fn values_of_less_than_a_byte_must_fill_whole_bytes() {
        let header = |dtype, n| Header { name: "w".to_owned(), dtype, shape: vec![n] };
        assert_eq!(header(Dtype::F4, 6).n_bytes(), Some(3));
        assert_eq!(header(Dtype::F4, 7).n_bytes(), None);
        assert_eq!(header(Dtype::F6E2m3, 4).n_bytes(), Some(3));
        assert_eq!(header(Dtype::F6E3m2, 6).n_bytes(), None);
        assert_eq!(Dtype::F6E3m2.size(), 1);
    }
}
