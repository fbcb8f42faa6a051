//! Counts passed tests, and lists those that could not run on this machine, with the reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use forebay_testing::{Entry, LEDGER, Reason};

use crate::shell::{describe, target};
use crate::system::{is_root, works};

/// The tests of one command of xtask.
pub struct Tally {
    n_passed: AtomicU64,
    ledger: PathBuf,
}

/// Runs what has tests and tells how many passed; an error where one was not run that this machine can run.
pub fn of(tests: impl FnOnce(&Tally) -> Result<()>) -> Result<()> {
    let tally = Tally::new()?;
    tests(&tally)?;
    tally.finish()
}

impl Tally {
    pub fn new() -> Result<Self> {
        // Tests run in the folders of their packages.
        let ledger = std::path::absolute(target().join("not-run.tsv"))?;
        std::fs::write(&ledger, "").with_context(|| ledger.display().to_string())?;
        Ok(Self { n_passed: AtomicU64::new(0), ledger })
    }

    /// Runs test programs with their output shown, and adds up what their summaries say.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        let name = describe(command);
        eprintln!("$ {name}");
        let mut child = self.prepare(command).spawn().with_context(|| format!("cannot start {name}"))?;
        let output = BufReader::new(child.stdout.take().context("stdout is a pipe")?);
        for line in output.split(b'\n') {
            let line = String::from_utf8_lossy(&line?).into_owned();
            writeln!(std::io::stdout(), "{line}")?;
            let n_passed = passed(&line).with_context(|| format!("{name}: {line}"))?;
            self.n_passed.fetch_add(n_passed, Ordering::Relaxed);
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("{name} failed: {status}");
        }
        Ok(())
    }

    /// Counts checks that are no test programs.
    pub fn add_passed(&self, n_passed: u64) {
        self.n_passed.fetch_add(n_passed, Ordering::Relaxed);
    }

    /// Enters a part of a campaign that cannot run on this machine.
    pub fn leave_out(&self, part: &str, reason: Reason) -> Result<()> {
        eprintln!("{part}: not run: {reason}");
        let entry = Entry { package: part.to_owned(), test: None, reason, detail: String::new() };
        Ok(entry.append(&self.ledger)?)
    }

    fn prepare<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        if std::thread::available_parallelism().is_ok_and(|n| n.get() == 1) {
            // With one thread the harness runs tests on the main thread, which has not their names.
            command.env("RUST_TEST_THREADS", "2");
        }
        command.env(LEDGER, &self.ledger).stdout(Stdio::piped())
    }

    /// Prints the sums and the tests that were not run; an error where one could have been.
    pub fn finish(&self) -> Result<()> {
        let text = std::fs::read_to_string(&self.ledger)?;
        let entries: Vec<Entry> =
            text.lines().map(str::parse).collect::<Result<_, String>>().map_err(anyhow::Error::msg)?;
        let mut by_reason: BTreeMap<Reason, BTreeSet<String>> = BTreeMap::new();
        for entry in &entries {
            by_reason.entry(entry.reason).or_default().insert(entry.name());
        }
        let tests: BTreeSet<String> = entries.iter().map(Entry::name).collect();
        // The harness took these for passed.
        let returned: BTreeSet<String> = entries.iter().filter(|entry| entry.test.is_some()).map(Entry::name).collect();
        eprintln!(
            "\n{} passed, {} not run",
            self.n_passed.load(Ordering::Relaxed) - returned.len() as u64,
            tests.len()
        );
        for (reason, tests) in &by_reason {
            eprintln!("  {reason}: {}", tests.len());
            tests.iter().for_each(|test| eprintln!("    {test}"));
        }
        let wrong: Vec<String> =
            by_reason.keys().filter(|reason| !holds_here(**reason)).map(ToString::to_string).collect();
        if !wrong.is_empty() {
            bail!("tests were not run for reasons that do not hold on this machine: {}", wrong.join("; "));
        }
        Ok(())
    }
}

