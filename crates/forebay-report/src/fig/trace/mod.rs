//! Machine activity during the run, tick by tick: disks, this process, the processor, and which cell ran when.
//!
//! A long series is thinned out by keeping the lowest and the highest value of neighbouring ticks, so that no peak is lost.

mod draw;

use forebay_record::Series;

use crate::number::seconds;

use super::{Columns, Context, Data, Drawn, both, quantity, tick};

/// What the process asked the kernel for with calls.
const READ_CALLS: &str = "read calls";
/// Points along the axis of a desk's and of a phone's picture.
const MAX_POINTS: (usize, usize) = (240, 100);
const MAX_DISKS: usize = 2;

struct Curve<'a> {
    key: &'a str,
    name: String,
    values: Vec<Option<f64>>,
    dashed: bool,
}

struct Curves<'a> {
    title: &'static str,
    unit: &'static str,
    curves: Vec<Curve<'a>>,
}

#[derive(Clone)]
struct Point {
    time_s: f64,
    late: bool,
    /// The lowest and the highest of each curve.
    ranges: Vec<Option<(f64, f64)>>,
}

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let Some(series) = context.run.series() else {
        return Drawn::nothing("The run kept no per-second series.");
    };
    let panels = panels(series, &context.spec.metrics);
    if panels.is_empty() {
        return Drawn::nothing("The series has no values of disks, of the process or of the processor.");
    }
    if series.time_s.len() < 2 {
        return Drawn {
            data: data(series, &panels),
            ..Drawn::nothing(format!("Run too short to plot: less than one tick of {}.", interval(series)))
        };
    }
    let late = (0..series.time_s.len()).filter(|row| series.is_late(*row)).count();
    let mut remarks = Vec::new();
    if late > 0 {
        remarks.push(format!(
            "{late} of {} ticks came late (▲): their rates are means over a longer time.",
            series.time_s.len()
        ));
    }
    if series.time_s.len() > MAX_POINTS.0 {
        remarks.push(format!(
            "{} ticks do not fit in the picture: each point spans the lowest to the highest of its neighbours.",
            forebay_units::group_digits(series.time_s.len() as u64)
        ));
    }
    if panels.iter().flat_map(|panel| &panel.curves).any(|curve| curve.name == READ_CALLS) {
        remarks.push("Read calls leave out files that are mapped into memory, and io_uring.".to_owned());
    }
    Drawn {
        data: data(series, &panels),
        caption: caption(series, &panels),
        reading: format!("One point per tick of {}; the strip on top names the cell being measured.", interval(series)),
        remarks,
        pictures: both(&context.spec.title, |canvas| draw::plot(canvas, series, &panels)),
        ..Drawn::default()
    }
}

fn interval(series: &Series) -> String {
    format!("{} s", tick((series.interval_s * 1e3).round() / 1e3))
}

fn panels<'a>(series: &'a Series, wanted: &[String]) -> Vec<Curves<'a>> {
    let curve = |key: &'a str, name: String, factor: f64, dashed: bool| {
        let sound = |value: &Option<f64>| value.filter(|value| value.is_finite()).map(|value| value * factor);
        let values = series.values(key)?.iter().map(sound).collect();
        (wanted.is_empty() || wanted.iter().any(|name| name == key)).then_some(Curve { key, name, values, dashed })
    };
    let column = |name: &str| series.columns.iter().map(|column| column.name.as_str()).find(|column| *column == name);
    let several = |of: Vec<(String, String, f64, bool)>| {
        let curves =
            of.into_iter().filter_map(|(key, name, factor, dashed)| curve(column(&key)?, name, factor, dashed));
        curves.collect::<Vec<_>>()
    };
    let of_disk = |disk: &str| {
        [("read", false), ("write", true)]
            .map(|(what, dashed)| (format!("disk.{disk}.{what}_bytes_per_s"), format!("{disk} {what}"), 1e-6, dashed))
    };
    let process = [("rchar", READ_CALLS, false), ("read", "from the device", true), ("write", "to the device", true)];
    let process =
        process.map(|(what, name, dashed)| (format!("process.{what}_bytes_per_s"), name.to_owned(), 1e-6, dashed));
    let cpu = [("user", false), ("system", false), ("iowait", true)];
    let cpu = cpu.map(|(what, dashed)| (format!("cpu.{what}_percent"), what.to_owned(), 1.0, dashed));
    let mut all = vec![
        ("Disks, MB per second", "MB/s", several(busiest_disks(series).into_iter().flat_map(of_disk).collect())),
        (
            if is_of_job(series) { "All processes of the job, MB per second" } else { "This process, MB per second" },
            "MB/s",
            several(process.to_vec()),
        ),
        ("Processor, %", "%", several(cpu.to_vec())),
    ];
    if is_of_job(series) {
        all.splice(1..1, of_job(series).map(|(title, unit, of)| (title, unit, several(of))));
    }
    let panels = all.into_iter().map(|(title, unit, curves)| Curves { title, unit, curves });
    panels.filter(|panel| !panel.curves.is_empty()).collect()
}

