//! The rates that saved probes measured on a tier.

use std::time::UNIX_EPOCH;

use anyhow::Result;
use forebay_probe::ceiling::Saved;

use forebay_record::{CacheState, ProbeCell, ProbeMode, Record, TierKind};
use forebay_storage::tier::{Device, Kind, Tier};
use forebay_units::PathText;
use serde::Serialize;

use crate::ceilings;

pub(super) struct Probe {
    saved: Saved,
    /// Modification time of the file, in nanoseconds since 1970.
    saved_at_ns: u128,
}

/// The best rates of a tier, in megabytes (10^6 bytes) per second.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Measured {
    probes: Vec<String>,
    sequential_read_mb_per_s: Option<f64>,
    sequential_write_mb_per_s: Option<f64>,
    random_read_mb_per_s: Option<f64>,
}

impl Measured {
    pub(super) fn describe(&self) -> String {
        let rate = |what: &str, rate: Option<f64>| rate.map(|rate| format!("{what} {rate:.1}"));
        let rates = [
            rate("read", self.sequential_read_mb_per_s),
            rate("write", self.sequential_write_mb_per_s),
            rate("random read", self.random_read_mb_per_s),
        ];
        let rates: Vec<String> = rates.into_iter().flatten().collect();
        let probes = if self.probes.len() == 1 { "probe" } else { "probes" };
        format!("{} MB/s by {probes} {}", rates.join(", "), self.probes.join(", "))
    }
}

/// All saved probes, newest first.
pub(super) fn probes() -> Result<Vec<Probe>> {
    let dir = ceilings::dir()?;
    let probe = |saved: Saved| {
        let file = dir.join(format!("{}.json", saved.name)).metadata().ok()?;
        let saved_at_ns = file.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos();
        Some(Probe { saved, saved_at_ns })
    };
    let mut probes: Vec<Probe> = ceilings::load_all(&dir, |_| {})?.into_iter().filter_map(probe).collect();
    probes.sort_by(|a, b| b.saved.record.environment.started_at.cmp(&a.saved.record.environment.started_at));
    Ok(probes)
}

/// The rates measured under the tier's current limits, each from the newest probe that has it.
pub(super) fn on(tier: &Tier, device: Option<&Device>, probes: &[Probe]) -> Option<Measured> {
    let mut found = Measured::default();
    // Probes of former limits, or of a former owner of the loop device, do not count.
    for probe in probes.iter().filter(|probe| tier.limited_at_ns.is_some_and(|at| probe.saved_at_ns >= u128::from(at)))
    {
        let cells: Vec<&ProbeCell> = cells(tier, device, &probe.saved.record).collect();
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
            found.probes.push(probe.saved.name.clone());
        }
    }
    (!found.probes.is_empty()).then_some(found)
}

/// The cells that measured this tier. On a kernel tier, only cold cells count.
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
