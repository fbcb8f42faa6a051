//! A picture: panels below each other over one axis.
//!
//! A figure says what is along the axes and which marks stand in a panel, in values. Margins, titles, ticks, the room for
//! names and what is pointed at are laid out here, for a desk and for a phone.

use crate::markup::Markup;
use crate::number::tick;
use crate::palette;
use crate::svg::{
    Anchor, Area, BOLD, Canvas, FONT, NARROW, SMALL, Svg, Tip, WIDE, bold_width, fitted, text_width, wrapped,
};

use super::axes::{self, X, Y};
use super::pen::{Line, Pen};

/// Room for a plot's title, of which each line is so high, and for a panel's.
const LINE: f64 = 14.0;
const TITLE: f64 = 22.0;
const PANEL_TITLE: f64 = 36.0;
/// Names wider than this stand in the legend only.
const WIDEST_NAME: f64 = 170.0;

pub(super) struct Plot<'a> {
    pub(super) title: String,
    pub(super) x: X,
    pub(super) panels: Vec<Panel<'a>>,
    /// A quantity with a scale of its own on the right: its name and how many of it make one of the left.
    pub(super) right: Option<(&'a str, f64)>,
    /// Room that is left on the left and on the right at least.
    pub(super) sides: (f64, f64),
}

/// A column of a panel that says its values when it is pointed at.
type Column = (f64, f64, Tip);

pub(super) struct Panel<'a> {
    pub(super) title: String,
    /// Samples of its lines and their names, beside the title.
    pub(super) keys: Vec<(String, String)>,
    /// Room above the marks for what is written there.
    pub(super) head: f64,
    pub(super) height: Option<f64>,
    pub(super) y: Y<'a>,
    pub(super) marks: Box<dyn Fn(&mut Pen<'_>) + 'a>,
    pub(super) lines: Vec<Line>,
    /// Columns over so many panels, this one and those below it.
    pub(super) columns: (usize, Vec<Column>),
}

impl<'a> Panel<'a> {
    pub(super) fn new(y: Y<'a>, marks: impl Fn(&mut Pen<'_>) + 'a) -> Self {
        let (title, keys, lines, columns) = (String::new(), Vec::new(), Vec::new(), (1, Vec::new()));
        Self { title, keys, head: 0.0, height: None, y, marks: Box::new(marks), lines, columns }
    }

    fn keys_width(&self) -> f64 {
        self.keys.iter().map(|(_, name)| bold_width(name, SMALL) + 38.0).sum()
    }

    /// Whether the keys need a line of their own.
    fn is_wrapped(&self, width: f64) -> bool {
        !self.keys.is_empty() && bold_width(&self.title, FONT) + 14.0 + self.keys_width() > width
    }

    fn room_above(&self, width: f64) -> f64 {
        let title = if self.title.is_empty() { 8.0 } else { PANEL_TITLE };
        self.head + title + if self.is_wrapped(width) { 14.0 } else { 0.0 }
    }

    fn draw_title(&self, svg: &mut Svg, class: &str, area: Area) {
        if self.title.is_empty() {
            return;
        }
        let y = area.top - self.head - 14.0;
        let is_wrapped = self.is_wrapped(area.right);
        let at = if is_wrapped { y - 14.0 } else { y };
        let title = fitted(&self.title, FONT * BOLD, area.right - 4.0);
        svg.take(Area { left: 0.0, top: at - FONT, right: bold_width(&title, FONT) + 6.0, bottom: at + 3.0 });
        svg.text(class, Anchor::Start, (2.0, at), title);
        let mut x = if is_wrapped { 2.0 } else { area.right - self.keys_width() };
        for (i, (class, name)) in self.keys.iter().enumerate() {
            svg.line(class, (x, y - 4.0), (x + 18.0, y - 4.0));
            svg.text(&format!("v name {}t", palette::hue(i)), Anchor::Start, (x + 22.0, y), name);
            x += bold_width(name, SMALL) + 38.0;
        }
    }
}

/// Columns around values that follow each other, each to the middle between its neighbours.
pub(super) fn around(values: Vec<(f64, Tip)>) -> Vec<Column> {
    let xs: Vec<f64> = values.iter().map(|(x, _)| *x).collect();
    let middle = |i: usize, j: usize| (xs[i] + xs[j]) / 2.0;
    let column = |(i, (_, tip)): (usize, (f64, Tip))| {
        (middle(i.saturating_sub(1), i), middle(i, (i + 1).min(xs.len() - 1)), tip)
    };
    values.into_iter().enumerate().map(column).collect()
}

impl<'a> Plot<'a> {
    pub(super) fn new(title: impl Into<String>, x: X, panels: Vec<Panel<'a>>) -> Self {
        Self { title: title.into(), x, panels, right: None, sides: (0.0, 10.0) }
    }

