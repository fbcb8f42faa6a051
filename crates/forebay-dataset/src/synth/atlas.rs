//! The texture of things: 1/f noise and sensor grain, computed once per process.
//!
//! The amplitude spectrum of natural scenes falls as 1/f, that is, every octave carries the same variance. Each texture
//! is a sum of random lattices, one per octave, interpolated between their nodes; the weights of the octaves make it a
//! natural surface, a smooth one (sky, skin, blurred ground) or a rough one (grass, gravel). All lattices wrap around,
//! and each row is stored twice in succession, so that any run of up to [`SIDE`] texels is contiguous.

use std::sync::OnceLock;

use crate::rng::Rng;

/// Side of a texture, and the longest contiguous run that can be read from it.
pub(crate) const SIDE: usize = 256;
const GRAIN_LEN: usize = 1 << 16;
const OCTAVES: u32 = 7;
/// Weight of the octave whose lattice step is 1, 2, 4, … 64 texels.
const WEIGHTS: [[i32; OCTAVES as usize]; 3] =
    [[16, 16, 16, 16, 16, 16, 16], [1, 2, 5, 12, 24, 32, 32], [22, 26, 20, 12, 8, 6, 6]];
const TEXTURE_RMS: f64 = 40.0;
const GRAIN_RMS: f64 = 32.0;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Texture {
    Natural = 0,
    Smooth = 1,
    Rough = 2,
}

pub(crate) struct Atlas {
    textures: [Vec<i8>; 3],
    grain: Vec<i8>,
}

impl Atlas {
    /// The atlas of this process; it is the same in every process.
    pub(crate) fn shared() -> &'static Self {
        static ATLAS: OnceLock<Atlas> = OnceLock::new();
        ATLAS.get_or_init(Self::compute)
    }

    fn compute() -> Self {
        let lattices: Vec<Vec<i32>> = (0..OCTAVES).map(octave).collect();
        Self { textures: WEIGHTS.map(|weights| weave(&lattices, &weights)), grain: grain() }
    }

    /// [`SIDE`] texels of `texture` from (`x`, `y`) to the right, with values of r.m.s. 40.
    pub(crate) fn row(&self, texture: Texture, x: usize, y: usize) -> &[i8] {
        let start = (y % SIDE) * 2 * SIDE + x % SIDE;
        &self.textures[texture as usize][start..start + SIDE]
    }

    /// `len` grains of sensor noise from a place named by `bits`, with values of r.m.s. 32.
    pub(crate) fn grain(&self, bits: u64, len: usize) -> &[i8] {
        // The widest picture takes all of it.
        let start = bits as usize % (self.grain.len() - len).max(1);
        &self.grain[start..start + len]
    }
}

/// One octave on the full grid: a random lattice of step 2^k, bilinearly interpolated.
fn octave(k: u32) -> Vec<i32> {
    let (step, nodes) = (1usize << k, SIDE >> k);
    let mut rng = Rng::new(0x0A71A5, u64::from(k));
    let lattice: Vec<i32> = (0..nodes * nodes).map(|_| (rng.bell() * 256.0) as i32).collect();
    let node = |x: usize, y: usize| lattice[(y % nodes) * nodes + x % nodes];
    let mut grid = vec![0; SIDE * SIDE];
    for (at, value) in grid.iter_mut().enumerate() {
        let (x, y) = (at % SIDE, at / SIDE);
        let (nx, fx, ny, fy) = (x >> k, (x % step) as i32, y >> k, (y % step) as i32);
        let full = step as i32;
        let top = node(nx, ny) * (full - fx) + node(nx + 1, ny) * fx;
        let bottom = node(nx, ny + 1) * (full - fx) + node(nx + 1, ny + 1) * fx;
        *value = (top * (full - fy) + bottom * fy) >> (2 * k);
    }
    grid
}

/// The weighted sum of the octaves, scaled to the texture's r.m.s., each row twice.
fn weave(octaves: &[Vec<i32>], weights: &[i32]) -> Vec<i8> {
    let sum: Vec<i32> = (0..SIDE * SIDE)
        .map(|at| octaves.iter().zip(weights).map(|(octave, weight)| octave[at] * weight).sum())
        .collect();
    let texels = scaled(&sum, TEXTURE_RMS);
    texels.chunks_exact(SIDE).flat_map(|row| row.iter().chain(row).copied()).collect()
}

/// White noise smeared over neighbours along the row, as interpolating a sensor's colour mosaic does.
fn grain() -> Vec<i8> {
    let mut rng = Rng::new(0x0A71A5, 1000);
    let white: Vec<i32> = (0..=GRAIN_LEN).map(|_| (rng.bell() * 1024.0) as i32).collect();
    let smeared: Vec<i32> = white.windows(2).map(|pair| 2 * pair[0] + pair[1]).collect();
    scaled(&smeared, GRAIN_RMS)
}

fn scaled(values: &[i32], rms: f64) -> Vec<i8> {
    let squares: i64 = values.iter().map(|&v| i64::from(v) * i64::from(v)).sum();
    let factor = rms / (squares as f64 / values.len() as f64).sqrt();
    values.iter().map(|&v| (f64::from(v) * factor) as i8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textures_have_the_stated_amplitude() {
        let atlas = Atlas::shared();
        for texture in &atlas.textures {
            let squares: i64 = texture.iter().map(|&v| i64::from(v) * i64::from(v)).sum();
            let rms = (squares as f64 / texture.len() as f64).sqrt();
            assert!((rms - TEXTURE_RMS).abs() < 1.5, "rms {rms}");
        }
    }

    #[test]
    fn the_widest_picture_has_grain() {
        assert_eq!(Atlas::shared().grain(u64::MAX, 65_535_usize.next_multiple_of(16)).len(), 65_536);
    }

    #[test]
    fn rows_wrap_around() {
        let atlas = Atlas::shared();
        let (start, shifted) = (atlas.row(Texture::Natural, 0, 3), atlas.row(Texture::Natural, 200, 3 + SIDE));
        assert_eq!(start[..200], shifted[SIDE - 200..]);
    }
}
