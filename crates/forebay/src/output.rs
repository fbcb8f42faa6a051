//! Where results go, and what the exit status says.

mod file;
mod guard;
mod kind;
mod place;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use forebay_report::visible_lines;
use serde::Serialize;

pub(crate) use file::{Output, replace};
pub(crate) use guard::Outputs;
pub(crate) use kind::{Kind, is_kept_by_runs};
pub(crate) use place::place;

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
    use forebay_measure::Error as Shared;
    if let Some(forebay_checkpoint::Error::Locked { .. }) = error.downcast_ref() {
        return Some("wait until it ends; `forebay checkpoint ls` and `verify` need no lock".to_owned());
    }
    if let Some(forebay_record::Error::Disagrees { .. }) = error.downcast_ref() {
        return Some("the record was changed after the run; use the original, or measure again".to_owned());
    }
    match error.downcast_ref() {
        Some(Train::Shared(Shared::Checkpoint(forebay_checkpoint::Error::Locked { .. }))) => {
            Some("wait until it ends; `forebay checkpoint ls` and `verify` need no lock".to_owned())
        }
        Some(Train::Shared(Shared::Checkpoint(forebay_checkpoint::Error::NoRoom { .. }))) => {
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
        _ => about_data(error)
            .or_else(|| of_dataset(error))
            .or_else(|| error.downcast_ref::<forebay_storage::tier::Error>()?.hint())
            .or_else(|| of_limit(error)),
    }
}

/// What to do about a limit of this process that an error ran into.
fn of_limit(error: &anyhow::Error) -> Option<String> {
    let found = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>()?.raw_os_error())?;
    match found {
        libc::EMFILE => {
            let now = crate::doctor::limit(libc::RLIMIT_NOFILE);
            let now = now.map_or_else(String::new, |(soft, _)| format!(", now {soft},"));
            Some(format!("raise the limit on open files{now} with `ulimit -n`"))
        }
        libc::EFBIG => Some("raise the limit on file sizes with `ulimit -f`".to_owned()),
        _ => None,
    }
}

fn of_dataset(error: &anyhow::Error) -> Option<String> {
    error.downcast_ref::<forebay_dataset::Error>()?.hint().map(str::to_owned)
}

/// What a list has in place of its first label, where that is what is wrong.
fn misread_label(list: &Path) -> Option<String> {
    let text = std::fs::read(list).ok()?;
    forebay_format::list::misread(&text).next().map(|misread| misread.to_string())
}

/// What to do about data that is not read as it is.
fn about_data(error: &anyhow::Error) -> Option<String> {
    use forebay_format::Error::{Archive, SeveralImages, Utf16};
    let unpacker = |how| match how {
        "zip" => "unzip",
        "gzip" => "gunzip",
        "bzip2" => "bunzip2",
        "xz" => "xz -d",
        "zstd" => "zstd -d",
        "lz4" => "lz4 -d",
        "RAR" => "unrar x",
        _ => "7z x",
    };
    error.chain().find_map(|cause| match format_error(cause)? {
        SeveralImages { candidates } => Some(format!("--image-key NAME, one of {}", candidates.join(", "))),
        Archive { how } => Some(format!("unpack it first, for example with `{}`", unpacker(*how))),
        Utf16 => Some("iconv -f UTF-16 -t UTF-8 LIST > NEW".to_owned()),
        _ => None,
    })
}

/// Whether what stopped the run is the end of a file or its content.
fn is_damaged(error: &anyhow::Error) -> bool {
    use forebay_format::Error::{Checksum, Truncated};
    error.chain().any(|cause| matches!(format_error(cause), Some(Truncated { .. } | Checksum { .. })))
}

/// A cause as an error of a format; larger errors keep it in a box.
fn format_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a forebay_format::Error> {
    cause.downcast_ref().or_else(|| Some(&**cause.downcast_ref::<Box<forebay_format::Error>>()?))
}

fn is_stopped(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(forebay_dataset::Error::Cancelled))
}

/// Writes text to stdout. Control characters of records and file names are shown, not obeyed.
pub(crate) fn print(text: &str) -> Result<()> {
    print_data(&visible_lines(text))
}

/// Writes data to stdout, as it is.
pub(crate) fn print_data(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader, such as `head`, has seen enough. What the run found still decides the exit status.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Writes a remark to stderr as [`print()`] does, at one go: ranks of one run share it, and a line of one must not be torn by another's.
pub(crate) fn remark(text: &str) {
    let _ = std::io::stderr().write_all(format!("{}\n", visible_lines(text)).as_bytes());
}

/// Writes what a user should know of the data to stderr.
pub(crate) fn note(notes: &[String]) {
    notes.iter().for_each(|note| remark(&format!("note: {note}")));
}

/// Gives a result: the text to stdout, or the JSON where it was asked for, and then the text to where stdout is free.
pub(crate) fn give(text: &str, json: Option<(&Output, String)>) -> Result<()> {
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

/// Where the JSON of a command goes.
#[derive(Debug, clap::Args)]
pub(crate) struct JsonArgs {
    /// Write the result as JSON to a file, or to stdout with "-"; an earlier result is replaced
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,

    /// Replace an existing file also where forebay did not write it
    #[arg(long, requires = "json")]
    force: bool,
}

impl JsonArgs {
    /// The file of a command that reads these and has no other output; fails now rather than after the run.
    pub(crate) fn target<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Option<Output>> {
        self.target_of(&mut self.outputs(inputs))
    }

    /// The outputs of a command that reads these.
    pub(crate) fn outputs<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Outputs {
        Outputs::beside(inputs, self.force)
    }

    /// The file, beside the command's other outputs.
    pub(crate) fn target_of(&self, outputs: &mut Outputs) -> Result<Option<Output>> {
        self.json.as_deref().map(|path| outputs.file("--json", path, Kind::Json)).transpose()
    }
}

/// Findings with the schema by which they are known again.
#[derive(Serialize)]
struct Findings<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    found: &'a T,
}

impl<'a, T> Findings<'a, T> {
    fn new(found: &'a T) -> Self {
        Self { schema: kind::FINDINGS, found }
    }
}

/// Findings as JSON over several lines.
pub(crate) fn to_json<T: Serialize>(found: &T) -> Result<String> {
    Ok(serde_json::to_string_pretty(&Findings::new(found))?)
}

/// A list of findings as JSON over several lines.
pub(crate) fn to_json_list<T: Serialize>(found: &[T]) -> Result<String> {
    Ok(serde_json::to_string_pretty(&found.iter().map(Findings::new).collect::<Vec<_>>())?)
}
