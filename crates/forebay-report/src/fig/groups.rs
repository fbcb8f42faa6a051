//! Bars in groups: a group a level of the axis, a bar a series.

use forebay_record::StudyCell;

use crate::axis::Scale;
use crate::basis;
use crate::grid::Grid;
use crate::level;
use crate::markup::Markup;
use crate::number::tick;
use crate::palette;
use crate::svg::{Anchor, Area, Canvas, NARROW, Px, SMALL, Svg, Tip, WIDE, text_width};

use super::axes::{X, Y};
use super::pen::{Pen, hatched};
use super::plot::{Panel, Plot};

#[derive(Default)]
pub(super) struct Bar {
    pub(super) value: f64,
    pub(super) range: Option<(f64, f64)>,
    pub(super) label: String,
    pub(super) tip: Tip,
    /// A published value, with what to say of it.
    pub(super) published: Option<(f64, Tip)>,
    /// Up to where something stands on top of it, with what to say of that.
    pub(super) more: Option<(f64, Tip)>,
}

impl Bar {
    /// Where it ends with what stands on it.
    fn end(&self) -> f64 {
        self.more.as_ref().map_or(self.value, |(end, _)| end.max(self.value))
    }
}

pub(super) enum Slot {
    Bar(Bar),
    Failed(Tip),
    Nothing,
}

pub(super) struct Groups<'a> {
    pub(super) names: Vec<String>,
    pub(super) x_title: String,
    pub(super) y_title: String,
    pub(super) show: fn(f64) -> String,
    /// A quantity with a scale of its own on the right: its name and how many of it make one of the left.
    pub(super) right: Option<(&'a str, f64)>,
    pub(super) limit: Option<(f64, &'a str)>,
    pub(super) classes: Vec<String>,
    pub(super) slots: Vec<Vec<Slot>>,
    /// Room that is left for ticks at least: pictures below each other begin alike.
    pub(super) left: f64,
}

/// Bars narrower than this are not told apart.
const MIN_BAR: f64 = 7.0;
/// Height of a mark that stands in place of a bar.
const MARK: f64 = 7.0;

impl<'a> Groups<'a> {
    pub(super) fn new(y_title: &str, (names, x_title): (Vec<String>, &str), classes: Vec<String>) -> Self {
        let (x_title, y_title) = (x_title.to_owned(), y_title.to_owned());
        Self { names, x_title, y_title, show: tick, right: None, limit: None, classes, slots: Vec::new(), left: 0.0 }
    }

    /// A bar a cell of a grid: of its series and its level of the axis.
    pub(super) fn of<'g>(
        grid: &Grid<'g>,
        y_title: &str,
        bar: impl Fn(&'g StudyCell, &str, &str) -> Option<Bar>,
    ) -> Self {
        let slot = |x: usize, s: usize| match grid.cell(s, x) {
            None => Slot::Nothing,
            Some(StudyCell { error: Some(error), factors, .. }) => {
                Slot::Failed(Tip::new(format!("{}: failed: {error}", level::all(factors))).with("failed", "yes"))
            }
            Some(cell) => bar(cell, &grid.series[s].name, &grid.xs[x].name).map_or(Slot::Nothing, |bar| {
                Slot::Bar(Bar { label: basis::marked(bar.label, cell.disturbed()), ..bar })
            }),
        };
        let group = |x: usize| (0..grid.series.len()).map(|s| slot(x, s)).collect();
        let slots = (0..grid.xs.len()).map(group).collect();
        Self { slots, ..Self::new(y_title, (grid.x_names(), &grid.x_title()), grid.classes()) }
    }

    pub(super) fn bars(&self) -> impl Iterator<Item = &Bar> {
        self.slots.iter().flatten().filter_map(|slot| if let Slot::Bar(bar) = slot { Some(bar) } else { None })
    }

    pub(super) fn has_published(&self) -> bool {
        self.bars().any(|bar| bar.published.is_some())
    }

    pub(super) fn pictures(&self, label: &str) -> Vec<Markup> {
        [WIDE, NARROW].into_iter().map(|canvas| self.draw(canvas, label)).collect()
    }

    pub(super) fn draw(&self, canvas: Canvas, label: &str) -> Markup {
        let (left, right) = self.plot(canvas, 0.0, false).margins(canvas);
        let n_bars = (self.classes.len() * self.names.len()).max(1) as f64;
        let canvas = Canvas { width: canvas.width.max(left + right + n_bars * MIN_BAR * 1.25), ..canvas };
        let bar = self.bar_width(canvas.width - left - right);
        let widest = self.bars().map(|bar| text_width(&bar.label, SMALL)).fold(0.0, f64::max);
        let upright = widest > bar + 1.0;
        self.plot(canvas, if upright { widest } else { 10.0 }, upright && bar >= SMALL - 1.0).draw(canvas, label)
    }

    fn plot(&self, canvas: Canvas, head: f64, upright: bool) -> Plot<'_> {
        let y = Y::new(self.scale(), if canvas.narrow { 5 } else { 6 }, self.show);
        let panel = Panel { head, ..Panel::new(y, move |pen| self.draw_all(pen, upright)) };
        let x = X::bands(self.names.clone(), &self.x_title);
        Plot { right: self.right, sides: (self.left, 6.0), ..Plot::new(&self.y_title, x, vec![panel]) }
    }

    pub(super) fn tick_room(&self, canvas: Canvas) -> f64 {
        self.plot(canvas, 0.0, false).margins(canvas).0
    }

    fn bar_width(&self, width: f64) -> f64 {
        (width / self.names.len().max(1) as f64 * 0.84 / self.classes.len() as f64).min(64.0)
    }

    pub(super) fn scale(&self) -> Scale {
        let values = self.bars().flat_map(|bar| {
            let (low, high) = bar.range.unwrap_or((bar.value, bar.value));
            [bar.value, low, high, bar.end()].into_iter().chain(bar.published.as_ref().map(|(value, _)| *value))
        });
        // Heights on top of each other are only read on a linear scale.
        if self.limit.is_some() || self.bars().any(|bar| bar.more.is_some()) {
            let limit = self.limit.map_or(0.0, |(value, _)| value);
            return Scale::from_zero(values.fold(limit, f64::max));
        }
        Scale::for_bars(values)
    }

    fn draw_all(&self, pen: &mut Pen<'_>, upright: bool) {
        if let Some((value, _)) = self.limit {
            pen.level("limit", value);
        }
        let bar = self.bar_width(pen.area.width());
        for (g, group) in self.slots.iter().enumerate() {
            for (s, slot) in group.iter().enumerate() {
                let left = pen.x.at(g as f64) + (s as f64 - group.len() as f64 / 2.0) * bar;
                let place = Area { left, right: left + bar, ..pen.area };
                match slot {
                    Slot::Nothing => {}
                    Slot::Failed(tip) => pen.svg.mark(tip, |svg| {
                        svg.text("v fail", Anchor::Middle, (left + bar / 2.0, place.bottom - 6.0), "✕");
                    }),
                    Slot::Bar(bar) => draw_bar(pen.svg, bar, &self.classes[s], place, &pen.y, upright),
                }
            }
        }
        if let Some((value, name)) = self.limit {
            pen.name_level("v limit-name", value, name);
        }
    }
}