/// The number of passed tests in a summary of Rust's harness or pytest's; 0 in any other line. Neither may leave out tests.
fn passed(line: &str) -> Result<u64> {
    let words: Vec<&str> = line.split([' ', ';', ',']).filter(|word| !word.is_empty()).collect();
    let is_summary = match words[..] {
        ["test", "result:", ..] => true,
        [n, what, ..] => n.parse::<u64>().is_ok() && ["passed", "skipped"].contains(&what) && line.contains(" in "),
        _ => false,
    };
    if !is_summary {
        return Ok(0);
    }
    let before = |what| words.windows(2).find(|pair| pair[1] == what).and_then(|pair| pair[0].parse::<u64>().ok());
    if ["ignored", "skipped", "xfailed", "deselected"].into_iter().any(|what| before(what).is_some_and(|n| n > 0)) {
        bail!("a test that is not run needs a reason from the closed list");
    }
    Ok(before("passed").unwrap_or(0))
}

/// Whether a reason not to run a test holds here, found by other means than the tests'.
fn holds_here(reason: Reason) -> bool {
    let exists = |path: &str| Path::new(path).exists();
    match reason {
        Reason::Gpu => exists("/proc/driver/nvidia/version") || works("sh", &["-c", "ldconfig -p | grep -q libcudnn"]),
        Reason::NoDirectIo => !can_write_directly(&target()) || !can_write_directly(&std::env::temp_dir()),
        Reason::NoDisk => {
            !works("sh", &["-c", &format!("findmnt -n -o SOURCE -T '{}' | grep -q ^/dev/", target().display())])
        }
        Reason::NoGpu => !exists("/proc/driver/nvidia/version"),
        Reason::NoIoUring => io_uring_is_closed(),
        Reason::NoKernelTier => !is_root() || !works("unshare", &["-m", "true"]) || !exists("/dev/loop-control"),
        Reason::NoMounts => {
            let flags = if is_root() { "-m" } else { "-rm" };
            !works("unshare", &[flags, "mount", "-t", "tmpfs", "none", "/mnt"])
        }
        Reason::NoOtherUser => is_root() && !nobody_can_run(&target().join("debug/forebay")),
        Reason::NoPeakMemory => !exists("/proc/self/clear_refs"),
        // All that are used are installed.
        Reason::NoProgram => false,
        Reason::NoSchedulerCounts => !exists("/proc/self/schedstat"),
        Reason::NoCgroupV1 => !is_root() || !exists("/sys/fs/cgroup/blkio"),
        Reason::NoTorch => !crate::wheel::is_made("torch"),
        Reason::NoXfs => !works("mkfs.xfs", &["-V"]) || !works("grep", &["-q", "xfs", "/proc/filesystems"]),
    }
}

fn can_write_directly(folder: &Path) -> bool {
    let path = folder.join("written-directly");
    let is_written =
        works("dd", &["if=/dev/zero", &format!("of={}", path.display()), "oflag=direct", "bs=4096", "count=1"]);
    let _ = std::fs::remove_file(path);
    is_written
}

fn io_uring_is_closed() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    !setting.is_ok_and(|text| text.trim() == "0") || status.contains("Seccomp:\t2")
}

fn nobody_can_run(program: &Path) -> bool {
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    Command::new("setpriv").args(nobody).arg(program).arg("--version").output().is_ok_and(|ran| ran.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_counted_in_the_summaries_of_both_harnesses() {
        let rust = "test result: ok. 212 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 1.02s";
        assert_eq!(passed(rust).unwrap(), 212);
        assert_eq!(passed("45 passed in 12.34s").unwrap(), 45);
        assert_eq!(passed("45 passed, 2 warnings in 61.10s (0:01:01)").unwrap(), 45);
        assert_eq!(passed("3 tests passed in both modes, says a test").unwrap(), 0);
    }

    #[test]
    fn a_test_that_is_left_out_without_a_reason_is_an_error() {
        assert!(passed("test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; finished in 1s").is_err());
        assert!(passed("2 skipped in 0.10s").is_err());
        assert!(passed("45 passed, 1 skipped in 12.34s").is_err());
    }
}
