//! Where an output pixel lies between two source pixels.

/// The two source pixels around an output pixel's centre, and how far it is from the first towards the second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tap {
    pub(super) lower: u32,
    pub(super) upper: u32,
    /// Zero wherever `lower` and `upper` are the same pixel.
    pub(super) weight: f32,
}

/// The taps of all output pixels along one direction.
pub(super) fn taps(src_len: u32, dst_len: u32) -> impl Iterator<Item = Tap> {
    let scale = src_len as f32 / dst_len as f32;
    (0..dst_len).map(move |at| tap(at, scale, src_len))
}

/// The arithmetic, in single precision and in this order, is TensorFlow's: the weight of a wide image depends on it in the
/// fourth digit.
fn tap(at: u32, scale: f32, src_len: u32) -> Tap {
    let centre = (at as f32 + 0.5) * scale - 0.5;
    let below = centre.floor();
    let upper = (centre.ceil() as u32).min(src_len - 1);
    let lower = (below.max(0.0) as u32).min(upper);
    let weight = if lower == upper { 0.0 } else { centre - below };
    Tap { lower, upper, weight }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halving_takes_the_middle_between_two_pixels() {
        let found: Vec<Tap> = taps(4, 2).collect();
        assert_eq!(found, [(0, 1), (2, 3)].map(|(lower, upper)| Tap { lower, upper, weight: 0.5 }));
    }

    #[test]
    fn doubling_repeats_the_edges() {
        let found: Vec<_> = taps(2, 4).map(|tap| (tap.lower, tap.upper, tap.weight)).collect();
        assert_eq!(found, [(0, 0, 0.0), (0, 1, 0.25), (0, 1, 0.75), (1, 1, 0.0)]);
    }

    #[test]
    fn neighbours_are_adjacent_or_the_same_with_weight_zero() {
        for (src, dst) in [(1, 7), (7, 1), (480, 224), (415, 224), (65_535, 224), (3, 1000), (224, 224)] {
            for tap in taps(src, dst) {
                let same = tap.upper == tap.lower && tap.weight == 0.0;
                assert!(same || tap.upper == tap.lower + 1 && (0.0..1.0).contains(&tap.weight), "{tap:?}");
                assert!(tap.upper < src);
            }
        }
    }
}
