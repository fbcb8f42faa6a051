//! The share of requests that were answered within a time: how latencies are distributed, from the histogram.

use forebay_record::LatencyBucket;

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::kept;
use crate::markup::Markup;
use crate::number::{microseconds, percent};
use crate::palette::N_HUES;
use crate::svg::{Area, Canvas, Svg, Tip};
use crate::table::Align::{Left, Right};

use super::lines::{self, Line, Point};
use super::percentiles::{Named, cells};
use super::{Context, Drawn, axes, both};

/// Steps of a curve that have a marker.
const MARKED: usize = 12;

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let all = cells(context);
    let with: Vec<&Named<'_>> = all.iter().filter(|named| total(&named.cell.histogram) > 0).collect();
    if with.is_empty() {
        return Drawn::nothing("No histogram of latencies was kept.");
    }
    let keep = kept(with.len(), N_HUES);
    let remarks = if keep.len() < with.len() {
        vec![format!("Of {} cells, {} are drawn.", with.len(), keep.len())]
    } else {
        Vec::new()
    };
    let shown: Vec<&Named<'_>> = keep.iter().map(|i| with[*i]).collect();
    let names: Vec<Line> = shown.iter().map(|named| Line { name: named.name.clone(), points: Vec::new() }).collect();
    Drawn {
        data: data(&shown),
        caption: "A steep curve is a steady device; a long way to 100 % is a tail that some batch waits for."
            .to_owned(),
        reading: "From the histogram of all kept repeats; the scale of times is logarithmic.".to_owned(),
        remarks,
        legend: if shown.len() > 1 { lines::legend(&names) } else { Vec::new() },
        pictures: both(|canvas| draw(canvas, &shown, &context.spec.title)),
        ..Drawn::default()
    }
}

fn total(histogram: &[LatencyBucket]) -> u64 {
    histogram.iter().map(|bucket| bucket.n).sum()
}

/// Times and the share of requests answered by then.
fn curve(histogram: &[LatencyBucket]) -> Vec<(f64, f64)> {
    let all = total(histogram) as f64;
    let mut seen = 0;
    let sound = histogram.iter().filter(|bucket| bucket.upto_us.is_finite() && bucket.upto_us > 0.0);
    let mut sorted: Vec<&LatencyBucket> = sound.collect();
    sorted.sort_by(|a, b| a.upto_us.total_cmp(&b.upto_us));
    sorted
        .into_iter()
        .map(|bucket| {
            seen += bucket.n;
            (bucket.upto_us, seen as f64 / all)
        })
        .collect()
}

fn draw(canvas: Canvas, shown: &[&Named<'_>], label: &str) -> Markup {
    let curves: Vec<Vec<(f64, f64)>> = shown.iter().map(|named| curve(&named.cell.histogram)).collect();
    let times = || curves.iter().flatten().map(|(time, _)| *time);
    let x = Scale::log(times().fold(f64::MAX, f64::min) / 1.2, times().fold(0.0, f64::max));
    let height = if canvas.narrow { 300.0 } else { 340.0 };
    let names: Vec<Line> = shown.iter().map(|named| Line { name: named.name.clone(), points: Vec::new() }).collect();
    let right = canvas.width - lines::name_room(canvas, &names).max(24.0);
    let plot = Area { left: 48.0, top: 28.0, right, bottom: height - 46.0 };
    let (x, y) = (x.over(plot.left, plot.right), Scale::between(0.0, 1.0).over(plot.bottom, plot.top));
    let mut svg = Svg::new(canvas, height);
    axes::left(&mut svg, plot, &y, 5, "Requests answered within the time", |share| {
        percent(share).replace(".0 %", " %")
    });
    let ticks = if canvas.narrow { 4 } else { 8 };
    axes::bottom(&mut svg, plot, &x, ticks, "Latency of a request", |us| {
        microseconds(us).replace(".00", "").replace(".0 ", " ")
    });
    let line = |(named, curve): (&&Named<'_>, &Vec<(f64, f64)>)| {
        let marked = kept(curve.len(), MARKED);
        let point = |(i, (time, share)): (usize, &(f64, f64))| Point {
            x: x.at(*time),
            y: y.at(*share),
            range: None,
            cut: (false, false),
            tip: marked.contains(&i).then(|| {
                Tip::new(format!("{}: {} of the requests within {}", named.name, percent(*share), microseconds(*time)))
                    .with("series", &named.name)
                    .with("x", time)
                    .with("value", share)
            }),
        };
        Line { name: named.name.clone(), points: curve.iter().enumerate().map(point).collect() }
    };
    let shown_lines: Vec<Line> = shown.iter().zip(&curves).map(line).collect();
    lines::draw(&mut svg, canvas, plot, &shown_lines);
    svg.finish(label)
}

fn data(shown: &[&Named<'_>]) -> Data {
    let mut data =
        Data::new(&[("at", "cell", Left), ("upto_us", "within", Right), ("share", "share of requests", Right)]);
    for named in shown {
        for (time, share) in curve(&named.cell.histogram) {
            data.row(vec![
                Value::text(named.name.clone()),
                Value::number(time, microseconds),
                Value::number(share, percent),
            ]);
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_ends_at_all_requests() {
        let bucket = |upto_us, n| LatencyBucket { upto_us, n };
        let curve = curve(&[bucket(200.0, 1), bucket(100.0, 3)]);
        assert_eq!(curve, [(100.0, 0.75), (200.0, 1.0)]);
    }
}
