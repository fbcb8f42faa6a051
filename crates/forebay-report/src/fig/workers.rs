//! Where the workers' time went: a bar of 100 % a cell, storage in blue, processor in orange, waiting in grey.

use std::collections::BTreeMap;

use forebay_record::StudyCell;

use crate::data::{Data, Value};
use crate::grid::{Grid, kept};
use crate::level;
use crate::markup::Markup;
use crate::number::{percent, quantity};
use crate::palette::ACTIVITIES;
use crate::svg::{Anchor, Area, Canvas, FONT, SMALL, Svg, Tip, fitted, text_width};
use crate::table::Align::{Left, Right};

use super::{Context, Drawn, Key, both, swatch};

/// Bars that are still looked at one by one.
const MAX_ROWS: usize = 36;

struct Row<'a> {
    cell: &'a StudyCell,
    group: String,
    name: String,
    /// Activity, its word, its class, its seconds.
    parts: Vec<(&'a str, &'a str, &'static str, f64)>,
    total: f64,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let grid = Grid::of(context.run, context.spec);
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
            rows.extend(row(cell, group, name));
        }
    }
    if rows.is_empty() {
        return Drawn::nothing("No cell of this figure says what its workers did.");
    }
    let mut remarks = grid.remarks.clone();
    let data = data(&rows);
    if rows.len() > MAX_ROWS {
        remarks.push(format!("Of {} bars, {MAX_ROWS} are drawn; the data below has them all.", rows.len()));
        let keep = kept(rows.len(), MAX_ROWS);
        let mut index = 0;
        rows.retain(|_| {
            index += 1;
            keep.contains(&(index - 1))
        });
    }
    Drawn {
        data,
        caption: caption(&rows),
        reading:
            "Blue is storage, orange is the processor, grey is waiting; each bar is all workers' time in the repeat \
                  nearest to the median."
                .to_owned(),
        remarks,
        legend_title: String::new(),
        legend: legend(&rows),
        pictures: both(|canvas| draw(canvas, &rows, &context.spec.title)),
        is_table: false,
    }
}

fn row<'a>(cell: &'a StudyCell, group: String, name: String) -> Option<Row<'a>> {
    let times: &BTreeMap<String, f64> = &cell.ingest.as_ref()?.worker_time;
    let sound = |seconds: &f64| seconds.is_finite() && *seconds > 0.0;
    let mut parts = Vec::new();
    for (activity, word, class) in ACTIVITIES {
        if let Some((key, seconds)) = times.get_key_value(*activity).filter(|(_, seconds)| sound(seconds)) {
            parts.push((key.as_str(), *word, *class, *seconds));
        }
    }
    for (key, seconds) in times.iter().filter(|(_, seconds)| sound(seconds)) {
        if !ACTIVITIES.iter().any(|(known, _, _)| known == key) {
            parts.push((key, key, "a-other", *seconds));
        }
    }
    let total: f64 = parts.iter().map(|(_, _, _, seconds)| seconds).sum();
    (total > 0.0).then_some(Row { cell, group, name, parts, total })
}

fn draw(canvas: Canvas, rows: &[Row<'_>], label: &str) -> Markup {
    let name_of = |row: &Row<'_>| row.name.clone();
    let widest = rows.iter().map(|row| text_width(&name_of(row), FONT)).fold(0.0, f64::max);
    let left = if canvas.narrow { widest.min(96.0) + 10.0 } else { widest.min(240.0) + 12.0 };
    let (bar, head) = (20.0, 22.0);
    let n_heads = rows.iter().enumerate().filter(|(i, row)| starts_group(rows, *i, row)).count();
    let bottom = 22.0 + rows.len() as f64 * (bar + 5.0) + n_heads as f64 * head;
    let plot = Area { left, top: 22.0, right: canvas.width - 22.0, bottom };
    let mut svg = Svg::new(canvas, bottom + 42.0);
    svg.text("tt", Anchor::Start, (2.0, FONT), "Share of the workers' time");
    for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = plot.left + tick * plot.width();
        svg.line("gr", (x, plot.top), (x, plot.bottom));
        svg.text("tk", Anchor::Middle, (x, plot.bottom + 16.0), percent(tick).replace(".0 %", " %"));
    }
    svg.text("tt", Anchor::Middle, ((plot.left + plot.right) / 2.0, plot.bottom + 34.0), "% of all workers' seconds");
    let mut y = plot.top;
    for (i, row) in rows.iter().enumerate() {
        if starts_group(rows, i, row) {
            svg.text("tt ink", Anchor::Start, (2.0, y + head - 7.0), &row.group);
            y += head;
        }
        svg.text(
            "tk",
            Anchor::End,
            (plot.left - 8.0, y + bar * 0.5 + 4.0),
            fitted(&name_of(row), FONT, plot.left - 9.0),
        );
        stack(&mut svg, row, Area { top: y, bottom: y + bar, ..plot });
        y += bar + 5.0;
    }
    svg.finish(label)
}

