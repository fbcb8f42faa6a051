//! The checkpoints of a workload's ranks: how long the slowest took, which is the checkpoint's time, and how long the first did,
//! which is what DLIO reports.

use forebay_record::{StudyCell, WorkloadCell, WorkloadSave};
use forebay_units::group_digits;

use crate::number::{brief_seconds, bytes};

use super::groups::Slot;
use super::{
    Bar, Columns, Context, Data, Drawn, Groups, Key, MAX_GROUPS, Right, Tip, Value, palette, quantity, thinned,
};

type Saved<'a> = (&'a StudyCell, &'a WorkloadCell);

const WORDS: [&str; 2] = ["slowest rank", "first rank, as DLIO reports"];

/// The figure; `None` when no cell of it is a workload with checkpoints.
pub(super) fn make(context: &Context<'_>) -> Option<Drawn> {
    let mut runs: Vec<Saved<'_>> = context.measured();
    runs.retain(|(_, of)| !of.saves.is_empty());
    let (cell, workload) = *runs.first()?;
    let mut remarks = Vec::new();
    let shown = thinned(&workload.saves, MAX_GROUPS, "checkpoints", &mut remarks);
    if runs.len() > 1 {
        remarks.push(format!("Of {} cells, the first is drawn; the data below has all.", runs.len()));
    }
    let classes: Vec<String> = (0..WORDS.len()).map(palette::hue).collect();
    let names = shown.iter().map(|save| name(save)).collect();
    let groups = Groups {
        slots: shown.iter().map(|save| slots(cell, save)).collect(),
        ..Groups::new("Seconds per checkpoint", (names, "After epoch and step"), classes.clone())
    };
    Some(Drawn {
        data: data(context, &runs),
        caption: caption(workload),
        reading: "A checkpoint is complete when the slowest rank has written its part.".to_owned(),
        remarks,
        legend: Key::bars(&WORDS.map(str::to_owned), &classes),
        pictures: groups.pictures(&context.spec.title),
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
        let (took, size) = (brief_seconds(seconds), bytes(save.bytes));
        let text = format!("{what} after {}: {word}, {took} of {size}{durable}", name(save));
        let tip = Tip::of(cell, text).with("step", save.step).with("value", seconds);
        Slot::Bar(Bar { value: seconds, label: quantity(seconds), tip, ..Bar::default() })
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
    let saves = runs.iter().flat_map(|(cell, of)| of.saves.iter().map(move |save| (*cell, save)));
    let mut data = Columns::<(&StudyCell, &WorkloadSave)>::new()
        .text("at", "cell", |(cell, _)| context.run.name_of(cell))
        .text("save", "after epoch/step", |(_, save)| name(save))
        .value("bytes", "bytes", Right, |(_, save)| Value::Number(save.bytes as f64, bytes(save.bytes)))
        .number("seconds", "slowest rank, s", quantity, |(_, save)| save.seconds)
        .number("seconds_rank_0", "first rank, s", quantity, |(_, save)| save.seconds_rank_0)
        .of(saves);
    data.hide_if_same("at");
    data
}
