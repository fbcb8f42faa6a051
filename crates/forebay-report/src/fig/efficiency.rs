//! The share of the storage's ceiling that was reached, never clamped: more than 100 % means that the ceiling is not one.

use std::collections::BTreeSet;

use forebay_record::{CheckpointCell, IngestCell, StudyCell};

use super::bars::{data, groups, highest, legend, reading};
use super::{Context, Data, Drawn, Grid, Groups, Left, Right, Value, metric, quantity};

const QUANTITY: &str = IngestCell::EFFICIENCY.info.name;

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let grid = Grid::of(context.run, context.spec);
    if grid.cells.is_empty() {
        return Drawn::nothing("No cell of this figure has been measured yet.");
    }
    let groups = Groups {
        show: metric::axis_tick(QUANTITY),
        limit: Some((1.0, "the ceiling")),
        ..groups(context, &grid, QUANTITY, "Share of the ceiling in %")
    };
    if groups.bars().next().is_none() {
        let why = "No ceiling of the storage is known; forebay probe --save NAME measures one.";
        return Drawn { data: with_ceilings(&grid), ..Drawn::nothing(why) };
    }
    let mut remarks = grid.remarks.clone();
    let unknown = grid.cells.iter().filter(|cell| cell.error.is_none() && cell.metric(QUANTITY).is_none()).count();
    if unknown > 0 {
        remarks.push(format!("{} without a known ceiling.", forebay_units::count(unknown as u64, "cell")));
    }
    Drawn {
        data: with_ceilings(&grid),
        caption: highest(&grid.cells, QUANTITY),
        reading: [ceilings(&grid), reading(&grid.cells, QUANTITY)].join(" ").trim().to_owned(),
        remarks,
        legend_title: grid.legend_title(),
        legend: legend(&grid, false),
        pictures: groups.pictures(&context.spec.title),
        ..Drawn::default()
    }
}

const OF_SAVES: &str = "the first tier's own write rate, with O_DIRECT and a final sync";

fn ceiling(cell: &StudyCell) -> (Option<f64>, Option<&str>) {
    match (cell.measured_one::<IngestCell>(), cell.measured_one::<CheckpointCell>()) {
        (Some(ingest), _) => (ingest.ceiling_mb_per_s, ingest.ceiling_of.as_deref()),
        (_, Some(saved)) => (saved.ceiling_mb_per_s, saved.ceiling_mb_per_s.map(|_| OF_SAVES)),
        _ => (None, None),
    }
}

fn with_ceilings(grid: &Grid<'_>) -> Data {
    let saves = grid.cells.iter().any(|cell| cell.measured_one::<CheckpointCell>().is_some());
    let metrics =
        [QUANTITY, if saves { CheckpointCell::SAVE_MB_PER_S.info.name } else { IngestCell::MB_PER_S.info.name }]
            .map(str::to_owned);
    let mut data = data(&grid.cells, &metrics);
    let key = IngestCell::CEILING_MB_PER_S.info.name;
    data.add_column(key, "ceiling, MB/s", Right, |i| Value::maybe(ceiling(grid.cells[i]).0, quantity));
    data.add_column("ceiling_of", "ceiling is", Left, |i| Value::text(ceiling(grid.cells[i]).1.unwrap_or_default()));
    data
}

fn ceilings(grid: &Grid<'_>) -> String {
    let named: BTreeSet<&str> = grid.cells.iter().filter_map(|cell| ceiling(cell).1).collect();
    let named: Vec<&str> = named.into_iter().collect();
    match named.as_slice() {
        [] => String::new(),
        [one] => format!("100 % is {one}."),
        several => format!("100 % is each cell's own ceiling, {} in all; the data below names them.", several.len()),
    }
}
