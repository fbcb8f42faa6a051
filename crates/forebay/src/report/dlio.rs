//! Reads DLIO's output folder as a record: DLIO's AU, and the AU of whole epochs from the same per-step times.
//!
//! DLIO leaves out the first step of every epoch, and with it the first loads of all its readers. Its files are enough to
//! include them: `<rank>_output.json` has every step, `per_epoch_stats.json` (one file, or `<rank>_…` per rank) the clock.

mod campaign;
mod cell;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use forebay_record::{AnyRecord, Environment, Record};
use forebay_report::NamedRun;
use forebay_units::PathText;
use forebay_workload::dlio::{Run, read_run};

const CONFIG: &str = ".hydra/config.yaml";
/// The file with the overrides of the run.
const OVERRIDES: &str = ".hydra/overrides.yaml";

/// Depth at which results are searched: folders of a campaign, each with `hydra_log/<name>/<time>`.
const DEPTH: usize = 10;

const BARRIERS: &str =
    "DLIO does not time barriers or count bytes: barriers are part of the other time, and bytes moved are unknown";

/// Reads the results in a folder or below it: one run as a record, several as the cells of a campaign.
pub(super) fn read(dir: &Path) -> Result<NamedRun> {
    let mut found = Vec::new();
    search(dir, DEPTH, &mut found).with_context(|| format!("cannot read {}", dir.escaped()))?;
    found.sort();
    match found.as_slice() {
        [] => bail!(
            "{}: not an output folder of DLIO: no summary.json, <rank>_output.json or per_epoch_stats.json, here or in a \
             hydra_log below",
            dir.escaped()
        ),
        [one] => read_one(one),
        several => read_all(dir, several),
    }
}

fn read_one(folder: &Path) -> Result<NamedRun> {
    let name = folder.escaped().into_owned();
    let (files, unread) = texts(folder)?;
    let run = read_run(&files).with_context(|| format!("cannot show {name}"))?;
    let cell = cell::of(&run);
    let mut record = Record::new(Vec::new(), environment(&run));
    record.dataset.n_files = cell.n_files;
    record.dataset.n_samples = cell.n_files * cell.samples_per_file;
    record.notes = unread.into_iter().chain(run.odd.iter().cloned()).chain([BARRIERS.to_owned()]).collect();
    record.cells.push(cell);
    Ok(NamedRun { name, record: AnyRecord::Workload(record) })
}

/// One folder that cannot be read is a failed cell; it does not hide the others.
fn read_all(dir: &Path, folders: &[PathBuf]) -> Result<NamedRun> {
    let mut parts = Vec::new();
    for folder in folders {
        let read = texts(folder).and_then(|(files, unread)| Ok((read_run(&files)?, unread)));
        parts.push(match read {
            Ok((run, unread)) => campaign::Part {
                folder: folder.clone(),
                environment: environment(&run),
                notes: unread.into_iter().chain(run.odd.iter().cloned()).collect(),
                cell: Ok(cell::of(&run)),
            },
            Err(error) => campaign::Part {
                folder: folder.clone(),
                environment: Environment::default(),
                notes: Vec::new(),
                cell: Err(format!("{error:#}")),
            },
        });
    }
    if let (Some(first), true) = (parts.first(), parts.iter().all(|part| part.cell.is_err())) {
        let why = first.cell.as_ref().err().cloned().unwrap_or_default();
        bail!("{}: none of {} results can be shown; the first: {why}", dir.escaped(), parts.len());
    }
    Ok(campaign::of(dir, parts))
}

fn search(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let paths = std::fs::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    if paths.iter().any(|path| is_result(path) && path.is_file()) {
        found.push(dir.to_owned());
    }
    // A repeated run may lie below the results of the first. A link may lead in a circle.
    for path in paths {
        if depth > 0 && path.is_dir() && !path.is_symlink() {
            search(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

fn is_result(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_of_rank = |ending: &str| name.strip_suffix(ending).is_some_and(|rank| rank.parse::<u64>().is_ok());
    matches!(name, "summary.json" | "per_epoch_stats.json")
        || is_of_rank("_output.json")
        || is_of_rank("_per_epoch_stats.json")
}

/// The contents of DLIO's files by name, and a note on each unreadable file.
fn texts(folder: &Path) -> Result<(BTreeMap<String, String>, Vec<String>)> {
    let mut names = vec![CONFIG.to_owned(), OVERRIDES.to_owned()];
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.escaped()))? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| is_result(Path::new(name))));
    }
    let (mut files, mut notes) = (BTreeMap::new(), Vec::new());
    for name in names {
        match std::fs::read_to_string(folder.join(&name)) {
            Ok(text) => drop(files.insert(name, text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => notes.push(format!("cannot read {name}: {error}")),
        }
    }
    Ok((files, notes))
}

fn environment(run: &Run) -> Environment {
    let summary = &run.summary;
    Environment {
        started_at: summary.start.clone().unwrap_or_default(),
        n_cores: summary.host_cpu_count.unwrap_or(0),
        memory_bytes: summary.host_memory_gib.map(|gib| (gib * f64::from(1 << 30)) as u64),
        ..Environment::default()
    }
}
