//! The disk throughput that keeps so many accelerators busy: a line a cell, and what was published for eight.

use forebay_record::{NEED_ACCELERATORS, StudyCell, TrainCell};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::kept;
use crate::level;
use crate::markup::Markup;
use crate::metric;
use crate::number::{bytes, given, listed, quantity, tick};
use crate::palette::{self, N_HUES};
use crate::svg::{Area, Canvas, Svg, Tip};
use crate::table::Align::{Left, Right};

use super::lines::{self, Line, Point};
use super::{Context, Drawn, Key, axes, both};

/// The quantity that published values of it are of.
const METRIC: &str = "need_mb_per_s";
/// Numbers of accelerators.
const COUNTS: [u64; 5] = [1, 2, 4, 8, 16];

/// Lines that are nearer to each other than this, as the logarithm of their ratio, hide one another.
const SAME: f64 = 0.04;
/// How far such a line is drawn to the right of the one before, where there is room.
const ASIDE: f64 = 9.0;

/// What one accelerator needs.
struct Need<'a> {
    cell: &'a StudyCell,
    name: String,
    images_per_s: f64,
    bytes: f64,
    /// The cell whose size was taken, since this one read nothing.
    lender: Option<&'a StudyCell>,
}

impl Need<'_> {
    /// Megabytes a second for so many accelerators.
    fn mb_per_s(&self, n: u64) -> f64 {
        n as f64 * self.images_per_s * self.bytes / 1e6
    }
}

/// A published value.
type Published<'a> = (f64, &'a str);

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let needs = needs(context);
    if needs.is_empty() {
        return Drawn::nothing("No cell of this figure was trained on data that was read.");
    }
    let published = published(context);
    let keep = kept(needs.len(), N_HUES);
    let mut remarks = Vec::new();
    if keep.len() < needs.len() {
        remarks.push(format!("Of {} cells, {} are drawn; the data below has all.", needs.len(), keep.len()));
    }
    remarks.extend(needs.iter().filter_map(|need| borrowed(&needs, need)));
    remarks.extend(side_by_side(&needs, &keep));
    let shown: Vec<&Need<'_>> = keep.iter().map(|i| &needs[*i]).collect();
    let names: Vec<Line> = shown.iter().map(|need| Line { name: need.name.clone(), points: Vec::new() }).collect();
    let mut legend = if shown.len() > 1 { lines::legend(&names) } else { Vec::new() };
    if !published.is_empty() {
        let sample = super::sample(|svg| palette::marker(svg, "pub", 3, (9.0, 7.0), 4.5));
        legend.push(Key { sample, name: "published".to_owned() });
    }
    Drawn {
        data: data(&needs),
        reading: finding(&needs, &published)
            + " That is the rate of one accelerator that never waits, times the bytes read for an image, times the number \
               of accelerators: all measured. What was read ahead and not trained on counts, too, so that short runs give a \
               little too much. Both scales are logarithmic.",
        remarks,
        legend,
        pictures: both(|canvas| draw(canvas, &shown, &published, &context.spec.title)),
        is_open: true,
        ..Drawn::default()
    }
}

