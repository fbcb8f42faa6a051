//! The share of requests that were answered within a time: how latencies are distributed, from the histogram.

use forebay_record::LatencyBucket;

use crate::number::{microseconds, percent};
use crate::palette::N_HUES;

use super::percentiles::{Named, cells, round_time};
use super::{Columns, Context, Data, Drawn, Key, Line, Panel, Plot, Point, Scale, Tip, X, Y, both, kept};

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
    let names: Vec<String> = shown.iter().map(|named| named.name.clone()).collect();
    Drawn {
        data: data(&shown),
        caption:
            "A steep curve means steady latency; a long tail before 100 % means that some batches wait much longer."
                .to_owned(),
        reading: "From the histogram of all kept repeats; the time axis is logarithmic.".to_owned(),
        remarks,
        legend: Key::series(&names),
        pictures: both(&context.spec.title, |canvas| plot(&shown, if canvas.narrow { 4 } else { 8 })),
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

fn plot<'a>(shown: &[&Named<'_>], ticks: usize) -> Plot<'a> {
    let curves: Vec<Vec<(f64, f64)>> = shown.iter().map(|named| curve(&named.cell.histogram)).collect();
    let times = || curves.iter().flatten().map(|(time, _)| *time);
    let x = Scale::log(times().fold(f64::MAX, f64::min) / 1.2, times().fold(0.0, f64::max));
    let y = Y::new(Scale::between(0.0, 1.0), 5, |share| percent(share).replace(".0 %", " %"));
    let line = |(named, curve): (&&Named<'_>, &Vec<(f64, f64)>)| {
        let marked = kept(curve.len(), MARKED);
        let point = |(i, (time, share)): (usize, &(f64, f64))| {
            let (of, within) = (percent(*share), microseconds(*time));
            let tip = Tip::new(format!("{}: {of} of the requests within {within}", named.name))
                .with("series", &named.name)
                .with("x", time)
                .with("value", share);
            Point { x: *time, y: *share, tip: marked.contains(&i).then_some(tip), ..Point::default() }
        };
        Line::new(&named.name, curve.iter().enumerate().map(point))
    };
    let panel = Panel { lines: shown.iter().zip(&curves).map(line).collect(), ..Panel::new(y, |_| {}) };
    let x = X::along(x, ticks, "Latency of a request", round_time);
    Plot { sides: (0.0, 24.0), ..Plot::new("Requests answered within this time", x, vec![panel]) }
}

fn data(shown: &[&Named<'_>]) -> Data {
    let points = |named: &&Named<'_>| {
        let name = named.name.clone();
        curve(&named.cell.histogram).into_iter().map(move |(time, share)| (name.clone(), time, share))
    };
    Columns::<(String, f64, f64)>::new()
        .text("at", "cell", |(name, ..)| name.clone())
        .number("upto_us", "within", microseconds, |(_, time, _)| *time)
        .number("share", "share of requests", percent, |(.., share)| *share)
        .of(shown.iter().flat_map(points))
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
