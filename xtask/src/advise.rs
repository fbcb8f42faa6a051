//! Verdicts on runs whose cause is known: each case plants one, and the verdict must name it or say that it cannot be told.
//!
//! Every case runs on the machine as it is, and again beside programs that use all cores. There, a verdict may also be that other programs
//! are the limit. A wrong verdict is a failure of the campaign; one that cannot be told is counted.

use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::ci;
use crate::shell::{output, program, run, scratch, target};

/// Wrong verdicts at most, as a fraction of all.
const MOST_WRONG: f64 = 0.05;
/// The limit that a run names where it cannot tell.
const UNKNOWN: &str = "unknown";
/// The limit that a run names where other programs use the cores.
const OTHERS: &str = "cores";

/// A run with a planted cause.
struct Planted {
    cause: &'static str,
    /// Words before the command, as `taskset -c 0`.
    under: &'static [&'static str],
    /// Without the data. `CORES` and `MANY` stand for the number of cores and four times as many.
    flags: &'static str,
    data: &'static str,
    /// Names of the limit that are right.
    limits: &'static [&'static str],
}

const fn planted(
    cause: &'static str,
    data: &'static str,
    flags: &'static str,
    limits: &'static [&'static str],
) -> Planted {
    Planted { cause, under: &[], flags, data, limits }
}

const CASES: &[Planted] = &[
    planted("a slow disk", "small", "--tier hdd --threads 32 --prefetch 4 --accelerator emulated:10ms", &["storage"]),
    planted(
        "a slow SSD",
        "photos",
        "--tier ssd --threads 8 --prefetch 2 --accelerator emulated:1ms",
        &["storage", "decode"],
    ),
    planted("few requests", "small", "--tier lustre --threads 1 --accelerator emulated:10ms", &["latency"]),
    planted("few requests", "small", "--tier lustre --threads 2 --accelerator emulated:10ms", &["latency"]),
    planted(
        "no prefetch",
        "small",
        "--tier lustre --threads 16 --prefetch 0 --accelerator emulated:40ms",
        &["prefetch"],
    ),
    planted("no prefetch", "small", "--tier hdd --threads 32 --prefetch 0 --accelerator emulated:100ms", &["prefetch"]),
    planted("one thread", "photos", "--threads 1 --prefetch 2 --accelerator emulated:1ms", &["threads"]),
    planted("decoding", "photos", "--threads MANY --prefetch 2 --accelerator emulated:1ms", &["decode"]),
    Planted {
        under: &["taskset", "-c", "0"],
        ..planted("one core", "photos", "--threads 2 --prefetch 2 --accelerator emulated:1ms", &["decode"])
    },
    planted("the accelerator", "small", "--threads CORES --accelerator emulated:100ms", &["accelerator"]),
    planted("the accelerator", "small", "--tier lustre --threads 16 --accelerator emulated:100ms", &["accelerator"]),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Right,
    Untold,
    Wrong,
}

/// Runs all cases; with `--short`, only on the machine as it is.
pub fn run_campaign(args: &[&str]) -> Result<()> {
    let is_short = match args {
        [] => false,
        ["--short"] => true,
        _ => bail!("advise takes --short alone"),
    };
    ci::build_like_tests(&["--bins"])?;
    let dir = scratch("advise")?;
    for (profile, name, count) in [("caltech101", "small", "320"), ("imagenet", "photos", "320")] {
        run(program(binary()).args(["data", "make", profile]).arg(dir.join(name)).args(["--count", count]))?;
    }
    let mut verdicts = Vec::new();
    for is_busy in if is_short { &[false][..] } else { &[false, true] } {
        for case in CASES {
            let _load = if *is_busy { Some(Load::start()?) } else { None };
            let beside = if *is_busy { ", busy" } else { "" };
            let mut judged = || {
                let (limit, is_disturbed) = case.limit(&dir.join(case.data).display().to_string())?;
                let verdict = case.judge(&limit, is_disturbed);
                println!("{:20} {limit:12} {verdict:?}: {}", format!("{}{beside}", case.cause), case.flags);
                Ok(verdict)
            };
            verdicts.push(settled(&mut judged)?);
        }
    }
    conclude(&verdicts)
}

