//! Signals: the first asks a run to stop, the second ends it, and what a caller set for them is no obstacle.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::dir::{Dir, Ran};
use crate::process::Running;

/// The same command, started with these signals ignored.
fn ignoring(mut command: Command, signals: &'static [libc::c_int]) -> Command {
    let ignore = move || {
        for signal in signals {
            // SAFETY: a plain number and a disposition; `signal` may be called between fork and exec.
            unsafe { libc::signal(*signal, libc::SIG_IGN) };
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls alone.
    unsafe { command.pre_exec(ignore) };
    command
}

/// A watch whose rows nobody takes: it cannot end before its last one is written.
fn stuck(dir: &Dir) -> Running {
    let mut command = dir.command("watch --interval 10ms --csv -");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut running = Running::of(child);
    let (mut seen, mut since) = (0, Instant::now());
    running.wait_until("a full pipe", |running| {
        let now = running.bytes_unread();
        if now != seen {
            (seen, since) = (now, Instant::now());
        }
        // Rows come every 10 ms as long as there is room.
        seen > 60_000 && since.elapsed().as_millis() > 300
    });
    running
}

#[test]
fn a_run_that_cannot_end_at_once_says_so_and_a_second_signal_ends_it_with_its_own_status() {
    let dir = Dir::new();
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
        let mut running = stuck(&dir);
        running.signal(signal);
        let said = running.stderr_until("\n");
        assert_eq!(said, "forebay: stopping; press Ctrl-C again to quit at once\n");
        running.signal(signal);
        assert_eq!(running.finish().code, Some(code));
    }
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one_wish() {
    let dir = Dir::with_set();
    let mut running = Running::start(&dir, "ingest set --threads 1 --tier hdd --batch 1 --batches 100000");
    running.wait_until("a thread at work", |running| !running.threads("forebay:map").is_empty());
    // As `timeout` does, which signals the process and then its group.
    running.signal(libc::SIGTERM);
    running.signal(libc::SIGTERM);
    let ran = running.finish();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.ends_with("note: interrupted before the first repeat was complete\n"), "{}", ran.stdout);
}

#[test]
fn an_interrupt_stops_a_run_that_was_started_with_interrupts_ignored() {
    let dir = Dir::with_set();
    let line = "ingest set --threads 1 --tier hdd --batch 1 --batches 100000";
    let mut command = ignoring(dir.command(line), &[libc::SIGINT, libc::SIGTERM]);
    let mut running = Running::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    running.wait_until("a thread at work", |running| !running.threads("forebay:map").is_empty());
    running.signal(libc::SIGINT);
    assert_eq!(running.finish().code, Some(1));
}

#[test]
fn a_hangup_that_nohup_turned_off_stays_off() {
    let dir = Dir::with_set();
    let line = "ingest set --threads 1 --tier hdd --batch 1 --batches 100000";
    let mut command = ignoring(dir.command(line), &[libc::SIGHUP]);
    let mut running = Running::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    running.wait_until("a thread at work", |running| !running.threads("forebay:map").is_empty());
    assert_eq!(running.ignored_signals() & (1 << (libc::SIGHUP - 1)), 1 << (libc::SIGHUP - 1));
    running.signal(libc::SIGTERM);
    assert_eq!(running.finish().code, Some(1));
}

#[test]
fn a_watched_command_starts_with_the_default_treatment_of_signals() {
    let dir = Dir::new();
    const IGNORED: &[libc::c_int] =
        &[libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGPIPE, libc::SIGXFSZ, libc::SIGHUP];
    let command = dir.command("watch -- grep SigIgn /proc/self/status");
    let ran = Ran::from(ignoring(command, IGNORED).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let bits = u64::from_str_radix(ran.stdout.strip_prefix("SigIgn:").unwrap().trim(), 16).unwrap();
    let found: Vec<_> = IGNORED.iter().filter(|signal| bits & (1 << (**signal - 1)) != 0).collect();
    assert_eq!(found, [&libc::SIGHUP], "all but nohup's");
}

#[test]
fn a_signal_reaches_a_watched_command_whatever_was_ignored() {
    let dir = Dir::new();
    for (signal, code) in [(libc::SIGINT, 130), (libc::SIGTERM, 143), (libc::SIGQUIT, 131)] {
        let mut command = dir.command("watch --");
        command.args(["sh", "-c", ": > here; exec sleep 60"]);
        let mut command = ignoring(command, &[libc::SIGINT, libc::SIGTERM, libc::SIGQUIT]);
        let mut running = Running::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
        running.wait_until("the command", |_| dir.path("here").exists());
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        std::fs::remove_file(dir.path("here")).unwrap();
    }
}
