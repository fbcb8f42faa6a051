//! Which class of colour, stroke and marker a series has.
//!
//! Unordered series have the hues of Okabe and Ito, which people of all colour visions tell apart, each with a marker of
//! its own. Ordered ones, such as threads, have shades of one hue from faint to strong. The style defines the classes
//! for light, dark and paper.

use forebay_record::{TrainCell, WorkloadCell};

use crate::svg::{Px, Svg};

/// How many unordered series can be told apart.
pub(crate) const N_HUES: usize = 6;
/// Shades in the style from faint to strong.
const N_SHADES: usize = 9;

/// The class of the shade of the `i`-th of `n` ordered levels: "s2".
pub(crate) fn shade(i: usize, n: usize) -> String {
    let place = if n < 2 { 6 } else { 1 + i * (N_SHADES - 2) / (n - 1) };
    format!("s{}", place.min(N_SHADES - 1))
}

/// The class of the `i`-th unordered series: "c2".
pub(crate) fn hue(i: usize) -> String {
    format!("c{}", i % N_HUES)
}

/// Draws the marker of the `i`-th unordered series around a point.
pub(crate) fn marker(svg: &mut Svg, class: &str, i: usize, (x, y): (f64, f64), r: f64) {
    let p = |dx: f64, dy: f64| format!("{} {}", Px(x + dx), Px(y + dy));
    let d = match i % N_HUES {
        0 => format!("M{}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 -{} 0Z", p(-r, 0.0), r * 2.0, r * 2.0),
        1 => polygon(&[p(-r, -r), p(r, -r), p(r, r), p(-r, r)]),
        2 => polygon(&[p(0.0, -r * 1.25), p(r * 1.2, r), p(-r * 1.2, r)]),
        3 => polygon(&[p(0.0, -r * 1.35), p(r * 1.35, 0.0), p(0.0, r * 1.35), p(-r * 1.35, 0.0)]),
        4 => polygon(&[p(0.0, r * 1.25), p(r * 1.2, -r), p(-r * 1.2, -r)]),
        _ => {
            let (r, t) = (r * 1.2, r * 0.54);
            let (arm, thick) = (r - t, t * 2.0);
            let (start, right, down) = (p(-t, -r), format!("h{thick}v{arm}h{arm}"), format!("v{thick}h-{arm}v{arm}"));
            format!("M{start}{right}{down}h-{thick}v-{arm}h-{arm}v-{thick}h{arm}Z")
        }
    };
    svg.path(class, &d);
}

fn polygon(points: &[String]) -> String {
    format!("M{}Z", points.join("L"))
}

/// What a worker does, in words and in the colour of its kind: storage, processor or waiting.
pub(crate) const ACTIVITIES: &[(&str, &str, &str)] = &[
    ("opening", "open", "a-open"),
    ("reading", "read", "a-read"),
    ("decoding", "decode", "a-decode"),
    ("decoding_on_gpu", "decode on GPU", "a-compute"),
    ("resizing", "resize", "a-resize"),
    ("preprocessing", "preprocess", "a-other"),
    ("waiting_for_bytes", "wait for bytes", "a-wait1"),
    ("waiting_for_decoder", "wait for decoder", "a-wait2"),
    ("waiting_for_slot", "wait for consumer", "a-wait3"),
    ("idle", "idle", "a-idle"),
];

/// Where the accelerator's time goes, in words and in colours: computing, waiting for data, and what else holds it up.
pub(crate) const ACCELERATOR: &[(&str, &str, &str)] = &[
    (TrainCell::COMPUTE_S.info.name, "compute", "a-compute"),
    (TrainCell::WAIT_S.info.name, "wait for data", "a-starve"),
    (TrainCell::COPY_S.info.name, "copy", "a-copy"),
    (WorkloadCell::BARRIER_S.info.name, "barrier", "a-resize"),
    (TrainCell::CHECKPOINT_S.info.name, "checkpoint", "a-save"),
    ("validate_s", "validate", "a-open"),
    ("other_s", "other", "a-wait3"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_go_from_faint_to_strong_without_repeating() {
        let shades: Vec<String> = (0..4).map(|i| shade(i, 4)).collect();
        assert_eq!(shades, ["s1", "s3", "s5", "s8"]);
        assert_eq!(shade(0, 1), "s6");
        let eight: std::collections::BTreeSet<String> = (0..8).map(|i| shade(i, 8)).collect();
        assert_eq!(eight.len(), 8);
    }
}