/// Whether the series is of a traced job, whose processes count together.
fn is_of_job(series: &Series) -> bool {
    series.columns.iter().any(|column| column.name == "job.reads_per_s")
}

type Wanted = Vec<(String, String, f64, bool)>;

/// What only the series of a traced job has, and the requests that its calls became.
fn of_job(series: &Series) -> [(&'static str, &'static str, Wanted); 5] {
    let job = |what: &str, name: &str, factor: f64, dashed| (format!("job.{what}"), name.to_owned(), factor, dashed);
    let requests = |disk: &str| {
        [("reads", false), ("writes", true)]
            .map(|(what, dashed)| (format!("disk.{disk}.{what}_per_s"), format!("{disk} {what}"), 1.0, dashed))
    };
    let gpu = |name: &str| {
        let gpu = name.strip_prefix("gpu.")?.strip_suffix(".util_percent")?;
        Some((name.to_owned(), format!("GPU {gpu}"), 1.0, false))
    };
    let gpus = series.columns.iter().filter_map(|column| gpu(&column.name)).collect();
    [
        ("Requests to disks per second", "/s", busiest_disks(series).into_iter().flat_map(requests).collect()),
        (
            "Calls of the job, MB per second",
            "MB/s",
            vec![job("read_bytes_per_s", "read", 1e-6, false), job("write_bytes_per_s", "written", 1e-6, true)],
        ),
        (
            "Calls of the job per second",
            "/s",
            vec![job("reads_per_s", "reads", 1.0, false), job("metadata_calls_per_s", "opens and metadata", 1.0, true)],
        ),
        ("Waiting for batches, %", "%", vec![job("batch_wait_percent", "of the loop", 1.0, false)]),
        ("GPU, %", "%", gpus),
    ]
}

/// The disks that moved most bytes, those that moved none left out if another did.
fn busiest_disks(series: &Series) -> Vec<&str> {
    let mut disks: Vec<(&str, f64)> = Vec::new();
    for column in &series.columns {
        let Some(disk) = column.name.strip_prefix("disk.") else { continue };
        let moved = disk.strip_suffix(".read_bytes_per_s").or(disk.strip_suffix(".write_bytes_per_s"));
        let Some(disk) = moved else { continue };
        let sum: f64 = column.values.iter().flatten().filter(|value| value.is_finite()).sum();
        match disks.iter_mut().find(|(known, _)| *known == disk) {
            Some((_, total)) => *total += sum,
            None => disks.push((disk, sum)),
        }
    }
    disks.sort_by(|a, b| b.1.total_cmp(&a.1));
    let n = disks.iter().take(MAX_DISKS).filter(|(_, sum)| *sum > 0.0).count().max(1);
    disks.into_iter().take(n).map(|(disk, _)| disk).collect()
}

fn points(series: &Series, panels: &[Curves<'_>], most: usize) -> Vec<Point> {
    let n = series.time_s.len();
    let every = n.div_ceil(most).max(1);
    let mut points = Vec::new();
    for from in (0..n).step_by(every) {
        let rows = from..(from + every).min(n);
        let range = |curve: &Curve<'_>| {
            let values = rows.clone().filter_map(|row| curve.values.get(row).copied().flatten());
            values.fold(None, |range: Option<(f64, f64)>, value| {
                Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
            })
        };
        let ranges = panels.iter().flat_map(|panel| &panel.curves).map(range).collect();
        points.push(Point { time_s: series.time_s[from], late: rows.clone().any(|row| series.is_late(row)), ranges });
    }
    points
}

