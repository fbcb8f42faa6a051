//! The resize in plain Rust: for other machines, for images of a few pixels, and as the reference for the vector code.

use super::columns::Rows;
use super::{Tap, taps};

#[derive(Debug, Default)]
pub(super) struct Plan {
    taps: Vec<Tap>,
}

impl Plan {
    pub(super) fn new(src_width: u32, dst_width: u32) -> Self {
        Self { taps: taps(src_width, dst_width).collect() }
    }

    pub(super) fn resize_row(&self, rows: Rows<'_>, out: &mut [f32]) {
        let (top, bottom) = (rows.top.as_chunks::<3>().0, rows.bottom.as_chunks::<3>().0);
        for (tap, out) in self.taps.iter().zip(out.as_chunks_mut::<3>().0) {
            let [top_left, top_right] = [tap.lower, tap.upper].map(|x| top[x as usize]);
            let [bottom_left, bottom_right] = [tap.lower, tap.upper].map(|x| bottom[x as usize]);
            *out = std::array::from_fn(|channel| {
                let above = lerp(top_left[channel].into(), top_right[channel].into(), tap.weight);
                let below = lerp(bottom_left[channel].into(), bottom_right[channel].into(), tap.weight);
                lerp(above, below, rows.weight)
            });
        }
    }
}

fn lerp(from: f32, to: f32, weight: f32) -> f32 {
    from + (to - from) * weight
}
