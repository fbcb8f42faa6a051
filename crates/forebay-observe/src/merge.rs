//! Merging two rows into one, to keep a series of days small.
//!
//! A rate is a mean over time, so two rows merge into the mean weighted by their durations. A mean over requests (a
//! size, a waiting time) is weighted by the number of requests instead, which is also in the row. So the total derived
//! from the merged row equals that of the two rows, if both are known.

use std::ops::Range;

use forebay_record::Series;

/// The column that a mean is over, if not time: the waiting time of reads is a mean over reads.
fn base(quantity: &str) -> Option<&'static str> {
    match quantity {
        "read_size_bytes" | "r_await_ms" => Some("reads_per_s"),
        "write_size_bytes" | "w_await_ms" => Some("writes_per_s"),
        "size_bytes" | "await_ms" | "svctm_ms" => Some("ios_per_s"),
        "queue_busy" => Some("util_percent"),
        "f_await_ms" => Some("flushes_per_s"),
        _ => None,
    }
}

/// The index of the base of each column of a series.
fn bases(series: &Series) -> Vec<Option<usize>> {
    let find = |name: &str| {
        let (subject, quantity) = name.rsplit_once('.')?;
        let wanted = format!("{subject}.{}", base(quantity)?);
        series.columns.iter().position(|column| column.name == wanted)
    };
    series.columns.iter().map(|column| find(&column.name)).collect()
}

/// Merges the rows from `from` on in groups of `size`; the last group may be smaller.
pub(crate) fn regroup(series: &mut Series, from: usize, size: usize) {
    let n_rows = series.time_s.len();
    let groups: Vec<Range<usize>> = (0..from)
        .map(|row| row..row + 1)
        .chain((from..n_rows).step_by(size).map(|row| row..n_rows.min(row + size)))
        .collect();
    let spans: Vec<f64> = (0..n_rows).filter_map(|row| series.span_s(row)).collect();
    let weight = |base: Option<usize>, row: usize| match base {
        None => spans[row],
        Some(base) => spans[row] * series.columns[base].values[row].unwrap_or(0.0),
    };
    let merged = |(column, base): (usize, &Option<usize>)| -> Vec<Option<f64>> {
        let values = &series.columns[column].values;
        let part = |row: usize| (values[row], weight(*base, row));
        groups
            .iter()
            .map(|rows| if rows.len() == 1 { values[rows.start] } else { mean(rows.clone().map(part)) })
            .collect()
    };
    let columns: Vec<Vec<Option<f64>>> = bases(series).iter().enumerate().map(merged).collect();
    for (column, values) in series.columns.iter_mut().zip(columns) {
        column.values = values;
    }
    series.late_s = groups.iter().map(|rows| series.late_s[rows.clone()].iter().copied().fold(0.0, f64::max)).collect();
    series.time_s = groups.iter().map(|rows| series.time_s[rows.end - 1]).collect();
}

/// The weighted mean of the known values.
fn mean(parts: impl Iterator<Item = (Option<f64>, f64)> + Clone) -> Option<f64> {
    let known = || parts.clone().filter_map(|(value, weight)| value.map(|value| (value, weight)));
    let (sum, weight) = known().fold((0.0, 0.0), |(sum, all), (value, weight)| (sum + value * weight, all + weight));
    if weight > 0.0 { Some(sum / weight) } else { known().last().map(|(value, _)| value) }
}

#[cfg(test)]
mod tests {
    use forebay_record::Column;

    use super::*;

    fn series(columns: &[(&str, &[Option<f64>])], time_s: &[f64]) -> Series {
        let column =
            |(name, values): &(&str, &[Option<f64>])| Column { name: (*name).to_owned(), values: values.to_vec() };
        Series {
            time_s: time_s.to_vec(),
            late_s: (0..time_s.len()).map(|row| row as f64).collect(),
            columns: columns.iter().map(column).collect(),
            ..Series::default()
        }
    }

    #[test]
    fn rates_are_weighted_with_time_and_waits_with_requests() {
        let mut series = series(
            &[
                ("disk.a.reads_per_s", &[Some(10.0), Some(40.0), Some(7.0)]),
                ("disk.a.r_await_ms", &[Some(2.0), Some(4.0), Some(1.0)]),
                ("disk.b.r_await_ms", &[Some(1.0), Some(4.0), None]),
                ("memory.free_bytes", &[None, Some(5.0), Some(6.0)]),
            ],
            &[1.0, 3.0, 4.0],
        );
        let reads = series.total("disk.a.reads_per_s");
        regroup(&mut series, 0, 2);
        assert_eq!(series.time_s, [3.0, 4.0]);
        assert_eq!(series.late_s, [1.0, 2.0]);
        assert_eq!(series.values("disk.a.reads_per_s"), Some(&[Some(30.0), Some(7.0)][..]));
        assert_eq!(series.total("disk.a.reads_per_s"), reads);
        let awaited = (10.0 * 2.0 + 80.0 * 4.0) / 90.0;
        assert_eq!(series.values("disk.a.r_await_ms"), Some(&[Some(awaited), Some(1.0)][..]));
        assert_eq!(
            series.values("disk.b.r_await_ms"),
            Some(&[Some(3.0), None][..]),
            "weighted by time without its base"
        );
        assert_eq!(series.values("memory.free_bytes"), Some(&[Some(5.0), Some(6.0)][..]));
    }

    #[test]
    fn an_idle_row_has_no_say_in_a_mean_over_requests() {
        let mut series = series(
            &[("disk.a.ios_per_s", &[Some(0.0), Some(8.0)]), ("disk.a.await_ms", &[None, Some(3.0)])],
            &[1.0, 2.0],
        );
        regroup(&mut series, 0, 2);
        assert_eq!(series.values("disk.a.await_ms"), Some(&[Some(3.0)][..]));
        assert_eq!(series.values("disk.a.ios_per_s"), Some(&[Some(4.0)][..]));
    }

    #[test]
    fn only_the_rows_from_one_on_are_put_together() {
        let mut series =
            series(&[("a.x", &[Some(1.0), Some(2.0), Some(3.0), Some(4.0), Some(8.0)])], &[1.0, 2.0, 3.0, 4.0, 5.0]);
        regroup(&mut series, 1, 3);
        assert_eq!(series.time_s, [1.0, 4.0, 5.0]);
        assert_eq!(series.values("a.x"), Some(&[Some(1.0), Some(3.0), Some(8.0)][..]));
        assert_eq!(series.late_s, [0.0, 3.0, 4.0]);
    }
}