    /// Several lines are named at their ends, but on a phone, where the legend has to do.
    ///
    /// Names that would be cut there may be all alike, so the legend has to do for them too.
    fn has_names(&self, canvas: Canvas) -> bool {
        let fits = |line: &Line| bold_width(&line.name, SMALL) <= WIDEST_NAME;
        let lines = || self.panels.iter().flat_map(|panel| &panel.lines);
        !canvas.narrow && self.panels.iter().any(|panel| panel.lines.len() > 1) && lines().all(fits)
    }

    /// The room on the left and on the right of the panels.
    pub(super) fn margins(&self, canvas: Canvas) -> (f64, f64) {
        let left = self.panels.iter().map(|panel| panel.y.room(canvas)).fold(self.sides.0, f64::max);
        let lines = self.panels.iter().flat_map(|panel| &panel.lines);
        let widest = lines.map(|line| bold_width(&line.name, SMALL)).fold(0.0, f64::max);
        let names = if self.has_names(canvas) { widest.min(WIDEST_NAME) + 20.0 } else { 0.0 };
        let ticks = self.right.zip(self.panels.first()).map_or(0.0, |((_, factor), panel)| {
            let high = panel.y.place(Area::default()).0.high();
            text_width(&tick((high * factor).round()), FONT).max(18.0) + 10.0
        });
        (left, names.max(ticks).max(self.sides.1))
    }

    fn areas(&self, canvas: Canvas) -> Vec<Area> {
        let (left, right) = self.margins(canvas);
        let right = canvas.width - right;
        let mut y = self.title_lines(canvas).0.len() as f64 * LINE;
        y += if self.title.is_empty() { 0.0 } else { TITLE - LINE };
        let area = |panel: &Panel<'_>| {
            let usual = if canvas.narrow { 240.0 } else { 290.0 };
            let top = y + panel.room_above(right);
            y = top + panel.y.height().or(panel.height).unwrap_or(usual);
            Area { left, top, right, bottom: y }
        };
        self.panels.iter().map(area).collect()
    }

    pub(super) fn draw(&self, canvas: Canvas, label: &str) -> Markup {
        let areas = self.areas(canvas);
        let (first, last) = (areas.first().copied().unwrap_or_default(), areas.last().copied().unwrap_or_default());
        let whole = Area { bottom: last.bottom, ..first };
        let mut svg = Svg::new(canvas, whole.bottom + self.x.room(whole.width()));
        self.draw_titles(&mut svg, canvas);
        let x = self.x.scale.over(whole.left + self.x.inset, whole.right - self.x.inset);
        let class = if self.title.is_empty() { "tt" } else { "tt ink" };
        for (panel, area) in self.panels.iter().zip(&areas) {
            self.x.draw_grid(&mut svg, *area);
            panel.y.draw(&mut svg, *area, canvas);
            panel.draw_title(&mut svg, class, *area);
            if let Some((_, factor)) = self.right {
                axes::right(&mut svg, *area, &panel.y.place(*area).0, factor, if canvas.narrow { 5 } else { 6 });
            }
            if area.bottom < whole.bottom {
                svg.line("ax", (area.left, area.bottom), (area.right, area.bottom));
            }
            let mut pen = Pen::new(&mut svg, canvas, (*area, whole), x, panel.y.place(*area));
            (panel.marks)(&mut pen);
            pen.lines(&panel.lines, self.has_names(canvas));
        }
        self.x.draw(&mut svg, whole, canvas);
        for (i, panel) in self.panels.iter().enumerate() {
            let (n, columns) = &panel.columns;
            for (from, to, tip) in columns {
                let left = x.at(*from);
                let area = Area { left, right: x.at(*to).max(left + 1.0), bottom: areas[i + n - 1].bottom, ..areas[i] };
                svg.mark(tip, |svg| svg.rect("hit", area));
            }
        }
        svg.finish(label)
    }

    /// The lines of the left title, and the line of the right one: the first if both have room in it, else one of its own.
    fn title_lines(&self, canvas: Canvas) -> (Vec<String>, usize) {
        let right = self.right.map_or(0.0, |(title, _)| bold_width(title, FONT) + 8.0);
        let is_beside = bold_width(&self.title, FONT) + right <= canvas.width - 4.0;
        let lines = wrapped(&self.title, FONT * BOLD, canvas.width - 4.0);
        let mut lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        if right == 0.0 || is_beside {
            return (lines, 0);
        }
        lines.push(String::new());
        let last = lines.len() - 1;
        (lines, last)
    }

    fn draw_titles(&self, svg: &mut Svg, canvas: Canvas) {
        let (lines, right) = self.title_lines(canvas);
        for (i, line) in lines.into_iter().enumerate() {
            svg.text("tt", Anchor::Start, (2.0, FONT + i as f64 * LINE), line);
        }
        let at = (canvas.width - 2.0, FONT + right as f64 * LINE);
        svg.text("tt", Anchor::End, at, self.right.map_or("", |(title, _)| title));
    }
}

/// A picture for a desk and one for a phone.
pub(super) fn both<'a>(label: &str, plot: impl Fn(Canvas) -> Plot<'a>) -> Vec<Markup> {
    [WIDE, NARROW].into_iter().map(|canvas| plot(canvas).draw(canvas, label)).collect()
}
