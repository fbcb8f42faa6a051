//! The checkpoints of a workload's ranks: how long the slowest took, which is the checkpoint's time, and how long the first did,
//! which is what DLIO reports.

use forebay_record::{StudyCell, WorkloadCell, WorkloadSave};
use forebay_units::group_digits;

use crate::data::{Data, Value};
use crate::grid::{MAX_GROUPS, kept};
use crate::number::{brief_seconds, bytes, quantity, tick};
use crate::palette;
use crate::svg::Tip;
use crate::table::Align::{Left, Right};

use super::groups::{Bar, Groups, Slot};
use super::{Context, Drawn, Key, both, swatch};

/// A run and its checkpoints.
type Saved<'a> = (&'a StudyCell, &'a WorkloadCell);

const WORDS: [&str; 2] = ["slowest rank", "first rank, as DLIO reports"];

/// The figure; `None` when no cell of it is a workload with checkpoints.
pub(super) fn make(context: &Context<'_>) -> Option<Drawn> {
    let cells = context.cells();
    let runs: Vec<Saved<'_>> = cells
        .into_iter()
        .filter_map(|cell| Some((cell, cell.measured_one::<WorkloadCell>()?)))
        .filter(|(_, of)| !of.saves.is_empty())
        .collect();
    let (cell, workload) = *runs.first()?;
    let shown: Vec<&WorkloadSave> =
        kept(workload.saves.len(), MAX_GROUPS).into_iter().map(|i| &workload.saves[i]).collect();
    let mut remarks = Vec::new();
    if shown.len() < workload.saves.len() {
        remarks.push(format!(
            "Of {} checkpoints, {} are drawn; the data below has all.",
            workload.saves.len(),
            shown.len()
        ));
    }
    if runs.len() > 1 {
        remarks.push(format!("Of {} cells, the first is drawn; the data below has all.", runs.len()));
    }
    let classes: Vec<String> = (0..WORDS.len()).map(palette::hue).collect();
    let groups = Groups {
        names: shown.iter().map(|save| name(save)).collect(),
        x_title: "After epoch and step".to_owned(),
        y_title: "A checkpoint in seconds".to_owned(),
        show: tick,
        right: None,
        limit: None,
        classes: classes.clone(),
        slots: shown.iter().map(|save| slots(cell, save)).collect(),
    };
    let key = |(word, class): (&str, &String)| Key { sample: swatch(&format!("bar {class}")), name: word.to_owned() };
    Some(Drawn {
        data: data(context, &runs),
        caption: caption(workload),
        reading: "A checkpoint is over when the slowest rank has written its part.".to_owned(),
        remarks,
        legend: WORDS.into_iter().zip(&classes).map(key).collect(),
        pictures: both(|canvas| groups.draw(canvas, &context.spec.title)),
        is_open: true,
        ..Drawn::default()
    })
}

/// "5/24"; of a run that only saves, the number of the save alone. A restore says so.
fn name(save: &WorkloadSave) -> String {
    let at = match save.epoch {
        0 => group_digits(save.step),
        epoch => format!("{}/{}", group_digits(epoch), group_digits(save.step)),
    };
    if save.is_restore { format!("{at}, restored") } else { at }
}

fn slots(cell: &StudyCell, save: &WorkloadSave) -> Vec<Slot> {
    let slot = |(word, seconds): (&str, f64)| {
        let what = if save.is_restore { "restore" } else { "save" };
        let durable = if save.is_durable { ", durable" } else { "" };
        let text = format!(
            "{what} after {}: {word}, {} of {}{durable}",
            name(save),
            brief_seconds(seconds),
            bytes(save.bytes)
        );
        let tip = Tip::new(text).with("cell", &cell.id).with("step", save.step).with("value", seconds);
        Slot::Bar(Bar { value: seconds, range: None, label: quantity(seconds), tip, published: None, more: None })
    };
    WORDS.into_iter().zip([save.seconds, save.seconds_rank_0]).map(slot).collect()
}

fn caption(workload: &WorkloadCell) -> String {
    let longest = workload.saves.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    longest.map_or(String::new(), |save| {
        let rate = save.bytes as f64 / 1e6 / save.seconds;
        let rate = if rate.is_finite() { format!(" ({} MB/s)", quantity(rate)) } else { String::new() };
        format!("The longest took {} for {}{rate}.", brief_seconds(save.seconds), bytes(save.bytes))
    })
}

fn data(context: &Context<'_>, runs: &[Saved<'_>]) -> Data {
    let mut data = Data::new(&[
        ("at", "cell", Left),
        ("save", "after epoch/step", Left),
        ("bytes", "bytes", Right),
        ("seconds", "slowest rank, s", Right),
        ("seconds_rank_0", "first rank, s", Right),
    ]);
    for (cell, save) in runs.iter().flat_map(|(cell, of)| of.saves.iter().map(move |save| (cell, save))) {
        data.row(vec![
            Value::text(context.run.name_of(cell)),
            Value::text(name(save)),
            Value::Number(save.bytes as f64, bytes(save.bytes)),
            Value::number(save.seconds, quantity),
            Value::number(save.seconds_rank_0, quantity),
        ]);
    }
    data.hide_if_same("at");
    data
}
