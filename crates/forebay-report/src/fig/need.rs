//! The disk throughput that keeps so many accelerators busy: a line a cell, and what was published for eight.

use forebay_record::{Levels, NEED_ACCELERATORS, StudyCell, TrainCell};

use crate::number::{bytes, distinct, given, listed};
use crate::palette::N_HUES;
use crate::run::differing;

use super::{
    Canvas, Columns, Context, Data, Drawn, Key, Line, Panel, Pen, Plot, Point, Scale, Tip, X, Y, both, level, metric,
    quantity, thinned, tick,
};

/// The quantity that published values of it are of.
const METRIC: &str = TrainCell::NEED_MB_PER_S.info.name;
const COUNTS: [u64; 5] = [1, 2, 4, 8, 16];

/// Lines that are nearer to each other than this, as the logarithm of their ratio, hide one another.
const SAME: f64 = 0.04;
/// How far such a line is drawn to the right of the one before, on a desk and on a phone.
const ASIDE: (f64, f64) = (9.0, 8.0);

struct Need<'a> {
    cell: &'a StudyCell,
    name: String,
    images_per_s: f64,
    bytes: f64,
    /// The cell whose size was taken, since this one read nothing.
    lender: Option<&'a StudyCell>,
}

impl Need<'_> {
    fn mb_per_s(&self, n: u64) -> f64 {
        n as f64 * self.images_per_s * self.bytes / 1e6
    }
}

type Published<'a> = (f64, &'a str);

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let needs = needs(context);
    if needs.is_empty() {
        return Drawn::nothing("No cell of this figure was trained on data from storage.");
    }
    let published = published(context);
    let mut remarks = Vec::new();
    let shown = thinned(&needs, N_HUES, "cells", &mut remarks);
    remarks.extend(needs.iter().filter_map(|need| borrowed(&needs, need)));
    remarks.extend(side_by_side(&shown));
    let names: Vec<String> = shown.iter().map(|need| need.name.clone()).collect();
    let mut legend = Key::series(&names);
    legend.extend((!published.is_empty()).then(|| Key::marker("pub", 3, "published")));
    Drawn {
        data: data(&needs),
        reading: format!(
            "{} {}, times the bytes read per image, times the number of accelerators. Prefetched data that was not trained \
             on counts too, so short runs give slightly high values. Both axes are logarithmic.",
            finding(&needs, &published),
            rate_of_one(&needs)
        ),
        remarks,
        legend,
        pictures: both(&context.spec.title, |canvas| plot(canvas, &shown, &published)),
        is_open: true,
        ..Drawn::default()
    }
}

