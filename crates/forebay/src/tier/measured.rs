//! What saved probes measured on a tier.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use forebay_record::{CacheState, ProbeCell, ProbeMode, Record, TierKind};
use forebay_storage::tier::{Device, Kind, Tier};
use forebay_units::PathText;
use serde::Serialize;

/// A probe that was saved under a name.
pub(super) struct Probe {
    name: String,
    /// When its file was written, in nanoseconds since 1970.
    saved_at_ns: u128,
    record: Record<ProbeCell>,
}

/// The best rates of a tier, in megabytes (10^6 bytes) a second.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Measured {
    /// The probes they come from.
    probes: Vec<String>,
    sequential_read_mb_per_s: Option<f64>,
    sequential_write_mb_per_s: Option<f64>,
    random_read_mb_per_s: Option<f64>,
}

impl Measured {
    /// In words for the table.
    pub(super) fn describe(&self) -> String {
        let rate = |what: &str, rate: Option<f64>| rate.map(|rate| format!("{what} {rate:.1}"));
        let rates = [
            rate("read", self.sequential_read_mb_per_s),
            rate("write", self.sequential_write_mb_per_s),
            rate("random read", self.random_read_mb_per_s),
        ];
        let rates: Vec<String> = rates.into_iter().flatten().collect();
        format!("{} ({})", rates.join(", "), self.probes.join(", "))
    }
}

/// All saved probes, the newest first. What is no probe is passed over.
pub(super) fn probes(ceilings: &Path) -> Vec<Probe> {
    let entries = fs::read_dir(ceilings).into_iter().flatten().flatten();
    let mut probes: Vec<Probe> = entries.filter_map(|entry| probe(&entry.path())).collect();
    probes.sort_by(|a, b| b.record.environment.started_at.cmp(&a.record.environment.started_at));
    probes
}

fn probe(path: &Path) -> Option<Probe> {
    let name = path.file_stem()?.to_str()?.to_owned();
    let saved_at_ns = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let record = Record::from_json(&fs::read_to_string(path).ok()?).ok()?;
    Some(Probe { name, saved_at_ns, record })
}

/// What was measured since the tier has its present limits; the newest probe that has a rate gives it.
pub(super) fn on(tier: &Tier, device: Option<&Device>, probes: &[Probe]) -> Option<Measured> {
    let mut found = Measured::default();
    // A probe of former limits, or of a former owner of the loop device, says nothing of this tier.
    for probe in probes.iter().filter(|probe| tier.limited_at_ns.is_some_and(|at| probe.saved_at_ns >= u128::from(at)))
    {
        let cells: Vec<&ProbeCell> = cells(tier, device, &probe.record).collect();
        let mut used = false;
        for (rate, mode) in [
            (&mut found.sequential_read_mb_per_s, ProbeMode::SequentialRead),
            (&mut found.sequential_write_mb_per_s, ProbeMode::SequentialWrite),
            (&mut found.random_read_mb_per_s, ProbeMode::RandomRead),
        ] {
            let best = cells.iter().filter(|cell| cell.mode == mode).map(|cell| cell.mb_per_s).max_by(f64::total_cmp);
            if rate.is_none() && best.is_some() {
                *rate = best;
                used = true;
            }
        }
        if used {
            found.probes.push(probe.name.clone());
        }
    }
    (!found.probes.is_empty()).then_some(found)
}

/// The cells that measured this tier. Of a kernel tier only those count whose bytes came from its device.
fn cells<'a>(
    tier: &'a Tier,
    device: Option<&Device>,
    record: &'a Record<ProbeCell>,
) -> impl Iterator<Item = &'a ProbeCell> {
    let file_system = record.environment.data_file_system.as_deref().unwrap_or_default();
    let is_on_device = device.is_some_and(|device| file_system.ends_with(&format!(" on {}", device.path.escaped())));
    record.cells.iter().filter(move |cell| {
        let is_named = cell.medium.tier.as_ref() == Some(&tier.name);
        match tier.kind {
            Kind::Shaped => is_named && cell.medium.kind == Some(TierKind::Shaped),
            Kind::Kernel => {
                let is_ours = is_named && cell.medium.kind == Some(TierKind::Kernel)
                    || cell.medium.tier.is_none() && is_on_device;
                is_ours && cell.medium.cache == Some(CacheState::Cold)
            }
        }
    })
}
