//! Where results go, and the exit status.

mod file;
mod guard;
mod kind;
mod place;
mod schema;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use forebay_record::{AnyRecord, Cell, Record};
use forebay_report::{fold, visible_lines};
use serde::Serialize;

pub(crate) use file::{Draft, Output, replace};
pub(crate) use guard::{Outputs, cannot_write};
pub(crate) use kind::{Kind, is_kept_by_runs};
pub(crate) use place::{keep_apart, parent, place};
pub(crate) use schema::Schema;

use crate::terminal::Stream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Met,
    Missed,
    /// The exit status of another command, or of an error that was already reported.
    Status(u8),
}

impl Outcome {
    pub(crate) fn of(is_met: bool) -> Self {
        if is_met { Self::Met } else { Self::Missed }
    }
}

/// Prints an error once, with its causes, and turns the outcome into the exit status.
pub(crate) fn exit_code(outcome: Result<Outcome>) -> ExitCode {
    match outcome {
        Ok(Outcome::Met) => ExitCode::SUCCESS,
        Ok(Outcome::Missed) => ExitCode::from(1),
        Ok(Outcome::Status(status)) => ExitCode::from(status),
        Err(error) => {
            complain(&error);
            ExitCode::from(status(&error))
        }
    }
}

pub(crate) fn status(error: &anyhow::Error) -> u8 {
    // A stopped command did run in part.
    if matches!(error.downcast_ref(), Some(forebay_dataset::Error::Cancelled)) { 1 } else { 2 }
}

pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // A transparent error repeats the text of its cause.
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Prints an error with its causes, and the hint on its own line.
pub(crate) fn complain(error: &anyhow::Error) {
    let hint = hint(error).map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    remark(&format!("forebay: {}{hint}", in_words(error)));
}

/// The hint for an error; errors of libraries get one in terms of the command line.
fn hint(error: &anyhow::Error) -> Option<String> {
    use forebay_bench::train::Error as Train;
    use forebay_checkpoint::Error as Store;
    use forebay_measure::Error as Shared;
    let in_training = error.downcast_ref::<Train>();
    let of_store = match in_training {
        Some(Train::Shared(Shared::Checkpoint(error))) => Some(error),
        _ => error.downcast_ref(),
    };
    let known = match (of_store, in_training) {
        (Some(Store::Locked { .. }), _) => "wait until it ends; `forebay checkpoint ls` and `verify` work meanwhile",
        (Some(Store::NoRoom { .. }), Some(_)) => "lower --keep, free some space, or give another --checkpoint-dir",
        (_, Some(Train::ClassesUnknown { .. })) => "pass --classes N, one more than the largest label",
        (_, Some(Train::Label { label: 0.., .. })) => "pass --classes N, one more than the largest label, or omit it",
        (_, Some(Train::Occupied { .. })) => "continue it with --resume, or give another --checkpoint-dir",
        (_, Some(Train::OtherRun { .. })) => "use that run's settings, or another --checkpoint-dir without --resume",
        (_, Some(Train::TooFewSamples { n_samples: n, n_ranks, .. })) if n >= n_ranks => {
            let fewer = if *n_ranks > 1 { ", or use fewer ranks" } else { "" };
            return Some(format!("pass --batch {} or less{fewer}", n / n_ranks));
        }
        (_, Some(Train::TooFewShards { .. })) => {
            "read single samples (--shuffle full), start fewer ranks, or pack more shards (forebay data pack --shard-size)"
        }
        (_, Some(Train::NoState)) => "--checkpoint-size 600MB",
        (_, Some(Train::NoLabels { path })) => match misread_label(path) {
            Some(misread) => return Some(misread),
            None => "emulate the network with --accelerator emulated:224ms",
        },
        _ if matches!(error.downcast_ref(), Some(forebay_record::Error::Disagrees { .. })) => {
            "the record was changed after the run; use the original, or measure again"
        }
        _ if is_damaged(error) => "`forebay data verify` lists the damaged shards; pack those again",
        _ if error.chain().any(is_empty) => {
            "samples are JPEG, PNG, WebP, GIF, BMP and TIFF images, and TFRecord, tar and tensor shards; \
             `forebay data make imagenet DIR` makes some"
        }
        _ => {
            return about_data(error)
                .or_else(|| error.downcast_ref::<forebay_dataset::Error>()?.hint().map(str::to_owned))
                .or_else(|| error.downcast_ref::<forebay_storage::tier::Error>()?.hint())
                .or_else(|| of_limit(error));
        }
    };
    Some(known.to_owned())
}

