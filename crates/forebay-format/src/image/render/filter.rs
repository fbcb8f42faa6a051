//! The weights of source pixels, along one direction.

use std::ops::Range;

/// The weights of all output pixels of a window; as many per pixel, padded with zeros.
#[derive(Debug, Default)]
pub(super) struct Filter {
    made_for: Option<(u32, u32, u32, u32, bool)>,
    /// The source pixels that have weights.
    span: Range<u32>,
    /// Weights per output pixel.
    n: usize,
    starts: Vec<u32>,
    weights: Vec<f32>,
}

impl Filter {
    /// Makes ready to resize `src_len` pixels to `resized`, of which `len` from `offset` on are wanted.
    pub(super) fn prepare(&mut self, src_len: u32, resized: u32, offset: u32, len: u32, is_antialiased: bool) {
        let wanted = (src_len, resized, offset, len, is_antialiased);
        if self.made_for == Some(wanted) {
            return;
        }
        self.made_for = Some(wanted);
        let scale = f64::from(src_len) / f64::from(resized);
        let support = if is_antialiased { scale.max(1.0) } else { 1.0 };
        // A triangle of this half width covers at most so many pixel centres.
        self.n = (2.0 * support).ceil() as usize + 1;
        self.starts.clear();
        self.weights.clear();
        self.span = src_len..0;
        for at in offset..offset + len {
            self.push((f64::from(at) + 0.5) * scale, support, src_len);
        }
        self.shrink();
    }

    /// Appends the weights around `centre`: Pillow's, in double precision and in its order.
    fn push(&mut self, centre: f64, support: f64, src_len: u32) {
        let first = (centre - support + 0.5).max(0.0) as u32;
        let end = ((centre + support + 0.5) as u32).min(src_len);
        let weight = |x: u32| (1.0 - ((f64::from(x) - centre + 0.5) / support).abs()).max(0.0);
        let sum: f64 = (first..end).map(weight).sum();
        self.starts.push(first);
        self.span = self.span.start.min(first)..self.span.end.max(end);
        let n_before = self.weights.len();
        self.weights.extend((first..end).map(|x| (weight(x) / sum) as f32));
        self.weights.resize(n_before + self.n, 0.0);
    }

    /// Drops the padding that no pixel needs.
    fn shrink(&mut self) {
        let used = |tap: &[f32]| tap.iter().rposition(|weight| *weight != 0.0).map_or(1, |last| last + 1);
        let n = self.weights.chunks_exact(self.n).map(used).max().unwrap_or(1);
        if n < self.n {
            self.weights = self.weights.chunks_exact(self.n).flat_map(|tap| &tap[..n]).copied().collect();
            self.n = n;
        }
    }

    /// Exchanges first and last.
    pub(super) fn reverse(&mut self) {
        // The weights are no longer those that were asked for.
        self.made_for = None;
        self.starts.reverse();
        let n = self.n;
        let taps = self.weights.len() / n;
        for k in 0..taps / 2 {
            let (front, back) = self.weights.split_at_mut((taps - 1 - k) * n);
            front[k * n..(k + 1) * n].swap_with_slice(&mut back[..n]);
        }
    }

    /// The source pixels that the window depends on.
    pub(super) fn span(&self) -> Range<u32> {
        self.span.clone()
    }

    /// Weights per output pixel.
    pub(super) fn n(&self) -> usize {
        self.n
    }

    /// The first source pixel and the weights of an output pixel.
    pub(super) fn tap(&self, at: usize) -> (usize, &[f32]) {
        (self.starts[at] as usize, &self.weights[at * self.n..(at + 1) * self.n])
    }

    /// The taps of all output pixels.
    pub(super) fn taps(&self) -> impl Iterator<Item = (&u32, &[f32])> {
        self.starts.iter().zip(self.weights.chunks_exact(self.n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taps(src: u32, resized: u32, offset: u32, len: u32, aa: bool) -> Vec<(u32, Vec<f32>)> {
        let mut filter = Filter::default();
        filter.prepare(src, resized, offset, len, aa);
        filter.taps().map(|(start, weights)| (*start, weights.to_vec())).collect()
    }

    #[test]
    fn the_same_size_takes_each_pixel_as_it_is() {
        for aa in [true, false] {
            let found = taps(5, 5, 1, 3, aa);
            assert_eq!(found, [1, 2, 3].map(|at| (at, vec![1.0])), "antialiased: {aa}");
        }
    }

    #[test]
    fn halving_averages_four_with_antialiasing_and_two_without() {
        assert_eq!(taps(8, 4, 1, 1, true), [(1, vec![0.125, 0.375, 0.375, 0.125])]);
        assert_eq!(taps(8, 4, 1, 1, false), [(2, vec![0.5, 0.5])]);
    }

    #[test]
    fn weights_sum_to_one_and_stay_within_the_image() {
        for (src, resized) in [(1, 7), (7, 1), (480, 224), (415, 256), (3, 1000), (4000, 32)] {
            for aa in [true, false] {
                for (start, weights) in taps(src, resized, 0, resized, aa) {
                    assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                    let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
                    assert!(start as usize + last < src as usize, "{src} to {resized}");
                }
            }
        }
    }

    #[test]
    fn a_window_depends_on_the_pixels_with_weights() {
        let mut filter = Filter::default();
        filter.prepare(8, 4, 1, 2, true);
        assert_eq!(filter.span(), 1..7);
        filter.prepare(8, 8, 3, 2, false);
        assert_eq!(filter.span().start, 3);
        filter.prepare(500, 341, 58, 224, false);
        assert_eq!((filter.tap(0).0, filter.span()), (85, 85..414));
    }

    #[test]
    fn a_reversed_window_is_made_anew_for_the_next_image() {
        let mut filter = Filter::default();
        filter.prepare(9, 4, 0, 4, true);
        let forward: Vec<_> = filter.taps().map(|(start, weights)| (*start, weights.to_vec())).collect();
        filter.reverse();
        let backward: Vec<_> = filter.taps().map(|(start, weights)| (*start, weights.to_vec())).collect();
        assert_eq!(backward, forward.iter().rev().cloned().collect::<Vec<_>>());
        filter.prepare(9, 4, 0, 4, true);
        assert_eq!(filter.tap(0).0, forward[0].0 as usize);
    }
}
