//! Random changes to inputs.

use forebay_units::random::Random;

/// Values at which lengths and counts go wrong.
const EDGES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x1_0000, 0x7fff_ffff, 0xffff_ffff, u64::MAX, u64::MAX - 15];
const INPUT_MAX: usize = 1 << 20;

pub struct Mutator {
    random: Random,
}

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    /// One of the inputs, changed in one to eight ways; every other time its checksums are repaired.
    pub fn mutate(&mut self, corpus: &[Vec<u8>], repair: fn(&mut [u8])) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(8) {
            let other = &corpus[self.below(corpus.len())];
            self.change(&mut input, other);
        }
        input.truncate(INPUT_MAX);
        if self.below(2) == 0 {
            repair(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, other: &[u8]) {
        let at = self.below(input.len());
        let len = 1 + self.below((input.len() - at).clamp(1, 64));
        let end = (at + len).min(input.len());
        match self.below(9) {
            _ if input.is_empty() => input.push(self.random.bits() as u8),
            0 => input[at] ^= 1 << self.below(8),
            1 => input[at] = self.random.bits() as u8,
            2 => self.put_edge(input, at),
            3 => input.truncate(at),
            4 => drop(input.drain(at..end)),
            5 => {
                let piece = input[at..end].to_vec();
                let to = self.below(input.len());
                input.splice(to..to, piece);
            }
            6 => {
                let from = self.below(other.len());
                let to = (from + len).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            7 => input[at..end].fill(self.random.bits() as u8),
            _ => self.nudge(input, at),
        }
    }

    /// Overwrites one to eight bytes by an edge value in either byte order.
    fn put_edge(&mut self, input: &mut [u8], at: usize) {
        let value = EDGES[self.below(EDGES.len())];
        let width = 1 << self.below(4);
        let little = value.to_le_bytes();
        let mut bytes = little[..width].to_vec();
        if self.below(2) == 0 {
            bytes.reverse();
        }
        input[at..].iter_mut().zip(bytes).for_each(|(byte, edge)| *byte = edge);
    }

    /// Adds a little to a byte, or takes it away.
    fn nudge(&mut self, input: &mut [u8], at: usize) {
        let step = 1 + self.below(16) as u8;
        input[at] = if self.below(2) == 0 { input[at].wrapping_add(step) } else { input[at].wrapping_sub(step) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_inputs() {
        let corpus = [b"one".to_vec(), Vec::new(), vec![7; 100]];
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..500).map(|_| mutator.mutate(&corpus, |_| {})).collect::<Vec<_>>()
        };
        assert_eq!(inputs(3), inputs(3));
        assert_ne!(inputs(3), inputs(4));
    }
}
