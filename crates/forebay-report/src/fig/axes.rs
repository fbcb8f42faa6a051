//! The axes of a plot: what stands along them, how much room that needs, and grid lines.

use crate::axis::Scale;
use crate::number::tick;
use crate::svg::{Anchor, Area, BOLD, Canvas, FONT, Svg, bold_width, fitted, text_width, wrapped};

pub(super) struct X {
    pub(super) scale: Scale,
    ticks: Vec<(f64, String)>,
    title: String,
    look: Look,
    /// How far the scale's ends stand inside the plot.
    pub(super) inset: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Ticks,
    /// Levels of a factor, written as strongly as names.
    Levels,
    Bands,
    Grid,
}

impl X {
    pub(super) fn along(scale: Scale, about: usize, title: &str, show: impl Fn(f64) -> String) -> Self {
        Self::at(scale, scale.ticks(about).into_iter().map(|value| (value, show(value))).collect(), title)
    }

    pub(super) fn at(scale: Scale, ticks: Vec<(f64, String)>, title: impl Into<String>) -> Self {
        Self { scale, ticks, title: title.into(), look: Look::Ticks, inset: 0.0 }
    }

    pub(super) fn grid(self) -> Self {
        Self { look: Look::Grid, ..self }
    }

    /// With levels at their own values, a little inside the plot.
    pub(super) fn levels(scale: Scale, levels: Vec<(f64, String)>, title: String) -> Self {
        Self { look: Look::Levels, inset: 14.0, ..Self::at(scale, levels, title) }
    }

    /// The n-th name, counted from 0, is at n.
    pub(super) fn bands(names: impl IntoIterator<Item = impl Into<String>>, title: impl Into<String>) -> Self {
        let ticks: Vec<(f64, String)> =
            names.into_iter().enumerate().map(|(i, name)| (i as f64, name.into())).collect();
        let scale = Scale::between(-0.5, ticks.len().max(1) as f64 - 0.5);
        Self { look: Look::Bands, ..Self::at(scale, ticks, title) }
    }

    pub(super) fn band(&self, width: f64) -> f64 {
        width / self.ticks.len().max(1) as f64
    }

    pub(super) fn room(&self, width: f64) -> f64 {
        let n_lines = match self.look {
            Look::Bands => self.ticks.iter().map(|(_, name)| wrapped(name, FONT, self.band(width) - 4.0).len()).max(),
            _ => None,
        };
        30.0 + n_lines.unwrap_or(1) as f64 * 13.0
    }

    pub(super) fn draw(&self, svg: &mut Svg, plot: Area, canvas: Canvas) {
        let scale = self.scale.over(plot.left + self.inset, plot.right - self.inset);
        let class = if matches!(self.look, Look::Bands | Look::Levels) { "tk strong" } else { "tk" };
        let mut free_from = f64::MIN;
        for (value, text) in &self.ticks {
            let x = scale.at(*value);
            if self.look == Look::Bands {
                for (row, line) in wrapped(text, FONT, self.band(plot.width()) - 4.0).iter().enumerate() {
                    svg.text(class, Anchor::Middle, (x, plot.bottom + 17.0 + row as f64 * 13.0), line);
                }
                continue;
            }
            if self.look != Look::Grid {
                svg.line("ax", (x, plot.bottom), (x, plot.bottom + 4.0));
            }
            let half = text_width(text, FONT) / 2.0;
            let x = x.min(canvas.width - half - 1.0);
            if x - half > free_from && !text.is_empty() {
                svg.text(class, Anchor::Middle, (x, plot.bottom + 17.0), text);
                free_from = x + half + 6.0;
            }
        }
        svg.line("ax", (plot.left, plot.bottom), (plot.right, plot.bottom));
        let half = (bold_width(&self.title, FONT) / 2.0).min(canvas.width / 2.0);
        let x = ((plot.left + plot.right) / 2.0).clamp(half, canvas.width - half);
        let y = plot.bottom + self.room(plot.width()) - 7.0;
        svg.text("tt", Anchor::Middle, (x, y), fitted(&self.title, FONT * BOLD, canvas.width));
    }

