//! What a probe says: the most that storage gives, and how long a request takes.

use forebay_record::{ProbeCell, ProbeMode};

use crate::level;
use crate::number::{listed, microseconds, quantity};
use crate::run::{Run, levels_of_probe};

fn best<'a>(run: &'a Run<'a>, mode: ProbeMode) -> Option<&'a ProbeCell> {
    let sound = run.probes().map(|(_, cell)| cell).filter(|cell| cell.mode == mode && cell.mb_per_s.is_finite());
    sound.max_by(|a, b| a.mb_per_s.total_cmp(&b.mb_per_s))
}

/// The most that storage gave in each way.
pub(super) fn headline(run: &Run<'_>) -> Option<String> {
    let mut parts = Vec::new();
    for (mode, said) in [
        (ProbeMode::SequentialRead, "reads in sequence"),
        (ProbeMode::RandomRead, "reads at random"),
        (ProbeMode::SequentialWrite, "writes in sequence"),
    ] {
        if let Some(cell) = best(run, mode) {
            parts.push(format!("{said} at {} MB/s", quantity(cell.mb_per_s)));
        }
    }
    if let Some(cell) = best(run, ProbeMode::Files) {
        parts.push(format!("opens and reads {} small files a second", quantity(cell.iops)));
    }
    (!parts.is_empty()).then(|| format!("At its best this storage {}.", listed(&parts)))
}

/// The settings that gave the most, and the latency there; for a study with other results a line is enough.
pub(super) fn findings(run: &Run<'_>, alone: bool) -> Vec<String> {
    if !alone {
        return Vec::new();
    }
    let modes = [ProbeMode::SequentialRead, ProbeMode::RandomRead, ProbeMode::SequentialWrite, ProbeMode::Files];
    let sentence = |cell: &ProbeCell| {
        let latency = &cell.latency_us;
        let mut text = format!(
            "Best: {}: {} MB/s, {} requests/s",
            level::all(&levels_of_probe(cell)),
            quantity(cell.mb_per_s),
            quantity(cell.iops)
        );
        if latency.p50 > 0.0 && latency.p99.is_finite() {
            text.push_str(&format!(
                "; half of the requests within {}, 99 % within {}",
                microseconds(latency.p50),
                microseconds(latency.p99)
            ));
        }
        text + "."
    };
    modes.into_iter().filter_map(|mode| best(run, mode)).map(sentence).collect()
}
