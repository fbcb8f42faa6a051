//! Bars that lie level and are cut into parts: what the workers' time and the accelerator's have in common.

use forebay_record::StudyCell;

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::{Grid, kept};
use crate::level;
use crate::markup::Markup;
use crate::number::{percent, quantity, tick};
use crate::svg::{Anchor, Area, Canvas, FONT, SMALL, Svg, Tip, fitted, text_width};
use crate::table::Align::{Left, Right};

use super::{Key, swatch};

/// Bars that are still looked at one by one.
const MAX_ROWS: usize = 36;

/// A part of a bar.
pub(super) struct Part<'a> {
    pub(super) key: &'a str,
    pub(super) word: &'a str,
    pub(super) class: &'static str,
    pub(super) seconds: f64,
}

/// A bar.
pub(super) struct Row<'a> {
    cell: &'a StudyCell,
    group: String,
    name: String,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) total: f64,
}

/// What is along the axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// Every bar is 100 %.
    Share,
    /// Bars are as long as their time.
    Seconds,
}

/// The words of a picture.
pub(super) struct Words {
    pub(super) axis: Axis,
    /// Above the bars.
    pub(super) title: &'static str,
    /// Below them.
    pub(super) unit: &'static str,
}

/// A bar a cell of a figure that has parts.
pub(super) fn rows<'a>(grid: &Grid<'a>, parts: impl Fn(&'a StudyCell) -> Vec<Part<'a>>) -> Vec<Row<'a>> {
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

/// Leaves out evenly what is too much for a picture, and says so.
pub(super) fn thin(rows: &mut Vec<Row<'_>>, remarks: &mut Vec<String>) {
    if rows.len() > MAX_ROWS {
        remarks.push(format!("Of {} bars, {MAX_ROWS} are drawn; the data below has them all.", rows.len()));
        let keep = kept(rows.len(), MAX_ROWS);
        let mut index = 0;
        rows.retain(|_| {
            index += 1;
            keep.contains(&(index - 1))
        });
    }
}

