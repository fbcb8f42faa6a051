//! Where results go, and what the exit status says.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

/// How a command that could run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It met what was asked.
    Met,
    /// It did not.
    Missed,
    /// It ran another command, whose exit status is passed on.
    Command(u8),
    /// It could not run, or was stopped: with this status, and what there is to say was said.
    Failed(u8),
}

/// Prints an error once, with its causes, and turns the outcome into the exit status.
pub(crate) fn exit_code(outcome: Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Met) => ExitCode::SUCCESS,
        Ok(Outcome::Missed) => ExitCode::from(1),
        Ok(Outcome::Command(status) | Outcome::Failed(status)) => ExitCode::from(status),
        Err(error) => {
            complain(&error);
            ExitCode::from(status(&error))
        }
    }
}

/// The exit status of an error.
pub(crate) fn status(error: &anyhow::Error) -> u8 {
    // What was stopped did run, in part.
    if is_stopped(error) { 1 } else { 2 }
}

/// An error with its causes.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // A transparent error repeats its cause's words.
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Prints an error with its causes, and what to do about it on a line of its own.
pub(crate) fn complain(error: &anyhow::Error) {
    let hint = hint(error).map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    remark(&format!("forebay: {}{hint}", in_words(error)));
}

/// What to do about an error, in the words of the command line where a library does not know them.
fn hint(error: &anyhow::Error) -> Option<String> {
    use forebay_bench::train::Error as Train;
    if let Some(forebay_checkpoint::Error::Locked { .. }) = error.downcast_ref() {
        return Some("wait until it ends; `forebay checkpoint ls` and `verify` need no lock".to_owned());
    }
    match error.downcast_ref() {
        Some(Train::Checkpoint(forebay_checkpoint::Error::Locked { .. })) => {
            Some("wait until it ends; `forebay checkpoint ls` and `verify` need no lock".to_owned())
        }
        Some(Train::Checkpoint(forebay_checkpoint::Error::NoRoom { .. })) => {
            Some("--keep fewer, remove what lies there, or give another --checkpoint-dir".to_owned())
        }
        Some(Train::ClassesUnknown { .. }) => Some("--classes N, one more than the largest label".to_owned()),
        Some(Train::Label { label: 0.., .. }) => {
            Some("--classes N, one more than the largest label, or leave it out".to_owned())
        }
        Some(Train::Occupied { .. }) => {
            Some("--resume goes on from there; a run that begins anew needs another --checkpoint-dir".to_owned())
        }
        Some(Train::OtherRun { .. }) => {
            Some("give the settings of that run, or another --checkpoint-dir without --resume".to_owned())
        }
        Some(Train::NoState) => Some("--checkpoint-size 600MB".to_owned()),
        Some(Train::NoLabels { path }) => Some(
            misread_label(path)
                .unwrap_or_else(|| "--accelerator emulated:224ms takes a network's time instead".to_owned()),
        ),
        _ if is_damaged(error) => Some("`forebay data verify` names every damaged shard; pack those again".to_owned()),
        _ => match error.downcast_ref::<forebay_storage::tier::Error>() {
            Some(error) => error.hint(),
            None => of_limit(error),
        },
    }
}

/// What to do about a limit of this process that an error ran into.
fn of_limit(error: &anyhow::Error) -> Option<String> {
    let found = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error())?;
    match found {
        libc::EMFILE => {
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: a valid structure that the call fills.
            let code = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
            let now = if code == 0 { format!(", now {},", limit.rlim_cur) } else { String::new() };
            Some(format!("raise the limit on open files{now} with `ulimit -n`"))
        }
        libc::EFBIG => Some("raise the limit on file sizes with `ulimit -f`".to_owned()),
        _ => None,
    }
}

/// What a list has in place of its first label, where that is what is wrong.
fn misread_label(list: &Path) -> Option<String> {
    let text = std::fs::read_to_string(list).ok()?;
    forebay_format::list::misread(&text).next().map(|misread| misread.to_string())
}

/// Whether what stopped the run is the end of a file or its content.
fn is_damaged(error: &anyhow::Error) -> bool {
    use forebay_format::Error::{Checksum, Truncated};
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(Truncated { .. } | Checksum { .. })))
}

fn is_stopped(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(forebay_dataset::Error::Cancelled))
}

/// Writes text to stdout.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader, such as `head`, has seen enough. What the run found still decides the exit status.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Writes a remark to stderr, at one go: ranks of one run share it, and a line of one must not be torn by another's.
pub(crate) fn remark(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Where JSON goes: a file, or "-" for stdout, which then holds nothing else.
#[derive(Debug, Clone)]
pub(crate) struct JsonTarget(PathBuf);

impl From<&Path> for JsonTarget {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl JsonTarget {
    pub(crate) fn is_stdout(&self) -> bool {
        self.0 == Path::new("-")
    }

    /// Fails now rather than after the run if the file cannot be written. A former record stays as it is until then.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_stdout() {
            return Ok(());
        }
        let cannot = || format!("cannot write {}", self.0.display());
        let open = |options: &mut OpenOptions| options.append(true).open(&self.0);
        match open(OpenOptions::new().create_new(true)) {
            // An empty file is no record: a run that fails leaves none behind.
            Ok(_) => std::fs::remove_file(&self.0).with_context(cannot),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                open(&mut OpenOptions::new()).map(drop).with_context(cannot)
            }
            Err(error) => Err(error).with_context(cannot),
        }
    }

    /// Writes it with a line end.
    pub(crate) fn write(&self, json: &str) -> Result<()> {
        if self.is_stdout() {
            return print(&format!("{json}\n"));
        }
        replace(&self.0, format!("{json}\n").as_bytes())
    }
}

/// Writes a file aside and puts it in place once it is whole, so that a full disk leaves the former one. A device or a
/// pipe is written to as it is, and so is a file in a folder that takes no new ones.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    // A link keeps pointing to where it did.
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let former = std::fs::metadata(&target).ok();
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let aside = target.with_file_name(name);
    if former.as_ref().is_some_and(|former| !former.is_file()) {
        return std::fs::write(&target, bytes).with_context(cannot);
    }
    let written = match OpenOptions::new().write(true).create_new(true).open(&aside) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return std::fs::write(&target, bytes).with_context(cannot);
        }
        opened => opened.and_then(|mut file| {
            former.map_or(Ok(()), |former| file.set_permissions(former.permissions()))?;
            file.write_all(bytes)?;
            std::fs::rename(&aside, &target)
        }),
    };
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written.with_context(cannot)
}

/// Gives a result: the text to stdout, or the JSON where it was asked for, and then the text to where stdout is free.
pub(crate) fn give(text: &str, json: Option<(&JsonTarget, String)>) -> Result<()> {
    match json {
        None => print(text),
        Some((target, json)) if target.is_stdout() => target.write(&json),
        Some((target, json)) => {
            // What was measured is shown even where it cannot be kept.
            let kept = target.write(&json);
            print(text)?;
            kept
        }
    }
}

/// A value as JSON over several lines.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<String> {
    Ok(serde_json::to_string_pretty(value)?)
}
