//! Bars that lie level and are cut into parts: what the workers' time and the accelerator's have in common.

use forebay_record::StudyCell;

use crate::number::{brief_seconds, distinct, percent};
use crate::svg::{Canvas, FONT, SMALL, fitted, text_width};

use super::{
    Anchor, Area, Columns, Context, Data, Drawn, Grid, Key, Panel, Pen, Plot, Right, Scale, Tip, Value, X, Y, both,
    level, quantity, thinned, tick,
};

/// Bars that are still looked at one by one.
const MAX_ROWS: usize = 36;

pub(super) struct Part<'a> {
    pub(super) key: &'a str,
    pub(super) word: &'a str,
    pub(super) class: &'static str,
    pub(super) seconds: f64,
}

pub(super) struct Row<'a> {
    cell: &'a StudyCell,
    group: String,
    name: String,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) total: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// Every bar is 100 %.
    Share,
    /// Bars are as long as their time.
    Seconds,
}

pub(super) struct Stack {
    pub(super) axis: Axis,
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    /// Keys of parts, their words and classes, in the order of the legend; others come behind.
    pub(super) order: &'static [(&'static str, &'static str, &'static str)],
    pub(super) parts: fn(&StudyCell) -> Vec<Part<'_>>,
    pub(super) caption: fn(&[&Row<'_>]) -> String,
    pub(super) reading: fn(&Grid<'_>) -> &'static str,
    pub(super) nothing: &'static str,
}

pub(super) fn make(context: &Context<'_>, stack: &Stack) -> Drawn {
    let grid = Grid::of(context.run, context.spec);
    let rows = rows(&grid, stack.parts);
    if rows.is_empty() {
        return Drawn::nothing(stack.nothing);
    }
    let mut remarks = grid.remarks.clone();
    let shown = thinned(&rows, MAX_ROWS, "bars", &mut remarks);
    Drawn {
        data: data(&rows, stack),
        caption: (stack.caption)(&shown),
        reading: (stack.reading)(&grid).to_owned(),
        remarks,
        legend: legend(&shown, stack.order),
        pictures: both(&context.spec.title, |canvas| plot(canvas, &shown, stack)),
        ..Drawn::default()
    }
}

/// A bar a cell of a figure that has parts.
fn rows<'a>(grid: &Grid<'a>, parts: fn(&StudyCell) -> Vec<Part<'_>>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for (x, place) in grid.xs.iter().enumerate() {
        for (s, series) in grid.series.iter().enumerate() {
            let Some(cell) = grid.cell(s, x).filter(|cell| cell.error.is_none()) else { continue };
            let group = grid.x_factor.and_then(|factor| Some(level::named(factor, cell.level(factor)?)));
            let (group, name) = if grid.series.len() > 1 {
                (group.unwrap_or_default(), series.name.clone())
            } else {
                (String::new(), group.unwrap_or(place.name.clone()))
            };
            let parts = parts(cell);
            let total: f64 = parts.iter().map(|part| part.seconds).sum();
            if total > 0.0 {
                rows.push(Row { cell, group, name, parts, total });
            }
        }
    }
    rows
}

fn plot<'a>(canvas: Canvas, rows: &'a [&Row<'_>], stack: &Stack) -> Plot<'a> {
    let axis = stack.axis;
    let (scale, about, after) = match axis {
        Axis::Share => (Scale::between(0.0, 1.0), 4, 22.0),
        // Behind a bar as long as its time stands how long that is.
        Axis::Seconds => (Scale::between(0.0, rows.iter().map(|row| row.total).fold(0.0, f64::max)), 6, 56.0),
    };
    let show = |value: f64| match axis {
        Axis::Share => percent(value).replace(".0 %", " %"),
        Axis::Seconds => tick(value),
    };
    let name = |(i, row): (usize, &&Row<'_>)| {
        let starts = i == 0 || rows[i - 1].group != row.group;
        let head = if starts { row.group.clone() } else { String::new() };
        (head, fitted(&row.name, FONT, if canvas.narrow { 110.0 } else { 240.0 }))
    };
    let names = rows.iter().enumerate().map(name).collect();
    let marks = move |pen: &mut Pen<'_>| {
        for (i, row) in rows.iter().enumerate() {
            let end = row.draw(pen, pen.rows[i], axis);
            if axis == Axis::Seconds {
                let text = format!("{} s", quantity(row.total));
                pen.svg.text("v", Anchor::Start, (end + 5.0, pen.rows[i] + SMALL * 0.35), text);
            }
        }
    };
    let x = X::along(scale, about, stack.unit, show).grid();
    Plot { sides: (0.0, after), ..Plot::new(stack.title, x, vec![Panel::new(Y::Rows(names), marks)]) }
}