pub(super) fn draw(canvas: Canvas, rows: &[Row<'_>], words: &Words, label: &str) -> Markup {
    let widest = rows.iter().map(|row| text_width(&row.name, FONT)).fold(0.0, f64::max);
    let left = if canvas.narrow { widest.min(96.0) + 10.0 } else { widest.min(240.0) + 12.0 };
    let (bar, head) = (20.0, 22.0);
    let n_heads = rows.iter().enumerate().filter(|(i, row)| starts_group(rows, *i, row)).count();
    let bottom = 22.0 + rows.len() as f64 * (bar + 5.0) + n_heads as f64 * head;
    // Behind a bar as long as its time stands how long that is.
    let after = if words.axis == Axis::Seconds { 50.0 } else { 22.0 };
    let plot = Area { left, top: 22.0, right: canvas.width - after, bottom };
    let mut svg = Svg::new(canvas, bottom + 42.0);
    svg.text("tt", Anchor::Start, (2.0, FONT), words.title);
    let scale = scale(rows, words.axis).over(plot.left, plot.right);
    let show = |value: f64| match words.axis {
        Axis::Share => percent(value).replace(".0 %", " %"),
        Axis::Seconds => tick(value),
    };
    let mut free_from = f64::MIN;
    for value in scale.ticks(if words.axis == Axis::Share { 4 } else { 6 }) {
        let (x, text) = (scale.at(value), show(value));
        let half = text_width(&text, FONT) / 2.0;
        svg.line("gr", (x, plot.top), (x, plot.bottom));
        if x - half > free_from {
            svg.text("tk", Anchor::Middle, (x, plot.bottom + 16.0), text);
            free_from = x + half + 6.0;
        }
    }
    svg.text("tt", Anchor::Middle, ((plot.left + plot.right) / 2.0, plot.bottom + 34.0), words.unit);
    let mut y = plot.top;
    for (i, row) in rows.iter().enumerate() {
        if starts_group(rows, i, row) {
            svg.text("tt ink", Anchor::Start, (2.0, y + head - 7.0), &row.group);
            y += head;
        }
        let name = fitted(&row.name, FONT, plot.left - 9.0);
        svg.text("tk", Anchor::End, (plot.left - 8.0, y + bar * 0.5 + 4.0), name);
        let end = stack(&mut svg, row, Area { top: y, bottom: y + bar, ..plot }, &scale, words.axis);
        if words.axis == Axis::Seconds {
            let text = format!("{} s", quantity(row.total));
            svg.text("v", Anchor::Start, (end + 5.0, y + bar * 0.5 + SMALL * 0.35), text);
        }
        y += bar + 5.0;
    }
    svg.finish(label)
}

fn scale(rows: &[Row<'_>], axis: Axis) -> Scale {
    match axis {
        Axis::Share => Scale::between(0.0, 1.0),
        Axis::Seconds => Scale::between(0.0, rows.iter().map(|row| row.total).fold(0.0, f64::max)),
    }
}

fn starts_group(rows: &[Row<'_>], i: usize, row: &Row<'_>) -> bool {
    !row.group.is_empty() && (i == 0 || rows[i - 1].group != row.group)
}

/// Draws the parts behind each other; where they end.
fn stack(svg: &mut Svg, row: &Row<'_>, area: Area, scale: &Scale, axis: Axis) -> f64 {
    let whole = if axis == Axis::Share { row.total } else { 1.0 };
    let (mut before, mut from) = (0.0, area.left);
    for part in &row.parts {
        let (word, seconds, share) = (part.word, part.seconds, part.seconds / row.total);
        before += seconds;
        let to = scale.at(before / whole);
        let text = format!(
            "{}: {word} {} ({} s of {} s)",
            level::all(&row.cell.factors),
            percent(share),
            quantity(seconds),
            quantity(row.total)
        );
        let tip = Tip::new(text)
            .with("cell", &row.cell.id)
            .with("activity", part.key)
            .with("value", seconds)
            .with("share", share);
        svg.mark(&tip, |svg| {
            svg.rect(&format!("seg {}", part.class), Area { left: from, right: to, ..area });
            let percent = percent(share);
            let long = format!("{word} {percent}");
            let written = [long, percent].into_iter().find(|text| text_width(text, SMALL) + 8.0 < to - from);
            if let Some(text) = written {
                let middle = ((from + to) / 2.0, (area.top + area.bottom) / 2.0 + SMALL * 0.35);
                svg.text(&format!("v in-{}", part.class), Anchor::Middle, middle, text);
            }
        });
        from = to;
    }
    from
}

/// The legend's entries, in the order of a table of words.
pub(super) fn legend(rows: &[Row<'_>], order: &[(&str, &str, &str)]) -> Vec<Key> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for part in rows.iter().flat_map(|row| &row.parts) {
        if !keys.iter().any(|(known, _)| *known == part.word) {
            keys.push((part.word, part.class));
        }
    }
    let place = |word: &str| order.iter().position(|(_, known, _)| *known == word).unwrap_or(usize::MAX);
    keys.sort_by_key(|(word, _)| place(word));
    keys.into_iter()
        .map(|(word, class)| Key { sample: swatch(&format!("seg {class}")), name: word.to_owned() })
        .collect()
}

/// Every bar's parts in seconds, keys in the order of a table of words, others behind.
pub(super) fn data(rows: &[Row<'_>], order: &[(&str, &str, &str)]) -> Data {
    let mut keys: Vec<&str> = rows.iter().flat_map(|row| row.parts.iter().map(|part| part.key)).collect();
    let place = |key: &str| order.iter().position(|(known, ..)| *known == key).unwrap_or(usize::MAX);
    keys.sort_by_key(|key| (place(key), *key));
    keys.dedup();
    let mut data = Data::new(&[("at", "cell", Left)]);
    for key in &keys {
        let word = order.iter().find(|(known, ..)| known == key).map_or(*key, |(_, word, _)| word);
        data.column(key, &format!("{word}, s"), Right);
    }
    data.column("total", "all, s", Right);
    for row in rows {
        let mut values = vec![Value::text(level::all(&row.cell.factors))];
        for key in &keys {
            let seconds = row.parts.iter().find(|part| part.key == *key).map(|part| part.seconds);
            values.push(Value::maybe(seconds, quantity));
        }
        values.push(Value::number(row.total, quantity));
        data.row(values);
    }
    data
}
