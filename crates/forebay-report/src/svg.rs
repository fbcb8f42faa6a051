//! Pictures: shapes on a canvas, marks that hold their values, and labels that keep out of each other's way.
//!
//! Colours, strokes and fonts are classes of the page's style, so that one picture serves light, dark and paper. Every
//! figure is drawn twice, for a desk and for a phone: scaled down, its letters could not be read.

use std::fmt::{self, Display, Write};

use forebay_record::StudyCell;

use crate::basis::MARK;
use crate::markup::{Attributes, Markup};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Canvas {
    pub(crate) width: f64,
    pub(crate) narrow: bool,
}

pub(crate) const WIDE: Canvas = Canvas { width: 820.0, narrow: false };
/// As wide as a phone of 390 points without the page's edges.
pub(crate) const NARROW: Canvas = Canvas { width: 350.0, narrow: true };

pub(crate) const FONT: f64 = 12.0;
pub(crate) const SMALL: f64 = 11.0;

/// A place in a picture, written with one decimal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_assert!(self.0.is_finite(), "a place is a number");
        let tenths = (self.0 * 10.0).round() as i64;
        match (tenths / 10, tenths % 10) {
            (whole, 0) => write!(f, "{whole}"),
            _ => write!(f, "{}", tenths as f64 / 10.0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Area {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

const DISTURBED: &str = "disturbed";
/// The class of marks of disturbed cells.
pub(crate) const FAINT: &str = "mark faint";

/// What a mark says when it is pointed at, and the values it stands for.
#[derive(Debug, Default)]
pub(crate) struct Tip {
    pub(crate) text: String,
    /// Values as `data-…` attributes.
    pub(crate) data: Vec<(&'static str, String)>,
}

impl Tip {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), data: Vec::new() }
    }

    pub(crate) fn of(cell: &StudyCell, text: impl Into<String>) -> Self {
        let tip = Self::new(text).with("cell", &cell.id);
        match cell.disturbed() {
            Some(by) => {
                Self { text: format!("{}\n{MARK} disturbed: {}", tip.text, by.cause()), ..tip.with(DISTURBED, "yes") }
            }
            None => tip,
        }
    }

    /// With a value: `data-NAME="VALUE"`.
    pub(crate) fn with(mut self, name: &'static str, value: impl Display) -> Self {
        self.data.push((name, value.to_string()));
        self
    }
}

#[derive(Debug)]
pub(crate) struct Svg {
    body: Markup,
    canvas: Canvas,
    height: f64,
    taken: Vec<Area>,
}

impl Svg {
    pub(crate) fn new(canvas: Canvas, height: f64) -> Self {
        Self { body: Markup::default(), canvas, height, taken: Vec::new() }
    }

    /// The whole picture; `label` is what a screen reader says it is.
    pub(crate) fn finish(self, label: &str) -> Markup {
        let view = format!("0 0 {} {}", Px(self.canvas.width), Px(self.height));
        let class = if self.canvas.narrow { "narrow" } else { "wide" };
        self.whole(&class, &[("viewBox", &view), ("role", &"group"), ("aria-label", &label)])
    }

    /// A small picture beside a word, which says it all to who cannot see it.
    pub(crate) fn finish_sample(self) -> Markup {
        self.whole(&"key", &[("aria-hidden", &"true")])
    }

    fn whole(&self, class: &dyn Display, more: Attributes<'_>) -> Markup {
        let mut out = Markup::default();
        let (width, height) = (Px(self.canvas.width), Px(self.height));
        let size: Attributes<'_> = &[("class", class), ("width", &width), ("height", &height)];
        out.open("svg", &[size, more].concat());
        out.put(&self.body);
        out.close("svg");
        out
    }

    pub(crate) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let places = [Px(from.0), Px(from.1), Px(to.0), Px(to.1)];
        self.body.leaf(
            "line",
            &[("class", &class), ("x1", &places[0]), ("y1", &places[1]), ("x2", &places[2]), ("y2", &places[3])],
        );
    }

    pub(crate) fn rect(&mut self, class: &str, area: Area) {
        let places = [Px(area.left), Px(area.top), Px(area.width().max(0.0)), Px(area.height().max(0.0))];
        self.body.leaf(
            "rect",
            &[("class", &class), ("x", &places[0]), ("y", &places[1]), ("width", &places[2]), ("height", &places[3])],
        );
    }

    /// A head at the end of a line that goes on beyond the plot, towards a direction of length 1.
    pub(crate) fn arrow(&mut self, class: &str, (x, y): (f64, f64), (dx, dy): (f64, f64)) {
        let back = |side: f64| (x - 5.0 * dx + side * 4.0 * dy, y - 5.0 * dy + side * 4.0 * dx);
        self.polyline(&format!("arrow {class}"), &[back(-1.0), (x, y), back(1.0)]);
    }

    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, Px(*x), Px(*y));
        }
        self.path(class, &d);
    }

    pub(crate) fn path(&mut self, class: &str, d: &str) {
        self.body.leaf("path", &[("class", &class), ("d", &d)]);
    }

    /// A text whose baseline is at `y`; nothing where it is empty.
    pub(crate) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: impl Display) {
        let (class, text) = (format!("{class}{}", anchor_class(anchor)), text.to_string());
        if !text.is_empty() {
            self.body.element("text", &[("class", &class), ("x", &Px(x)), ("y", &Px(y))], text);
        }
    }

    pub(crate) fn text_up(&mut self, class: &str, (x, y): (f64, f64), text: impl Display) {
        let turn = format!("translate({} {}) rotate(-90)", Px(x), Px(y));
        self.body.element("text", &[("class", &class), ("transform", &turn)], text);
    }

    /// Shapes that stand for a value and say so when pointed at.
    pub(crate) fn mark(&mut self, tip: &Tip, draw: impl FnOnce(&mut Self)) {
        let names: Vec<String> = tip.data.iter().map(|(name, _)| format!("data-{name}")).collect();
        let is_faint = tip.data.iter().any(|(name, _)| *name == DISTURBED);
        let class = if is_faint { FAINT } else { "mark" };
        let mut attributes: Vec<(&str, &dyn Display)> = vec![("class", &class)];
        for (name, (_, value)) in names.iter().zip(&tip.data) {
            attributes.push((name, value));
        }
        self.body.open("g", &attributes);
        self.body.element("title", &[], &tip.text);
        draw(self);
        self.body.close("g");
    }

    pub(crate) fn take(&mut self, area: Area) {
        self.taken.push(area);
    }

    pub(crate) fn take_line(&mut self, from: (f64, f64), to: (f64, f64)) {
        let n = ((to.0 - from.0).hypot(to.1 - from.1) / 6.0).ceil().clamp(1.0, 400.0);
        for i in 0..=n as usize {
            let share = i as f64 / n;
            let (x, y) = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            self.take(Area { left: x - 3.0, top: y - 1.5, right: x + 3.0, bottom: y + 1.5 });
        }
    }

    /// Writes a label beside a point at the first of several places that is free: right, left, at the edge, above, below, further away.
    /// Returns whether there was one; without one, nothing is written.
    pub(crate) fn label(&mut self, class: &str, (x, y): (f64, f64), gap: f64, within: Area, text: &str) -> bool {
        if text.is_empty() {
            return true;
        }
        let (width, half) = (text_width(text, SMALL), SMALL * 0.5);
        let places = [
            (Anchor::Start, x + gap, y),
            (Anchor::End, x - gap, y),
            // At the edge, where that is still beside the point.
            (Anchor::End, within.right.min(x + gap + width), y),
            (Anchor::Middle, x, y - gap - half),
            (Anchor::Middle, x, y + gap + half),
            (Anchor::Start, x + gap * 0.8, y - gap - half),
            (Anchor::End, x - gap * 0.8, y - gap - half),
            (Anchor::Start, x + gap * 0.8, y + gap + half),
            (Anchor::End, x - gap * 0.8, y + gap + half),
            (Anchor::Middle, x, y - gap - half * 3.6),
            (Anchor::Middle, x, y + gap + half * 3.6),
        ];
        for (anchor, at_x, middle) in places {
            let left = match anchor {
                Anchor::Start => at_x,
                Anchor::Middle => at_x - width / 2.0,
                Anchor::End => at_x - width,
            };
            let area = Area { left, top: middle - half - 1.0, right: left + width, bottom: middle + half + 1.0 };
            let inside = area.left >= within.left && area.right <= within.right;
            let inside = inside && area.top >= within.top && area.bottom <= within.bottom;
            if inside && !self.taken.iter().any(|taken| taken.meets(&area)) {
                self.take(area);
                self.text(class, anchor, (at_x, middle + SMALL * 0.35), text);
                return true;
            }
        }
        false
    }
}

