//! A mutation fuzzer for forebay's decoders.
//!
//! It needs no special compiler: seeds are built in code, changed at random, and decoded; an input that panics or takes more
//! than five seconds is saved under `findings/`. It sees no coverage. What it has instead is the decoder's answer: an input
//! whose error message (numbers aside) is new joins the seeds. Half of the inputs get their checksums repaired, so that
//! damage reaches the code behind them.
//!
//! ```text
//! cargo run --release --manifest-path fuzz/Cargo.toml -- <target|all> [--seconds S] [--seed N]
//! cargo run --release --manifest-path fuzz/Cargo.toml -- <target> --replay FILE
//! ```
//!
//! Exit status: 0 nothing found, 1 something found, 2 wrong usage.

mod arrays;
mod checkpoint;
mod mutate;
mod repair;
mod run;
mod seeds;
mod targets;
mod workload;

use std::process::ExitCode;
use std::time::Duration;

use targets::{TARGETS, Target};

struct Options {
    targets: Vec<&'static Target>,
    seconds: u64,
    seed: u64,
    replay: Option<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = parse(&arguments) else {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("usage: <{}|all> [--seconds S] [--seed N] [--replay FILE]", names.join("|"));
        return ExitCode::from(2);
    };
    let found = options.targets.iter().map(|target| run_one(target, &options)).sum::<usize>();
    ExitCode::from(u8::from(found > 0))
}

fn run_one(target: &'static Target, options: &Options) -> usize {
    match &options.replay {
        Some(path) => run::replay(target, path),
        None => run::fuzz(target, Duration::from_secs(options.seconds), options.seed),
    }
}

fn parse(arguments: &[String]) -> Option<Options> {
    let (name, flags) = arguments.split_first()?;
    let targets: Vec<_> = TARGETS.iter().filter(|target| name == "all" || name == target.name).collect();
    let mut options = Options { targets, seconds: 10, seed: 1, replay: None };
    let (pairs, rest) = flags.as_chunks::<2>();
    for [flag, value] in pairs {
        match flag.as_str() {
            "--seconds" => options.seconds = value.parse().ok()?,
            "--seed" => options.seed = value.parse().ok()?,
            "--replay" => options.replay = Some(value.clone()),
            _ => return None,
        }
    }
    (rest.is_empty() && !options.targets.is_empty()).then_some(options)
}
