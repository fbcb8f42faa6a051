//! Marks: what a figure draws into a panel, given by values; where they stand is known here alone.

use crate::axis::Scale;
use crate::palette;
use crate::svg::{Anchor, Area, BOLD, Canvas, FONT, Px, SMALL, Svg, Tip, fitted};

/// A line of points with markers, named at its end where there is room.
pub(super) struct Line {
    pub(super) name: String,
    /// How far it stands to the right of its values.
    pub(super) aside: f64,
    pub(super) points: Vec<Point>,
}

impl Line {
    pub(super) fn new(name: &str, points: impl Iterator<Item = Point>) -> Self {
        Self { name: name.to_owned(), aside: 0.0, points: points.collect() }
    }
}

#[derive(Default)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) range: Option<(f64, f64)>,
    /// What it says; without a tip there is no marker.
    pub(super) tip: Option<Tip>,
    /// Where a published value stands, what it says when it is pointed at, and what is written beside it.
    pub(super) published: Option<(f64, Tip, String)>,
}

pub(super) struct Pen<'p> {
    pub(super) svg: &'p mut Svg,
    pub(super) canvas: Canvas,
    pub(super) area: Area,
    pub(super) whole: Area,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) rows: Vec<f64>,
    labels: Vec<(String, (f64, f64), String)>,
}