fn caption(series: &Series, panels: &[Curves<'_>]) -> String {
    let busiest = panels.iter().filter(|panel| panel.unit == "MB/s").flat_map(|panel| &panel.curves);
    let peaks = busiest.filter_map(|curve| {
        let values = curve.values.iter().enumerate().filter_map(|(row, value)| Some((row, (*value)?)));
        let (row, high) = values.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some((curve, series.time_s.get(row)?, high))
    });
    peaks.max_by(|a, b| a.2.total_cmp(&b.2)).map_or(String::new(), |(curve, time, high)| {
        let what = match curve.key.starts_with("process.") {
            true if is_of_job(series) => "all processes of the job, ",
            true => "this process, ",
            false => "",
        };
        format!("The highest rate is {} MB/s ({what}{}) after {}.", quantity(high), curve.name, seconds(*time))
    })
}

fn data(series: &Series, panels: &[Curves<'_>]) -> Data {
    let mut columns = Columns::<usize>::new().number("time_s", "s", quantity, |row| series.time_s[*row]);
    for (curve, unit) in panels.iter().flat_map(|panel| panel.curves.iter().map(|curve| (curve, panel.unit))) {
        let key = curve.key.replace("bytes_per_s", "mb_per_s");
        let subject = curve.key.split('.').next().filter(|subject| *subject != "disk").unwrap_or_default();
        let name = format!("{subject} {}, {unit}", curve.name);
        columns = columns.number(&key, name.trim_start(), quantity, |row| curve.values.get(*row).copied().flatten());
    }
    let late = |row: &usize| series.late_s.get(*row).copied().filter(|_| series.is_late(*row));
    let began = |row: &usize| {
        let since = row.checked_sub(1).map_or(f64::MIN, |before| series.time_s[before]);
        let marks = series.marks.iter().filter(|mark| mark.time_s > since && mark.time_s <= series.time_s[*row]);
        marks.map(|mark| mark.what.as_str()).collect::<Vec<_>>().join("; ")
    };
    columns.number("late_s", "late, s", quantity, late).text("mark", "began", began).of(0..series.time_s.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_record::Column;

    fn series(n: usize) -> Series {
        let values = (0..n).map(|i| if i == n / 2 { Some(9e6) } else { Some(1e6) }).collect();
        Series {
            interval_s: 1.0,
            time_s: (0..n).map(|i| i as f64).collect(),
            late_s: vec![0.0; n],
            columns: vec![Column { name: "disk.vda.read_bytes_per_s".to_owned(), values }],
            ..Series::default()
        }
    }

    #[test]
    fn a_peak_of_one_tick_survives_the_thinning() {
        let series = series(100_000);
        let panels = panels(&series, &[]);
        let points = points(&series, &panels, 320);
        assert!(points.len() <= 320);
        let highest = points.iter().filter_map(|point| point.ranges[0]).map(|(_, high)| high).fold(0.0, f64::max);
        assert_eq!(highest, 9.0);
    }

    #[test]
    fn a_run_within_a_tick_has_numbers_and_no_picture() {
        let drawn = |n: usize| {
            let mut record = forebay_record::Record::<forebay_record::IngestCell>::new(vec![], Default::default());
            record.series = Some(series(n));
            let record = forebay_record::AnyRecord::Ingest(record);
            let named = crate::NamedRun { name: "run".to_owned(), record };
            let run = crate::run::Run::of(&named);
            let spec = serde_json::json!({"id": "trace", "title": "Trace", "kind": "trace"});
            make(&Context { run: &run, spec: &serde_json::from_value(spec).unwrap(), published: &[] })
        };
        let within = drawn(1);
        assert_eq!(within.remarks, ["Run too short to plot: less than one tick of 1 s."]);
        assert!(within.pictures.is_empty() && within.data.len() == 1);
        assert!(!drawn(2).pictures.is_empty());
    }

    #[test]
    fn a_traced_job_has_panels_of_its_own() {
        let mut series = series(4);
        let titles = |series: &Series| panels(series, &[]).iter().map(|panel| panel.title).collect::<Vec<_>>();
        assert_eq!(titles(&series), ["Disks, MB per second"]);
        for name in ["job.reads_per_s", "job.batch_wait_percent", "disk.vda.reads_per_s", "gpu.0.util_percent"] {
            series.columns.push(Column { name: name.to_owned(), values: vec![Some(1.0); 4] });
        }
        let wanted =
            ["Requests to disks per second", "Calls of the job per second", "Waiting for batches, %", "GPU, %"];
        assert_eq!(titles(&series)[1..], wanted);
    }

    #[test]
    fn idle_disks_give_way_to_busy_ones() {
        let mut series = series(4);
        series.columns.push(Column { name: "disk.loop0.read_bytes_per_s".to_owned(), values: vec![Some(0.0); 4] });
        assert_eq!(busiest_disks(&series), ["vda"]);
    }
}
