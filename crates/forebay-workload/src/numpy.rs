//! The random numbers of NumPy's legacy generator, which reproduce the exact file sizes of DLIO.
//!
//! DLIO seeds it with 10 before it makes data, whatever the workload says, and draws two sides per file. So all files of
//! one configuration have the same sizes everywhere, and these numbers are needed to know the sizes in a DLIO run. The
//! generator is the Mersenne Twister of Matsumoto and Nishimura, seeded by their `init_genrand`; normal values come from
//! Marsaglia's polar method, which makes two at a time and returns the second first.

use crate::spec::Dataset;

/// DLIO's seed for file sizes.
const DLIO_SEED: u32 = 10;
const WORDS: usize = 624;
/// How far the word lies that each is mixed with.
const APART: usize = 397;

impl Dataset {
    /// The sides of the samples of every file that DLIO would generate, training files first; `None` if all files are
    /// equal.
    pub fn dlio_sides(&self) -> Option<Vec<[u64; 2]>> {
        if !self.sizes_vary() {
            return None;
        }
        let side = self.record_length_bytes.sqrt();
        let (mean, stdev) = (side.trunc(), self.record_length_bytes_stdev / 2.0 / side);
        let mut bells = Bells::new(DLIO_SEED);
        let mut draw = || ((mean + stdev * bells.draw()) as u64).max(1);
        Some((0..self.n_files_train + self.n_files_eval).map(|_| [draw(), draw()]).collect())
    }
}

/// Normal draws with mean 0 and deviation 1.
struct Bells {
    twister: Twister,
    /// The polar method makes normal values in pairs; this is the second, which the next call returns, as NumPy's does.
    kept: Option<f64>,
}

impl Bells {
    fn new(seed: u32) -> Self {
        Self { twister: Twister::new(seed), kept: None }
    }

    fn draw(&mut self) -> f64 {
        if let Some(kept) = self.kept.take() {
            return kept;
        }
        loop {
            let (a, b) = (2.0 * self.twister.share() - 1.0, 2.0 * self.twister.share() - 1.0);
            let square = a * a + b * b;
            if square < 1.0 && square != 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.kept = Some(scale * a);
                return scale * b;
            }
        }
    }
}

/// The Mersenne Twister of 19,937 bits.
struct Twister {
    words: [u32; WORDS],
    next: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut words = [seed; WORDS];
        for i in 1..WORDS {
            let last = words[i - 1];
            words[i] = (last ^ (last >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        Self { words, next: WORDS }
    }

    fn turn(&mut self) {
        for i in 0..WORDS {
            let both = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % WORDS] & 0x7FFF_FFFF);
            let twist = if both & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.words[i] = self.words[(i + APART) % WORDS] ^ (both >> 1) ^ twist;
        }
        self.next = 0;
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.turn();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9D2C_5680;
        word ^= (word << 15) & 0xEFC6_0000;
        word ^ (word >> 18)
    }

    /// Uniform in `[0, 1)`, with 53 bits.
    fn share(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Part;
    use crate::dataset::tests::unet3d;

    #[test]
    fn bells_are_those_of_numpy() {
        // numpy.random.seed(10); numpy.random.normal(0, 1, 4), NumPy 2.4.
        let expected = [1.331586504129518, 0.7152789743984055, -1.5454002921112682, -0.008383849928522256];
        let mut bells = Bells::new(10);
        for expected in expected {
            assert!((bells.draw() - expected).abs() < 1e-14);
        }
    }

    #[test]
    fn sides_are_those_that_dlios_generator_draws() {
        // The same generator's normal(12107, …, 336), made whole, as DLIO makes it.
        let sides = unet3d().dlio_sides().unwrap();
        assert_eq!(sides[..3], [[15_865, 14_125], [7_745, 12_083], [13_860, 10_074]]);
        assert_eq!((sides.len(), sides.iter().map(|[a, b]| a * b).sum::<u64>()), (168, 25_285_981_919));
        assert_eq!(Dataset::default().dlio_sides(), None, "files that do not differ");
    }

    #[test]
    fn sides_that_are_given_are_not_drawn() {
        let given = Dataset { n_files_train: 2, n_files_eval: 1, ..unet3d() };
        let given = Dataset { sides: given.dlio_sides(), ..given };
        assert_eq!(given.shape_of(Part::Train, 1).dims, [7_745, 12_083]);
        assert_eq!(given.shape_of(Part::Eval, 0).dims, [13_860, 10_074], "behind those to train on");
        assert_eq!(given.bytes(Part::Train), 15_865 * 14_125 + 7_745 * 12_083);
    }
}
