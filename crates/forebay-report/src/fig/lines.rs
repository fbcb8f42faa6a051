//! Lines with markers, each named at its end: what speed-ups and latencies have in common.

use crate::palette;
use crate::svg::{Anchor, Area, Canvas, SMALL, Svg, Tip, fitted, text_width};

use super::Key;
use super::axes::{LINE, spread_out};

/// A point of a line.
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// The ends of its interval.
    pub(super) range: Option<(f64, f64)>,
    /// Whether the interval goes on beyond the plot, below and above.
    pub(super) cut: (bool, bool),
    /// What it says; without a tip there is no marker.
    pub(super) tip: Option<Tip>,
}

/// A line.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

/// Room on the right for the names; none on a phone, where the legend has them.
pub(super) fn name_room(canvas: Canvas, lines: &[Line]) -> f64 {
    if canvas.narrow || lines.len() < 2 {
        return 8.0;
    }
    lines.iter().map(|line| text_width(&line.name, SMALL)).fold(0.0, f64::max).min(170.0) + 20.0
}

/// Draws lines whose points are places already.
pub(super) fn draw(svg: &mut Svg, canvas: Canvas, plot: Area, lines: &[Line]) {
    for (i, line) in lines.iter().enumerate() {
        let class = palette::hue(i);
        let places: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
        svg.polyline(&format!("ln {class}l"), &places);
        places.windows(2).for_each(|ends| svg.take_line(ends[0], ends[1]));
        for point in &line.points {
            let Some(tip) = &point.tip else { continue };
            svg.mark(tip, |svg| {
                if let Some((low, high)) = point.range {
                    let class = format!("iv {class}l");
                    svg.line(&class, (point.x, low), (point.x, high));
                    for (cut, end, towards) in [(point.cut.0, low, 1.0), (point.cut.1, high, -1.0)] {
                        if cut {
                            svg.arrow(&class, (point.x, end), (0.0, towards));
                        }
                    }
                }
                palette::marker(svg, &format!("dot {class}"), i, (point.x, point.y), 4.2);
            });
            svg.take(Area { left: point.x - 5.0, top: point.y - 5.0, right: point.x + 5.0, bottom: point.y + 5.0 });
        }
    }
    if !canvas.narrow && lines.len() > 1 {
        names(svg, canvas, plot, lines);
    }
}

fn names(svg: &mut Svg, canvas: Canvas, plot: Area, lines: &[Line]) {
    let ended: Vec<(usize, &Line, &Point)> =
        lines.iter().enumerate().filter_map(|(i, line)| Some((i, line, line.points.last()?))).collect();
    let mut places: Vec<f64> = ended.iter().map(|(_, _, point)| point.y).collect();
    spread_out(&mut places, LINE, plot.top, plot.bottom);
    for ((i, line, point), y) in ended.into_iter().zip(places) {
        let x = plot.right + 12.0;
        let is_far = line.points.len() > 1 && point.x < plot.right - 1.0;
        let is_near = point.x >= plot.right - 40.0;
        if is_far || (is_near && (y - point.y).abs() > 4.0) {
            svg.line("lead", (point.x + 6.0, point.y), (x - 3.0, y));
        }
        let name = fitted(&line.name, SMALL, canvas.width - x - 2.0);
        svg.text(&format!("v name {}t", palette::hue(i)), Anchor::Start, (x, y + SMALL * 0.35), name);
    }
}

/// The legend's entries of lines.
pub(super) fn legend(lines: &[Line]) -> Vec<Key> {
    let keys = lines.iter().enumerate().map(|(i, line)| {
        let class = palette::hue(i);
        let sample = super::sample(|svg| {
            svg.line(&format!("ln {class}l"), (0.0, 7.0), (18.0, 7.0));
            palette::marker(svg, &format!("dot {class}"), i, (9.0, 7.0), 4.0);
        });
        Key { sample, name: line.name.clone() }
    });
    keys.collect()
}
