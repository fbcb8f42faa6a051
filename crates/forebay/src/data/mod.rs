//! `forebay data`: make, inspect, pack, verify, decode.

mod decode;
mod inspect;
mod make;
mod pack;
mod verify;

use anyhow::Result;
use clap::Subcommand;
use forebay_dataset::{Control, Progress};
use forebay_units::Bytes;

use crate::output::Outcome;
use crate::{progress, stop};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a seeded set of synthetic photographs: the same bytes on every machine
    Make(make::Args),
    /// Say what a folder, a list or shards hold: sizes, formats, dimensions, bad files, the fio mix
    Inspect(inspect::Args),
    /// Turn image files into TFRecord, tar or tensor shards, or shards back into files
    Pack(pack::Args),
    /// Check every checksum and decode every image; name each bad one
    Verify(verify::Args),
    /// Decode and resize images exactly as ingest does, into one NumPy array
    Decode(decode::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Make(args) => make::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Pack(args) => pack::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Decode(args) => decode::run(args),
    }
}

/// Runs a long operation with a progress bar and Ctrl-C.
fn with_progress<T>(name: &str, threads: usize, run: impl FnOnce(&Control<'_>) -> T) -> T {
    let bar = progress::items(0, name);
    let show = |now: Progress| {
        bar.set_length(now.total);
        bar.set_position(now.done);
        bar.set_message(Bytes(now.bytes).to_string());
    };
    let outcome = run(&Control { threads, cancel: stop::flag(), progress: &show });
    bar.finish_and_clear();
    outcome
}