    /// Grid lines lie below all marks.
    pub(super) fn draw_grid(&self, svg: &mut Svg, plot: Area) {
        if self.look == Look::Grid {
            let scale = self.scale.over(plot.left + self.inset, plot.right - self.inset);
            self.ticks.iter().for_each(|(value, _)| {
                svg.line("gr", (scale.at(*value), plot.top), (scale.at(*value), plot.bottom));
            });
        }
    }
}

pub(super) enum Y<'a> {
    /// Values on a scale, and how they are written.
    Scale { scale: Scale, ticks: Vec<f64>, show: Box<dyn Fn(f64) -> String + 'a> },
    /// Names of rows, each with what stands above it, if anything does.
    Rows(Vec<(String, String)>),
}

const ROW: f64 = 25.0;
const ROW_HEAD: f64 = 22.0;

impl<'a> Y<'a> {
    pub(super) fn new(scale: Scale, about: usize, show: impl Fn(f64) -> String + 'a) -> Self {
        Self::at(scale, scale.ticks(about), show)
    }

    pub(super) fn at(scale: Scale, ticks: Vec<f64>, show: impl Fn(f64) -> String + 'a) -> Self {
        Self::Scale { scale, ticks, show: Box::new(show) }
    }

    pub(super) fn room(&self, canvas: Canvas) -> f64 {
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        match self {
            Self::Scale { ticks, show, .. } => {
                widest(&mut ticks.iter().map(|value| text_width(&show(*value), FONT))) + 10.0
            }
            Self::Rows(rows) => {
                let most = if canvas.narrow { 110.0 } else { 330.0 };
                widest(&mut rows.iter().map(|(_, name)| text_width(name, FONT))).min(most) + 12.0
            }
        }
    }

    /// The height of rows; a scale has any.
    pub(super) fn height(&self) -> Option<f64> {
        match self {
            Self::Scale { .. } => None,
            Self::Rows(rows) => Some(
                rows.len() as f64 * ROW + rows.iter().filter(|(head, _)| !head.is_empty()).count() as f64 * ROW_HEAD,
            ),
        }
    }

    /// The scale in its place and the middles of rows.
    pub(super) fn place(&self, plot: Area) -> (Scale, Vec<f64>) {
        match self {
            Self::Scale { scale, .. } => (scale.over(plot.bottom, plot.top), Vec::new()),
            Self::Rows(rows) => {
                let mut top = plot.top;
                let middle = |(head, _): &(String, String)| {
                    top += ROW + if head.is_empty() { 0.0 } else { ROW_HEAD };
                    top - ROW / 2.0
                };
                (Scale::between(0.0, 1.0).over(plot.bottom, plot.top), rows.iter().map(middle).collect())
            }
        }
    }

    pub(super) fn draw(&self, svg: &mut Svg, plot: Area, canvas: Canvas) {
        let (scale, rows) = self.place(plot);
        match self {
            Self::Scale { ticks, show, .. } => {
                for value in ticks {
                    let y = scale.at(*value);
                    svg.line("gr", (plot.left, y), (plot.right, y));
                    svg.text("tk", Anchor::End, (plot.left - 7.0, y + FONT * 0.35), show(*value));
                }
            }
            Self::Rows(names) => {
                for ((head, name), y) in names.iter().zip(rows) {
                    let head = fitted(head, FONT * BOLD, canvas.width - 4.0);
                    svg.text("tt ink", Anchor::Start, (2.0, y - ROW / 2.0 - 7.0), head);
                    let name = fitted(name, FONT, plot.left - 9.0);
                    svg.text("tk", Anchor::End, (plot.left - 8.0, y + FONT * 0.35), name);
                }
            }
        }
    }
}

/// Ticks on the right for a quantity that is the left one times `factor`.
pub(super) fn right(svg: &mut Svg, plot: Area, left: &Scale, factor: f64, about: usize) {
    let end = left.high() * factor;
    let scale = if left.is_log() { Scale::log_between(left.low() * factor, end) } else { Scale::between(0.0, end) };
    for value in scale.ticks(about) {
        let y = left.at(value / factor);
        svg.line("ax", (plot.right, y), (plot.right + 4.0, y));
        svg.text("tk", Anchor::Start, (plot.right + 7.0, y + FONT * 0.35), tick(value));
    }
}
