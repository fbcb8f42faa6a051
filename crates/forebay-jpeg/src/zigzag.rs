//! The order in which the coefficients of a block are sent.

/// Natural position (row times 8 plus column) of the coefficient sent at each place.
pub(crate) const NATURAL: [usize; 64] = natural();

/// First of the indices that [`SCATTER`] assigns to coefficients outside the block.
pub(crate) const TRASH: usize = 64;

/// A block being decoded, with room for coefficients that [`SCATTER`] discards; a byte cannot index outside it.
pub(crate) type Workspace = [i16; 256];

/// [`NATURAL`] continued with [`TRASH`]: the entropy decoder stores before it knows whether the place exists.
pub(crate) static SCATTER: [u8; 256] = scatter();

/// Walks the anti-diagonals, alternately up and down.
const fn natural() -> [usize; 64] {
    let mut order = [0; 64];
    let (mut row, mut column, mut k) = (0, 0, 0);
    while k < 64 {
        order[k] = row * 8 + column;
        let is_up = (row + column) % 2 == 0;
        if is_up && column == 7 || !is_up && row < 7 && column == 0 {
            row += 1;
        } else if is_up && row == 0 || !is_up && row == 7 {
            column += 1;
        } else if is_up {
            row -= 1;
            column += 1;
        } else {
            row += 1;
            column -= 1;
        }
        k += 1;
    }
    order
}

const fn scatter() -> [u8; 256] {
    let mut table = [TRASH as u8; 256];
    let mut k = 0;
    while k < 64 {
        table[k] = NATURAL[k] as u8;
        k += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::NATURAL;

    #[test]
    fn order_begins_and_ends_as_the_standard_prints_it() {
        assert_eq!(NATURAL[..16], [0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5]);
        assert_eq!(NATURAL[28..36], [7, 14, 21, 28, 35, 42, 49, 56]);
        assert_eq!(NATURAL[56..], [53, 60, 61, 54, 47, 55, 62, 63]);
        let mut sorted = NATURAL;
        sorted.sort_unstable();
        assert!(sorted.iter().enumerate().all(|(i, &x)| i == x));
    }
}
