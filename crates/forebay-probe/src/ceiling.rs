//! Choosing the saved probe that is the upper bound of a result.
//!
//! A probe applies to the file system it was taken on, identified by type, device, mount point and id. Only cells
//! proven cold are a ceiling of the device, and only cold results are compared with one: bytes from memory say nothing
//! about a disk. A probe of an emulated device applies only to that device: on the same file system if the kernel
//! emulates it, on any if this process does.

use forebay_record::{CacheState, Engine, Environment, IngestCell, ProbeCell, ProbeMode, Record, TierKind};

#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    pub name: String,
    pub record: Record<ProbeCell>,
}

/// Highest rate that a probe reached.
#[derive(Debug, Clone, PartialEq)]
pub struct Ceiling {
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// For display: "the random-read ceiling of nvme0 (direct, depth 32)".
    pub of: String,
}

/// Access pattern of a result, which determines the probe modes that bound it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    Files,
    Shards,
    Writes,
}

impl Load {
    pub fn of_packing(packing: &str) -> Self {
        if packing == "files" { Self::Files } else { Self::Shards }
    }

    /// Comparable modes in order of preference: the best cell of the first group that the probe contains counts.
    fn modes(self) -> &'static [&'static [ProbeMode]] {
        use ProbeMode::{Files, RandomRead, SequentialRead, SequentialWrite};
        match self {
            Self::Files => &[&[Files], &[RandomRead], &[SequentialRead]],
            Self::Shards => &[&[RandomRead, SequentialRead]],
            Self::Writes => &[&[SequentialWrite]],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier<'a> {
    pub name: &'a str,
    pub kind: TierKind,
}

impl<'a> Tier<'a> {
    /// Records without a kind predate kernel emulation, so their tier was emulated in process.
    pub fn of(name: Option<&'a String>, kind: Option<TierKind>) -> Option<Self> {
        name.map(|name| Self { name, kind: kind.unwrap_or(TierKind::Shaped) })
    }

    /// Whether page-cache hits bypass the device; a device emulated in process delays them too.
    fn is_below_cache(this: Option<Self>) -> bool {
        this.is_none_or(|tier| tier.kind != TierKind::Shaped)
    }
}

/// Ceiling of the emulated device `tier`, or without one of the file system in `place`; the newest probe with a ceiling
/// counts.
pub fn pick(saved: &[Saved], place: &Environment, tier: Option<Tier<'_>>, load: Load) -> Option<Ceiling> {
    let counts = |saved: &&Saved| !Tier::is_below_cache(tier) || is_same_place(&saved.record.environment, place);
    let mut of_place: Vec<&Saved> = saved.iter().filter(counts).collect();
    of_place.sort_by(|a, b| b.record.environment.started_at.cmp(&a.record.environment.started_at));
    of_place.into_iter().find_map(|saved| of(saved, load, tier))
}

pub fn of(saved: &Saved, load: Load, tier: Option<Tier<'_>>) -> Option<Ceiling> {
    let counts = |cell: &&ProbeCell| {
        // For a device emulated in process, cold and warm describe the disk below it.
        let is_its_own = !Tier::is_below_cache(tier) || cell.medium.cache == Some(CacheState::Cold);
        // What other programs slowed down is no bound.
        is_its_own && cell.disturbed.is_none() && Tier::of(cell.medium.tier.as_ref(), cell.medium.kind) == tier
    };
    load.modes().iter().find_map(|modes| {
        let cells = saved.record.cells.iter().filter(counts).filter(|cell| modes.contains(&cell.mode));
        let best = cells.max_by(|a, b| a.mb_per_s.total_cmp(&b.mb_per_s))?;
        Some(Ceiling { mb_per_s: best.mb_per_s, of: describe(&saved.name, best) })
    })
}

/// Adds to each cell its ceiling: `forced` if given, otherwise that of the data's file system or emulated tier. A tier
/// without a probe keeps the ceiling of its profile.
pub fn apply(record: &mut Record<IngestCell>, saved: &[Saved], forced: Option<&Saved>) {
    let load = Load::of_packing(&record.dataset.packing);
    let mut without: Vec<&str> = Vec::new();
    for cell in &mut record.cells {
        let tier = Tier::of(cell.medium.tier.as_ref(), cell.medium.kind);
        let ceiling = match forced {
            _ if Tier::is_below_cache(tier) && cell.medium.cache != Some(CacheState::Cold) => None,
            Some(forced) => of(forced, load, tier),
            None => pick(saved, &record.environment, tier, load),
        };
        if let Some(reason) = forced.filter(|_| ceiling.is_none()).map(|forced| why_not(forced, load, tier)) {
            without.push(reason);
        }
        if let Some(Ceiling { mb_per_s, of }) = ceiling {
            (cell.ceiling_mb_per_s, cell.ceiling_of) = (Some(mb_per_s), Some(of));
        }
    }
    if let (Some(forced), Some(reason)) = (forced, without.first()) {
        let rows =
            if without.len() == record.cells.len() { "no row has a ceiling" } else { "some rows have no ceiling" };
        record.notes.push(format!("{rows} of {}: {reason}", forced.name));
    }
    record.notes.extend(note_of_excess(&record.cells));
}

/// Why the probe is no ceiling of a row; if nothing in the probe keeps it from being one, it is the row's own bytes.
fn why_not(saved: &Saved, load: Load, tier: Option<Tier<'_>>) -> &'static str {
    let of_tier = |cell: &&ProbeCell| Tier::of(cell.medium.tier.as_ref(), cell.medium.kind) == tier;
    let is_comparable = |cell: &&ProbeCell| load.modes().iter().any(|modes| modes.contains(&cell.mode));
    let cells: Vec<&ProbeCell> = saved.record.cells.iter().filter(is_comparable).filter(of_tier).collect();
    match cells.as_slice() {
        [] => "it was not measured on the same tier, or not with reads",
        cells if cells.iter().all(|cell| cell.disturbed.is_some()) => {
            "other processes disturbed every cell of the probe"
        }
        _ if of(saved, load, tier).is_none() => "no undisturbed cell of the probe is proven cold",
        _ => "the bytes of the row are not proven to come from the device",
    }
}

/// Why the probe can be nobody's ceiling; `None` if it can.
pub fn unusable(saved: &Saved, tier: Option<Tier<'_>>) -> Option<&'static str> {
    let loads = [Load::Files, Load::Shards, Load::Writes];
    let is_none = |load: &Load| of(saved, *load, tier).is_none();
    let all = saved.record.cells.iter().all(|cell| cell.disturbed.is_some());
    loads.iter().all(is_none).then_some(if all {
        "other processes disturbed every cell"
    } else {
        "no undisturbed cell is proven cold"
    })
}

/// Excess over the ceiling, as a fraction, up to which it counts as noise; a larger excess gets a note.
const EXCESS: f64 = 0.05;

fn note_of_excess(cells: &[IngestCell]) -> Option<String> {
    let share = |cell: &IngestCell| cell.ceiling_mb_per_s.filter(|most| *most > 0.0).map(|most| cell.mb_per_s / most);
    let above: Vec<(&IngestCell, f64)> =
        cells.iter().filter_map(|cell| Some((cell, share(cell)?))).filter(|(_, share)| *share > 1.0 + EXCESS).collect();
    let (first, _) = above.first()?;
    let threads: Vec<String> = above.iter().map(|(cell, _)| cell.threads.to_string()).collect();
    let s = if threads == ["1"] { "" } else { "s" };
    let most = above.iter().map(|(_, share)| *share).fold(0.0, f64::max) * 100.0;
    let longest_s = above.iter().map(|(cell, _)| cell.wall_s).fold(0.0, f64::max);
    let why = match first.medium.kind {
        Some(TierKind::Kernel) => format!(
            "repeats of {longest_s:.2} s are too short for the kernel's throttle, which lets a burst pass, or the ceiling is \
             out of date: use more data"
        ),
        _ => format!(
            "the ceiling is out of date or was measured with fewer requests in flight, or repeats of {longest_s:.2} s are \
             too short: probe again, or use more data"
        ),
    };
    Some(format!("with {} thread{s} the rate is up to {most:.0} % of the ceiling: {why}", threads.join(", ")))
}

fn is_same_place(one: &Environment, other: &Environment) -> bool {
    let known = |place: &Environment| place.data_file_system.is_some() && place.data_mount.is_some();
    known(one)
        && one.data_file_system == other.data_file_system
        && one.data_mount == other.data_mount
        && one.data_file_system_id == other.data_file_system_id
}

fn describe(name: &str, cell: &ProbeCell) -> String {
    let mode = match cell.mode {
        ProbeMode::SequentialWrite => "sequential-write",
        ProbeMode::SequentialRead => "sequential-read",
        ProbeMode::RandomRead => "random-read",
        ProbeMode::Files => "small-files",
    };
    let engine = match cell.engine {
        Engine::Sync => "sync",
        Engine::Direct => "direct",
        Engine::Uring => "uring",
    };
    format!("the {mode} ceiling of {name} ({engine}, depth {})", cell.depth)
}

#[cfg(test)]
mod tests;