fn draw_bar(svg: &mut Svg, bar: &Bar, class: &str, place: Area, scale: &Scale, upright: bool) {
    let gap = if place.width() > 12.0 { 1.5 } else { 0.5 };
    let (middle, y) = ((place.left + place.right) / 2.0, scale.at(bar.value));
    // The length of a bar says nothing on a logarithmic axis, so there a mark stands at the value.
    let (top, bottom) = if scale.is_log() { (y - MARK / 2.0, y + MARK / 2.0) } else { (y, place.bottom) };
    let area = Area { left: place.left + gap, top, right: place.right - gap, bottom };
    svg.mark(&bar.tip, |svg| {
        svg.rect(&format!("bar {class}"), area);
        whisker(svg, bar, middle, place.width() * 0.22, scale);
    });
    if let Some((end, tip)) = bar.more.as_ref().filter(|(end, _)| *end > bar.value) {
        svg.mark(tip, |svg| hatched(svg, Area { top: scale.at(*end), bottom: y, ..area }));
    }
    let top = bar.range.map_or(top, |(_, high)| scale.at(high).min(top)).min(scale.at(bar.end()));
    if upright {
        svg.text_up("v", (middle + SMALL * 0.35, top - 5.0), &bar.label);
    } else if text_width(&bar.label, SMALL) <= place.width() + 1.0 {
        svg.take(Area { top: top - 5.0 - SMALL, bottom: top - 3.0, ..place });
        svg.text("v", Anchor::Middle, (middle, top - 5.0), &bar.label);
    }
    if let Some((value, tip)) = &bar.published {
        let y = scale.at(*value);
        svg.mark(tip, |svg| {
            svg.line("pub-line", (area.left, y), (area.right, y));
            palette::marker(svg, "pub", 3, (middle, y), 4.5);
        });
    }
}

fn whisker(svg: &mut Svg, bar: &Bar, x: f64, half: f64, scale: &Scale) {
    let Some((low, high)) = bar.range else { return };
    let (low, high, half) = (scale.at(low), scale.at(high), half.clamp(1.5, 6.0));
    let (left, right) = (Px(x - half), Px(x + half));
    let d = format!("M{left} {}H{right}M{left} {}H{right}M{} {}V{}", Px(low), Px(high), Px(x), Px(low), Px(high));
    // Once in the page's colour, so that it is seen on a bar of its own colour.
    svg.path("wh halo", &d);
    svg.path("wh", &d);
}