impl Row<'_> {
    /// Draws the parts behind each other; where they end.
    fn draw(&self, pen: &mut Pen<'_>, y: f64, axis: Axis) -> f64 {
        let whole = if axis == Axis::Share { self.total } else { 1.0 };
        let (mut before, mut left) = (0.0, pen.area.left);
        for part in &self.parts {
            let (word, seconds, share) = (part.word, part.seconds, part.seconds / self.total);
            before += seconds;
            let right = pen.x.at(before / whole);
            let (of, all) = (quantity(seconds), quantity(self.total));
            let text = format!("{}: {word} {} ({of} s of {all} s)", level::all(&self.cell.factors), percent(share));
            let tip = Tip::of(self.cell, text).with("activity", part.key).with("value", seconds).with("share", share);
            pen.svg.mark(&tip, |svg| {
                // However short, it can be pointed at.
                let area = Area { left, top: y - 10.0, right: right.max(left + 0.5), bottom: y + 10.0 };
                svg.rect(&format!("seg {}", part.class), area);
                let percent = percent(share);
                let long = format!("{word} {percent}");
                let written = [long, percent].into_iter().find(|text| text_width(text, SMALL) + 8.0 < right - left);
                let middle = ((left + right) / 2.0, y + SMALL * 0.35);
                svg.text(&format!("v in-{}", part.class), Anchor::Middle, middle, written.unwrap_or_default());
            });
            left = right;
        }
        left
    }
}

/// The legend's entries, in the order of a table of stack.
fn legend(rows: &[&Row<'_>], order: &[(&str, &str, &str)]) -> Vec<Key> {
    let mut keys = distinct(rows.iter().flat_map(|row| &row.parts).map(|part| (part.word, part.class)));
    let place = |word: &str| order.iter().position(|(_, known, _)| *known == word).unwrap_or(usize::MAX);
    keys.sort_by_key(|(word, _)| place(word));
    keys.into_iter().map(|(word, class)| Key::swatch(&format!("seg {class}"), word)).collect()
}

/// Every bar's parts in seconds; of bars of 100 %, shares are shown.
fn data(rows: &[Row<'_>], stack: &Stack) -> Data {
    let Stack { order, axis, .. } = *stack;
    let mut keys: Vec<&str> = rows.iter().flat_map(|row| row.parts.iter().map(|part| part.key)).collect();
    let place = |key: &str| order.iter().position(|(known, ..)| *known == key).unwrap_or(usize::MAX);
    keys.sort_by_key(|key| (place(key), *key));
    keys.dedup();
    let mut columns = Columns::<&Row<'_>>::new().text("at", "cell", |row| level::all(&row.cell.factors));
    for key in keys {
        let word = rows.iter().flat_map(|row| &row.parts).find(|part| part.key == key).map_or(key, |part| part.word);
        let seconds = move |row: &&Row<'_>| row.parts.iter().find(|part| part.key == key).map(|part| part.seconds);
        columns = columns.value(key, word, Right, move |row| {
            let shown = |seconds: f64| match (percent(seconds / row.total), axis) {
                (share, Axis::Share) => share,
                (share, Axis::Seconds) => format!("{} ({share})", brief_seconds(seconds)),
            };
            Value::maybe(seconds(row), shown)
        });
    }
    columns.number("total", "all", brief_seconds, |row| row.total).of(rows)
}
