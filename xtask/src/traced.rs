//! What tracing costs: processor time per call, bytes per event, time and memory of a report of ten million events.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{binary, cargo, output, program, root, run, scratch};
use crate::{python, system};

/// Reads per round; half a second without tracing.
const READS: u64 = 1_000_000;
const ROUNDS: usize = 9;
const EVENTS: u64 = 10_000_000;
/// Goals, per call and per report.
const ADDED_NS: f64 = 120.0;
const BYTES_PER_EVENT: f64 = 9.0;
const REPORT_S: f64 = 10.0;
/// Limit on the address space of the report.
const REPORT_KIB: u64 = 1_000_000;

pub fn compare() -> Result<()> {
    run(&mut cargo(&["build", "--release", "--quiet"]))?;
    system::need("cc", "gcc")?;
    let dir = scratch("bench")?.join("trace");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let reader = dir.join("pread");
    run(program("cc").args(["-O2", "-o"]).arg(&reader).arg(root().join("bench/trace/pread.c")))?;
    let data = dir.join("data");
    std::fs::write(&data, vec![7_u8; 100_000])?;
    let python = python::environment("trace", &root().join("bench/trace/requirements.txt"))?;
    let (mut bare, mut ours, mut dftracer, mut lost) = (Vec::new(), Vec::new(), Vec::new(), 0.0);
    for round in 0..ROUNDS {
        // One after the other, so that a drift of the machine meets all alike.
        bare.push(nanoseconds(program(&reader).arg(&data), READS)?);
        let out = dir.join(format!("out-{round}"));
        ours.push(nanoseconds(&mut traced(&out, &reader, &data), READS)?);
        lost += total(&out, "lost_events")?;
        // A hundredth is enough where a call takes microseconds.
        dftracer.extend(with_dftracer(&python, &dir, &reader, &data)?);
    }
    let base = median(&mut bare);
    let added = median(&mut ours) - base;
    println!("pread of 64 B       {base:.0} ns of processor time, median of {ROUNDS} rounds");
    println!(
        "  forebay trace     {added:+.0} ns (goal: at most {ADDED_NS:.0}); {lost:.0} of {} events lost",
        ROUNDS as u64 * READS
    );
    match dftracer.is_empty() {
        true => println!("  DFTracer          not run: it cannot be loaded here"),
        false => println!("  DFTracer          {:+.0} ns", median(&mut dftracer) - base),
    }
    println!("  Darshan           not run: it has no wheel");
    let met = report(&dir, &reader, &data)? && added <= ADDED_NS;
    if !met {
        bail!("a goal was missed");
    }
    Ok(())
}

/// A trace of many events: its size, and the time of a report made from it alone.
fn report(dir: &Path, reader: &Path, data: &Path) -> Result<bool> {
    let out = dir.join("many");
    // Slowly enough that nothing is lost: the file must have all.
    let script = format!("for i in $(seq 100); do {} {} {}; done", reader.display(), data.display(), EVENTS / 100);
    let mut command = program(binary());
    command
        .args(["trace", "--out"])
        .arg(&out)
        .args(["--", "sh", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    run(&mut command)?;
    let lost = total(&out, "lost_events")?;
    let n_bytes = std::fs::metadata(out.join("trace.fbt"))?.len();
    let per_event = n_bytes as f64 / (EVENTS as f64 - lost);
    println!("trace of {EVENTS} reads  {per_event:.1} B per event (goal: at most {BYTES_PER_EVENT}); {lost:.0} lost");
    std::fs::remove_file(out.join("record.json"))?;
    let start = Instant::now();
    let script = format!(
        "ulimit -v {REPORT_KIB}; exec {} report {} --csv {}",
        binary().display(),
        out.display(),
        dir.join("csv").display()
    );
    run(program("sh").args(["-c", &script]).stdout(Stdio::null()))?;
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "  report from it    {seconds:.1} s in at most {REPORT_KIB} KiB of memory (goal: at most {REPORT_S:.0} s)"
    );
    Ok(per_event <= BYTES_PER_EVENT && seconds <= REPORT_S)
}

fn traced(out: &Path, reader: &Path, data: &Path) -> Command {
    let mut command = program(binary());
    command.args(["trace", "--out"]).arg(out).arg("--").arg(reader).arg(data).stderr(Stdio::null());
    command
}

/// What the reader prints.
fn nanoseconds(command: &mut Command, reads: u64) -> Result<f64> {
    let text = output(command.arg(reads.to_string()))?;
    text.trim().parse().with_context(|| format!("{text:?} is not a number"))
}

/// `None` if the package is not there.
fn with_dftracer(python: &Path, dir: &Path, reader: &Path, data: &Path) -> Result<Option<f64>> {
    let find =
        "import dftracer, pathlib; print(next(pathlib.Path(dftracer.__file__).parent.rglob('libdftracer_preload.so')))";
    let Ok(library) = output(program(python).args(["-c", find])) else { return Ok(None) };
    let mut command = program(reader);
    command.arg(data).env("LD_PRELOAD", library.trim()).env("DFTRACER_ENABLE", "1").env("DFTRACER_INIT", "PRELOAD");
    command.env("DFTRACER_DATA_DIR", dir).env("DFTRACER_LOG_FILE", dir.join("dftracer"));
    nanoseconds(&mut command, READS / 100).map(Some)
}

fn total(out: &Path, name: &str) -> Result<f64> {
    let record: Value = serde_json::from_str(&std::fs::read_to_string(out.join("record.json"))?)?;
    record["cells"][0]["totals"][name].as_f64().with_context(|| format!("no {name} in the record"))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
