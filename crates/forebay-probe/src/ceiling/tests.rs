//! Which probe applies to which data.

use forebay_record::{Disturbed, Latency, Medium, Taken};

use super::*;

fn cell(mode: ProbeMode, depth: u64, mb_per_s: f64) -> ProbeCell {
    ProbeCell {
        mode,
        engine: Engine::Direct,
        block: None,
        mix: None,
        depth,
        mb_per_s,
        iops: 1.0,
        spread: None,
        latency_us: Latency::default(),
        histogram: Vec::new(),
        medium: Medium { cache: Some(CacheState::Cold), ..Medium::default() },
        samples: Vec::new(),
        disturbed: None,
    }
}

fn place(device: &str) -> Environment {
    Environment {
        data_file_system: Some(format!("ext4 on {device}")),
        data_mount: Some("/data".to_owned()),
        data_file_system_id: Some("0123".to_owned()),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        ..Environment::default()
    }
}

fn saved(name: &str, place: Environment, cells: Vec<ProbeCell>) -> Saved {
    let mut record = Record::new(Vec::new(), place);
    record.cells = cells;
    Saved { name: name.to_owned(), record }
}

fn all_modes() -> Vec<ProbeCell> {
    vec![
        cell(ProbeMode::SequentialWrite, 1, 500.0),
        cell(ProbeMode::SequentialRead, 8, 3_000.0),
        cell(ProbeMode::RandomRead, 1, 200.0),
        cell(ProbeMode::RandomRead, 32, 1_203.0),
        cell(ProbeMode::Files, 8, 900.0),
    ]
}

fn text(ceiling: Option<Ceiling>) -> (f64, String) {
    ceiling.map(|ceiling| (ceiling.mb_per_s, ceiling.of)).unwrap_or_default()
}

#[test]
fn files_prefer_files_then_random_then_sequential() {
    let mut cells = all_modes();
    let pick =
        |cells: &[ProbeCell]| text(pick(&[saved("nvme0", place("a"), cells.to_vec())], &place("a"), None, Load::Files));
    assert_eq!(pick(&cells), (900.0, "the small-files ceiling of nvme0 (direct, depth 8)".to_owned()));
    cells.retain(|cell| cell.mode != ProbeMode::Files);
    assert_eq!(pick(&cells), (1_203.0, "the random-read ceiling of nvme0 (direct, depth 32)".to_owned()));
    cells.retain(|cell| cell.mode != ProbeMode::RandomRead);
    assert_eq!(pick(&cells).0, 3_000.0);
    cells.retain(|cell| cell.mode != ProbeMode::SequentialRead);
    assert_eq!(pick(&cells), (0.0, String::new()));
}

#[test]
fn shards_take_the_best_read_and_checkpoints_the_write() {
    let nvme = [saved("nvme0", place("a"), all_modes())];
    assert_eq!(text(pick(&nvme, &place("a"), None, Load::Shards)).0, 3_000.0);
    assert_eq!(text(pick(&nvme, &place("a"), None, Load::Writes)).0, 500.0);
}

#[test]
fn only_the_newest_cold_probe_of_the_same_file_system_counts() {
    let newer = Environment { started_at: "2026-02-01T00:00:00Z".to_owned(), ..place("a") };
    let of = |rate, cache| vec![on(cell(ProbeMode::Files, 1, rate), None, None, cache)];
    let store = [
        saved("old", place("a"), of(1.0, CacheState::Cold)),
        saved("new", newer.clone(), of(2.0, CacheState::Cold)),
        saved("warm", newer.clone(), of(3.0, CacheState::Warm)),
        saved("other", place("b"), of(4.0, CacheState::Cold)),
        saved("tier", newer, vec![on(cell(ProbeMode::Files, 1, 5.0), Some("hdd"), None, CacheState::Cold)]),
    ];
    assert_eq!(text(pick(&store, &place("a"), None, Load::Files)).0, 2.0);
    assert_eq!(pick(&store, &place("c"), None, Load::Files), None);
    let reformatted = Environment { data_file_system_id: Some("4567".to_owned()), ..place("a") };
    assert_eq!(pick(&store, &reformatted, None, Load::Files), None);
    assert_eq!(pick(&store, &Environment::default(), None, Load::Files), None, "an unknown place never matches");
}

