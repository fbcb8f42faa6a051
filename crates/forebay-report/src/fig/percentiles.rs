//! Percentiles of single requests' latencies: the typical beside the tail.

use forebay_record::{Cell, ProbeCell};

use crate::number::microseconds;
use crate::palette::N_HUES;
use crate::run::differing;

use super::{Columns, Context, Data, Drawn, Key, Line, Panel, Plot, Point, Scale, Tip, X, Y, both, level, thinned};

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
    let n = all.len();
    let differ = differing(all.iter().map(|(levels, _)| levels.clone()).collect(), &[]);
    let name = |((levels, cell), differ)| Named { name: level::all(if n == 1 { &levels } else { &differ }), cell };
    all.into_iter().zip(differ).map(name).collect()
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let all = cells(context);
    let sound = |named: &&Named<'_>| values(named.cell).iter().all(|value| value.is_finite() && *value > 0.0);
    let drawn: Vec<&Named<'_>> = all.iter().filter(sound).collect();
    if drawn.is_empty() {
        return Drawn::nothing("No latency was measured.");
    }
    let mut remarks = Vec::new();
    let shown = thinned(&drawn, N_HUES, "cells", &mut remarks);
    let worst = drawn.iter().max_by(|a, b| a.cell.latency_us.p99.total_cmp(&b.cell.latency_us.p99));
    let names: Vec<String> = shown.iter().map(|named| named.name.clone()).collect();
    Drawn {
        data: data(&all),
        caption: worst.map_or(String::new(), |named| {
            format!("The longest p99 is {}, {}.", microseconds(named.cell.latency_us.p99), named.name)
        }),
        reading:
            "Of all requests, 50 %, 90 %, 99 % and 99.9 % were answered within this time; the axis is logarithmic."
                .to_owned(),
        remarks,
        legend: Key::series(&names),
        pictures: both(&context.spec.title, |_| plot(&shown)),
        ..Drawn::default()
    }
}

pub(super) fn round_time(us: f64) -> String {
    microseconds(us).replace(".00", "").replace(".0 ", " ")
}

fn plot<'a>(shown: &[&&Named<'_>]) -> Plot<'a> {
    let all = || shown.iter().flat_map(|named| values(named.cell));
    let scale = Scale::log(all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let line = |named: &&&Named<'_>| {
        let point = |(i, value): (usize, f64)| {
            let tip = Tip::new(format!("{}: {} {}", named.name, NAMES[i], microseconds(value)))
                .with("series", &named.name)
                .with("x", NAMES[i])
                .with("value", value);
            Point { x: i as f64, y: value, tip: Some(tip), ..Point::default() }
        };
        Line::new(&named.name, values(named.cell).into_iter().enumerate().map(point))
    };
    let lines = shown.iter().map(line).collect();
    let panel = Panel { lines, ..Panel::new(Y::new(scale, 6, round_time), |_| {}) };
    Plot::new("Latency of a request", X::bands(NAMES, "Percentile of requests"), vec![panel])
}

fn data(all: &[Named<'_>]) -> Data {
    let columns = Columns::<&Named<'_>>::new().text("at", "cell", |named| named.name.clone());
    let columns = ["p50", "p90", "p99", "p999", "max"].into_iter().zip(NAMES).enumerate().fold(
        columns,
        |columns, (i, (key, name))| {
            columns.number(&format!("{key}_us"), name, microseconds, move |named| values(named.cell)[i])
        },
    );
    columns.of(all)
}