fn starts_group(rows: &[Row<'_>], i: usize, row: &Row<'_>) -> bool {
    !row.group.is_empty() && (i == 0 || rows[i - 1].group != row.group)
}

fn stack(svg: &mut Svg, row: &Row<'_>, area: Area) {
    let mut from = area.left;
    for (activity, word, class, seconds) in &row.parts {
        let share = seconds / row.total;
        let to = from + share * area.width();
        let text = format!(
            "{}: {word} {} ({} s of {} s)",
            level::all(&row.cell.factors),
            percent(share),
            quantity(*seconds),
            quantity(row.total)
        );
        let tip = Tip::new(text)
            .with("cell", &row.cell.id)
            .with("activity", activity)
            .with("value", seconds)
            .with("share", share);
        svg.mark(&tip, |svg| {
            svg.rect(&format!("seg {class}"), Area { left: from, right: to, ..area });
            let percent = percent(share);
            let long = format!("{word} {percent}");
            let written = [long, percent].into_iter().find(|text| text_width(text, SMALL) + 8.0 < to - from);
            if let Some(text) = written {
                let middle = ((from + to) / 2.0, (area.top + area.bottom) / 2.0 + SMALL * 0.35);
                svg.text(&format!("v in-{class}"), Anchor::Middle, middle, text);
            }
        });
        from = to;
    }
}

fn legend(rows: &[Row<'_>]) -> Vec<Key> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for (_, word, class, _) in rows.iter().flat_map(|row| &row.parts) {
        if !keys.iter().any(|(known, _)| known == word) {
            keys.push((word, class));
        }
    }
    let place = |word: &str| ACTIVITIES.iter().position(|(_, known, _)| *known == word).unwrap_or(usize::MAX);
    keys.sort_by_key(|(word, _)| place(word));
    keys.into_iter()
        .map(|(word, class)| Key { sample: swatch(&format!("seg {class}")), name: word.to_owned() })
        .collect()
}

/// What took most of the time in most of the bars.
fn caption(rows: &[Row<'_>]) -> String {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        for (_, word, _, seconds) in &row.parts {
            *sums.entry(word).or_default() += seconds / row.total / rows.len() as f64;
        }
    }
    let most = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    most.map_or(String::new(), |(word, share)| {
        format!("On average {} of the workers' time went into “{word}”.", percent(share))
    })
}

fn data(rows: &[Row<'_>]) -> Data {
    let mut activities: Vec<&str> =
        rows.iter().flat_map(|row| row.parts.iter().map(|(activity, ..)| *activity)).collect();
    activities.sort_unstable();
    activities.dedup();
    let mut data = Data::new(&[("at", "cell", Left)]);
    for activity in &activities {
        let word = ACTIVITIES.iter().find(|(known, ..)| known == activity).map_or(*activity, |(_, word, _)| word);
        data.column(activity, &format!("{word}, s"), Right);
    }
    data.column("total", "all, s", Right);
    for row in rows {
        let mut values = vec![Value::text(level::all(&row.cell.factors))];
        for activity in &activities {
            let seconds = row.parts.iter().find(|(known, ..)| known == activity).map(|(.., seconds)| *seconds);
            values.push(Value::maybe(seconds, quantity));
        }
        values.push(Value::number(row.total, quantity));
        data.row(values);
    }
    data
}
