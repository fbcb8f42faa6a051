//! The fields of a sample that has several, and where they lie in its slot.

use forebay_units::Element;

/// One value of a sample, such as `x` or `label`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub name: String,
    /// The type of its numbers.
    pub element: Element,
    /// Its sides in one sample; none for a single number.
    pub shape: Vec<u64>,
    /// Where it begins in the sample's slot.
    pub offset: usize,
}

/// Larger samples are refused: no machine has the memory for a batch of them.
const LARGEST: u64 = 1 << 40;

impl Field {
    pub fn n_bytes(&self) -> usize {
        (self.shape.iter().product::<u64>() * self.element.bytes()) as usize
    }

    /// Puts fields one after the other; returns them with the bytes of a slot. A field that is alone leaves no gap between
    /// samples; numbers of several are aligned.
    pub(crate) fn lay_out(of: Vec<(String, Element, Vec<u64>)>) -> Result<(Vec<Self>, usize), String> {
        let (n_fields, mut offset) = (of.len(), 0);
        let mut fields = Vec::with_capacity(n_fields);
        for (name, element, shape) in of {
            let n_bytes = shape.iter().try_fold(element.bytes(), |product, side| product.checked_mul(*side));
            let fits = |n: &u64| *n > 0 && *n + offset <= LARGEST;
            let Some(n_bytes) = n_bytes.filter(fits) else {
                return Err(format!("{name} has the shape {shape:?} in each sample"));
            };
            fields.push(Self { name, element, shape, offset: offset as usize });
            offset += n_bytes;
            if n_fields > 1 {
                offset = offset.next_multiple_of(8);
            }
        }
        Ok((fields, offset as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(of: &[(Element, &[u64])]) -> (Vec<usize>, usize) {
        let of = of.iter().map(|(element, shape)| ("x".to_owned(), *element, shape.to_vec())).collect();
        let (fields, slot_bytes) = Field::lay_out(of).unwrap();
        (fields.iter().map(|field| field.offset).collect(), slot_bytes)
    }

    #[test]
    fn one_field_leaves_no_gap_and_several_are_aligned() {
        assert_eq!(offsets(&[(Element::U8, &[3, 5])]), (vec![0], 15));
        assert_eq!(
            offsets(&[(Element::U8, &[3, 5]), (Element::I64, &[]), (Element::F16, &[3])]),
            (vec![0, 16, 24], 32)
        );
    }

    #[test]
    fn empty_and_impossible_shapes_are_refused() {
        for shape in [vec![0], vec![1 << 40, 1 << 40], vec![1 << 38]] {
            let said = Field::lay_out(vec![("x".to_owned(), Element::F64, shape)]).unwrap_err();
            assert!(said.starts_with("x has the shape ["), "{said}");
        }
    }
}
