//! What a plan measures, and which plans make no sense.

use super::*;

fn plan(modes: [bool; 3]) -> Plan {
    let [sequential, random, files] = modes;
    Plan {
        target: "disk".into(),
        modes: Modes { sequential, random, files },
        size: 512 << 10,
        blocks: vec![1 << 20],
        sizes: Sizes::Mix(Mix::of_images()),
        trees: vec![Tree::of_one_size(1_000, 10_000).unwrap()],
        depths: vec![1, 8],
        engines: None,
        runs: 2,
        tier: None,
        seed: 0,
    }
}

fn why_not(plan: &Plan) -> String {
    plan.check("give a larger --size").err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn the_file_needs_room_only_for_requests_that_are_made() {
    assert_eq!(why_not(&plan([false, true, false])), "", "256 KiB fit into half a mebibyte");
    assert_eq!(why_not(&plan([false, false, true])), "");
    assert!(why_not(&plan([true, false, false])).starts_with("a file of 524.3 KB has no room for a request of 1.0 MB"));
    let odd = Plan { blocks: vec![1_000], ..plan([true, false, false]) };
    assert!(why_not(&odd).starts_with("--block: 1000 is not a multiple of 512 bytes"));
    assert_eq!(why_not(&Plan { modes: plan([false, true, false]).modes, ..odd }), "");
}

#[test]
fn one_run_is_refused_since_the_first_is_not_kept() {
    let once = Plan { runs: 1, ..plan([false, true, false]) };
    assert_eq!(why_not(&once), "--runs: give at least 2; the first is not kept");
}

#[test]
fn an_emulated_device_writes_once_for_all_depths() {
    let shaped = Plan { tier: Some(Profile::hdd()), ..plan([true, false, false]) };
    let cells = shaped.combinations(&[Engine::Direct, Engine::Sync], true);
    let found: Vec<(ProbeMode, usize)> = cells.iter().map(|cell| (cell.mode, cell.depth)).collect();
    let (write, read) = (ProbeMode::SequentialWrite, ProbeMode::SequentialRead);
    assert_eq!(found, [(write, 1), (read, 1), (read, 8), (write, 1), (read, 1), (read, 8)]);
    assert_eq!(shaped.combinations(&[Engine::Direct], false).len(), 2, "a file that is there is only read");
}

#[test]
fn a_tree_takes_as_many_files_as_fit() {
    assert_eq!(Tree::of_one_size(3_000, 10_000).unwrap().sizes, [3_000; 3]);
    let mixed = Tree::of_mix(&"4K/50:8K/50".parse().unwrap(), 1_000_000, 1).unwrap();
    assert!((980_000..=1_000_000).contains(&mixed.n_bytes()), "{}", mixed.n_bytes());
    assert_eq!(Tree::of_one_size(3_000, 10).unwrap_err().to_string(), "no file fits into 10 B; give a larger --size");
}
