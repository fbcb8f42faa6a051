//! The effect of prefetch: an emulated accelerator on every tier, with and without, compared with a run that never waits.
//!
//! Three claims are checked. With prefetch 1 and an input rate above the compute rate, the accelerator waits for at most 1 %
//! of the time after its first batch, and the run takes at most 1.02 times the synthetic one. Without prefetch, the run takes
//! longer by the time of the pipeline alone, within 10 %.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{binary, cargo, output, program, run, scratch};

const TIERS: [Option<&str>; 5] = [None, Some("hdd"), Some("ssd"), Some("optane"), Some("lustre")];
/// As many as the longest run reads once.
const IMAGES: &str = "3072";
/// Above what a batch of 64 takes eight threads on the slowest tier.
const STEP: &str = "emulated:300ms";
/// Long enough that the first batch, which nothing can hide, is little of it.
const STEPS: &str = "48";
const COMMON: [&str; 4] = ["--batch", "64", "--threads", "8"];

/// Runs and checks them all.
pub fn compare() -> Result<()> {
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    let data = scratch("bench")?.join("mini-app");
    run(program(binary()).args(["data", "make", "caltech101"]).arg(&data).args(["--count", IMAGES]))?;
    let synthetic = cell(&["train", "--synthetic", "--batch", "64", "--accelerator", STEP, "--steps", STEPS])?;
    let upper = number(&synthetic, "wall_s")?;
    println!("synthetic: {upper:.3} s for {STEPS} steps ({STEP})");
    println!("tier      prefetch 1: s  over synthetic  wait after 1st  prefetch 0: s  excess  pipeline alone  ratio");
    let path = data.display().to_string();
    let mut missed = Vec::new();
    for tier in TIERS {
        let name = tier.unwrap_or("(disk)");
        let with_tier = |words: &[&str]| -> Vec<String> {
            let tier = tier.into_iter().flat_map(|tier| ["--tier", tier]);
            words.iter().copied().chain(COMMON).chain(tier).map(str::to_owned).collect()
        };
        let train = ["train", &path, "--accelerator", STEP, "--steps", STEPS, "--baseline", "0", "--prefetch"];
        let with = cell(&with_tier(&[&train[..], &["1"]].concat()))?;
        let without = cell(&with_tier(&[&train[..], &["0"]].concat()))?;
        let ingest = ["ingest", &path, "--batches", STEPS, "--prefetch", "0", "--warmups", "0", "--repeats", "1"];
        let alone = number(&cell(&with_tier(&ingest))?, "wall_s")?;
        let (wall, first) = (number(&with, "wall_s")?, number(&with, "first_wait_s")?);
        let wait = (number(&with, "wait_s")? - first) / (wall - first);
        let (over, bare) = (wall / upper, number(&without, "wall_s")?);
        let (excess, ratio) = (bare - upper, (bare - upper) / alone);
        println!(
            "{name:9} {wall:13.3}  {over:14.3}  {:13.2} %  {bare:13.3}  {excess:6.3}  {alone:14.3}  {ratio:5.3}",
            100.0 * wait
        );
        let claims = [(wait <= 0.01, "waits"), (over <= 1.02, "takes longer"), ((ratio - 1.0).abs() <= 0.1, "excess")];
        missed.extend(claims.iter().filter(|(holds, _)| !holds).map(|(_, what)| format!("{name}: {what}")));
    }
    if !missed.is_empty() {
        bail!("not reached: {}", missed.join(", "));
    }
    Ok(())
}

/// The one cell that a command's record has.
fn cell<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Result<Value> {
    let mut record: Value = serde_json::from_str(&output(program(binary()).args(words).args(["--json", "-"]))?)?;
    Ok(record["cells"][0].take())
}

fn number(cell: &Value, field: &str) -> Result<f64> {
    cell[field].as_f64().with_context(|| format!("the record has no {field}"))
}
