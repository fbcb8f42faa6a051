//! One thing in the picture: a shape that hides what is behind it, with its own colour, shading and texture.
//!
//! A shape is described by what a painter of rows needs: for each row the run of columns it covers. A sheared ellipse
//! is every ellipse in every orientation, at the price of one square root per row; a sheared block (its sides fall
//! towards each other by `taper`) gives straight edges.

use crate::rng::Rng;

use super::atlas::Texture;

/// How a shape's surface looks. Grey levels are in eighths (Q3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surface {
    pub(crate) luma: i16,
    pub(crate) blue: i16,
    pub(crate) red: i16,
    /// Change of luma in Q3 per 128 columns and per 128 rows, at most 127.
    pub(crate) shade: (i16, i16),
    pub(crate) texture: Texture,
    /// Where in the texture the surface lies.
    pub(crate) place: (usize, usize),
    /// Weight of the texture in luma and chroma; a weight of 32 puts a texel of 8 one grey level up.
    pub(crate) relief: (i16, i16),
}

/// What the surfaces of one picture have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) tint: (f32, f32),
    pub(crate) brightness: f32,
    pub(crate) contrast: f32,
    pub(crate) saturation: f32,
    pub(crate) relief: f32,
    /// Typical slope of the light over a surface; less steep on larger pictures.
    pub(crate) shading: f32,
}

impl Palette {
    /// The light and the mood of a picture of the given activity.
    pub(crate) fn draw(rng: &mut Rng, size: (usize, usize), activity: f32) -> Self {
        Self {
            tint: (rng.bell() * 7.0 - 2.0, rng.bell() * 7.0 + 2.0),
            brightness: rng.between(90.0, 140.0),
            contrast: rng.between(24.0, 50.0),
            saturation: rng.between(4.0, 16.0),
            relief: activity * rng.between(0.8, 1.25),
            shading: 36.0 * (500.0 / size.0.max(size.1) as f32).min(1.0),
        }
    }

    /// A surface seen in this picture's light.
    pub(crate) fn surface(&self, rng: &mut Rng) -> Surface {
        let u = rng.unit();
        // Most surfaces are nearly plain, a few carry most of the picture's detail.
        let relief = (self.relief * (2.0 + 160.0 * u * u * u)).min(250.0);
        let texture = match rng.below(8) {
            0..4 => Texture::Natural,
            4..6 => Texture::Smooth,
            _ => Texture::Rough,
        };
        let chroma = |rng: &mut Rng, tint: f32| ((tint + rng.bell() * self.saturation) * 8.0) as i16;
        Surface {
            luma: ((self.brightness + rng.bell() * self.contrast) * 8.0) as i16,
            blue: chroma(rng, self.tint.0),
            red: chroma(rng, self.tint.1),
            shade: ((rng.bell() * self.shading) as i16, (rng.bell() * self.shading) as i16),
            texture,
            place: (rng.below(256) as usize, rng.below(256) as usize),
            relief: (relief as i16, (relief * 0.2) as i16),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    centre: (f32, f32),
    half: (f32, f32),
    shear: f32,
    /// `None`: an ellipse. Otherwise a block whose half width changes by this much per row, relative to its own.
    taper: Option<f32>,
}

impl Leaf {
    /// A shape of radius about `radius` with its centre on a canvas of the given size.
    pub(crate) fn draw(rng: &mut Rng, size: (usize, usize), radius: f32) -> Self {
        let stretch = rng.between(0.5, 1.6);
        let half = (radius * stretch, radius / stretch);
        Self {
            centre: (rng.unit() * size.0 as f32, rng.unit() * size.1 as f32),
            half,
            shear: rng.between(-0.8, 0.8),
            taper: (rng.below(3) == 0).then(|| rng.between(-0.6, 0.6) / half.1),
        }
    }

    pub(crate) fn middle(&self) -> i32 {
        self.centre.1 as i32
    }

    /// Area in pixels, as if nothing of it lay outside the canvas.
    pub(crate) fn area(&self) -> f32 {
        self.half.0 * self.half.1 * if self.taper.is_some() { 4.0 } else { std::f32::consts::PI }
    }

    /// The rows the shape reaches, within a canvas of `height` rows.
    pub(crate) fn rows(&self, height: usize) -> std::ops::Range<usize> {
        let top = (self.centre.1 - self.half.1).max(0.0) as usize;
        let bottom = (self.centre.1 + self.half.1 + 1.0).max(0.0) as usize;
        top.min(height)..bottom.min(height)
    }

    /// The columns covered in row `y`, within a canvas of `width` columns.
    pub(crate) fn columns(&self, y: usize, width: usize) -> std::ops::Range<usize> {
        let dy = y as f32 - self.centre.1;
        let reach = match self.taper {
            Some(taper) => self.half.0 * (1.0 + taper * dy),
            None => {
                let v = dy / self.half.1;
                self.half.0 * (1.0 - v * v).max(0.0).sqrt()
            }
        };
        let middle = self.centre.0 + self.shear * dy;
        let left = (middle - reach).max(0.0) as usize;
        let right = (middle + reach).max(0.0) as usize;
        left.min(width)..right.min(width).max(left.min(width))
    }
}