/// Whose size of an image a cell that read nothing is set beside.
fn borrowed(needs: &[Need<'_>], need: &Need<'_>) -> Option<String> {
    let lender = need.lender?;
    let of = needs.iter().find(|other| std::ptr::eq(other.cell, lender)).map_or(lender.id.as_str(), |of| &of.name);
    let size = bytes(need.bytes.round() as u64);
    Some(format!("{} read nothing: its images are taken to be as large as those of {of}, {size}.", need.name))
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
fn side_by_side(needs: &[Need<'_>], keep: &[usize]) -> Option<String> {
    let shown: Vec<&Need<'_>> = keep.iter().map(|i| &needs[*i]).collect();
    let hidden = |need: &&&Need<'_>| shown.iter().filter(|other| is_same(other, need)).count() > 1;
    let names: Vec<&str> = shown.iter().filter(hidden).map(|need| need.name.as_str()).collect();
    let said = || format!("These lie on one another and are drawn a little apart: {}.", listed(&names));
    (!names.is_empty()).then(said)
}

fn needs<'a>(context: &'a Context<'_>) -> Vec<Need<'a>> {
    let cells = context.cells();
    let trained: Vec<(&StudyCell, &TrainCell)> = cells
        .into_iter()
        .filter(|cell| cell.error.is_none())
        .filter_map(|cell| Some((cell, cell.measured_one::<TrainCell>()?)))
        .collect();
    // What was read ahead and not trained on counts in the bytes: the least of all is nearest to an image's size.
    let sizes = trained.iter().filter_map(|(of, cell)| Some((*of, cell.bytes_per_image()?)));
    let least = sizes.min_by(|a, b| a.1.total_cmp(&b.1));
    let differs = |factor: &String| trained.iter().any(|(cell, _)| cell.level(factor) != trained[0].0.level(factor));
    let need = |(cell, train): &(&'a StudyCell, &'a TrainCell)| {
        let own = train.bytes_per_image();
        let mut levels = cell.factors.clone();
        if trained.len() > 1 {
            levels.retain(|factor, _| differs(factor));
        }
        Some(Need {
            cell,
            name: level::all(&levels),
            images_per_s: train.takes_images_per_s()?,
            bytes: own.or(least.map(|(_, size)| size))?,
            lender: if own.is_none() { least.map(|(of, _)| of) } else { None },
        })
    };
    trained.iter().filter_map(need).collect()
}

/// Published values of the figure's experiment, each once.
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

fn draw(canvas: Canvas, shown: &[&Need<'_>], published: &[Published<'_>], label: &str) -> Markup {
    let all = || {
        let ours = shown.iter().flat_map(|need| COUNTS.map(|n| need.mb_per_s(n)));
        ours.chain(published.iter().map(|(value, _)| *value)).filter(|value| *value > 0.0)
    };
    let scale = Scale::log(all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let names: Vec<Line> = shown.iter().map(|need| Line { name: need.name.clone(), points: Vec::new() }).collect();
    let height = if canvas.narrow { 300.0 } else { 340.0 };
    let right = canvas.width - lines::name_room(canvas, &names);
    let plot = Area { left: axes::tick_room(&scale, 6, tick), top: 28.0, right, bottom: height - 46.0 };
    let y = scale.over(plot.bottom, plot.top);
    let x = |i: usize| plot.left + (i as f64 + 0.5) * plot.width() / COUNTS.len() as f64;
    let mut svg = Svg::new(canvas, height);
    axes::left(&mut svg, plot, &y, 6, "Disk throughput in MB per second", tick);
    axes::groups(&mut svg, plot, &COUNTS.map(|n| n.to_string()), "Accelerators");
    let line = |(place, need): (usize, &&Need<'_>)| {
        let aside = n_below(shown, place) as f64 * ASIDE.min((x(1) - x(0)) / 2.0 / shown.len() as f64);
        let point = |(i, n): (usize, u64)| {
            let value = need.mb_per_s(n);
            let tip = Tip::new(format!("{}: {n} accelerators, {} MB/s", need.name, quantity(value)))
                .with("cell", &need.cell.id)
                .with("x", n)
                .with("value", value);
            Point { x: x(i) + aside, y: y.at(value), range: None, cut: (false, false), tip: Some(tip) }
        };
        Line { name: need.name.clone(), points: COUNTS.into_iter().enumerate().map(point).collect() }
    };
    let shown_lines: Vec<Line> = shown.iter().enumerate().map(line).collect();
    lines::draw(&mut svg, canvas, plot, &shown_lines);
    let eight = COUNTS.iter().position(|n| *n as f64 == NEED_ACCELERATORS).unwrap_or(0);
    for (value, source) in published {
        let text = format!("published: {} MB/s ({source})", metric::published(METRIC, *value));
        let tip = Tip::new(text).with("published", value);
        svg.mark(&tip, |svg| palette::marker(svg, "pub", 3, (x(eight), y.at(*value)), 6.5));
        svg.take(Area {
            left: x(eight) - 8.0,
            top: y.at(*value) - 8.0,
            right: x(eight) + 8.0,
            bottom: y.at(*value) + 8.0,
        });
    }
    for (value, _) in published {
        let text = format!("published {}", metric::published(METRIC, *value));
        svg.label("v pub-name", (x(eight), y.at(*value)), 11.0, plot, &text);
    }
    svg.finish(label)
}

fn data(needs: &[Need<'_>]) -> Data {
    let mut data = Data::new(&[
        ("at", "cell", Left),
        ("images_per_s", "images/s of one", Right),
        ("bytes_per_image", "an image", Right),
    ]);
    for n in COUNTS {
        data.column(&format!("mb_per_s_{n}"), &format!("MB/s for {n}"), Right);
    }
    for need in needs {
        let mut row = vec![
            Value::text(level::all(&need.cell.factors)),
            Value::number(need.images_per_s, quantity),
            Value::number(need.bytes, |size| bytes(size.round() as u64)),
        ];
        row.extend(COUNTS.map(|n| Value::number(need.mb_per_s(n), quantity)));
        data.row(row);
    }
    data
}
