//! How many samples of a dataset have which size, and the mix of requests that imitates them.

use forebay_record::{Bucket, Inspection, StudyCell};
use forebay_units::{Summary, count, group_digits};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::level;
use crate::markup::Markup;
use crate::number::{bytes, percent, tick};
use crate::svg::{Anchor, Area, Canvas, FONT, SMALL, Svg, Tip, text_width};
use crate::table::Align::{Left, Right};

use super::{Context, Drawn, axes, both};

/// Datasets that are drawn.
const MAX_SETS: usize = 4;
const PANEL: f64 = 190.0;
/// Why the shares of the mix are not those above the bars.
const MIX: &str = " The mix for fio takes the power of two nearest to a sample's size, up or down, so that its shares are not \
                   those of the bars.";

/// A dataset with its name among several.
struct Set<'a> {
    cell: &'a StudyCell,
    name: String,
    found: &'a Inspection,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let cells = context.cells();
    let inspected = cells.iter().filter(|cell| cell.error.is_none());
    let sets: Vec<Set<'_>> = inspected
        .filter_map(|cell| {
            let found = cell.measured_one::<Inspection>().filter(|found| !found.histogram.is_empty())?;
            Some(Set { cell, name: level::all(&cell.factors), found })
        })
        .collect();
    if sets.is_empty() {
        return Drawn::nothing("No dataset of this figure was looked at.");
    }
    let mut remarks = Vec::new();
    if sets.len() > MAX_SETS {
        remarks.push(format!("Of {} datasets, {MAX_SETS} are drawn; the data below has all.", sets.len()));
    }
    let empty: u64 =
        sets.iter().flat_map(|set| &set.found.histogram).filter(|b| b.from == 0).map(|b| b.n_samples).sum();
    if empty > 0 {
        remarks.push(format!("{} empty and not drawn.", count(empty, "sample")));
    }
    let shown = &sets[..sets.len().min(MAX_SETS)];
    let has_mix = sets.iter().any(|set| set.found.bssplit.is_some());
    Drawn {
        data: data(&sets),
        reading: sets.iter().map(|set| summary(set, sets.len() > 1)).collect::<Vec<_>>().join(" ")
            + " A bar holds the samples from its size on to twice that; above it stands their share of all samples."
            + if has_mix { MIX } else { "" },
        remarks,
        code: code(&sets, &context.spec.caption),
        pictures: both(|canvas| draw(canvas, shown, &context.spec.title)),
        ..Drawn::default()
    }
}

fn summary(set: &Set<'_>, several: bool) -> String {
    let name = if several { format!("{}: ", set.name) } else { String::new() };
    let sizes = set.found.sizes.as_ref().map(|sizes| {
        format!("; median {}, mean {}", bytes(sizes.median.round() as u64), bytes(sizes.mean.round() as u64))
    });
    format!(
        "{name}{} of {} in all{}.",
        count(set.found.n_samples, "sample"),
        bytes(set.found.histogram.iter().map(|bucket| bucket.bytes).sum()),
        sizes.unwrap_or_default()
    )
}

/// The lines for fio: ours, and the one that the study's caption has.
fn code(sets: &[Set<'_>], caption: &str) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for set in sets {
        let of = if sets.len() > 1 { format!(" ({})", set.name) } else { String::new() };
        let line = set.found.bssplit.as_ref().map(|split| format!("--bssplit={split}"));
        lines.extend(line.map(|line| (format!("fio reads blocks of these sizes with{of}:"), line)));
    }
    lines.extend(published(caption).map(|line| ("Published:".to_owned(), format!("--bssplit={line}"))));
    lines
}

/// The mix that a text names: sizes and shares, as "4K/2:8K/98".
fn published(text: &str) -> Option<&str> {
    let is_part = |part: &str| {
        part.split_once('/').is_some_and(|(size, share)| {
            let size = size.trim_end_matches(['k', 'K', 'm', 'M']);
            let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number(size) && is_number(share)
        })
    };
    let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    let words = words.map(|word| word.strip_prefix("bssplit=").unwrap_or(word));
    words.into_iter().find(|word| word.contains(':') && word.split(':').all(is_part))
}

fn buckets(found: &Inspection) -> impl Iterator<Item = &Bucket> {
    found.histogram.iter().filter(|bucket| bucket.from > 0)
}

