//! What the job did over time, as columns beside those of the machine.

use forebay_record::{Column, Mark, Series};

use crate::tally::{Second, Tally};

/// Marks beyond this many would hide each other.
const MAX_MARKS: usize = 300;

type Of = fn(&Second) -> u64;

/// Adds columns and marks of a job to the series of its machine, whose rows may be of any length.
pub fn add_job(series: &mut Series, tally: &Tally) {
    let n_loops = tally.processes.iter().filter(|process| process.marks.wait_ns > 0).count();
    let to_percent = 1e-7 / n_loops.max(1) as f64;
    let mut columns: Vec<(&str, f64, Of)> = vec![
        ("job.read_bytes_per_s", 1.0, |second| second.bytes_read),
        ("job.write_bytes_per_s", 1.0, |second| second.bytes_written),
        ("job.reads_per_s", 1.0, |second| second.reads),
        ("job.metadata_calls_per_s", 1.0, |second| second.meta_calls),
    ];
    if n_loops > 0 {
        columns.push(("job.batch_wait_percent", to_percent, |second| second.wait_ns));
        columns.push(("job.steps_per_s", 1.0, |second| second.steps));
    }
    for (name, factor, of) in columns {
        let values = rates(&series.time_s, tally.seconds(), of).into_iter().map(|rate| Some(rate * factor)).collect();
        series.columns.push(Column { name: name.to_owned(), values });
    }
    series.marks.extend(marks(tally));
    series.marks.sort_by(|a, b| a.time_s.total_cmp(&b.time_s));
}

impl Tally {
    /// From the first wait of a training loop to the last, in seconds since the job began; `None` without a loop.
    pub fn loop_span_s(&self) -> Option<(f64, f64)> {
        let spans = self.processes.iter().filter(|process| process.marks.wait_ns > 0).filter_map(|of| of.marks.span);
        let (first, last) = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        let seconds = |at_ns: u64| at_ns.saturating_sub(self.started_ns) as f64 / 1e9;
        Some((seconds(first), seconds(last)))
    }
}

/// Means over the rows. Within a second, what happened counts as even.
fn rates(rows_s: &[f64], seconds: &[Second], of: Of) -> Vec<f64> {
    let mut sums = vec![0.0];
    for second in seconds {
        sums.push(sums[sums.len() - 1] + of(second) as f64);
    }
    let until = |time_s: f64| {
        let whole = (time_s.max(0.0) as usize).min(seconds.len());
        let part = seconds.get(whole).map_or(0.0, |second| of(second) as f64 * (time_s - whole as f64));
        sums[whole] + part
    };
    let mut before_s = 0.0;
    let rate = |time_s: &f64| {
        let span_s = time_s - before_s;
        let moved = until(*time_s) - until(before_s);
        before_s = *time_s;
        if span_s > 0.0 { moved / span_s } else { 0.0 }
    };
    rows_s.iter().map(rate).collect()
}

fn marks(tally: &Tally) -> Vec<Mark> {
    let of = tally.processes.iter().map(|process| &process.marks).find(|marks| marks.wait_ns > 0 || marks.steps > 0);
    let epochs = of.map(|marks| marks.epoch_starts.as_slice()).unwrap_or_default();
    let began = |at_ns: u64| at_ns.saturating_sub(tally.started_ns) as f64 / 1e9;
    let epochs = epochs.iter().enumerate().map(|(n, at)| Mark { time_s: began(*at), what: format!("epoch {}", n + 1) });
    let saves = tally.saves.iter().map(|save| Mark {
        time_s: save.at_s,
        what: if save.is_restore { "restore" } else { "checkpoint" }.to_owned(),
    });
    let all: Vec<Mark> = epochs.chain(saves).collect();
    if all.len() > MAX_MARKS { Vec::new() } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_length_have_what_happened_in_them() {
        let second = |bytes_read| Second { bytes_read, ..Second::default() };
        let seconds = [second(10), second(30), second(0), second(8)];
        let of = |second: &Second| second.bytes_read;
        assert_eq!(rates(&[1.0, 2.0, 4.0], &seconds, of), [10.0, 30.0, 4.0]);
        assert_eq!(rates(&[1.5, 2.0, 9.0], &seconds, of), [25.0 / 1.5, 30.0, 8.0 / 7.0]);
        assert_eq!(rates(&[1.0], &[], of), [0.0]);
    }
}