fn ingest(cells: &[(CacheState, Option<&str>)]) -> Record<IngestCell> {
    let mut record = Record::new(Vec::new(), place("a"));
    record.dataset.packing = "files".to_owned();
    for (cache, tier) in cells {
        let least = r#"{"threads": 1, "batch": 1, "read_only": true, "images_per_s": 1.0, "mb_per_s": 83.0,
            "cpu_s_per_1000": 1.0, "failed_samples": 0, "worker_time": {}, "wait_s": 1.0, "wall_s": 1.0, "samples": []}"#;
        let text = format!(r#"{{"schema": "{}", "command": "ingest", "cells": [{least}]}}"#, forebay_record::SCHEMA);
        let mut cell = Record::<IngestCell>::from_json(&text).unwrap().cells.remove(0);
        cell.medium.cache = Some(*cache);
        cell.medium.tier = tier.map(str::to_owned);
        cell.ceiling_mb_per_s = tier.map(|_| 163.0);
        record.cells.push(cell);
    }
    record
}

fn ceilings(record: &Record<IngestCell>) -> Vec<Option<f64>> {
    record.cells.iter().map(|cell| cell.ceiling_mb_per_s).collect()
}

/// The cell, measured on another medium.
fn on(cell: ProbeCell, tier: Option<&str>, kind: Option<TierKind>, cache: CacheState) -> ProbeCell {
    let tier = tier.map(str::to_owned);
    ProbeCell { medium: Medium { tier, kind, cache: Some(cache), ..Medium::default() }, ..cell }
}

/// A probe of a tier with one cell.
fn of_tier(name: &str, at: Environment, tier: &str, kind: TierKind, cell: ProbeCell) -> Saved {
    let cache = cell.medium.cache.unwrap();
    saved(name, at, vec![on(cell, Some(tier), Some(kind), cache)])
}

#[test]
fn a_tier_has_the_ceiling_of_its_newest_probe_and_no_disk_has_it() {
    use TierKind::{Kernel, Shaped};
    let newer = |at: &str| Environment { started_at: "2026-02-01T00:00:00Z".to_owned(), ..place(at) };
    let warm = on(cell(ProbeMode::Files, 1, 9.0), None, None, CacheState::Warm);
    let store = [
        saved("disk", newer("a"), vec![cell(ProbeMode::Files, 1, 900.0)]),
        of_tier("old", place("a"), "hdd", Kernel, cell(ProbeMode::Files, 1, 30.0)),
        of_tier("new", newer("a"), "hdd", Kernel, cell(ProbeMode::RandomRead, 1, 40.0)),
        of_tier("memory", newer("a"), "hdd", Kernel, warm.clone()),
        of_tier("elsewhere", newer("b"), "hdd", Kernel, cell(ProbeMode::Files, 1, 50.0)),
        of_tier("shaped", place("b"), "hdd", Shaped, warm),
    ];
    let of = |at: &str, name, kind| text(pick(&store, &place(at), Some(Tier { name, kind }), Load::Files)).0;
    assert_eq!(of("a", "hdd", Kernel), 40.0, "the newest cold probe");
    assert_eq!(of("b", "hdd", Kernel), 50.0);
    assert_eq!((of("c", "hdd", Kernel), of("a", "ssd", Kernel)), (0.0, 0.0));
    assert_eq!((of("a", "hdd", Shaped), of("c", "hdd", Shaped)), (9.0, 9.0), "on any file system");
    assert_eq!(text(pick(&store, &place("a"), None, Load::Files)).0, 900.0);
    assert_eq!(pick(&store[1..], &place("a"), None, Load::Files), None, "a tier is not a disk");
    let mut record = ingest(&[(CacheState::Cold, Some("hdd")), (CacheState::Warm, Some("hdd"))]);
    record.cells.iter_mut().for_each(|cell| cell.medium.kind = Some(Kernel));
    apply(&mut record, &store, None);
    assert_eq!(ceilings(&record), [Some(40.0), Some(163.0)], "bytes from memory bypass the kernel's limit");
}