fn draw(canvas: Canvas, sets: &[Set<'_>], label: &str) -> Markup {
    let all = || sets.iter().flat_map(|set| buckets(set.found));
    let low = all().map(|bucket| bucket.from).min().unwrap_or(1) as f64;
    let high = all().map(|bucket| bucket.from).max().unwrap_or(1) as f64 * 2.0;
    let most = all().map(|bucket| bucket.n_samples).max().unwrap_or(1) as f64;
    let y_scale = Scale::from_zero(most);
    let left = axes::tick_room(&y_scale, 5, tick);
    let x = Scale::log_between(low, high).over(left, canvas.width - 24.0);
    let head = if sets.len() > 1 { 58.0 } else { 40.0 };
    let height = 20.0 + sets.len() as f64 * (PANEL + head) + 42.0;
    let mut svg = Svg::new(canvas, height);
    svg.text("tt", Anchor::Start, (2.0, FONT), "Samples");
    let mut top = 20.0;
    for set in sets {
        let plot = Area { left, top: top + head, right: canvas.width - 24.0, bottom: top + head + PANEL };
        if sets.len() > 1 {
            svg.text("tt ink", Anchor::Start, (2.0, top + 12.0), &set.name);
        }
        let y = y_scale.over(plot.bottom, plot.top);
        axes::left(&mut svg, plot, &y, 5, "", tick);
        bars(&mut svg, set, &x, &y, plot);
        averages(&mut svg, set.found.sizes.as_ref(), &x, plot);
        top += head + PANEL;
    }
    x_axis(&mut svg, (low, high), &x, top, canvas);
    svg.finish(label)
}

fn bars(svg: &mut Svg, set: &Set<'_>, x: &Scale, y: &Scale, plot: Area) {
    for bucket in buckets(set.found) {
        let share = bucket.n_samples as f64 / set.found.n_samples.max(1) as f64;
        let (from, to) = (x.at(bucket.from as f64), x.at(bucket.from as f64 * 2.0));
        let text = format!(
            "{} to {}: {}, {}, {} together",
            binary(bucket.from),
            binary(bucket.from * 2),
            count(bucket.n_samples, "sample"),
            percent(share),
            bytes(bucket.bytes)
        );
        let tip = Tip::new(text)
            .with("cell", &set.cell.id)
            .with("from", bucket.from)
            .with("value", bucket.n_samples)
            .with("share", share);
        let top = y.at(bucket.n_samples as f64);
        svg.mark(&tip, |svg| {
            svg.rect("bar s4", Area { left: from + 1.0, top, right: to - 1.0, bottom: plot.bottom });
        });
        let shown = percent(share);
        if text_width(&shown, SMALL) <= to - from {
            svg.text("v", Anchor::Middle, ((from + to) / 2.0, top - 5.0), shown);
        }
    }
}

/// Lines at the median and the mean, named above the bars.
fn averages(svg: &mut Svg, sizes: Option<&Summary>, x: &Scale, plot: Area) {
    let Some(sizes) = sizes else { return };
    let marks = [("median", sizes.median), ("mean", sizes.mean)];
    let places = marks.map(|(_, value)| x.at(value.max(1.0)));
    let texts = marks.map(|(name, value)| format!("{name} {}", bytes(value.round() as u64)));
    let is_left = places[0] <= places[1];
    for (i, (name, value)) in marks.into_iter().enumerate() {
        let at = places[i];
        let tip = Tip::new(texts[i].clone()).with("average", name).with("value", value);
        svg.mark(&tip, |svg| {
            svg.line(if i == 0 { "limit" } else { "ideal" }, (at, plot.top - 14.0), (at, plot.bottom));
            // A line is too thin to be pointed at.
            svg.rect("hit", Area { left: at - 3.0, top: plot.top - 14.0, right: at + 3.0, bottom: plot.bottom });
        });
        // The one to the left is named on its left, so that the names never meet.
        let on_left = (i == 0) == is_left && at - text_width(&texts[i], SMALL) > 60.0;
        let (anchor, shift) = if on_left { (Anchor::End, -5.0) } else { (Anchor::Start, 5.0) };
        let class = if i == 0 { "v limit-name" } else { "v pub-name" };
        svg.text(class, anchor, (at + shift, plot.top - 16.0), &texts[i]);
    }
}

fn x_axis(svg: &mut Svg, (low, high): (f64, f64), x: &Scale, top: f64, canvas: Canvas) {
    let mut free_from = f64::MIN;
    let mut at = low;
    while at <= high * 1.001 {
        let text = binary(at as u64);
        let half = text_width(&text, FONT) / 2.0;
        svg.line("ax", (x.at(at), top), (x.at(at), top + 4.0));
        if x.at(at) - half > free_from && x.at(at) + half < canvas.width {
            svg.text("tk", Anchor::Middle, (x.at(at), top + 17.0), text);
            free_from = x.at(at) + half + 6.0;
        }
        at *= 2.0;
    }
    svg.line("ax", (x.at(low), top), (x.at(high), top));
    svg.text("tt", Anchor::Middle, ((x.at(low) + x.at(high)) / 2.0, top + 35.0), "Size of a sample");
}

/// A power of two as people name it.
fn binary(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        0x10_0000..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{} GiB", bytes >> 30),
    }
}

fn data(sets: &[Set<'_>]) -> Data {
    let mut data = Data::new(&[
        ("at", "dataset", Left),
        ("from_bytes", "size from", Right),
        ("n_samples", "samples", Right),
        ("share", "of all", Right),
        ("bytes", "bytes", Right),
    ]);
    for set in sets {
        for bucket in &set.found.histogram {
            let share = bucket.n_samples as f64 / set.found.n_samples.max(1) as f64;
            data.row(vec![
                Value::text(set.name.clone()),
                Value::Number(bucket.from as f64, binary(bucket.from)),
                Value::Number(bucket.n_samples as f64, group_digits(bucket.n_samples)),
                Value::number(share, percent),
                Value::Number(bucket.bytes as f64, bytes(bucket.bytes)),
            ]);
        }
    }
    data.hide_if_same("at");
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_mix_is_found_in_a_caption() {
        let line = "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1";
        assert_eq!(published(&format!("The source reads with {line}.")), Some(line));
        assert_eq!(published(&format!("It has (bssplit={line}), so.")), Some(line));
        assert_eq!(published("It is 3/4 of 8:30 and 1/2: half."), None);
    }
}
