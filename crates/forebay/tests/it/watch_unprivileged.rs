//! `forebay watch -- COMMAND` without root's rights, for whom the kernel hides the I/O of a process that has ended.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use forebay_record::Series;

use forebay_testing::{Reason, not_run};

use crate::dir::Ran;
use crate::process::is_root;

/// A folder that everybody may use, with the binary in it.
struct Open(tempfile::TempDir);

impl Open {
    /// `None`, and a word why, where nobody else can be had.
    fn new() -> Option<Self> {
        if is_root() && Command::new("setpriv").arg("--version").output().is_err() {
            not_run(Reason::NoProgram, "setpriv");
            return None;
        }
        // The target folder may be closed to others.
        let dir = tempfile::tempdir().unwrap();
        let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        open(dir.path());
        let binary = dir.path().join("forebay");
        std::fs::copy(env!("CARGO_BIN_EXE_forebay"), &binary).unwrap();
        open(&binary);
        Some(Self(dir))
    }

    /// Runs a command under `forebay watch` as somebody without rights.
    fn watch(&self, interval: &str, words: &[&str]) -> Ran {
        let binary = self.0.path().join("forebay");
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary);
            command
        } else {
            Command::new(binary)
        };
        command.args(["watch", "--interval", interval, "--csv", "rows.csv", "--"]).args(words);
        command.current_dir(self.0.path()).output().unwrap().into()
    }

    /// The bytes written by all rows together.
    fn by_rows(&self) -> f64 {
        let text = std::fs::read_to_string(self.0.path().join("rows.csv")).unwrap();
        Series::from_csv(&text).unwrap().total("process.wchar_bytes_per_s").unwrap().round()
    }
}

/// The line of the totals about writing.
fn written(ran: &Ran) -> &str {
    let line = ran.stderr.lines().find_map(|line| line.trim_start().strip_prefix("written"));
    line.unwrap_or_else(|| panic!("{}", ran.stderr)).trim_start()
}

#[test]
fn the_bytes_of_a_command_that_has_ended_are_counted_without_rights() {
    let Some(open) = Open::new() else { return };
    let ran = open.watch("1s", &["dd", "if=/dev/zero", "of=f", "bs=1M", "count=30", "status=none"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(written(&ran).starts_with("31.5 MB by write calls, "), "{}", ran.stderr);
    assert_eq!(open.by_rows(), 30.0 * 1_048_576.0);
}

#[test]
fn the_last_bytes_of_a_command_that_was_seen_before_are_counted_without_rights() {
    let Some(open) = Open::new() else { return };
    let dd = "dd if=/dev/zero of=f bs=64k count=160 status=none";
    // An orphan too, which falls to the watch, and a child that ends unseen between two ticks.
    let script =
        format!("{dd}; sleep 0.3; sh -c '({dd}; : > done) &'; while ! test -e done; do sleep 0.01; done; {dd}; :");
    let ran = open.watch("50ms", &["sh", "-c", &script]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(written(&ran).starts_with("31.5 MB by write calls, "), "{}", ran.stderr);
    assert_eq!(open.by_rows(), 480.0 * 65_536.0);
}

#[test]
fn the_io_of_a_program_that_may_not_be_read_is_known_by_waiting_for_it_or_said_to_be_unknown() {
    let Some(open) = Open::new() else { return };
    // The kernel hides the processes of a program that may be run and not read.
    let which = Command::new("sh").args(["-c", "command -v dd"]).output().unwrap();
    let hidden = open.0.path().join("hidden");
    std::fs::copy(String::from_utf8(which.stdout).unwrap().trim(), &hidden).unwrap();
    std::fs::set_permissions(&hidden, std::fs::Permissions::from_mode(0o111)).unwrap();
    let dd = "./hidden if=/dev/zero of=f bs=1M count=30 status=none";
    let ran = open.watch("10ms", &["sh", "-c", &format!("{dd}; :")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(written(&ran).starts_with("31.5 MB by write calls, "), "{}", ran.stderr);
    // Where nobody waits for it, nobody is handed its numbers.
    let script = "$SIG{CHLD} = 'IGNORE';
        if (!fork) { exec 'exec ./hidden status=none < fifo > done' }
        open F, '>fifo'; select undef, undef, undef, 0.2; print F 'x'; close F;
        wait;";
    let ran = open.watch("10ms", &["sh", "-c", "mkfifo fifo; exec perl -e \"$0\"", script]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(written(&ran).starts_with("at least "), "{}", ran.stderr);
    assert!(ran.stderr.contains("; the I/O of 1 is not counted: no permission to read it"), "{}", ran.stderr);
}
