//! How many samples of a dataset have which size, and the mix of requests that imitates them.

use forebay_record::{Bucket, Inspection, StudyCell};
use forebay_units::count;

use crate::number::{binary, bytes, percent};
use crate::svg::{SMALL, text_width};

use super::{
    Anchor, Area, Canvas, Columns, Context, Data, Drawn, Panel, Pen, Plot, Right, Scale, Tip, Value, X, Y, both, first,
    level, tick,
};

const MAX_SETS: usize = 4;
const PANEL: f64 = 190.0;
/// Why the shares of the mix are not those above the bars.
const MIX: &str = " The mix for fio rounds each size to the nearest power of two, up or down, so its shares differ from the \
                   bars.";

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
        return Drawn::nothing("No dataset of this figure was inspected.");
    }
    let mut remarks = Vec::new();
    let shown = first(&sets, MAX_SETS, "datasets", &mut remarks);
    let empty: u64 =
        sets.iter().flat_map(|set| &set.found.histogram).filter(|b| b.from == 0).map(|b| b.n_samples).sum();
    if empty > 0 {
        remarks.push(format!("{} empty and not drawn.", count(empty, "sample")));
    }
    let has_mix = sets.iter().any(|set| set.found.bssplit.is_some());
    Drawn {
        data: data(&sets),
        reading: sets.iter().map(|set| summary(set, sets.len() > 1)).collect::<Vec<_>>().join(" ")
            + " Each bar counts the samples from its size up to twice that; the number above it is their share of all samples."
            + if has_mix { MIX } else { "" },
        remarks,
        code: code(&sets, &context.spec.caption),
        pictures: both(&context.spec.title, |canvas| plot(canvas, shown)),
        ..Drawn::default()
    }
}

fn summary(set: &Set<'_>, several: bool) -> String {
    let name = if several { format!("{}: ", set.name) } else { String::new() };
    let sizes = set.found.sizes.as_ref().map(|sizes| {
        format!("; median {}, mean {}", bytes(sizes.median.round() as u64), bytes(sizes.mean.round() as u64))
    });
    format!(
        "{name}{}, {} in total{}.",
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
        lines.extend(line.map(|line| (format!("To read blocks of these sizes with fio{of}:"), line)));
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

fn plot<'a>(canvas: Canvas, sets: &'a [Set<'_>]) -> Plot<'a> {
    let all = || sets.iter().flat_map(|set| buckets(set.found));
    let low = all().map(|bucket| bucket.from).min().unwrap_or(1);
    let high = all().map(|bucket| bucket.from).max().unwrap_or(1) * 2;
    let most = all().map(|bucket| bucket.n_samples).max().unwrap_or(1) as f64;
    let panel = |set: &'a Set<'_>| {
        let name = if sets.len() > 1 { set.name.as_str() } else { "" };
        let panel = Panel::new(Y::new(Scale::from_zero(most), 5, tick), |pen| set.draw(pen));
        Panel { title: name.to_owned(), head: 26.0, height: Some(PANEL), ..panel }
    };
    let sizes = std::iter::successors(Some(low), |size| Some(size * 2)).take_while(|size| *size <= high);
    let ticks = sizes.map(|size| (size as f64, binary(size))).collect();
    let x = X::at(Scale::log_between(low as f64, high as f64), ticks, "Size of a sample");
    let sides = (0.0, if canvas.narrow { 16.0 } else { 24.0 });
    Plot { sides, ..Plot::new("Samples", x, sets.iter().map(panel).collect()) }
}

impl Set<'_> {
    fn share(&self, bucket: &Bucket) -> f64 {
        bucket.n_samples as f64 / self.found.n_samples.max(1) as f64
    }

    fn draw(&self, pen: &mut Pen<'_>) {
        for bucket in buckets(self.found) {
            let (share, upto) = (percent(self.share(bucket)), bucket.from * 2);
            let what = format!("{}, {share}, {} in total", count(bucket.n_samples, "sample"), bytes(bucket.bytes));
            let tip = Tip::of(self.cell, format!("{} to {}: {what}", binary(bucket.from), binary(upto)))
                .with("from", bucket.from)
                .with("value", bucket.n_samples)
                .with("share", self.share(bucket));
            let (left, right) = (pen.x.at(bucket.from as f64), pen.x.at(upto as f64));
            let top = pen.y.at(bucket.n_samples as f64);
            let area = Area { left: left + 1.0, top, right: right - 1.0, bottom: pen.area.bottom };
            pen.svg.mark(&tip, |svg| svg.rect("bar s4", area));
            if text_width(&share, SMALL) <= right - left {
                pen.svg.text("v", Anchor::Middle, ((left + right) / 2.0, top - 5.0), share);
            }
        }
        self.averages(pen);
    }

    /// Lines at the median and the mean, named above the bars.
    fn averages(&self, pen: &mut Pen<'_>) {
        let Some(sizes) = &self.found.sizes else { return };
        let averages = [("median", sizes.median, "limit"), ("mean", sizes.mean, "ideal")];
        for (name, value, class) in averages {
            let tip = Tip::new(average(name, value)).with("average", name).with("value", value);
            pen.rule(class, value.max(1.0), 14.0, &tip);
        }
        for (name, value, class) in averages {
            let class = if class == "limit" { "v limit-name" } else { "v pub-name" };
            pen.note(class, value.max(1.0), -20.0, &average(name, value));
        }
    }
}

fn average(name: &str, value: f64) -> String {
    format!("{name} {}", bytes(value.round() as u64))
}

fn data(sets: &[Set<'_>]) -> Data {
    let buckets = sets.iter().flat_map(|set| set.found.histogram.iter().map(move |bucket| (set, bucket)));
    let mut data = Columns::<(&Set<'_>, &Bucket)>::new()
        .text("at", "dataset", |(set, _)| set.name.clone())
        .value("from_bytes", "size from", Right, |(_, of)| Value::Number(of.from as f64, binary(of.from)))
        .count("n_samples", "samples", |(_, of)| of.n_samples)
        .number("share", "of all", percent, |(set, of)| set.share(of))
        .value("bytes", "bytes", Right, |(_, of)| Value::Number(of.bytes as f64, bytes(of.bytes)))
        .of(buckets);
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
