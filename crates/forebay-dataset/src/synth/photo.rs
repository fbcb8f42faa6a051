//! A picture before it is a file: planes of luma and half-size chroma.
//!
//! The scene is a *dead-leaves* model: shapes with power-law sizes fall on the canvas and hide one another, which gives
//! photographs' edges at every scale and their heavy-tailed contrasts. Shapes carry 1/f texture; the lens blurs; light
//! falls off across the frame; the sensor adds grain. Colour is made as luma and chroma, with a common tint and little
//! chroma contrast, which is what the correlation of red, green and blue in photographs amounts to. Everything is
//! 16-bit integer arithmetic on rows, in eighths of a grey level (Q3).

use std::ops::Range;

use crate::rng::Rng;

use super::atlas::{Atlas, SIDE};
use super::leaf::{Leaf, Palette, Surface};

/// The radius of the smallest shape, in pixels.
const RADIUS_MIN: f32 = 4.0;
/// How often the canvas is covered over; more hides what came first without changing the statistics.
const COVER: f32 = 1.6;

/// One colour plane: samples in rows of `width`.
#[derive(Clone, Debug, Default)]
pub struct Plane {
    pub width: usize,
    pub height: usize,
    pub samples: Vec<u8>,
}

impl Plane {
    fn reshape(&mut self, width: usize, height: usize) {
        (self.width, self.height) = (width, height);
        self.samples.resize(width * height, 0);
    }
}

/// A picture in luma and two chroma planes of half its width and height (4:2:0).
///
/// The planes cover whole 16×16 blocks, so they may be larger than the picture; the scene goes on there.
#[derive(Clone, Debug, Default)]
pub struct Photo {
    /// Columns without the padding to whole blocks.
    pub width: u32,
    pub height: u32,
    /// Luma, blue difference, red difference.
    pub planes: [Plane; 3],
}

/// Working memory for painting, kept from one picture to the next.
#[derive(Default)]
pub(crate) struct Canvas {
    planes: [Vec<i16>; 3],
    blurred: Vec<i16>,
}

impl Photo {
    /// Paints a scene over whatever this photo held. `activity` is the amount of detail: 1 is a usual photograph.
    pub(crate) fn paint(&mut self, canvas: &mut Canvas, rng: &mut Rng, size: (u32, u32), activity: f32) {
        (self.width, self.height) = size;
        let whole = |side: u32| (side as usize).next_multiple_of(16);
        let (width, height) = (whole(size.0), whole(size.1));
        self.planes[0].reshape(width, height);
        self.planes[1].reshape(width / 2, height / 2);
        self.planes[2].reshape(width / 2, height / 2);
        let palette = Palette::draw(rng, (width, height), activity);
        canvas.lay_leaves(rng, &palette, (width, height), activity);
        canvas.develop(self, rng, activity);
    }
}

impl Canvas {
    fn lay_leaves(&mut self, rng: &mut Rng, palette: &Palette, size: (usize, usize), activity: f32) {
        self.planes[0].resize(size.0 * size.1, 0);
        self.planes[1].resize(size.0 * size.1 / 4, 0);
        self.planes[2].resize(size.0 * size.1 / 4, 0);
        let ground = palette.surface(rng);
        for y in 0..size.1 {
            self.lay_row(size.0, y, 0..size.0, &ground, size.1 as i32 / 2);
        }
        let smallest = RADIUS_MIN / activity.clamp(0.5, 1.5);
        let largest = size.0.min(size.1) as f32 * 0.45;
        let (low, high) = (1.0 / (largest * largest), 1.0 / (smallest * smallest));
        let mut left = (size.0 * size.1) as f32 * COVER;
        while left > 0.0 {
            // Radius density proportional to r⁻³: every scale covers the same area.
            let radius = 1.0 / (low + (high - low) * rng.unit()).sqrt();
            let leaf = Leaf::draw(rng, size, radius);
            let surface = palette.surface(rng);
            for y in leaf.rows(size.1) {
                self.lay_row(size.0, y, leaf.columns(y, size.0), &surface, leaf.middle());
            }
            left -= leaf.area();
        }
    }

    /// Paints the columns `run` of row `y`, and on even rows the chroma beneath them; light is even at row `middle`.
    fn lay_row(&mut self, width: usize, y: usize, run: Range<usize>, surface: &Surface, middle: i32) {
        let Surface { place, shade, relief, .. } = *surface;
        let row = &mut self.planes[0][y * width..][run.clone()];
        let light = surface.luma.wrapping_add(((y as i32 - middle) * i32::from(shade.1) / 128) as i16);
        lay(row, surface, (run.start, y), light, shade.0, relief.0);
        if y.is_multiple_of(2) {
            let (half, line) = (run.start / 2..run.end / 2, y / 2 * (width / 2));
            let spot = (half.start + place.1, y / 2);
            lay(&mut self.planes[1][line..][half.clone()], surface, spot, surface.blue, 0, relief.1);
            lay(&mut self.planes[2][line..][half], surface, spot, surface.red, 0, -relief.1);
        }
    }

