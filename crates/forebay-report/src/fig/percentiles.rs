//! Percentiles of single requests' latencies: the typical beside the tail.

use forebay_record::{Cell, ProbeCell};

use crate::axis::Scale;
use crate::data::{Data, Value};
use crate::grid::kept;
use crate::level;
use crate::markup::Markup;
use crate::number::microseconds;
use crate::palette::N_HUES;
use crate::svg::{Area, Canvas, Svg, Tip};
use crate::table::Align::{Left, Right};

use super::lines::{self, Line, Point};
use super::{Context, Drawn, axes, both};

const NAMES: [&str; 5] = ["p50", "p90", "p99", "p99.9", "max"];

fn values(cell: &ProbeCell) -> [f64; 5] {
    let latency = &cell.latency_us;
    [latency.p50, latency.p90, latency.p99, latency.p999, latency.max]
}

/// A probe cell and what to call it among the others.
pub(super) struct Named<'a> {
    pub(super) name: String,
    pub(super) cell: &'a ProbeCell,
}

/// The probe cells that a figure asks for, named by what they differ in.
pub(super) fn cells<'a>(context: &'a Context<'_>) -> Vec<Named<'a>> {
    let spec = context.spec;
    let wanted = context.run.cells_of::<ProbeCell>().filter(|(of, probe)| {
        let levels = probe.levels();
        let at = spec.at.iter().all(|(factor, level)| of.level(factor).or(levels.get(factor)) == Some(level));
        spec.experiment.as_deref().is_none_or(|name| of.experiment == name) && at
    });
    let all: Vec<_> = wanted
        .map(|(of, probe)| {
            let mut levels = probe.levels();
            levels.extend(of.factors.clone());
            (levels, probe)
        })
        .collect();
    let differs = |factor: &String| all.iter().any(|(levels, _)| levels.get(factor) != all[0].0.get(factor));
    let name = |(levels, cell): &(forebay_record::Levels, &'a ProbeCell)| {
        let shown = levels.iter().filter(|(factor, _)| differs(factor)).map(|(f, l)| (f.clone(), l.clone())).collect();
        Named { name: if all.len() == 1 { level::all(levels) } else { level::all(&shown) }, cell }
    };
    all.iter().map(name).collect()
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let all = cells(context);
    let sound = |named: &&Named<'_>| values(named.cell).iter().all(|value| value.is_finite() && *value > 0.0);
    let drawn: Vec<&Named<'_>> = all.iter().filter(sound).collect();
    if drawn.is_empty() {
        return Drawn::nothing("No latency was measured.");
    }
    let keep = kept(drawn.len(), N_HUES);
    let remarks = if keep.len() < drawn.len() {
        vec![format!("Of {} cells, {} are drawn; the data below has all.", drawn.len(), keep.len())]
    } else {
        Vec::new()
    };
    let shown: Vec<&Named<'_>> = keep.iter().map(|i| drawn[*i]).collect();
    let worst = drawn.iter().max_by(|a, b| a.cell.latency_us.p99.total_cmp(&b.cell.latency_us.p99));
    let names: Vec<Line> = shown.iter().map(|named| Line { name: named.name.clone(), points: Vec::new() }).collect();
    Drawn {
        data: data(&all),
        caption: worst.map_or(String::new(), |named| {
            format!("The longest p99 is {}, {}.", microseconds(named.cell.latency_us.p99), named.name)
        }),
        reading:
            "Of all requests, 50 %, 90 %, 99 % and 99.9 % were answered within this time; the scale is logarithmic."
                .to_owned(),
        remarks,
        legend: if shown.len() > 1 { lines::legend(&names) } else { Vec::new() },
        pictures: both(|canvas| draw(canvas, &shown, &context.spec.title)),
        ..Drawn::default()
    }
}

fn draw(canvas: Canvas, shown: &[&Named<'_>], label: &str) -> Markup {
    let all = || shown.iter().flat_map(|named| values(named.cell));
    let scale = Scale::log(all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let room = axes::tick_room(&scale, 6, microseconds);
    let names: Vec<Line> = shown.iter().map(|named| Line { name: named.name.clone(), points: Vec::new() }).collect();
    let height = if canvas.narrow { 300.0 } else { 340.0 };
    let right = canvas.width - lines::name_room(canvas, &names);
    let plot = Area { left: room, top: 28.0, right, bottom: height - 46.0 };
    let y = scale.over(plot.bottom, plot.top);
    let band = plot.width() / NAMES.len() as f64;
    let mut svg = Svg::new(canvas, height);
    axes::left(&mut svg, plot, &y, 6, "Latency of a request", |us| {
        microseconds(us).replace(".00", "").replace(".0 ", " ")
    });
    axes::groups(&mut svg, plot, &NAMES.map(str::to_owned), "Percentile of requests");
    let line = |named: &&Named<'_>| {
        let point = |(i, value): (usize, f64)| Point {
            x: plot.left + (i as f64 + 0.5) * band,
            y: y.at(value),
            range: None,
            cut: (false, false),
            tip: Some(
                Tip::new(format!("{}: {} {}", named.name, NAMES[i], microseconds(value)))
                    .with("series", &named.name)
                    .with("x", NAMES[i])
                    .with("value", value),
            ),
        };
        Line { name: named.name.clone(), points: values(named.cell).into_iter().enumerate().map(point).collect() }
    };
    let shown_lines: Vec<Line> = shown.iter().map(line).collect();
    lines::draw(&mut svg, canvas, plot, &shown_lines);
    svg.finish(label)
}

fn data(all: &[Named<'_>]) -> Data {
    let mut data = Data::new(&[("at", "cell", Left)]);
    for (key, name) in ["p50", "p90", "p99", "p999", "max"].iter().zip(NAMES) {
        data.column(&format!("{key}_us"), name, Right);
    }
    for named in all {
        let mut row = vec![Value::text(named.name.clone())];
        row.extend(values(named.cell).map(|value| Value::number(value, microseconds)));
        data.row(row);
    }
    data
}
