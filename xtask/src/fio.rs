//! `forebay probe` beside fio: the same file, block size, depth and engine, turn by turn.
//!
//! A shared disk's rate wanders by more than the 5 % that are to be shown, and both programs wander with it. So each round
//! runs one right after the other, in turning order, and the ratio of each pair counts; rounds go on until the median of
//! the ratios is known well enough.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{binary, cargo, output, program, run, scratch};
use crate::system;

/// The median of the ratios may be off by so much.
const TOLERANCE: f64 = 0.05;
/// Rounds go on until the 95 % interval of the median is no wider than this to either side.
const PRECISION: f64 = 0.03;
const ROUNDS_MIN: usize = 9;
const ROUNDS_MAX: usize = 31;

const MIX: &str = "2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1";

/// One comparison.
struct Row {
    /// "read", "write", "random".
    mode: &'static str,
    engine: &'static str,
    /// In fio's and our own spelling: "128k"; or "mix".
    block: &'static str,
    depth: usize,
    /// Mebibytes of the file: enough for about half a second, since fio counts whole milliseconds and opens the file on the clock.
    mib: usize,
}

const fn row(mode: &'static str, engine: &'static str, block: &'static str, depth: usize, mib: usize) -> Row {
    Row { mode, engine, block, depth, mib }
}

const ROWS: [Row; 18] = [
    row("write", "sync", "1m", 1, 512),
    row("write", "direct", "1m", 1, 512),
    row("write", "direct", "1m", 8, 512),
    row("write", "uring", "1m", 8, 512),
    row("read", "sync", "1m", 1, 1024),
    row("read", "sync", "128k", 1, 1024),
    row("read", "direct", "1m", 1, 512),
    row("read", "direct", "1m", 8, 512),
    row("read", "uring", "1m", 8, 512),
    row("random", "sync", "4k", 1, 64),
    row("random", "direct", "4k", 1, 64),
    row("random", "direct", "4k", 8, 128),
    row("random", "uring", "4k", 32, 256),
    row("random", "sync", "128k", 1, 256),
    row("random", "direct", "128k", 8, 512),
    row("random", "uring", "128k", 32, 512),
    row("random", "direct", "mix", 8, 512),
    row("random", "uring", "mix", 32, 512),
];

impl Row {
    fn name(&self) -> String {
        format!("{} {} {} x{}", self.mode, self.engine, self.block, self.depth)
    }

    /// Our rate in MB/s.
    fn ours(&self, place: &Place) -> Result<f64> {
        let mut command = program(binary());
        command.arg("probe").arg(if self.mode == "write" { &place.dir } else { &place.file });
        command.args(["--size", &format!("{}MiB", self.mib), "--depth", &self.depth.to_string()]);
        command.args(["--engine", self.engine, "--runs", "2", "--json", "-"]);
        command.arg(if self.mode == "random" { "--random" } else { "--sequential" });
        match self.block {
            "mix" => command.args(["--mix", MIX]),
            // fio's k is 1,024.
            block => command.args(["--block", &format!("{}iB", block.to_uppercase())]),
        };
        let record: Value = serde_json::from_str(&output(&mut command)?)?;
        let cell = &record["cells"][0];
        if cell["cache"] != "cold" {
            bail!("{}: the probe's bytes did not come from the device: {}", self.name(), cell["samples"]);
        }
        cell["mb_per_s"].as_f64().context("a cell has a rate")
    }

    /// fio's rate in MB/s.
    fn fio(&self, place: &Place) -> Result<f64> {
        let mut command = program("fio");
        let file = if self.mode == "write" { place.dir.join("fio") } else { place.file.clone() };
        let rw = if self.mode == "random" { "randread" } else { self.mode };
        command.args(["--output-format=json", "--group_reporting", "--randrepeat=0", "--end_fsync=1"]);
        command.arg(format!("--filename={}", file.display())).arg(format!("--rw={rw}"));
        match self.block {
            // Where fio keeps to pieces it has not read, it cuts requests short: 51 KiB on average instead of 75. Past the
            // page cache nothing is gained by reading a piece twice.
            "mix" => command.arg(format!("--bssplit={MIX}")).args(["--blockalign=4k", "--norandommap"]),
            block => command.arg(format!("--bs={block}")),
        };
        let (engine, direct) = match self.engine {
            "sync" => ("psync", 0),
            "direct" => ("psync", 1),
            _ => ("io_uring", 1),
        };
        command.arg(format!("--ioengine={engine}")).arg(format!("--direct={direct}"));
        command.args(self.share());
        // As ours, fio has a first run that is not kept. A file that is written is made anew for each.
        let report: Value = if self.mode == "write" {
            command.arg("--name=row");
            output(&mut command)?;
            std::fs::remove_file(&file)?;
            let report = output(&mut command)?;
            std::fs::remove_file(&file)?;
            serde_json::from_str(&report)?
        } else {
            serde_json::from_str(&output(command.args(["--name=first", "--name=row", "--stonewall"]))?)?
        };
        let row = report["jobs"].as_array().and_then(|jobs| jobs.last()).context("fio reports its jobs")?;
        let done = &row[if self.mode == "write" { "write" } else { "read" }];
        let (bytes, ms) = (done["io_bytes"].as_f64(), done["runtime"].as_f64());
        Ok(bytes.context("fio counts bytes")? / 1e3 / ms.context("fio counts time")?)
    }

