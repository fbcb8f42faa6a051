//! A DLIO workload on two emulated accelerators: their AU, and the causes of their waits.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow};
use forebay_emulation::{Plan, WorkloadSettings, run};
use forebay_measure::{Observer, Place};
use forebay_ranks::Solo;
use forebay_record::{Environment, Record};
use forebay_storage::Profile;

/// 96 arrays of 64 KB, generated before the run; steps of 20 ms.
const WORKLOAD: &str = "
workflow: {generate_data: True, train: True}
dataset: {format: npy, num_files_train: 96, record_length_bytes: 65536}
reader: {data_loader: pytorch, batch_size: 4, read_threads: 2, prefetch_size: 2, file_shuffle: seed}
train: {epochs: 2, computation_time: 0.02}
";

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let checked = forebay_workload::read("small", WORKLOAD, &[]);
    let checked = checked.map_err(|problems| anyhow!("{}", problems[0]))?;
    let plan = Plan {
        settings: WorkloadSettings { accelerators: 2, ..WorkloadSettings::default() },
        workload: checked.workload,
        data: folder.path().join("data"),
        checkpoints: Place::new(folder.path().join("checkpoints")),
        keeps_checkpoints: true,
        access_log: None,
        tier: Some(Profile::lustre()),
        out: None,
    };
    let record = Record::new(Vec::new(), Environment::default());
    let record = run(&plan, &Solo, record, Observer::deaf(&AtomicBool::new(false)))?;
    let cell = &record.context("rank 0 returns the record")?.cells[0];
    let totals = &cell.totals;
    println!("{} steps of {} accelerators in {:.2} s", totals.steps, totals.accelerators, totals.wall_s);
    for (name, au) in [
        ("whole epochs", totals.au_epoch),
        ("without the first batch of each", totals.au_steady),
        ("as DLIO counts", totals.au_dlio),
    ] {
        println!("  AU, {name}: {:.1} %", 100.0 * au.context("there were steps")?);
    }
    println!("{:.2} s of waits and barriers, by cause", totals.wait_s + totals.barrier_s);
    for (cause, seconds) in totals.stall_by_cause.iter().filter(|(_, seconds)| **seconds > 0.0) {
        println!("  {}: {seconds:.3} s", cause.describe());
    }
    Ok(())
}
