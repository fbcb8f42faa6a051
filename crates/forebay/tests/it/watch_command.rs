//! `forebay watch -- COMMAND`: the command is followed to its end with all its descendants, and left as it is.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use forebay_record::Series;

use crate::dir::{Dir, Ran};
use crate::process::Running;

/// Runs a script under `forebay watch` with flags.
fn watch(dir: &Dir, flags: &str, script: &str) -> Ran {
    dir.command(&format!("watch {flags} --")).args(["sh", "-c", script]).output().unwrap().into()
}

fn series(dir: &Dir) -> Series {
    Series::from_csv(std::str::from_utf8(&dir.read("rows.csv")).unwrap()).unwrap()
}

fn total(series: &Series, name: &str) -> f64 {
    series.total(name).unwrap().round()
}

/// The text of a line of the totals.
fn totals<'a>(ran: &'a Ran, name: &str) -> &'a str {
    let line = ran.stderr.lines().find_map(|line| line.trim_start().strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {}", ran.stderr)).trim_start()
}

#[test]
fn the_exit_status_is_the_commands() {
    let dir = Dir::new();
    for (script, code) in
        [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
    {
        assert_eq!(watch(&dir, "", script).code, Some(code), "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_run_is_told_apart_as_a_shell_does() {
    let dir = Dir::new();
    let ran = dir.run("watch -- ./nothing");
    let said = "forebay: cannot run ./nothing: No such file or directory (os error 2)\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(127), "", said));
    dir.write("text", "not a program");
    let ran = dir.run("watch -- ./text");
    let said = "forebay: cannot run ./text: Permission denied (os error 13)\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(126), "", said));
}

#[test]
fn the_command_has_stdin_and_stdout_to_itself_and_the_table_goes_to_stderr() {
    let dir = Dir::new();
    dir.write("input", "from stdin\n");
    let input = std::fs::File::open(dir.path("input")).unwrap();
    let mut command = dir.command("watch --interval 10ms --");
    let output = command.args(["sh", "-c", "cat; echo to stderr >&2; sleep 0.1"]).stdin(input).output().unwrap();
    let ran = Ran::from(output);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "from stdin\n"));
    assert!(ran.stderr.contains("to stderr\n"), "{}", ran.stderr);
    let header = ran.stderr.lines().find(|line| line.contains("psi-io")).unwrap();
    assert!(header.contains("rss") && !header.contains("procs"), "80 columns have no room for all: {header}");
    assert!(ran.stderr.contains("\nsh -c cat; echo to stderr >&2; sleep 0.1 ended after "), "{}", ran.stderr);
}

#[test]
fn bytes_of_children_that_came_and_went_are_counted_once_each() {
    let dir = Dir::new();
    // Ten processes of a few milliseconds each, most of them between two ticks.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do dd if=/dev/zero of=f bs=64k count=16 status=none; done; sleep 0.05";
    let ran = watch(&dir, "--interval 20ms --csv rows.csv", script);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let series = series(&dir);
    assert_eq!(total(&series, "process.wchar_bytes_per_s"), 10_485_760.0);
    assert!(totals(&ran, "written").starts_with("10.5 MB by write calls, "), "{}", ran.stderr);
    let wchar = series.values("process.wchar_bytes_per_s").unwrap();
    assert!(wchar.iter().flatten().all(|rate| *rate >= 0.0), "sums do not go backwards: {wchar:?}");
    let alive = series.values("process.processes").unwrap().iter().flatten().copied().fold(0.0, f64::max);
    assert!((1.0..=4.0).contains(&alive), "{alive}");
}

#[test]
fn bytes_that_reach_the_disk_are_told_from_those_that_do_not() {
    let dir = Dir::new();
    let script = "dd if=/dev/zero of=f bs=1M count=4 conv=fsync status=none";
    let ran = watch(&dir, "--csv rows.csv", script);
    let series = series(&dir);
    let written = total(&series, "process.write_bytes_per_s");
    assert!((4_194_304.0..4_400_000.0).contains(&written), "{written}");
    // What dd read from /dev/zero came from no disk.
    assert!(total(&series, "process.rchar_bytes_per_s") >= 4_194_304.0);
    assert!(totals(&ran, "read").starts_with("4.2 MB by read calls, "), "{}", ran.stderr);
    assert!(totals(&ran, "written").starts_with("4.2 MB by write calls, 4.2 MB to disks"), "{}", ran.stderr);
}

#[test]
fn a_worker_whose_parent_has_died_stays_in_the_tree() {
    let dir = Dir::new();
    let script = "sh -c '(dd if=/dev/zero of=f bs=64k count=48 status=none; : > done) &'
        while ! test -e done; do sleep 0.01; done";
    watch(&dir, "--interval 10ms --csv rows.csv", script);
    assert_eq!(total(&series(&dir), "process.wchar_bytes_per_s"), 48.0 * 65_536.0);
}

#[test]
fn a_child_that_nobody_waits_for_is_kept_as_it_was_last_seen() {
    let dir = Dir::new();
    let script = "$SIG{CHLD} = 'IGNORE';
        sub wait_for { while (!-e $_[0]) { select undef, undef, undef, 0.01 } }
        if (!fork) { open F, '>f'; syswrite F, 'x' x 3000000; wait_for('seen'); exit }
        wait_for('end');";
    dir.write("script.pl", script);
    let mut running = Running::start(&dir, "watch --interval 10ms --csv rows.csv -- perl script.pl");
    let rows =
        || Series::from_csv(&std::fs::read_to_string(dir.path("rows.csv")).unwrap_or_default()).unwrap_or_default();
    let processes = |series: &Series| series.values("process.processes").and_then(|values| *values.last()?);
    running.wait_until("the child's bytes", |_| rows().total("process.wchar_bytes_per_s").unwrap_or(0.0) > 3e6 - 1.0);
    assert_eq!(processes(&rows()), Some(2.0));
    dir.write("seen", "");
    running.wait_until("the child's end", |_| processes(&rows()) == Some(1.0));
    dir.write("end", "");
    let ran = running.finish();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(total(&series(&dir), "process.wchar_bytes_per_s"), 3e6);
}

#[test]
fn descendants_that_outlive_the_command_are_waited_for_and_counted() {
    let dir = Dir::new();
    let script = "(sleep 0.3; dd if=/dev/zero of=f bs=64k count=48 status=none) & exit 4";
    let ran = watch(&dir, "--csv rows.csv", script);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert_eq!(total(&series(&dir), "process.wchar_bytes_per_s"), 48.0 * 65_536.0);
    assert!(totals(&ran, "written").starts_with("3.1 MB by write calls, "), "{}", ran.stderr);
    assert!(!totals(&ran, "processes").contains("still running"), "{}", ran.stderr);
}

#[test]
fn an_interrupt_ends_the_waiting_for_those_that_outlive_the_command_and_leaves_them() {
    let dir = Dir::new();
    dir.write("script", "(while ! test -e end; do sleep 0.01; done; : > gone) </dev/null >/dev/null 2>&1 & exit 4");
    let mut running = Running::start(&dir, "watch -- sh script");
    let said = running.stderr_until("waiting for ");
    assert!(said.contains("forebay: the command has ended; waiting for "), "{said}");
    running.signal(libc::SIGINT);
    let ran = running.finish();
    assert_eq!(ran.code, Some(4));
    assert!(totals(&ran, "processes").ends_with(" still running"), "{}", ran.stderr);
    assert!(!dir.path("gone").exists());
    dir.write("end", "");
    let start = std::time::Instant::now();
    while !dir.path("gone").exists() {
        assert!(start.elapsed().as_secs() < 60, "it did not run on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn the_totals_name_time_memory_faults_and_delay() {
    let dir = Dir::new();
    let ran = watch(&dir, "", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done");
    let processor = totals(&ran, "processor");
    assert!(processor.contains(" user, ") && processor.ends_with(" cores"), "{processor}");
    assert!(totals(&ran, "memory").starts_with("at most "));
    totals(&ran, "major faults").parse::<u64>().unwrap();
    let delay = totals(&ran, "I/O delay");
    match std::fs::read_to_string("/proc/sys/kernel/task_delayacct") {
        Ok(switch) if switch.trim() == "1" => assert!(!delay.contains("sysctl"), "{delay}"),
        _ => {
            let hint =
                "– (the kernel does not count it; as root, run `sysctl kernel.task_delayacct=1` before the command)";
            assert_eq!(delay, hint);
        }
    }
}

#[test]
fn a_signal_to_the_watch_alone_is_passed_on() {
    let dir = Dir::new();
    for (signal, code) in [(libc::SIGTERM, 143), (libc::SIGINT, 130)] {
        let mut running = Running::start(&dir, "watch --interval 10ms --csv rows.csv -- sleep 60");
        let rows = || std::fs::read_to_string(dir.path("rows.csv")).unwrap_or_default();
        running.wait_until("the command", |_| {
            let series = Series::from_csv(&rows()).unwrap_or_default();
            series.values("process.processes").is_some_and(|values| values.contains(&Some(1.0)))
        });
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert!(ran.stderr.contains("\nsleep 60 ended after "), "the totals come all the same: {}", ran.stderr);
        std::fs::remove_file(dir.path("rows.csv")).unwrap();
    }
}

#[test]
fn a_signal_to_the_watch_alone_reaches_all_descendants() {
    let dir = Dir::new();
    dir.write("script", "sh -c 'sleep 61 & sleep 62; :' & sleep 63; :");
    let mut running = Running::start(&dir, "watch --interval 10ms --csv rows.csv -- sh script");
    let rows = || std::fs::read_to_string(dir.path("rows.csv")).unwrap_or_default();
    running.wait_until("five processes", |_| {
        let series = Series::from_csv(&rows()).unwrap_or_default();
        series.values("process.processes").is_some_and(|values| values.contains(&Some(5.0)))
    });
    let start = std::time::Instant::now();
    running.signal(libc::SIGTERM);
    let ran = running.finish();
    assert_eq!(ran.code, Some(143), "{}", ran.stderr);
    assert!(start.elapsed().as_secs() < 30, "it waited for those that the signal did not reach");
    assert!(!totals(&ran, "processes").contains("still running"), "{}", ran.stderr);
}

#[test]
fn an_interrupt_of_the_whole_group_lets_the_command_end_as_it_likes() {
    let dir = Dir::new();
    let script = "trap 'echo cleaned up; exit 7' INT; echo ready; while :; do sleep 0.01; done";
    let mut command = dir.command("watch --");
    let mut child = command
        .args(["sh", "-c", script])
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut ready = [0; 6];
    stdout.read_exact(&mut ready).unwrap();
    // SAFETY: plain integers; the child has not been waited for, so the group's number is its own.
    assert_eq!(unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGINT) }, 0);
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!((child.wait().unwrap().code(), rest.as_str()), (Some(7), "cleaned up\n"));
}

#[test]
fn a_killed_watch_leaves_a_csv_that_can_be_read() {
    let dir = Dir::new();
    let mut running = Running::start(&dir, "watch --interval 10ms --csv rows.csv -- sleep 2");
    running.wait_until("five rows", |_| {
        std::fs::read_to_string(dir.path("rows.csv")).is_ok_and(|text| text.lines().count() > 6)
    });
    running.signal(libc::SIGKILL);
    assert_eq!(running.finish().code, None);
    assert!(series(&dir).time_s.len() >= 5);
}

#[test]
fn a_disk_that_fills_up_is_said_once_and_the_command_runs_to_its_end() {
    let dir = Dir::new();
    // A limit on the size of files stands for the full disk; 16 KiB hold the header and some rows.
    let script = "trap '' XFSZ; ulimit -f 32
        exec $forebay watch --interval 10ms --csv rows.csv -- sh -c 'sleep 1; echo done; exit 5'";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).env("forebay", env!("CARGO_BIN_EXE_forebay")).current_dir(dir.path(""));
    let ran = Ran::from(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(5), "done\n"), "{}", ran.stderr);
    let said = "forebay: cannot write rows.csv: File too large (os error 27); later rows are lost";
    assert_eq!(ran.stderr.lines().filter(|line| *line == said).count(), 1, "{}", ran.stderr);
    assert!(!series(&dir).time_s.is_empty());
}

#[test]
fn what_cannot_be_is_refused_before_the_command_starts() {
    let dir = Dir::new();
    let refused = |flags: &str| {
        let ran: Ran = dir.command(&format!("watch {flags} -- touch ran")).output().unwrap().into();
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(!dir.path("ran").exists(), "{flags}");
        ran.stderr
    };
    assert_eq!(refused("--csv -"), "forebay: --csv - would mix rows with the command's output\nhint: give a file\n");
    assert!(refused("--csv nowhere/rows.csv").starts_with("forebay: cannot write nowhere/rows.csv: No such file"));
    assert!(refused("--csv /dev/full").starts_with("forebay: cannot write /dev/full: No space left"));
    assert!(refused("--count 3").starts_with("error: the argument '--count <N>' cannot be used with '[COMMAND]...'"));
}