fn is_empty(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(cause.downcast_ref(), Some(forebay_pipeline::Error::Empty { .. }))
        || matches!(cause.downcast_ref(), Some(forebay_measure::Error::Pipeline(forebay_pipeline::Error::Empty { .. })))
}

/// The hint for an error caused by a limit of this process.
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

/// The text that a list has in place of its first label, if that is the problem.
fn misread_label(list: &Path) -> Option<String> {
    let text = std::fs::read(list).ok()?;
    forebay_format::list::misread(&text).next().map(|misread| misread.to_string())
}

/// The hint for data that cannot be read directly.
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
        SeveralImages { candidates } => Some(format!("pass --image-key NAME, one of {}", candidates.join(", "))),
        Archive { how } => Some(format!("unpack it first, for example with `{}`", unpacker(*how))),
        Utf16 => Some("iconv -f UTF-16 -t UTF-8 LIST > NEW".to_owned()),
        _ => None,
    })
}

/// Whether the run failed because a file is truncated or its content is wrong.
fn is_damaged(error: &anyhow::Error) -> bool {
    use forebay_format::Error::{Checksum, Truncated};
    error.chain().any(|cause| matches!(format_error(cause), Some(Truncated { .. } | Checksum { .. })))
}

/// A cause as a format error, which larger errors keep in a box.
fn format_error<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a forebay_format::Error> {
    cause.downcast_ref().or_else(|| Some(&**cause.downcast_ref::<Box<forebay_format::Error>>()?))
}

/// Writes text to stdout, wrapped to the terminal. Control characters of records and file names are escaped.
pub(crate) fn print(text: &str) -> Result<()> {
    print_data(&fold(&visible_lines(text), Stream::Stdout.width()))
}

/// As [`print()`], for a text that programs also read: lines are not wrapped.
pub(crate) fn print_lines(text: &str) -> Result<()> {
    print_data(&visible_lines(text))
}

pub(crate) fn print_data(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // The reader, for example `head`, has closed the pipe. The run's result still decides the exit status.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to stdout"),
    }
}

/// Writes a remark to stderr as [`print()`] does, in one write: ranks share stderr, and their lines must not interleave.
pub(crate) fn remark(text: &str) {
    let text = fold(&visible_lines(text), Stream::Stderr.width());
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Writes warnings about the data to stderr.
pub(crate) fn note(notes: &[String]) {
    notes.iter().for_each(|note| remark(&format!("note: {note}")));
}

/// Ends a command whose only result is this text.
pub(crate) fn done(text: &str) -> Result<Outcome> {
    print(text)?;
    Ok(Outcome::Met)
}

/// The file for a result's JSON, if requested.
#[derive(Debug)]
pub(crate) struct Json(Option<Output>);

impl Json {
    pub(crate) const NONE: Self = Self(None);

    /// Prints findings as text, and as JSON with their schema.
    pub(crate) fn give<T: Serialize>(&self, schema: Schema, text: &str, found: &T) -> Result<()> {
        self.give_as(text, || Ok(serde_json::to_string_pretty(&Findings { schema: schema.name(), found })?))
    }

    pub(crate) fn give_record<C: Cell + Clone>(&self, record: &Record<C>) -> Result<()>
    where
        AnyRecord: From<Record<C>>,
    {
        self.give_as(&forebay_report::record_within(record, Stream::Stdout.width()), || Ok(record.to_json()))
    }

    /// The text goes to stdout unless the JSON does.
    fn give_as(&self, text: &str, json: impl FnOnce() -> Result<String>) -> Result<()> {
        let Some(target) = &self.0 else { return print(text) };
        // Print the result even if it cannot be saved.
        let kept = target.write(&json()?);
        if !target.is_stdout() {
            print(text)?;
        }
        kept
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct JsonArgs {
    /// Write the result as JSON to FILE, or to stdout with "-"; replaces an earlier result
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,

    /// Replace FILE even if forebay did not write it
    #[arg(long, requires = "json")]
    force: bool,
}

impl JsonArgs {
    /// The output file of a command with these inputs and no other output, checked before the run.
    pub(crate) fn target<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Result<Json> {
        self.target_of(&mut self.outputs(inputs))
    }

    pub(crate) fn outputs<'a>(&self, inputs: impl IntoIterator<Item = &'a Path>) -> Outputs {
        Outputs::for_inputs(inputs, self.force)
    }

    pub(crate) fn target_of(&self, outputs: &mut Outputs) -> Result<Json> {
        outputs.json(self.json.as_deref())
    }
}

#[derive(Serialize)]
struct Findings<'a, T> {
    schema: &'static str,
    #[serde(flatten)]
    found: &'a T,
}