/// A wrong verdict may come from a moment's load: the case then runs twice more, and the majority counts.
fn settled(judged: &mut impl FnMut() -> Result<Verdict>) -> Result<Verdict> {
    let first = judged()?;
    if first != Verdict::Wrong {
        return Ok(first);
    }
    let others = [judged()?, judged()?];
    Ok(if others.contains(&Verdict::Wrong) { first } else { others[0] })
}

fn conclude(verdicts: &[Verdict]) -> Result<()> {
    let share = |of: Verdict| verdicts.iter().filter(|verdict| **verdict == of).count() as f64 / verdicts.len() as f64;
    let [right, untold, wrong] = [Verdict::Right, Verdict::Untold, Verdict::Wrong].map(share);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let n = verdicts.len();
    println!("{n} cases: {} right, {} cannot be told, {} wrong", percent(right), percent(untold), percent(wrong));
    if wrong > MOST_WRONG {
        bail!("{} of the verdicts are wrong", percent(wrong));
    }
    Ok(())
}

impl Planted {
    /// The name of the limit that the run names, and whether other programs used the machine.
    fn limit(&self, data: &str) -> Result<(String, bool)> {
        let cores = available_parallelism().map_or(1, usize::from);
        let flags = self.flags.replace("MANY", &(4 * cores).to_string()).replace("CORES", &cores.to_string());
        let binary = binary();
        let words: Vec<&str> =
            self.under.iter().copied().chain([binary.to_str().context("a path that is no text")?]).collect();
        let mut command = program(words[0]);
        command.args(&words[1..]).args([
            "train",
            data,
            "--batch",
            "16",
            "--steps",
            "20",
            "--warmups",
            "1",
            "--json",
            "-",
        ]);
        let record: Value = serde_json::from_str(&output(command.args(flags.split_whitespace()))?)?;
        let cell = &record["cells"][0];
        let limit = cell["limit"]["name"].as_str();
        let limit = limit.with_context(|| format!("no limit in the record of {}", self.flags))?.to_owned();
        Ok((limit, cell["disturbed"].is_object()))
    }

    fn judge(&self, limit: &str, is_disturbed: bool) -> Verdict {
        match limit {
            _ if self.limits.contains(&limit) => Verdict::Right,
            UNKNOWN => Verdict::Untold,
            // Whatever was planted, other programs may be what holds the run up most.
            OTHERS if is_disturbed => Verdict::Right,
            _ => Verdict::Wrong,
        }
    }
}

fn binary() -> std::path::PathBuf {
    target().join("debug/forebay")
}

/// Programs that use all cores, until it is dropped.
struct Load(Vec<Child>);

impl Load {
    fn start() -> Result<Self> {
        let cores = available_parallelism().map_or(1, usize::from);
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Ok(Self((0..cores).map(|_| spin()).collect::<std::io::Result<_>>()?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| _ = child.kill().and_then(|()| child.wait()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_verdict_fails_the_campaign_and_one_that_cannot_be_told_does_not() {
        let case = planted("a slow disk", "small", "", &["storage"]);
        assert_eq!(
            ["storage", "unknown", "decode", "cores"].map(|limit| case.judge(limit, false)),
            [Verdict::Right, Verdict::Untold, Verdict::Wrong, Verdict::Wrong]
        );
        assert_eq!(case.judge("cores", true), Verdict::Right);
        let of = |mut verdicts: Vec<Verdict>| settled(&mut || Ok(verdicts.remove(0))).unwrap();
        assert_eq!(of(vec![Verdict::Wrong, Verdict::Right, Verdict::Right]), Verdict::Right);
        assert_eq!(of(vec![Verdict::Wrong, Verdict::Right, Verdict::Wrong]), Verdict::Wrong);
        assert!(conclude(&[Verdict::Right, Verdict::Untold]).is_ok());
        assert!(conclude(&[Verdict::Right, Verdict::Wrong]).is_err());
    }
}