    /// Lens, light and sensor: turns the painted planes into 8-bit samples.
    fn develop(&mut self, photo: &mut Photo, rng: &mut Rng, activity: f32) {
        let blur = [1, 1, 2][rng.below(3) as usize];
        let falloff = (rng.bell() * 100.0, rng.bell() * 100.0);
        let grain = activity * rng.between(3.0, 9.0);
        let settings = [(0, blur, grain), (128, 1, grain * 0.4), (128, 1, grain * 0.4)];
        for (at, (offset, blur, grain)) in settings.into_iter().enumerate() {
            let falloff = if at == 0 { falloff } else { (0.0, 0.0) };
            let lens = Lens { offset: offset * 8, blur, falloff, grain: grain.min(250.0) as i16 };
            lens.develop(&self.planes[at], &mut photo.planes[at], &mut self.blurred, rng);
        }
    }
}

/// Writes `light + slope + texture` over `row`, in pieces no longer than a texture is wide.
fn lay(row: &mut [i16], surface: &Surface, at: (usize, usize), light: i16, slope: i16, relief: i16) {
    let (x, y) = (at.0 + surface.place.0, at.1 + surface.place.1);
    for (piece, texels) in row.chunks_mut(SIDE).enumerate() {
        let source = Atlas::shared().row(surface.texture, x + piece * SIDE, y);
        let light = light.wrapping_add((piece * SIDE / 128) as i16 * slope);
        for (column, (sample, &texel)) in texels.iter_mut().zip(source).enumerate() {
            let shade = (column as i16).wrapping_mul(slope) >> 7;
            let detail = i16::from(texel).wrapping_mul(relief) >> 5;
            *sample = light.wrapping_add(shade).wrapping_add(detail);
        }
    }
}

/// What happens to one plane between the scene and the samples.
struct Lens {
    offset: i16,
    /// Weight, in eighths, of each neighbour in the blur along either axis.
    blur: i16,
    falloff: (f32, f32),
    grain: i16,
}

impl Lens {
    fn develop(&self, source: &[i16], target: &mut Plane, blurred: &mut Vec<i16>, rng: &mut Rng) {
        let (width, height) = (target.width, target.height);
        let columns: Vec<i16> = (0..width).map(|x| (self.falloff.0 * (x as f32 / width as f32 - 0.5)) as i16).collect();
        blurred.clear();
        blurred.resize(width + 2, 0);
        let line = |y: usize| &source[y * width..(y + 1) * width];
        for (y, out) in target.samples.chunks_exact_mut(width).enumerate() {
            let (above, here, below) = (line(y.saturating_sub(1)), line(y), line((y + 1).min(height - 1)));
            self.blur_down(&mut blurred[1..=width], above, here, below);
            (blurred[0], blurred[width + 1]) = (blurred[1], blurred[width]);
            let light = self.offset + (self.falloff.1 * (y as f32 / height as f32 - 0.5)) as i16;
            let grain = Atlas::shared().grain(rng.bits(), width);
            self.expose(out, blurred, &columns, light, grain);
        }
    }

    fn blur_down(&self, out: &mut [i16], above: &[i16], here: &[i16], below: &[i16]) {
        let (side, middle) = (self.blur, 8 - 2 * self.blur);
        for (((out, a), b), c) in out.iter_mut().zip(above).zip(here).zip(below) {
            *out = (a.wrapping_add(*c).wrapping_mul(side)).wrapping_add(b.wrapping_mul(middle)) >> 3;
        }
    }

    fn expose(&self, out: &mut [u8], row: &[i16], columns: &[i16], light: i16, grain: &[i8]) {
        let (side, middle) = (self.blur, 8 - 2 * self.blur);
        let (left, here, right) = (row, &row[1..], &row[2..]);
        for (x, out) in out.iter_mut().enumerate() {
            let sides = left[x].wrapping_add(right[x]).wrapping_mul(side);
            let value = sides.wrapping_add(here[x].wrapping_mul(middle)) >> 3;
            let noise = i16::from(grain[x]).wrapping_mul(self.grain) >> 5;
            let level = value.wrapping_add(light).wrapping_add(columns[x]).wrapping_add(noise).wrapping_add(4) >> 3;
            *out = level.clamp(0, 255) as u8;
        }
    }
}