impl<'p> Pen<'p> {
    pub(super) fn new(
        svg: &'p mut Svg,
        canvas: Canvas,
        (area, whole): (Area, Area),
        x: Scale,
        y: (Scale, Vec<f64>),
    ) -> Self {
        let (y, rows) = y;
        Self { svg, canvas, area, whole, x, y, rows, labels: Vec::new() }
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// A line through points; a single one is a short stroke.
    pub(super) fn line(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut places: Vec<(f64, f64)> = points.into_iter().map(|point| self.at(point)).collect();
        if let [(x, y)] = places[..] {
            places.push((x + 2.0, y));
        }
        self.svg.polyline(class, &places);
    }

    /// A line between two points that labels keep off.
    pub(super) fn straight(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (from, to) = (self.at(from), self.at(to));
        self.svg.line(class, from, to);
        self.svg.take_line(from, to);
    }

    /// The area below rates that each last for a span, the last until the end.
    pub(super) fn steps(&mut self, class: &str, rates: &[f64], span: f64, end: f64) {
        let (x, y) = (&self.x, &self.y);
        let mut d = format!("M{} {}", Px(x.at(0.0)), Px(y.at(0.0)));
        for (i, rate) in rates.iter().enumerate() {
            d.push_str(&format!("V{}H{}", Px(y.at(*rate)), Px(x.at(((i + 1) as f64 * span).min(end)))));
        }
        d.push_str(&format!("V{}Z", Px(y.at(0.0))));
        self.svg.path(class, &d);
    }

    pub(super) fn band(&mut self, class: &str, from: f64, to: f64) {
        let left = self.x.at(from);
        self.svg.rect(class, Area { left, right: self.x.at(to).max(left + 1.5), ..self.area });
    }

    /// A line at a value of the axis, from so far above the panel.
    pub(super) fn upright(&mut self, class: &str, x: f64, above: f64) {
        let (x, top) = (self.x.at(x), self.area.top - above);
        self.svg.line(class, (x, top), (x, self.area.bottom));
        self.svg.take_line((x, top), (x, self.area.bottom));
    }

    /// The same with what it says; a line is too thin to be pointed at.
    pub(super) fn rule(&mut self, class: &str, x: f64, above: f64, tip: &Tip) {
        let (at, top, bottom) = (self.x.at(x), self.area.top - above, self.area.bottom);
        self.svg.mark(tip, |svg| {
            svg.line(class, (at, top), (at, bottom));
            svg.rect("hit", Area { left: at - 3.0, top, right: at + 3.0, bottom });
        });
        self.svg.take_line((at, top - 10.0), (at, bottom));
    }

    pub(super) fn level(&mut self, class: &str, y: f64) {
        self.svg.line(class, (self.area.left, self.y.at(y)), (self.area.right, self.y.at(y)));
    }

    /// The name of such a line above its end, or in the line of the title where something stands there.
    pub(super) fn name_level(&mut self, class: &str, y: f64, name: &str) {
        let (right, y) = (self.area.right, self.y.at(y));
        let within = Area { top: y - 16.0, bottom: y, ..self.area };
        if !self.svg.label(class, (right, y - 9.0), 0.0, within, name) {
            self.svg.text(class, Anchor::End, (right, FONT), name);
        }
    }

    /// A stroke from the bottom; an arrow head where it goes on beyond the panel.
    pub(super) fn stroke(&mut self, class: &str, x: f64, y: f64) {
        let (at, is_cut) = (self.x.at(x), self.y.cuts(y));
        self.svg.line(class, (at, self.area.bottom), (at, self.y.at(y)));
        if is_cut {
            self.beyond(class, x);
        }
    }

    /// An arrow head at the top: what is there goes on.
    pub(super) fn beyond(&mut self, class: &str, x: f64) {
        self.svg.arrow(class, (self.x.at(x), self.area.top), (0.0, -1.0));
    }

    /// Writes beside a value of the axis, at a height in the panel or above it, where there is room.
    pub(super) fn note(&mut self, class: &str, x: f64, below_top: f64, text: &str) {
        let within = Area { left: 2.0, right: self.canvas.width - 2.0, top: self.area.top - 28.0, ..self.area };
        self.svg.label(class, (self.x.at(x), self.area.top + below_top), 6.0, within, text);
    }

    pub(super) fn lines(&mut self, lines: &[Line], with_names: bool) {
        for (i, line) in lines.iter().enumerate() {
            let hue = palette::hue(i);
            for (point, (y, tip, label)) in line.points.iter().filter_map(|of| Some((of, of.published.as_ref()?))) {
                let at = (self.x.at(point.x) + line.aside, self.y.at(*y));
                self.published(&format!("pub {hue}l"), i, at, tip, (format!("v {hue}t"), label.clone()));
            }
        }
        lines.iter().enumerate().for_each(|(i, line)| self.one_line(i, line));
        let within = Area { top: self.area.top - 14.0, ..self.area };
        for (class, at, text) in std::mem::take(&mut self.labels) {
            self.svg.label(&class, at, 11.0, within, &text);
        }
        if with_names {
            self.names(lines);
        }
    }

    fn place(&self, line: &Line, point: &Point) -> (f64, f64) {
        (self.x.at(point.x) + line.aside, self.y.at(point.y))
    }

    fn one_line(&mut self, i: usize, line: &Line) {
        let (class, scale) = (palette::hue(i), self.y);
        let places: Vec<(f64, f64)> = line.points.iter().map(|point| self.place(line, point)).collect();
        self.svg.polyline(&format!("ln {class}l"), &places);
        places.windows(2).for_each(|ends| self.svg.take_line(ends[0], ends[1]));
        for (point, (x, y)) in line.points.iter().zip(places) {
            let Some(tip) = &point.tip else { continue };
            self.svg.mark(tip, |svg| {
                let interval = format!("iv {class}l");
                if let Some((low, high)) = point.range {
                    svg.line(&interval, (x, scale.at(low)), (x, scale.at(high)));
                    for (end, towards) in [(low, 1.0), (high, -1.0)].into_iter().filter(|(end, _)| scale.cuts(*end)) {
                        svg.arrow(&interval, (x, scale.at(end)), (0.0, towards));
                    }
                }
                palette::marker(svg, &format!("dot {class}"), i, (x, y), 4.2);
            });
            self.svg.take(around((x, y), 5.0));
        }
    }

    /// A hollow marker at a published value; its label is written where the lines leave room.
    pub(super) fn published(&mut self, class: &str, shape: usize, at: (f64, f64), tip: &Tip, label: (String, String)) {
        self.svg.mark(tip, |svg| palette::marker(svg, class, shape, at, 7.5));
        self.svg.take(around(at, 8.0));
        self.labels.push((label.0, at, label.1));
    }

    fn names<'l>(&mut self, lines: &'l [Line]) {
        let ended = |(i, line): (usize, &'l Line)| Some((i, line, self.place(line, line.points.last()?)));
        let ends: Vec<(usize, &'l Line, (f64, f64))> = lines.iter().enumerate().filter_map(ended).collect();
        let mut places: Vec<f64> = ends.iter().map(|(.., at)| at.1).collect();
        spread_out(&mut places, SMALL + 3.0, self.area.top, self.area.bottom);
        let (x, right) = (self.area.right + 12.0, self.area.right);
        for ((i, line, at), y) in ends.into_iter().zip(places) {
            let is_far = line.points.len() > 1 && at.0 < right - 1.0;
            if is_far || (at.0 >= right - 40.0 && (y - at.1).abs() > 4.0) {
                self.svg.line("lead", (at.0 + 6.0, at.1), (x - 3.0, y));
            }
            let name = fitted(&line.name, SMALL * BOLD, self.canvas.width - x - 2.0);
            let class = format!("v name {}t", palette::hue(i));
            self.svg.text(&class, Anchor::Start, (x, y + SMALL * 0.35), name);
        }
    }
}

fn around((x, y): (f64, f64), r: f64) -> Area {
    Area { left: x - r, top: y - r, right: x + r, bottom: y + r }
}

/// Shifts places that are nearer than `gap` apart, in their order, within a range.
fn spread_out(places: &mut [f64], gap: f64, low: f64, high: f64) {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut next = low;
    for i in &order {
        places[*i] = places[*i].max(next);
        next = places[*i] + gap;
    }
    let mut last = high;
    for i in order.iter().rev() {
        places[*i] = places[*i].min(last);
        last = places[*i] - gap;
    }
}

/// A box filled with lines from its lower left to its upper right.
pub(super) fn hatched(svg: &mut Svg, area: Area) {
    const APART: f64 = 5.0;
    svg.rect("more", area);
    let (width, height) = (area.width(), area.height());
    let mut d = String::new();
    let mut at = APART;
    while at < width + height {
        let (x1, y1) = if at <= height { (0.0, height - at) } else { (at - height, 0.0) };
        let (x2, y2) = if at <= width { (at, height) } else { (width, height - (at - width)) };
        let place = |x: f64, y: f64| format!("{} {}", Px(area.left + x), Px(area.top + y));
        d.push_str(&format!("M{}L{}", place(x1, y1), place(x2, y2)));
        at += APART;
    }
    if !d.is_empty() {
        svg.path("hatch", &d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_would_lie_on_each_other_are_spread_out() {
        let mut places = [10.0, 50.0, 11.0, 9.0];
        spread_out(&mut places, 10.0, 0.0, 100.0);
        assert_eq!(places, [19.0, 50.0, 29.0, 9.0]);
        let mut at_the_end = [99.0, 100.0];
        spread_out(&mut at_the_end, 10.0, 0.0, 100.0);
        assert_eq!(at_the_end, [90.0, 100.0]);
    }
}
