//! Compares `forebay checkpoint bench` with torch.save, safetensors and TensorFlow's Saver, and measures the cost in training.
//!
//! The rate of a shared disk varies, and so do all savers. Every round therefore runs each of them once, in rotating order, and
//! the result is the median of the ratios within a round. Missed goals are listed at the end.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::python;
use crate::shell::{binary, cargo, output, program, root, run, scratch};

const MEGABYTES: &str = "600";
const ROUNDS: usize = 9;
const ROUNDS_OF_TRAINING: usize = 3;
/// A saver of others, how many times faster ours is to be, and how it is made durable.
const PEERS: [(&str, f64, &str); 3] =
    [("torch", 2.0, "fsync"), ("safetensors", 1.4, "fsync"), ("tensorflow", 2.0, "syncfs")];
/// The slow tier needs eight seconds for a checkpoint; there are fifteen between two.
const TRAINING: [&str; 9] =
    ["train", "--synthetic", "--batch", "64", "--accelerator", "emulated:500ms", "--steps", "60", "--json"];
const EVERY: [&str; 4] = ["--checkpoint-every", "30", "--checkpoint-size", "600MB"];

/// Goals that were missed.
#[derive(Default)]
struct Verdict {
    missed: Vec<String>,
}

impl Verdict {
    /// Prints a figure beside its goal.
    fn at_least(&mut self, what: &str, found: f64, goal: f64) {
        self.judge(what, found, goal, "≥", found >= goal);
    }

    fn at_most(&mut self, what: &str, found: f64, goal: f64) {
        self.judge(what, found, goal, "≤", found <= goal);
    }

    fn judge(&mut self, what: &str, found: f64, goal: f64, sign: &str, holds: bool) {
        let word = if holds { "" } else { "  missed" };
        println!("  {what:58} {found:8.3}  {sign} {goal}{word}");
        if !holds {
            self.missed.push(what.to_owned());
        }
    }
}

/// Runs and judges them all, in `folder` or in one of our own.
pub fn compare(folder: Option<&str>) -> Result<()> {
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let dir = match folder {
        Some(folder) => std::path::absolute(folder)?,
        None => scratch("bench/checkpoint")?,
    };
    let mut verdict = Verdict::default();
    beside_others(&dir, &mut verdict)?;
    behind(&dir, &mut verdict)?;
    on_tiers(&dir, &mut verdict)?;
    in_training(&dir, &mut verdict)?;
    match verdict.missed.as_slice() {
        [] => Ok(()),
        missed => bail!("not reached: {}", missed.join("; ")),
    }
}

/// A durable save of each, turn by turn; our ceilings are measured between our own saves.
fn beside_others(dir: &Path, verdict: &mut Verdict) -> Result<()> {
    let mut others = Others::start(dir)?;
    // The first save of each builds what it needs.
    for (name, ..) in PEERS {
        others.save(name)?;
    }
    let (mut ours, mut theirs) = (Vec::new(), vec![Vec::new(); PEERS.len()]);
    for round in 0..ROUNDS {
        for turn in 0..=PEERS.len() {
            match (turn + round) % (PEERS.len() + 1) {
                0 => {
                    ours.push(bench(dir, &["--mode", "direct", "--format", "safetensors,tensorflow", "--saves", "1"])?)
                }
                k => theirs[k - 1].push(others.save(PEERS[k - 1].0)?),
            }
        }
    }
    let of = |format: usize, field: &str| -> Result<Vec<f64>> {
        ours.iter().map(|cells: &Vec<Value>| number(&cells[format], field)).collect()
    };
    let seconds = of(0, "durable_fast_s")?;
    println!("a durable save of {MEGABYTES} MB, {ROUNDS} rounds in turns, median seconds:");
    println!("  forebay, safetensors: {:.3}; tensorflow: {:.3}", median(&seconds), median(&of(1, "durable_fast_s")?));
    for ((name, goal, durable), theirs) in PEERS.iter().zip(&theirs) {
        let ratios: Vec<f64> = theirs.iter().zip(&seconds).map(|(theirs, ours)| theirs / ours).collect();
        println!("  {name} + {durable}: {:.3}", median(theirs));
        verdict.at_least(&format!("{name}'s time over ours"), median(&ratios), *goal);
    }
    let rates = |seconds: Vec<f64>| -> Result<Vec<f64>> {
        let bytes = of(0, "bytes")?;
        Ok(bytes.iter().zip(seconds).map(|(bytes, seconds)| bytes / 1e6 / seconds).collect())
    };
    let share = |rates: Vec<f64>, ceilings: Vec<f64>| median(&ratios(&rates, &ceilings));
    verdict.at_least("of the ceiling, saving", share(rates(seconds)?, of(0, "ceiling_mb_per_s")?), 0.9);
    verdict.at_least(
        "of the ceiling, restoring",
        share(rates(of(0, "restore_s")?)?, of(0, "read_ceiling_mb_per_s")?),
        0.9,
    );
    verdict.at_most("memory beyond the state, direct, MB", median(&of(0, "memory_bytes")?) / 1e6, 64.0);
    Ok(())
}

