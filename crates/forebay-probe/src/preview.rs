//! What a plan would do, determined without doing it.

use forebay_measure::{FileSystem, Memory};
use forebay_record::{Engine, ProbeMode};

use super::error::{Context, Error};
use super::plan::{Plan, TIME_LIMIT};
use super::preflight::{self, Target};
use super::run::planned_bytes;

#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub n_cells: u64,
    /// Over all cells, including dropped runs.
    pub n_runs: u64,
    pub bytes_written: u64,
    /// Upper bound: the time limit may end runs earlier.
    pub bytes_read: u64,
    /// Peak usage of the disk.
    pub space_bytes: u64,
    /// `None` if the file system has no limit.
    pub free_bytes: Option<u64>,
    /// For buffers.
    pub memory_bytes: u64,
    pub remarks: Vec<String>,
    unlimited_bytes: u64,
    /// Bytes of runs that end after [`TIME_LIMIT`], and the number of such runs.
    limited: (u64, u64),
}

impl Preview {
    /// Upper bound of the duration at this many bytes per second.
    pub fn seconds_at(&self, bytes_per_s: f64) -> f64 {
        let (bytes, n_runs) = self.limited;
        let limit = TIME_LIMIT.as_secs_f64() * n_runs as f64;
        self.unlimited_bytes as f64 / bytes_per_s + limit.min(bytes as f64 / bytes_per_s)
    }
}

/// Inspects the target; writes and measures nothing.
///
/// # Errors
/// If the target cannot be used.
pub fn preview(plan: &Plan) -> Result<Preview, Error> {
    let target = Target::of(&plan.target)?;
    let system = FileSystem::of(&plan.target).context("inspecting", &plan.target)?;
    preflight::check(plan, target, &system, Memory::now())?;
    let writes = target == Target::Folder;
    let engines = &plan.settings.engine;
    let cells = plan.combinations(if engines.is_empty() { &[Engine::Direct] } else { engines }, writes);
    let runs = plan.runs as u64;
    let bytes_of = |wanted: &dyn Fn(ProbeMode) -> bool| -> u64 {
        let those = cells.iter().filter(|cell| wanted(cell.mode));
        those.map(|cell| planned_bytes(plan, cell)).sum::<u64>() * runs
    };
    let is_limited = |mode| matches!(mode, ProbeMode::RandomRead | ProbeMode::Files);
    let n_limited = cells.iter().filter(|cell| is_limited(cell.mode)).count() as u64 * runs;
    let once = if writes { plan.prepared_bytes() } else { 0 };
    let bytes_written = bytes_of(&|mode| mode == ProbeMode::SequentialWrite) + once;
    let bytes_read = bytes_of(&|mode| mode != ProbeMode::SequentialWrite);
    let limited = (bytes_of(&is_limited), n_limited);
    Ok(Preview {
        n_cells: cells.len() as u64,
        n_runs: cells.len() as u64 * runs,
        bytes_written,
        bytes_read,
        space_bytes: if writes { plan.space_bytes() } else { 0 },
        free_bytes: system.free_bytes,
        memory_bytes: plan.buffer_bytes(),
        remarks: preflight::remarks(plan, &system),
        unlimited_bytes: bytes_written + bytes_read - limited.0,
        limited,
    })
}