fn anchor_class(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "",
        Anchor::Middle => " mid",
        Anchor::End => " end",
    }
}

/// How wide a text is at most: the widths are those of DejaVu Sans, the widest font that a page falls back to.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let ems: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '\'' | '|' | 'I' => 0.30,
            '.' | ',' | ':' | ';' | '!' | ' ' | '/' | '-' => 0.36,
            'f' | 't' | 'r' | '(' | ')' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.99,
            '+' | '−' | '×' => 0.84,
            'A'..='Z' => 0.76,
            _ => 0.64,
        })
        .sum();
    ems * size
}

/// How much wider bold letters are.
pub(crate) const BOLD: f64 = 1.11;

pub(crate) fn bold_width(text: &str, size: f64) -> f64 {
    text_width(text, size) * BOLD
}

/// The text, cut with "…" to fit.
pub(crate) fn fitted(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if text_width(&kept, size) + text_width("…", size) + text_width(&c.to_string(), size) > width {
            break;
        }
        kept.push(c);
    }
    kept.trim_end().to_owned() + "…"
}

/// The text over at most two lines that fit.
pub(crate) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    if text_width(text, size) <= width {
        return vec![text.to_owned()];
    }
    let mut first = String::new();
    for word in text.split_inclusive(' ') {
        if text_width(&first, size) + text_width(word.trim_end(), size) > width {
            break;
        }
        first.push_str(word);
    }
    if first.is_empty() {
        return vec![fitted(text, size, width)];
    }
    let rest = &text[first.len()..];
    vec![first.trim_end().to_owned(), fitted(rest, size, width)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_with_one_decimal() {
        assert_eq!([1.0, 2.04, 2.05, -0.26, 0.0].map(|x| Px(x).to_string()), ["1", "2", "2.1", "-0.3", "0"]);
    }

    #[test]
    fn a_label_takes_the_next_free_place_or_is_left_out() {
        let within = Area { left: 0.0, top: 0.0, right: 200.0, bottom: 40.0 };
        let mut svg = Svg::new(NARROW, 40.0);
        assert!(svg.label("v", (100.0, 20.0), 5.0, within, "one"));
        assert!(svg.label("v", (100.0, 20.0), 5.0, within, "two"));
        svg.take(within);
        assert!(!svg.label("v", (100.0, 20.0), 5.0, within, "three"));
        let text = svg.finish("labels").into_string();
        assert!(text.contains(">one<") && text.contains("v end") && !text.contains("three"), "{text}");
    }

    #[test]
    fn long_texts_are_wrapped_and_then_cut() {
        assert_eq!(wrapped("short", 12.0, 100.0), ["short"]);
        assert_eq!(wrapped("read only, 8 threads of mine", 12.0, 80.0), ["read only, 8", "threads of…"]);
        assert!(fitted("averyverylongname", 12.0, 40.0).ends_with('…'));
    }
}
