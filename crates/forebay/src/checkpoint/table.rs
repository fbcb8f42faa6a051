//! Columns of text, and the table of a benchmark.

use forebay_record::{CheckpointCell, Record};
use forebay_units::Bytes;

/// Rows as aligned columns, two spaces apart; the last one is not padded.
pub(super) fn columns(rows: &[Vec<String>]) -> String {
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// What a benchmark found.
pub(super) fn bench(record: &Record<CheckpointCell>) -> String {
    let mut text = match record.cells.first() {
        Some(cell) => format!("{}\n\n", cell.state),
        None => "nothing was measured\n".to_owned(),
    };
    let head = [
        "mode",
        "format",
        "stall s",
        "durable s",
        "all tiers s",
        "MB/s",
        "of ceiling",
        "restore s",
        "of ceiling",
        "copy s",
        "memory",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(record.cells.iter().map(row));
    if rows.len() > 1 {
        text.push_str(&columns(&rows));
    }
    record.notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    text
}

fn row(cell: &CheckpointCell) -> Vec<String> {
    let seconds = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
    let share = |rate: Option<f64>, ceiling: Option<f64>| {
        let of = rate.zip(ceiling);
        of.map_or("–".to_owned(), |(rate, ceiling)| format!("{:.0} % of {ceiling:.0}", 100.0 * rate / ceiling))
    };
    vec![
        cell.mode.clone(),
        cell.format.clone(),
        seconds(Some(cell.stall_s)),
        seconds(cell.durable_fast_s),
        seconds(cell.durable_slow_s),
        cell.save_mb_per_s().map_or("–".to_owned(), |rate| format!("{rate:.0}")),
        share(cell.save_mb_per_s(), cell.ceiling_mb_per_s),
        seconds(cell.restore_s),
        share(cell.restore_mb_per_s(), cell.read_ceiling_mb_per_s),
        seconds(cell.copy_s),
        cell.memory_bytes.map_or("–".to_owned(), |bytes| Bytes(bytes).to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bbb", "c"], ["äö", "b", ""]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(columns(&rows), "a   bbb  c\näö  b\n");
    }
}
