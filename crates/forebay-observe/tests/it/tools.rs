//! Compares with iostat and dstat: their totals lie between our sums over the time they surely and possibly observed.
//!
//! A tool starts observing at an unknown moment after it was started, and ends at an unknown moment before its exit was
//! seen. It saw at least the activity in between and at most all of it. The disk's counters only grow, so the tool's
//! sum lies between our sums over those two times, whatever else the disk did.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use forebay_observe::{Options, Processes, Sampler};
use forebay_record::Series;

use forebay_testing::{Reason, not_run};

use crate::load::{Load, alone};

/// Half a row more at each end, for the duration of a reading.
const SLACK_S: f64 = 0.01;
/// The tools measure their own interval in hundredths of a second.
const TOLERANCE: f64 = 0.03;

/// A series over the run of a tool, and the times during which the tool surely and possibly observed.
struct Beside {
    series: Series,
    disk: String,
    output: String,
    surely: (f64, f64),
    possibly: (f64, f64),
}

/// Runs a tool that observes for `seconds`, with a load on the disk meanwhile.
fn beside(load: &Load, seconds: f64, start: impl FnOnce() -> Option<Child>) -> Option<Beside> {
    let options =
        Options { interval: Duration::from_millis(20), processes: Processes::None, gpu: false, ..Options::default() };
    let sampler = Sampler::start(options).unwrap();
    let clock = Instant::now();
    let first = clock.elapsed().as_secs_f64();
    let tool = start()?;
    let middle = Duration::from_secs_f64(seconds / 2.0);
    while clock.elapsed() < middle {
        load.write();
        load.read();
        std::thread::sleep(Duration::from_millis(50));
    }
    let output = tool.wait_with_output().unwrap();
    let last = clock.elapsed().as_secs_f64();
    assert!(output.status.success(), "{output:?}");
    Some(Beside {
        series: sampler.stop(),
        disk: load.disk.clone(),
        output: String::from_utf8(output.stdout).unwrap(),
        surely: (last - seconds, first + seconds),
        possibly: (first, last),
    })
}

impl Beside {
    /// Our sums of a rate, over the time that the tool surely observed and the time that it possibly observed.
    fn sums(&self, quantity: &str) -> (f64, f64) {
        let values = self.series.values(&format!("disk.{}.{quantity}", self.disk)).unwrap();
        let (mut low, mut high) = (0.0, 0.0);
        for (row, value) in values.iter().enumerate() {
            let (end, span) = (self.series.time_s[row], self.series.span_s(row).unwrap());
            let amount = value.unwrap_or(0.0) * span;
            if end - span > self.surely.0 + SLACK_S && end < self.surely.1 - SLACK_S {
                low += amount;
            }
            if end > self.possibly.0 - SLACK_S && end - span < self.possibly.1 + SLACK_S {
                high += amount;
            }
        }
        (low, high)
    }

    /// Whether the sum of the tool's rates, one per second of its own, fits. On a loaded machine the tool's seconds
    /// were longer than a second, at most by the tool's total excess; amounts are then greater than rates.
    fn agrees(&self, quantity: &str, theirs: f64) {
        let (low, high) = self.sums(quantity);
        let longest_s = 1.0 + (self.possibly.1 - self.possibly.0) - (self.surely.1 - self.possibly.0);
        let low = low / longest_s;
        let range = low * (1.0 - TOLERANCE) - 1e-2..=high * (1.0 + TOLERANCE) + 1e-2;
        assert!(range.contains(&theirs), "{quantity}: {theirs} is outside {range:?}\n{}", self.output);
    }
}

#[test]
fn iostat_saw_the_same_requests_bytes_queue_and_busy_time() {
    let _alone = alone();
    let Some(load) = Load::new(16) else { return };
    let iostat = || {
        let mut command = Command::new("iostat");
        command.args(["-dxyk", "1", "3"]).env("LC_ALL", "C").stdout(Stdio::piped());
        command.spawn().map_err(|error| not_run(Reason::NoProgram, format!("iostat: {error}"))).ok()
    };
    let Some(both) = beside(&load, 3.0, iostat) else { return };
    let lines: Vec<Vec<&str>> = both.output.lines().map(|line| line.split_whitespace().collect()).collect();
    let head = lines.iter().find(|words| words.first().is_some_and(|word| word.starts_with("Device"))).unwrap();
    let ticks: Vec<&Vec<&str>> = lines.iter().filter(|words| words.first() == Some(&load.disk.as_str())).collect();
    assert_eq!(ticks.len(), 3, "{}", both.output);
    // Three ticks of one second each: a sum of rates is an amount.
    let sum = |name: &str| -> f64 {
        let index = head.iter().position(|word| *word == name).unwrap();
        ticks.iter().map(|tick| tick[index].parse::<f64>().unwrap()).sum()
    };
    both.agrees("reads_per_s", sum("r/s"));
    both.agrees("writes_per_s", sum("w/s"));
    both.agrees("read_bytes_per_s", sum("rkB/s") * 1024.0);
    both.agrees("write_bytes_per_s", sum("wkB/s") * 1024.0);
    both.agrees("queue_mean", sum("aqu-sz"));
    both.agrees("util_percent", sum("%util"));
    assert!(sum("wkB/s") * 1024.0 > load.bytes(), "the load is included");
}

#[test]
fn dstat_saw_the_same_bytes() {
    let _alone = alone();
    let Some(load) = Load::new(16) else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dstat.csv");
    // Debian's dstat uses a module that it does not import when it writes CSV; import it here.
    let program = "import shutil, sys, types; types.ListType = list; types.TupleType = tuple\n\
        exec(compile(open(shutil.which('dstat')).read(), 'dstat', 'exec'))";
    let dstat = || {
        if Command::new("dstat").arg("--version").output().is_err() {
            not_run(Reason::NoProgram, "dstat");
            return None;
        }
        let mut command = Command::new("python3");
        command.args(["-c", program, "-d", "-D", &load.disk, "--noupdate", "--output"]).arg(&path).args(["1", "4"]);
        command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| not_run(Reason::NoProgram, format!("python3: {error}")))
            .ok()
    };
    // Four rows, of which the first is the mean since boot.
    let Some(both) = beside(&load, 3.0, dstat) else { return };
    let text = std::fs::read_to_string(&path).unwrap();
    let rows = text.lines().skip_while(|line| *line != "\"read\",\"writ\"").skip(2);
    let rows: Vec<(f64, f64)> = rows
        .map(|line| line.split_once(',').unwrap())
        .map(|(read, written)| (read.parse().unwrap(), written.parse().unwrap()))
        .collect();
    assert_eq!(rows.len(), 3, "{text}");
    both.agrees("read_bytes_per_s", rows.iter().map(|row| row.0).sum());
    both.agrees("write_bytes_per_s", rows.iter().map(|row| row.1).sum());
    assert!(rows.iter().map(|row| row.1).sum::<f64>() > load.bytes(), "the load is included");
}