    /// How fio divides the file: requests of one ring, or as many jobs as we have threads.
    fn share(&self) -> Vec<String> {
        let (n, mib) = (self.depth, self.mib);
        match (self.engine, self.mode) {
            ("uring", _) => vec![format!("--iodepth={n}"), format!("--size={mib}m")],
            // Each job reads its share at places all over the file.
            (_, "random") => {
                vec![format!("--numjobs={n}"), format!("--size={mib}m"), format!("--io_size={}m", mib / n)]
            }
            // Each job has a part of the file.
            _ => {
                let part = mib / n;
                vec![format!("--numjobs={n}"), format!("--size={part}m"), format!("--offset_increment={part}m")]
            }
        }
    }

    /// One pair: our rate and fio's.
    fn pair(&self, place: &Place, ours_first: bool) -> Result<(f64, f64)> {
        let both = |ours: bool| -> Result<f64> {
            if self.engine == "sync" && self.mode != "write" {
                place.read_through()?;
            }
            if ours { self.ours(place) } else { self.fio(place) }
        };
        let (first, second) = (both(ours_first)?, both(!ours_first)?);
        Ok(if ours_first { (first, second) } else { (second, first) })
    }
}

/// Where it takes place.
struct Place {
    dir: PathBuf,
    file: PathBuf,
}

impl Place {
    /// In a folder, or in our own.
    fn new(folder: Option<&str>) -> Result<Self> {
        let dir = match folder {
            Some(folder) => std::path::absolute(folder)?,
            None => scratch("bench/fio")?,
        };
        let file = dir.join("file");
        let largest = ROWS.iter().map(|row| row.mib).max().context("there are rows")?;
        let layout =
            ["--name=layout", "--rw=write", "--bs=1m", "--ioengine=psync", "--refill_buffers", "--end_fsync=1"];
        let mut fio = program("fio");
        fio.args(layout).arg(format!("--filename={}", file.display())).arg(format!("--size={largest}m"));
        output(&mut fio)?;
        Ok(Self { dir, file })
    }

    /// Brings the file into the page cache, which both programs empty just before they read.
    ///
    /// A virtual machine may hand free memory back to its host, and getting it again costs more than the read. This way
    /// both find as many pages that were free for a moment only.
    fn read_through(&self) -> Result<()> {
        let file = format!("if={}", self.file.display());
        output(program("dd").arg(file).args(["of=/dev/null", "bs=1M", "status=none"])).map(drop)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Compares all rows, or those whose names contain one of the given words.
pub fn compare(args: &[&str]) -> Result<()> {
    let (folder, args) = match args {
        ["--in", folder, rest @ ..] => (Some(*folder), rest),
        rest => (None, rest),
    };
    let (rounds, words) = match args {
        ["--rounds", n, rest @ ..] => (n.parse().context("--rounds needs a number")?, rest),
        rest => (ROUNDS_MAX, rest),
    };
    system::need("fio", "fio")?;
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let rows: Vec<&Row> =
        ROWS.iter().filter(|row| words.is_empty() || words.iter().any(|word| row.name().contains(word))).collect();
    if rows.is_empty() {
        bail!("no row is called so; the rows are {}", ROWS.iter().map(Row::name).collect::<Vec<_>>().join(", "));
    }
    let place = Place::new(folder)?;
    let mut pairs: Vec<Vec<(f64, f64)>> = rows.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        let open = rows.iter().zip(&mut pairs).filter(|(_, pairs)| !is_settled(pairs));
        let mut n_open = 0;
        for (row, pairs) in open {
            pairs.push(row.pair(&place, round % 2 == 0)?);
            n_open += 1;
        }
        if n_open == 0 {
            break;
        }
        eprintln!("round {}: {n_open} of {} rows measured", round + 1, rows.len());
    }
    print(&rows, &pairs, place.dir.as_path());
    let off = pairs.iter().filter(|pairs| (median(&ratios(pairs)) - 1.0).abs() > TOLERANCE).count();
    if off > 0 {
        bail!("{off} of {} rows are off by more than {:.0} %", rows.len(), TOLERANCE * 100.0);
    }
    Ok(())
}

fn print(rows: &[&Row], pairs: &[Vec<(f64, f64)>], dir: &Path) {
    println!(
        "forebay probe beside fio in {}: MB/s, medians; ratio of pairs, median and its 95 % interval",
        dir.display()
    );
    println!("{:24} {:>9} {:>9} {:>7}  {:15} {:>6}", "row", "forebay", "fio", "ratio", "interval", "rounds");
    for (row, pairs) in rows.iter().zip(pairs) {
        let of = |pick: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(pick).collect::<Vec<_>>());
        let (low, high) = interval(&ratios(pairs));
        let (ours, fio, ratio) = (of(|pair| pair.0), of(|pair| pair.1), median(&ratios(pairs)));
        let mark = if (ratio - 1.0).abs() > TOLERANCE { "  off" } else { "" };
        let between = format!("{low:.3} to {high:.3}");
        println!("{:24} {ours:9.1} {fio:9.1} {ratio:7.3}  {between:15} {:6}{mark}", row.name(), pairs.len());
    }
}

/// Whether more rounds would not change the answer.
fn is_settled(pairs: &[(f64, f64)]) -> bool {
    if pairs.len() < ROUNDS_MIN {
        return false;
    }
    let ratios = ratios(pairs);
    let (low, high) = interval(&ratios);
    let middle = median(&ratios);
    high - middle <= PRECISION && middle - low <= PRECISION
}

fn ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, fio)| ours / fio).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0
}

/// The 95 % interval of the median between order statistics of sorted values; needs no assumption on their distribution.
fn interval(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len() as f64;
    let reach = 0.98 * n.sqrt();
    let low = ((n / 2.0 - reach).floor().max(0.0)) as usize;
    let high = ((n / 2.0 + reach).ceil() as usize).min(sorted.len() - 1);
    (sorted[low], sorted[high])
}