/// Saving behind the caller's back: its stall is a copy in memory.
fn behind(dir: &Path, verdict: &mut Verdict) -> Result<()> {
    let cells = bench(dir, &["--mode", "async", "--format", "safetensors", "--saves", "9"])?;
    let [stall, copy, bytes, memory] =
        ["stall_s", "copy_s", "bytes", "memory_bytes"].map(|field| number(&cells[0], field));
    let (stall, copy) = (stall?, copy?);
    println!("async: stall {:.1} ms, a plain copy {:.1} ms", 1e3 * stall, 1e3 * copy);
    verdict.at_most("stall over a copy, async", stall / copy, 1.3);
    verdict.at_most("memory beyond the state, async, states", memory? / bytes?, 1.0);
    Ok(())
}

/// The paper's devices, emulated in our own process: the same on every machine.
fn on_tiers(dir: &Path, verdict: &mut Verdict) -> Result<()> {
    let (slow, fast) = (dir.join("slow"), dir.join("fast"));
    [&slow, &fast].into_iter().try_for_each(std::fs::create_dir_all)?;
    let fast = fast.to_string_lossy();
    let tiers = ["--burst-dir", &fast, "--tier", "hdd", "--burst-tier", "optane", "--format", "safetensors"];
    let cells = bench(&slow, &[&tiers[..], &["--mode", "direct,burst", "--saves", "3"]].concat())?;
    let (direct, burst) = (number(&cells[0], "stall_s")?, number(&cells[1], "stall_s")?);
    println!(
        "hdd {direct:.3} s; optane as burst buffer {burst:.3} s, on hdd after {:.3} s",
        number(&cells[1], "durable_slow_s")?
    );
    verdict.at_least("stall on hdd over stall with the burst buffer", direct / burst, 3.5);
    verdict.at_most("memory beyond the state, burst, MB", number(&cells[1], "memory_bytes")? / 1e6, 64.0);
    Ok(())
}

/// An emulated accelerator that saves every 15 s: to the disk at hand, drained to an emulated hdd.
fn in_training(dir: &Path, verdict: &mut Verdict) -> Result<()> {
    let wall = |mode: Option<&str>| -> Result<f64> {
        let mut command = program(binary());
        command.args(TRAINING).arg("-");
        if let Some(mode) = mode {
            let (slow, fast) = (dir.join("train-slow"), dir.join("train-fast"));
            command.args(EVERY).args(["--checkpoint-mode", mode, "--checkpoint-tier", "hdd", "--checkpoint-dir"]);
            command.arg(&slow).arg("--burst-dir").arg(&fast);
        }
        let wall = number(&cells(&output(&mut command)?)?[0], "wall_s");
        for place in ["train-slow", "train-fast"] {
            let _ = std::fs::remove_dir_all(dir.join(place));
        }
        wall
    };
    let modes = [None, Some("burst"), Some("async")];
    let mut walls = [const { Vec::new() }; 3];
    for round in 0..ROUNDS_OF_TRAINING {
        for turn in 0..modes.len() {
            let which = (turn + round) % modes.len();
            walls[which].push(wall(modes[which])?);
        }
    }
    let [without, burst, asynchronous] = walls.map(|walls| median(&walls));
    println!(
        "60 steps of 500 ms, two checkpoints, {ROUNDS_OF_TRAINING} rounds in turns: {without:.2} s without, {burst:.2} s burst, \
         {asynchronous:.2} s async"
    );
    verdict.at_most("training with burst over without", burst / without, 1.02);
    verdict.at_most("training with async over without", asynchronous / without, 1.01);
    Ok(())
}

/// The cells of one `forebay checkpoint bench`.
fn bench(dir: &Path, words: &[&str]) -> Result<Vec<Value>> {
    let size = format!("{MEGABYTES}MB");
    let mut command = program(binary());
    command.args(["checkpoint", "bench"]).arg(dir).args(["--size", &size, "--json", "-"]).args(words);
    cells(&output(&mut command)?)
}

fn cells(record: &str) -> Result<Vec<Value>> {
    let record: Value = serde_json::from_str(record)?;
    record["cells"].as_array().filter(|cells| !cells.is_empty()).cloned().context("the record has no cell")
}

fn number(cell: &Value, field: &str) -> Result<f64> {
    cell[field].as_f64().with_context(|| format!("the record has no {field}"))
}

fn ratios(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}

/// The program that saves with other people's libraries, at our orders.
struct Others {
    child: Child,
    /// `None` once it was told to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Others {
    fn start(dir: &Path) -> Result<Self> {
        let scripts = root().join("bench/checkpoint");
        let python = python::environment("checkpoint", &scripts.join("requirements.txt"))?;
        let mut command = program(python);
        command.arg(scripts.join("peers.py")).arg(dir).arg(MEGABYTES);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot start Python")?;
        let orders = Some(child.stdin.take().context("the stream is a pipe")?);
        let answers = BufReader::new(child.stdout.take().context("the stream is a pipe")?);
        Ok(Self { child, orders, answers })
    }

    /// Seconds of one save.
    fn save(&mut self, name: &str) -> Result<f64> {
        writeln!(self.orders.as_mut().context("the program has ended")?, "{name}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        answer.trim().parse().with_context(|| format!("{name} did not save"))
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        // No more orders: it removes its files and ends.
        self.orders = None;
        let _ = self.child.wait();
    }
}
