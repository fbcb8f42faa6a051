//! What a plan measures, and which plans are invalid.

use super::*;

fn plan(mode: &[Kind]) -> Plan {
    let settings = ProbeSettings {
        mode: mode.to_vec(),
        size: Some(Bytes(512 << 10)),
        depth: vec![1, 8],
        ..ProbeSettings::default()
    };
    Plan { settings, target: "disk".into(), tier: None, runs: 2, trees: Vec::new() }
}

fn why_not(plan: &Plan) -> String {
    plan.check("give a larger --size").err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn the_file_needs_room_only_for_requests_that_are_made() {
    assert_eq!(why_not(&plan(&[Kind::Random])), "", "256 KiB fit into half a mebibyte");
    assert_eq!(why_not(&plan(&[Kind::Files])), "");
    let said = "a file of 524.3 KB is too small for a request of 1.0 MB";
    assert!(why_not(&plan(&[Kind::Sequential])).starts_with(said));
}

#[test]
fn one_run_is_refused_since_the_first_is_not_kept() {
    let once = Plan { runs: 1, ..plan(&[Kind::Random]) };
    assert_eq!(why_not(&once), "--runs: give at least 2; the first run is not kept");
}

#[test]
fn an_emulated_device_writes_once_for_all_depths() {
    let shaped = Plan { tier: Some(Profile::hdd()), ..plan(&[Kind::Sequential]) };
    let cells = shaped.combinations(&[Engine::Direct, Engine::Sync], true);
    let found: Vec<(ProbeMode, usize)> = cells.iter().map(|cell| (cell.mode, cell.depth)).collect();
    let (write, read) = (ProbeMode::SequentialWrite, ProbeMode::SequentialRead);
    assert_eq!(found, [(write, 1), (read, 1), (read, 8), (write, 1), (read, 1), (read, 8)]);
    assert_eq!(shaped.combinations(&[Engine::Direct], false).len(), 2, "an existing file is only read");
}

#[test]
fn a_tree_takes_as_many_files_as_fit() {
    let of = |mix: &str, total| Tree::of(&mix.parse().unwrap(), total);
    assert_eq!(Tree::of(&Mix::of_one(3_000), 10_000).unwrap().sizes, [3_000; 3]);
    let mixed = of("4K/50:8K/50", 1_000_000).unwrap();
    assert!((980_000..=1_000_000).contains(&mixed.n_bytes()), "{}", mixed.n_bytes());
    assert_eq!(of("4K", 10).unwrap_err().to_string(), "no file fits into 10 B; give a larger --size");
}

#[test]
fn a_dataset_gives_the_sizes_and_adds_its_files_where_no_mode_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let (large, small) = (dir.path().join("large"), dir.path().join("small"));
    std::fs::write(&large, [0; 9_000]).unwrap();
    std::fs::write(&small, [0; 100]).unwrap();
    let planned = |mode: &[Kind], target: &Path, files: &[PathBuf]| {
        let settings = ProbeSettings { size: Some(Bytes(8192)), ..plan(mode).settings };
        let look = || Like::new(Path::new("set"), Some("4K/100"), files.to_vec());
        Plan::new(settings, target.to_owned(), Some(look), None, 2).unwrap()
    };
    let of_files = planned(&[], dir.path(), &[small.clone(), dir.path().join("gone")]);
    assert_eq!(of_files.settings.mode, Kind::ALL);
    assert_eq!(of_files.trees, [Tree { sizes: vec![100], of: "1 of 1 file as in set".to_owned() }]);
    assert_eq!(of_files.settings.mix, Some(Mix::of_one(4096)));
    let given = planned(&[Kind::Random], dir.path(), std::slice::from_ref(&small));
    assert_eq!((given.settings.mode, given.trees), (vec![Kind::Random], vec![]));
    assert!(!planned(&[], dir.path(), &[]).does(Kind::Files), "shards are not small files");
    assert!(!planned(&[], &large, std::slice::from_ref(&small)).does(Kind::Files), "a file has no room for files");
    std::fs::File::create(&large).unwrap().set_len(2 << 30).unwrap();
    let of_large = Like::new(Path::new("set"), Some("4K/100"), vec![large]).unwrap();
    let said = "--files supports files up to 1.07 GB, but one has 2.15 GB; use --sequential or --random";
    assert_eq!(Tree::like(&of_large, 4 << 30).unwrap_err().to_string(), said);
    let none = Like::new(Path::new("set"), None, Vec::new()).unwrap_err();
    assert_eq!(none.to_string(), "set: no readable sample to take sizes from");
}

#[test]
fn settings_that_contradict_themselves_are_refused() {
    let said = |mode: &[Kind], mix: Option<&str>, block: &[u64], is_like| {
        let (mix, block) = (mix.map(|mix| mix.parse().unwrap()), block.iter().map(|block| Bytes(*block)).collect());
        ProbeSettings { mix, block, ..plan(mode).settings }.check_with(is_like).err().unwrap_or_default()
    };
    assert_eq!(said(&[], None, &[4096], true), "", "the block size applies to sequential requests");
    assert_eq!(said(&[Kind::Files], None, &[1_000], false), "", "a file may have any length");
    assert!(said(&[], None, &[1_000], false).starts_with("`block`: 1000 is not a multiple of 512 bytes"));
    assert_eq!(said(&[], Some("4K"), &[], true), "`mix` and `like` both set the sizes; omit one");
    assert_eq!(said(&[Kind::Random], None, &[4096], true), "`like` and `block` both set the sizes; omit one");
    assert!(said(&[Kind::Sequential], Some("4K"), &[], false).starts_with("`mix` sets the sizes of random requests"));
}
