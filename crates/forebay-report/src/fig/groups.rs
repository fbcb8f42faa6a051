//! Bars in groups: what bars and efficiency have in common.

use crate::axis::Scale;
use crate::markup::Markup;
use crate::svg::{Anchor, Area, Canvas, Px, SMALL, Svg, Tip, text_width};

use super::axes::{self, Show};

/// A bar.
pub(super) struct Bar {
    pub(super) value: f64,
    /// The smallest and the largest repeat.
    pub(super) range: Option<(f64, f64)>,
    /// What is written above it.
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

/// What stands in a place.
pub(super) enum Slot {
    Bar(Bar),
    /// A cell that failed, with the reason.
    Failed(Tip),
    Nothing,
}

/// Groups of bars and their axes.
pub(super) struct Groups<'a> {
    pub(super) names: Vec<String>,
    pub(super) x_title: String,
    pub(super) y_title: String,
    pub(super) show: Show,
    /// A quantity with a scale of its own on the right: its name and how many of it make one of the left.
    pub(super) right: Option<(&'a str, f64)>,
    /// A line across the plot with its name.
    pub(super) limit: Option<(f64, &'a str)>,
    /// A class of colour a series.
    pub(super) classes: Vec<String>,
    /// The bars by group and series.
    pub(super) slots: Vec<Vec<Slot>>,
}

/// Bars narrower than this are not told apart.
const MIN_BAR: f64 = 7.0;

fn n_ticks(canvas: Canvas) -> usize {
    if canvas.narrow { 5 } else { 6 }
}

impl Groups<'_> {
    pub(super) fn draw(&self, canvas: Canvas, label: &str) -> Markup {
        self.draw_from(canvas, label, self.tick_room(canvas))
    }

    /// What the ticks on the left need.
    pub(super) fn tick_room(&self, canvas: Canvas) -> f64 {
        axes::tick_room(&self.scale(), n_ticks(canvas), self.show)
    }

    /// The same with as much room on the left: pictures that stand below each other begin alike.
    pub(super) fn draw_from(&self, canvas: Canvas, label: &str, left: f64) -> Markup {
        let scale = self.scale();
        let ticks = n_ticks(canvas);
        let right = match self.right {
            Some((_, factor)) => {
                text_width(&crate::number::tick((scale.high() * factor).round()), SMALL).max(18.0) + 14.0
            }
            None => 6.0,
        };
        let n_bars = (self.classes.len() * self.names.len()).max(1) as f64;
        let width = canvas.width.max(left + right + n_bars * MIN_BAR * 1.25);
        let band = (width - left - right) / self.names.len().max(1) as f64;
        let bar = (band * 0.84 / self.classes.len() as f64).min(64.0);
        let upright = self.labels().any(|text| text_width(text, SMALL) > bar + 1.0);
        let headroom =
            if upright { self.labels().map(|text| text_width(text, SMALL)).fold(0.0, f64::max) + 8.0 } else { 18.0 };
        let top = 22.0 + headroom;
        let below = axes::group_room(&self.names, width - left - right);
        let height = if canvas.narrow { 250.0 } else { 300.0 } + top + below;
        let plot = Area { left, top, right: width - right, bottom: height - below };
        let scale = scale.over(plot.bottom, plot.top);

        let mut svg = Svg::new(Canvas { width, ..canvas }, height);
        axes::left(&mut svg, plot, &scale, ticks, &self.y_title, self.show);
        if let Some((title, factor)) = self.right {
            axes::right(&mut svg, plot, &scale, factor, ticks, title, width);
        }
        if let Some((value, name)) = self.limit {
            svg.line("limit", (plot.left, scale.at(value)), (plot.right, scale.at(value)));
            if !name.is_empty() {
                svg.text("v limit-name", Anchor::End, (plot.right, scale.at(value) - 5.0), name);
            }
        }
        for (g, group) in self.slots.iter().enumerate() {
            let middle = plot.left + (g as f64 + 0.5) * band;
            for (s, slot) in group.iter().enumerate() {
                let x = middle + (s as f64 - group.len() as f64 / 2.0) * bar;
                self.slot(&mut svg, slot, (x, x + bar), plot, &scale, s, upright && bar >= SMALL - 1.0);
            }
        }
        axes::groups(&mut svg, plot, &self.names, &self.x_title);
        svg.finish(label)
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().flatten().filter_map(|slot| match slot {
            Slot::Bar(bar) => Some(bar.label.as_str()),
            _ => None,
        })
    }

    fn scale(&self) -> Scale {
        let bars =
            || self.slots.iter().flatten().filter_map(|slot| if let Slot::Bar(bar) = slot { Some(bar) } else { None });
        let values = bars().flat_map(|bar| {
            let (low, high) = bar.range.unwrap_or((bar.value, bar.value));
            [bar.value, low, high, bar.end()].into_iter().chain(bar.published.as_ref().map(|(value, _)| *value))
        });
        // Heights on top of each other are only read on a linear scale.
        if self.limit.is_some() || bars().any(|bar| bar.more.is_some()) {
            let limit = self.limit.map_or(0.0, |(value, _)| value);
            return Scale::from_zero(values.fold(limit, f64::max));
        }
        Scale::for_bars(values)
    }

    #[expect(clippy::too_many_arguments, reason = "a bar is drawn from its place, its plot and its look")]
    fn slot(
        &self,
        svg: &mut Svg,
        slot: &Slot,
        (from, to): (f64, f64),
        plot: Area,
        scale: &Scale,
        s: usize,
        upright: bool,
    ) {
        let middle = (from + to) / 2.0;
        match slot {
            Slot::Nothing => {}
            Slot::Failed(tip) => svg.mark(tip, |svg| {
                svg.text("v fail", Anchor::Middle, (middle, plot.bottom - 6.0), "✕");
            }),
            Slot::Bar(bar) => {
                let gap = if to - from > 12.0 { 1.5 } else { 0.5 };
                let y = scale.at(bar.value);
                svg.mark(&bar.tip, |svg| {
                    svg.rect(
                        &format!("bar {}", self.classes[s]),
                        Area { left: from + gap, top: y, right: to - gap, bottom: plot.bottom },
                    );
                    whisker(svg, bar, middle, (to - from) * 0.22, scale);
                });
                if let Some((end, tip)) = bar.more.as_ref().filter(|(end, _)| *end > bar.value) {
                    let area = Area { left: from + gap, top: scale.at(*end), right: to - gap, bottom: y };
                    svg.mark(tip, |svg| hatched(svg, area));
                }
                let top = bar.range.map_or(y, |(_, high)| scale.at(high).min(y)).min(scale.at(bar.end()));
                if upright {
                    svg.text_up("v", (middle + SMALL * 0.35, top - 5.0), &bar.label);
                } else if text_width(&bar.label, SMALL) <= to - from + 1.0 {
                    svg.text("v", Anchor::Middle, (middle, top - 5.0), &bar.label);
                }
                if let Some((value, tip)) = &bar.published {
                    let y = scale.at(*value);
                    svg.mark(tip, |svg| {
                        svg.line("pub-line", (from + gap, y), (to - gap, y));
                        crate::palette::marker(svg, "pub", 3, (middle, y), 4.5);
                    });
                }
            }
        }
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

fn whisker(svg: &mut Svg, bar: &Bar, x: f64, half: f64, scale: &Scale) {
    let Some((low, high)) = bar.range else { return };
    let (low, high, half) = (scale.at(low), scale.at(high), half.clamp(1.5, 6.0));
    let (left, right) = (Px(x - half), Px(x + half));
    let d = format!("M{left} {}H{right}M{left} {}H{right}M{} {}V{}", Px(low), Px(high), Px(x), Px(low), Px(high));
    // Once in the page's colour, so that it is seen on a bar of its own colour.
    svg.path("wh halo", &d);
    svg.path("wh", &d);
}
