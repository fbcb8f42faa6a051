//! Ours beside the published values.

use crate::published::{self, Agreement, Published};

use super::{Context, Drawn};

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let spec = context.spec;
    let of_experiment =
        |row: &&Published<'_>| spec.experiment.as_deref().is_none_or(|name| row.reference.experiment == name);
    let of_metric = |row: &&Published<'_>| spec.metrics.is_empty() || spec.metrics.contains(&row.reference.metric);
    let at = |row: &&Published<'_>| row.cell.is_none_or(|cell| cell.is_at(&spec.at));
    let rows: Vec<&Published<'_>> =
        context.published.iter().filter(of_experiment).filter(of_metric).filter(at).collect();
    if rows.is_empty() {
        return Drawn::nothing("The study names no published value for this table.");
    }
    let calibrated = rows.iter().filter(|row| row.is_calibrated).count();
    let judged = rows.iter().filter(|row| matches!(row.agreement(), Agreement::Agrees | Agreement::Differs)).count();
    let agree = rows.iter().filter(|row| row.agreement() == Agreement::Agrees).count();
    Drawn {
        data: published::table(rows.iter().copied()),
        caption: if judged > 0 { format!("{agree} of {judged} agree within their tolerance.") } else { String::new() },
        reading: match calibrated {
            0 => String::new(),
            n => format!(
                "{n} of {} values are calibrated: the emulation was given them, so they show that it works and nothing else.",
                rows.len()
            ),
        },
        is_table: true,
        ..Drawn::default()
    }
}
