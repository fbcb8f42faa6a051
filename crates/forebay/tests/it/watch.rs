//! `forebay watch` without a command: the table, the CSV, and how it ends.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use forebay_record::Series;

use crate::dir::Dir;
use crate::process::Running;

#[test]
fn a_table_has_a_header_and_as_many_rows_as_were_asked_for() {
    let dir = Dir::new();
    let said = dir.met("watch --interval 20ms --count 3");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2 + 3, "{said}");
    let names: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(names[..5], ["time", "usr", "sys", "iow", "disk"], "80 columns have no room for all");
    assert!(names.contains(&"psi-io") && !names.contains(&"aqu-sz") && !names.contains(&"procs"), "{names:?}");
    assert!(lines[1].trim_start().starts_with("s "), "units come below the names");
    let times: Vec<f64> = lines[2..]
        .iter()
        .map(|line| line.split_whitespace().next().unwrap().trim_end_matches('!').parse().unwrap())
        .collect();
    assert!(times.is_sorted_by(|a, b| a < b) && times[0] >= 0.02, "{times:?}");
    let wide = dir.command("watch --interval 20ms --count 1").env("COLUMNS", "120").output().unwrap();
    let wide = String::from_utf8(wide.stdout).unwrap();
    let names: Vec<&str> = wide.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(names[..5], ["time", "usr", "sys", "iow", "idl"]);
    assert!(names.contains(&"aqu-sz") && names.contains(&"psi-io") && !names.contains(&"procs"), "{names:?}");
}

#[test]
fn csv_on_stdout_is_a_series_and_nothing_else() {
    let dir = Dir::new();
    let text = dir.met("watch --interval 20ms --count 3 --csv -");
    assert_eq!(text.lines().count(), 1 + 3);
    let series = Series::from_csv(&text).unwrap();
    assert_eq!(series.time_s.len(), 3);
    assert!(series.values("cpu.idle_percent").is_some() && series.values("memory.page_cache_bytes").is_some());
    assert!(series.columns.iter().any(|column| column.name.starts_with("disk.")));
    assert!(series.columns.iter().all(|column| !column.name.starts_with("process.")), "nothing is followed");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
    let time: f64 = text.lines().last().unwrap().split(',').next().unwrap().parse().unwrap();
    assert!((now - time).abs() < 60.0, "{time} is not now, {now}");
}

#[test]
fn csv_in_a_file_comes_beside_the_table() {
    let dir = Dir::new();
    dir.write("rows.csv", "a former file");
    let said = dir.met("watch --interval 20ms --count 2 --csv rows.csv --force");
    assert_eq!(said.lines().count(), 2 + 2);
    let series = Series::from_csv(std::str::from_utf8(&dir.read("rows.csv")).unwrap()).unwrap();
    assert_eq!(series.time_s.len(), 2);
}

#[test]
fn the_interval_is_the_distance_of_rows() {
    let dir = Dir::new();
    for (interval, expected) in [("30ms", 0.03), ("100ms", 0.1)] {
        let text = dir.met(&format!("watch --interval {interval} --count 3 --csv -"));
        let series = Series::from_csv(&text).unwrap();
        for (time, late) in series.time_s.iter().zip(&series.late_s) {
            let ticks = (time - late) / expected;
            assert!((ticks - ticks.round()).abs() < 1e-6, "{time} s with {late} s late is no multiple of {interval}");
        }
    }
}

#[test]
fn intervals_and_counts_without_sense_are_refused() {
    let dir = Dir::new();
    for interval in ["9ms", "2h", "0s", "1"] {
        let said = dir.refused(&format!("watch --count 1 --interval {interval}"));
        assert!(said.starts_with("error: invalid value ") && said.contains("--interval"), "{said}");
    }
    let said = dir.refused("watch --interval -1s");
    assert!(said.starts_with("error: invalid value '-1s' for '--interval <TIME>'"), "{said}");
    assert!(!said.contains("'-- -1"), "a command of that name is not what was meant: {said}");
    let said = dir.refused("watch --count 0");
    assert!(said.starts_with("error: invalid value '0' for '--count <N>'"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_anything_is_watched() {
    let dir = Dir::new();
    let said = dir.refused("watch --count 1 --csv nowhere/rows.csv");
    assert_eq!(said, "forebay: cannot write nowhere/rows.csv: No such file or directory (os error 2)\n");
    let said = dir.refused("watch --count 1 --csv /dev/full");
    assert_eq!(said, "forebay: cannot write /dev/full: No space left on device (os error 28)\n");
}

#[test]
fn an_interrupt_ends_it_and_only_a_count_that_was_not_reached_is_a_miss() {
    let dir = Dir::new();
    for (flags, code) in [("", 0), (" --count 1000000", 1)] {
        let mut running = Running::start(&dir, &format!("watch --interval 10ms --csv rows.csv{flags}"));
        let rows = || std::fs::read_to_string(dir.path("rows.csv")).unwrap_or_default().lines().count();
        running.wait_until("two rows", |_| rows() > 2);
        running.signal(libc::SIGINT);
        let ran = running.finish();
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(code), ""), "{flags}");
        std::fs::remove_file(dir.path("rows.csv")).unwrap();
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_it() {
    let dir = Dir::new();
    for flags in ["", " --csv -"] {
        let mut command = dir.command(&format!("watch --interval 10ms{flags}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{flags}");
    }
}
