//! The store on real files.

use super::*;
use crate::{Damage, Durability, LocalFs, verify};

fn tiers(dir: &Path) -> Vec<Tier> {
    let keeping = |name: &str, last| Tier { keep: Keep::last(last), ..Tier::new(Arc::new(LocalFs), dir.join(name)) };
    vec![keeping("deep/fast", 1), keeping("deep/slow", 2)]
}

#[test]
fn every_mode_saves_drains_and_restores_real_files() {
    for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
        for durability in [Durability::EachFile, Durability::FileSystem] {
            let dir = tempfile::tempdir().unwrap();
            let store = Store::open(tiers(dir.path()), Options { durability, ..options(mode) }).unwrap();
            for step in 1..=3 {
                assert_eq!(save(&store, step).unwrap().wait(Level::DurableSlow).unwrap(), Fate::Reached);
            }
            store.drain().unwrap();
            assert!(store.close().errors.is_empty());
            assert_eq!(steps(&LocalFs, dir.path().join("deep/slow").to_str().unwrap()), [2, 3]);
            let restored = crate::restore(&tiers(dir.path())).unwrap();
            assert!(Sample::of(3).is_in(&restored));
            assert_eq!(restored.tier, usize::from(mode == Mode::Direct));
        }
    }
}

#[test]
fn many_chunks_in_flight_are_the_file_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(vec![tiers(dir.path()).remove(1)], options(Mode::Direct)).unwrap();
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![1_000_003] };
    let values: Vec<u8> = (0..1_000_003_u64).map(|i| (i * i % 255) as u8).collect();
    let snapshot = Snapshot { tensors: vec![Tensor::new(&header, &values)], ..Snapshot::default() };
    let plans = vec![FilePlan::new("w", vec![Piece::Tensor { index: 0, range: 0..1_000_003 }])];
    let handle = store.save(1, Some(0.5), &snapshot, &Layout::from_plans(plans)).unwrap();
    assert_eq!(std::fs::read(store.tiers()[0].path_of(handle.name()).join("w")).unwrap(), values);
    let restored = store.restore().unwrap();
    assert_eq!((restored.file("w"), restored.manifest.metric), (Some(&values[..]), Some(0.5)));
    assert_eq!(restored.manifest.files[0].crcs.len(), 245);
    assert_eq!(restored.by_name().into_iter().collect::<Vec<_>>(), [("w".to_owned(), &values[..])]);
}

#[test]
fn a_truncated_real_file_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap();
    let name = save(&store, 1).unwrap().name();
    let path = store.tiers()[1].path_of(name).join("model");
    std::fs::File::options().write(true).open(path).unwrap().set_len(8000).unwrap();
    let expected = Damage::Length { file: "model".to_owned(), expected: 8288, found: 8000 };
    assert_eq!(verify(&store.tiers()[1], name), Err(expected));
}

#[test]
fn a_folder_in_use_is_refused_and_free_again_after_closing() {
    let dir = tempfile::tempdir().unwrap();
    let first = Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap();
    let message = Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap_err().to_string();
    assert!(message.contains(&format!("in use by process {} on ", std::process::id())), "{message}");
    drop(first);
    drop(Store::open(tiers(dir.path()), options(Mode::Direct)).unwrap());
}