/// Where the rate of one accelerator comes from.
fn rate_of_one(needs: &[Need<'_>]) -> String {
    let emulated = needs.iter().filter_map(|need| need.cell.measured_one::<TrainCell>()?.accelerator.as_deref());
    match distinct(emulated).as_slice() {
        [] => "This is the measured rate of one accelerator that never waits".to_owned(),
        steps => format!(
            "This is the rate that follows from the emulated step time ({}), which is an input and not measured",
            steps.join(", ")
        ),
    }
}

/// Whose size of an image a cell that read nothing is set beside.
fn borrowed(needs: &[Need<'_>], need: &Need<'_>) -> Option<String> {
    let lender = need.lender?;
    let of = needs.iter().find(|other| std::ptr::eq(other.cell, lender)).map_or(lender.id.as_str(), |of| &of.name);
    let size = bytes(need.bytes.round() as u64);
    Some(format!("{} read nothing; its image size is taken from {of} ({size}).", need.name))
}

/// Whether two lines cannot be told apart; on these scales they run in parallel.
fn is_same(a: &Need<'_>, b: &Need<'_>) -> bool {
    (a.mb_per_s(1) / b.mb_per_s(1)).ln().abs() < SAME
}

/// How many of the lines before it a line lies on.
fn n_below(shown: &[&Need<'_>], i: usize) -> usize {
    shown[..i].iter().filter(|other| is_same(other, shown[i])).count()
}

/// Lines that would hide one another, which are drawn apart.
fn side_by_side(shown: &[&Need<'_>]) -> Option<String> {
    let hidden = |need: &&&Need<'_>| shown.iter().filter(|other| is_same(other, need)).count() > 1;
    let names: Vec<&str> = shown.iter().filter(hidden).map(|need| need.name.as_str()).collect();
    let said = || format!("These lines coincide and are drawn slightly apart: {}.", listed(&names));
    (!names.is_empty()).then(said)
}

fn needs<'a>(context: &'a Context<'_>) -> Vec<Need<'a>> {
    let trained = context.measured::<TrainCell>();
    // What was read ahead and not trained on counts in the bytes: the least of all is nearest to an image's size.
    let sizes = trained.iter().filter_map(|(of, cell)| Some((*of, cell.bytes_per_image()?)));
    let least = sizes.min_by(|a, b| a.1.total_cmp(&b.1));
    let levels = differing(trained.iter().map(|(cell, _)| cell.factors.clone()).collect(), &[]);
    let need = |((cell, train), levels): (&(&'a StudyCell, &'a TrainCell), &Levels)| {
        let own = train.bytes_per_image();
        Some(Need {
            cell,
            name: level::all(if trained.len() > 1 { levels } else { &cell.factors }),
            images_per_s: train.takes_images_per_s()?,
            bytes: own.or(least.map(|(_, size)| size))?,
            lender: if own.is_none() { least.map(|(of, _)| of) } else { None },
        })
    };
    trained.iter().zip(&levels).filter_map(need).collect()
}

fn published<'a>(context: &'a Context<'_>) -> Vec<Published<'a>> {
    let experiment = context.spec.experiment.as_deref();
    let of =
        context.run.spec().references.iter().filter(|reference| {
            reference.metric == METRIC && experiment.is_none_or(|name| reference.experiment == name)
        });
    of.map(|reference| (reference.value, reference.source.as_str())).collect()
}

fn finding(needs: &[Need<'_>], published: &[Published<'_>]) -> String {
    let eight = |need: &&Need<'_>| need.mb_per_s(NEED_ACCELERATORS as u64);
    let most = needs.iter().max_by(|a, b| eight(a).total_cmp(&eight(b)));
    let said = most.map_or(String::new(), |need| {
        format!(
            "{} accelerators need up to {} MB/s ({}: {} images/s of {} each).",
            given(NEED_ACCELERATORS),
            quantity(eight(&need)),
            need.name,
            quantity(need.images_per_s),
            bytes(need.bytes.round() as u64)
        )
    });
    let values: Vec<String> = published.iter().map(|(value, _)| metric::published(METRIC, *value)).collect();
    if values.is_empty() {
        return said;
    }
    format!("{said} Published for {}: {} MB/s.", given(NEED_ACCELERATORS), values.join(" to "))
}

fn plot<'a>(canvas: Canvas, shown: &[&Need<'_>], published: &'a [Published<'_>]) -> Plot<'a> {
    let all = || {
        let ours = shown.iter().flat_map(|need| COUNTS.map(|n| need.mb_per_s(n)));
        ours.chain(published.iter().map(|(value, _)| *value)).filter(|value| *value > 0.0)
    };
    let scale = Scale::log(all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let line = |(i, need): (usize, &&Need<'_>)| {
        let point = |(i, n): (usize, u64)| {
            let value = need.mb_per_s(n);
            let text = format!("{}: {n} accelerators, {} MB/s", need.name, quantity(value));
            let tip = Tip::of(need.cell, text).with("x", n).with("value", value);
            Point { x: i as f64, y: value, tip: Some(tip), ..Point::default() }
        };
        let aside = n_below(shown, i) as f64 * if canvas.narrow { ASIDE.1 } else { ASIDE.0 };
        Line { aside, ..Line::new(&need.name, COUNTS.into_iter().enumerate().map(point)) }
    };
    let eight = COUNTS.iter().position(|n| *n as f64 == NEED_ACCELERATORS).unwrap_or(0) as f64;
    let marks = move |pen: &mut Pen<'_>| {
        for (value, source) in published {
            let shown = metric::published(METRIC, *value);
            let tip = Tip::new(format!("published: {shown} MB/s ({source})")).with("published", value);
            let label = ("v pub-name".to_owned(), format!("published {shown}"));
            pen.published("pub", 3, (pen.x.at(eight), pen.y.at(*value)), &tip, label);
        }
    };
    let lines = shown.iter().enumerate().map(line).collect();
    let panel = Panel { lines, ..Panel::new(Y::new(scale, 6, tick), marks) };
    Plot::new("Disk throughput in MB per second", X::bands(COUNTS.map(|n| n.to_string()), "Accelerators"), vec![panel])
}

fn data(needs: &[Need<'_>]) -> Data {
    let columns = Columns::<&Need<'_>>::new()
        .text("at", "cell", |need| level::all(&need.cell.factors))
        .number(TrainCell::IMAGES_PER_S.info.name, "images/s per accelerator", quantity, |need| need.images_per_s)
        .number("bytes_per_image", "bytes per image", |size| bytes(size.round() as u64), |need| need.bytes);
    let for_count = |columns: Columns<'static, _>, n| {
        columns.number(&format!("mb_per_s_{n}"), &format!("MB/s for {n}"), quantity, move |need: &&Need<'_>| {
            need.mb_per_s(n)
        })
    };
    COUNTS.into_iter().fold(columns, for_count).of(needs)
}
