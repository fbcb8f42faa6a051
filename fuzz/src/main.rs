//! A mutation fuzzer for forebay's decoders.
//!
//! It needs no special compiler: seeds are built in code, changed at random, and decoded; an input that panics or takes more
//! than five seconds is saved under `findings/`. It measures no coverage, but uses the decoder's answer: an input
//! whose error message (numbers aside) is new joins the seeds. Half of the inputs get their checksums repaired, so that
//! damage reaches the code behind them.
//!
//! ```text
//! cargo run --profile fuzz -p forebay-fuzz -- <target|all> [--seconds S] [--seed N]
//! cargo run --profile fuzz -p forebay-fuzz -- <target> --replay FILE
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
use std::sync::Mutex;
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
    let n_found = match &options.replay {
        Some(path) => options.targets.iter().map(|target| run::replay(target, path)).sum(),
        None => fuzz_all(&options),
    };
    ExitCode::from(u8::from(n_found > 0))
}

/// Fuzzes as many targets at a time as there are cores.
fn fuzz_all(options: &Options) -> usize {
    std::panic::set_hook(Box::new(|_| {}));
    let left = Mutex::new(options.targets.iter());
    let next = || left.lock().expect("no holder panics").next();
    let worker = || {
        let mut n_found = 0;
        while let Some(target) = next() {
            n_found += run::fuzz(target, Duration::from_secs(options.seconds), options.seed);
        }
        n_found
    };
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..n_cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("panics of targets are caught")).sum()
    })
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