#[test]
fn warm_rows_have_no_ceiling_and_tiers_without_a_probe_keep_theirs() {
    let store = [saved("nvme0", place("a"), all_modes())];
    let mut record = ingest(&[(CacheState::Cold, None), (CacheState::Warm, None), (CacheState::Cold, Some("hdd"))]);
    apply(&mut record, &store, None);
    assert_eq!(ceilings(&record), [Some(900.0), None, Some(163.0)]);
    assert_eq!(record.notes, [] as [&str; 0]);
}

#[test]
fn a_forced_ceiling_counts_on_any_file_system_and_its_own_tier() {
    let hdd = vec![on(cell(ProbeMode::RandomRead, 1, 12.0), Some("hdd"), None, CacheState::Warm)];
    let mut record =
        ingest(&[(CacheState::Cold, None), (CacheState::Cold, Some("hdd")), (CacheState::Cold, Some("ssd"))]);
    apply(&mut record, &[], Some(&saved("disk", place("b"), hdd)));
    assert_eq!(ceilings(&record), [None, Some(12.0), Some(163.0)]);
    let why = "some rows have no ceiling of disk: it was not measured on the same tier, or not with reads";
    assert_eq!(record.notes[0], why);
    let mut noisy = all_modes();
    for cell in &mut noisy {
        cell.disturbed = Some(Disturbed { repeats: 1, taken: Taken::Processors, share: 0.9 });
    }
    let noisy = saved("busy", place("b"), noisy);
    let mut record = ingest(&[(CacheState::Cold, None)]);
    apply(&mut record, &[], Some(&noisy));
    assert_eq!(record.notes, ["no row has a ceiling of busy: other processes disturbed every cell of the probe"]);
    assert_eq!(unusable(&noisy, None), Some("other processes disturbed every cell"));
    assert_eq!(unusable(&saved("far", place("b"), all_modes()), None), None);
    let mut record = ingest(&[(CacheState::Warm, None)]);
    apply(&mut record, &[], Some(&saved("far", place("b"), all_modes())));
    assert!(
        record.notes[0].ends_with("the bytes of the row are not proven to come from the device"),
        "{:?}",
        record.notes
    );
    let mut record = ingest(&[(CacheState::Cold, None)]);
    apply(&mut record, &[], Some(&saved("far", place("b"), all_modes())));
    assert_eq!((ceilings(&record), record.notes.len()), (vec![Some(900.0)], 0));
}

#[test]
fn a_rate_above_its_ceiling_is_remarked_upon() {
    let note = |kind: Option<TierKind>, ceiling: f64| {
        let mut record = ingest(&[(CacheState::Cold, Some("hdd")), (CacheState::Cold, Some("ssd"))]);
        record.cells[0].medium.kind = kind;
        record.cells[0].ceiling_mb_per_s = Some(ceiling);
        apply(&mut record, &[], None);
        record.notes
    };
    let burst = "with 1 thread the rate is up to 166 % of the ceiling: repeats of 1.00 s are too short for the kernel's \
                 throttle, which lets a burst pass, or the ceiling is out of date: use more data";
    assert_eq!(note(Some(TierKind::Kernel), 50.0), [burst]);
    let other = note(Some(TierKind::Shaped), 50.0);
    assert!(other[0].starts_with("with 1 thread the rate is up to 166 % of the ceiling: the ceiling is out of date"));
    assert_eq!(note(Some(TierKind::Kernel), 80.0), [] as [&str; 0], "within 5 %");
}
