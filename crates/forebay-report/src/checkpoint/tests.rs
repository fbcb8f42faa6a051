//! The table of a made-up benchmark.

use forebay_record::{AnyRecord, CheckpointCell, Environment, Medium, Record, TierKind};

use super::checkpoint;
use crate::NamedRun;

fn cell(mode: &str) -> CheckpointCell {
    let (stall_s, fast_s, slow_s) = match mode {
        "direct" => (4.6, 4.6, 4.6),
        "burst" => (1.25, 1.25, 6.5),
        _ => (0.06, 1.25, 6.5),
    };
    let is_two = mode != "direct";
    CheckpointCell {
        mode: mode.to_owned(),
        format: "safetensors".to_owned(),
        state: "600 MB in 64 tensors".to_owned(),
        device: None,
        n_tensors: 64,
        bytes: 600_000_000,
        medium: Medium::new("slow".to_owned(), Some(("hdd", TierKind::Kernel)), Vec::new()),
        burst: is_two.then(|| Medium::new("fast".to_owned(), Some(("optane", TierKind::Kernel)), Vec::new())),
        stall_s,
        durable_fast_s: Some(fast_s),
        durable_slow_s: Some(slow_s),
        restore_s: Some(if is_two { 0.4 } else { 3.75 }),
        ceiling_mb_per_s: Some(if is_two { 500.0 } else { 133.0 }),
        rated_mb_per_s: Some(if is_two { 512.0 } else { 133.0 }),
        read_ceiling_mb_per_s: is_two.then_some(1_600.0),
        copy_s: Some(0.05),
        memory_bytes: Some(if mode == "async" { 600_000_000 } else { 33_000_000 }),
        spread: Some(0.02),
        samples: Vec::new(),
        disturbed: None,
    }
}

fn record(cells: Vec<CheckpointCell>) -> Record<CheckpointCell> {
    let mut record = Record::new(vec![], Environment::default());
    record.cells = cells;
    record
}

#[test]
fn every_mode_stands_beside_its_ceiling_and_the_direct_one() {
    let mut record = record(["direct", "burst", "async"].map(cell).to_vec());
    record.notes.push("a remark".to_owned());
    let wanted = [
        "600 MB in 64 tensors; to slow; burst buffer fast",
        "",
        "mode format MB stall durable, first last tier ± MB/s of ceiling restore MB/s of ceiling copy stall/copy memory",
        "direct safetensors 600 4.60 s 4.60 s 4.60 s 2.0 % 130 98 % of 133 160 – – – 33.0 MB",
        "burst safetensors 600 1.25 s 1.25 s 6.50 s 2.0 % 480 96 % of 500 1,500 94 % of 1,600 – – 33.0 MB",
        "async safetensors 600 0.0600 s 1.25 s 6.50 s 2.0 % 480 96 % of 500 1,500 94 % of 1,600 0.0500 s 1.20× 600.0 MB",
    ];
    let text = checkpoint(&record);
    let squeezed = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(squeezed(&text)[..6], wanted, "{text}");
    for said in [
        "A stall of burst is 3.68× shorter than one of direct (safetensors: 4.60 s → 1.25 s).",
        "A stall of async is 76.7× shorter than one of direct (safetensors: 4.60 s → 0.0600 s).",
        "The ceiling of a save is what the tier that is written first takes without us: O_DIRECT, then a sync.",
        "The ceiling of a restore is what the tier that is read gives without us.",
        "The tier optane is a loop device throttled by the kernel.",
        "note: a remark",
    ] {
        assert!(text.lines().any(|line| line == said), "{said}\n{text}");
    }
    let named = NamedRun { name: "run".to_owned(), record: AnyRecord::Checkpoint(record) };
    assert_eq!(crate::text(&[named]), text, "the report of a record is the same text");
}

#[test]
fn what_was_not_measured_is_not_made_up() {
    let mut bare = cell("burst");
    (bare.ceiling_mb_per_s, bare.read_ceiling_mb_per_s, bare.memory_bytes) = (None, None, None);
    (bare.restore_s, bare.durable_slow_s, bare.medium.tier, bare.burst) = (None, None, None, None);
    let text = checkpoint(&record(vec![bare]));
    assert!(text.contains("how near the saves come to it is not known"), "{text}");
    for absent in ["restore MB/s", "of ceiling", "memory", "last tier  ", "shorter", "The tier"] {
        assert!(!text.contains(absent), "{absent}\n{text}");
    }
    assert_eq!(checkpoint(&record(Vec::new())), "nothing was measured\n");
}

#[test]
fn a_mode_that_stalls_longer_than_direct_is_not_called_shorter() {
    let mut slow = cell("burst");
    slow.stall_s = 9.2;
    let text = checkpoint(&record(vec![cell("direct"), slow]));
    assert!(
        text.contains("A stall of burst is 2.00× longer than one of direct (safetensors: 4.60 s → 9.20 s)."),
        "{text}"
    );
}

#[test]
fn a_state_on_a_device_is_said_to_be_there_and_to_be_copied_from_there() {
    let of = |device: Option<&str>| {
        checkpoint(&record(vec![CheckpointCell { device: device.map(str::to_owned), ..cell("async") }]))
    };
    let text = of(Some("an H200"));
    assert!(text.starts_with("600 MB in 64 tensors on an H200; to slow"), "{text}");
    assert!(text.contains("the state from the device into memory that is locked for it: the floor"), "{text}");
    assert!(of(None).contains("the state in memory that was touched before: the floor"));
}

#[test]
fn a_tier_that_the_disk_below_holds_back_is_named() {
    let mut slow = cell("burst");
    (slow.stall_s, slow.durable_fast_s) = (9.2, Some(9.2));
    let text = checkpoint(&record(vec![cell("direct"), slow]));
    let said = "burst, safetensors: The disk below did not give what the tier optane promises (65.2 of 512 MB/s): its stalls are the \
                disk's.";
    assert_eq!(text.matches("did not give").count(), 1, "{text}");
    assert!(text.lines().any(|line| line == said), "{text}");
}

#[test]
fn what_took_less_than_ten_milliseconds_is_set_beside_no_ceiling() {
    let mut short = cell("direct");
    (short.bytes, short.durable_fast_s) = (200_000, Some(0.0015));
    let text = checkpoint(&record(vec![short]));
    assert!(text.contains("too short to be set beside a ceiling") && !text.contains("% of 133"), "{text}");
    assert!(!checkpoint(&record(vec![cell("direct")])).contains("too short"));
}
