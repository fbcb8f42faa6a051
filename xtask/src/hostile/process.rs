//! Running a case's program, with an end to its time.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::case::{Blow, Case, Deed};

/// How often it is looked whether a process has ended.
const TICK: Duration = Duration::from_millis(2);

/// What a run gave.
pub struct Ended {
    /// `None` when it had to be killed.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
    /// Time from what happened meanwhile to the end.
    pub after_blow: Option<Duration>,
}

impl Ended {
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    pub fn signal(&self) -> Option<i32> {
        self.status.and_then(|status| status.signal())
    }
}

/// Runs the case's line in `folder`; what it prints goes through files in `aside`.
pub fn play(program: &Path, case: &Case, folder: &Path, aside: &Path) -> Result<Ended> {
    let (out, err) = (aside.join("stdout"), aside.join("stderr"));
    let mut command = Command::new("env");
    // Whoever started the campaign may ignore signals, and children inherit that.
    command.arg("--default-signal").args(&case.under).arg(program).args(case.line.split(' '));
    command.current_dir(folder.join(&case.folder)).process_group(0);
    command.env_remove("COLUMNS").env("HOME", aside.join("home")).env("TMPDIR", aside.join("tmp"));
    command.env("FOREBAY_HOME", folder.join(".home"));
    for (name, value) in &case.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let (status, after_blow) = wait(child, case, folder)?;
    Ok(Ended { status, stdout: text(&out)?, stderr: text(&err)?, after_blow })
}

fn wait(mut child: Child, case: &Case, folder: &Path) -> Result<(Option<ExitStatus>, Option<Duration>)> {
    let start = Instant::now();
    let mut struck: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((Some(status), struck.map(|at| at.elapsed())));
        }
        match (case.blow, struck) {
            (Some(Blow { deed, after }), None) if start.elapsed() >= after => {
                strike(deed, &child, folder);
                struck = Some(Instant::now());
            }
            (Some(_), None) => {}
            _ if struck.unwrap_or(start).elapsed() > case.limit => {
                send("KILL", &format!("-{}", child.id()));
                child.wait()?;
                return Ok((None, struck.map(|at| at.elapsed())));
            }
            _ => {}
        }
        std::thread::sleep(TICK);
    }
}

fn strike(deed: Deed, child: &Child, folder: &Path) {
    match deed {
        Deed::Signal(name) => send(name, &child.id().to_string()),
        Deed::Remove(below) => remove_files(&folder.join(below)),
    }
}

/// Removes what can be removed; the folders stay.
fn remove_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_files(&entry.path()),
            _ => drop(fs::remove_file(entry.path())),
        }
    }
}

/// Sends a signal to a process, or to a group with a minus before its number.
fn send(signal: &str, to: &str) {
    // It may have ended meanwhile, which is all that can go wrong.
    let _ = Command::new("kill").args(["-s", signal, "--", to]).stderr(Stdio::null()).status();
}

fn text(path: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(1 << 24).read_to_end(&mut bytes)?;
    fs::remove_file(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
