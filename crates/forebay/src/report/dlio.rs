//! DLIO's own output folder as a record: its utilisation, and that of whole epochs from the same per-step times.
//!
//! DLIO leaves the first step of every epoch out, and with it the loads of all its readers. What it wrote down is enough to
//! put them back: `<rank>_output.json` has every step, `per_epoch_stats.json` (of all ranks, or `<rank>_…` of each) the clock.

mod cell;
mod epoch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use forebay_record::{AnyRecord, Environment, Record};
use forebay_report::NamedRun;
use forebay_units::PathText;
use forebay_workload::dlio::{ReadError, Run, read_run};

/// The file in which DLIO keeps the workload it ran.
const CONFIG: &str = ".hydra/config.yaml";

/// How deep a folder of results may lie: `hydra_log/<name>/<time>`.
const DEPTH: usize = 4;

/// What DLIO does not measure.
const BARRIERS: &str =
    "DLIO times no barriers and counts no bytes: barriers are in the other time, bytes moved are not known";

/// Reads the results in a folder, or in the one folder of results below it.
pub(super) fn read(dir: &Path) -> Result<NamedRun> {
    let folder = find(dir)?;
    let name = folder.escaped().into_owned();
    let (run, mut notes) = run_of(&folder).with_context(|| format!("cannot show {name}"))?;
    let cell = cell::of(&run).with_context(|| format!("cannot show {name}"))?;
    notes.push(BARRIERS.to_owned());
    let mut record = Record::new(Vec::new(), environment(&run));
    record.dataset.n_files = cell.n_files;
    record.dataset.n_samples = cell.n_files * cell.samples_per_file;
    record.cells.push(cell);
    record.notes = notes;
    Ok(NamedRun { name, record: AnyRecord::Workload(record) })
}

/// The folder that holds results.
fn find(dir: &Path) -> Result<PathBuf> {
    let mut found = Vec::new();
    look(dir, DEPTH, &mut found).with_context(|| format!("cannot read {}", dir.escaped()))?;
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!(
            "{}: this is no output of DLIO: there is neither a summary.json nor a 0_output.json, here or in a hydra_log below",
            dir.escaped()
        ),
        several => {
            let names: Vec<String> = several.iter().map(|folder| format!("\n  {}", folder.escaped())).collect();
            Err(anyhow!("{}: there are results of several runs; give one of them:{}", dir.escaped(), names.concat()))
        }
    }
}

fn look(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if ["summary.json", "0_output.json"].iter().any(|name| dir.join(name).is_file()) {
        found.push(dir.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if depth > 0 && path.is_dir() {
            look(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// The run, and what to know of it. Without the workload it ran, or with one that is not understood, fewer settings are known.
fn run_of(folder: &Path) -> Result<(Run, Vec<String>)> {
    let mut files = texts(folder)?;
    let mut notes = Vec::new();
    if !files.contains_key(CONFIG) {
        notes.push(format!(
            "there is no {CONFIG}: the batch is reckoned from files and steps, other settings are not known"
        ));
    }
    match read_run(&files) {
        Err(ReadError::Config { problem, .. }) => {
            files.remove(CONFIG);
            notes.push(format!("its {CONFIG} is not understood ({problem}): settings are not known"));
            Ok((read_run(&files)?, notes))
        }
        read => Ok((read?, notes)),
    }
}

/// The texts of the files that DLIO writes, by their names in the folder.
fn texts(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut names = vec![CONFIG.to_owned()];
    for entry in std::fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(".json")));
    }
    let mut files = BTreeMap::new();
    for name in names {
        let path = folder.join(&name);
        match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            read => drop(files.insert(name, read.with_context(|| format!("cannot read {}", path.escaped()))?)),
        }
    }
    Ok(files)
}

fn environment(run: &Run) -> Environment {
    let summary = &run.summary;
    Environment {
        started_at: summary.start.clone().unwrap_or_default(),
        n_cores: summary.host_cpu_count.first().copied().unwrap_or(0),
        memory_bytes: summary.host_memory_gib.first().map(|gib| (gib * f64::from(1 << 30)) as u64),
        ..Environment::default()
    }
}
