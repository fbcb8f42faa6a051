//! The store with real formats: what depends on the values is gathered while they are written.

use super::*;
use crate::format::{FORMATS, Format};

/// Tensors that begin and end anywhere in a chunk, one of them over several, one empty.
const LENS: [u64; 5] = [5, 20_000, 0, 4096, 3000];

pub(super) struct Model {
    headers: Vec<Header>,
    values: Vec<Vec<u8>>,
}

impl Model {
    pub(super) fn of(seed: u64) -> Self {
        let header = |k: usize, n| Header { name: format!("w{k}"), dtype: Dtype::U8, shape: vec![n] };
        let values = |n| (0..n).map(|i: u64| (i.wrapping_mul(i + seed) % 251) as u8).collect();
        let headers = LENS.iter().enumerate().map(|(k, n)| header(k, *n)).collect();
        Self { headers, values: LENS.map(values).to_vec() }
    }

    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        let tensors = self.headers.iter().zip(&self.values).map(|(header, bytes)| Tensor::new(header, bytes));
        let notes = [("step".to_owned(), "12".to_owned())].into();
        Snapshot { tensors: tensors.collect(), notes }
    }

    pub(super) fn values(&self) -> &[Vec<u8>] {
        &self.values
    }

    pub(super) fn is_in(&self, restored: &Restored, format: &dyn Format) -> bool {
        let files = restored.by_name();
        let catalog = format.open("model", &files).unwrap();
        let is_same = |(header, bytes): (&Header, &Vec<u8>)| catalog.read(&files, &header.name).unwrap() == *bytes;
        catalog.notes == self.snapshot().notes && self.headers.iter().zip(&self.values).all(is_same)
    }
}

#[test]
fn every_mode_saves_every_format_and_its_checksums_are_right() {
    for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
        for format in FORMATS {
            let fs = Arc::new(model());
            let store = Store::open(two_tiers(fs), options(mode)).unwrap();
            for seed in 1..3 {
                let state = Model::of(seed);
                let layout = format.plan("model", &state.snapshot()).unwrap();
                let handle = store.save(seed, None, &state.snapshot(), &layout).unwrap();
                assert_eq!(handle.wait(Level::DurableSlow).unwrap(), Fate::Reached);
                let restored = store.restore().unwrap();
                assert!(restored.name.step == seed && state.is_in(&restored, format), "{mode:?} {}", format.name());
                let names: Vec<String> = layout.complete(&state.snapshot()).into_iter().map(|plan| plan.name).collect();
                assert_eq!(restored.files.into_iter().map(|file| file.name).collect::<Vec<_>>(), names);
            }
        }
    }
}

#[test]
fn a_layout_of_other_tensors_is_refused() {
    let store = Store::open(two_tiers(Arc::new(model())), options(Mode::Burst)).unwrap();
    let (state, other) = (Model::of(1), Sample::of(1));
    for format in FORMATS {
        let layout = format.plan("model", &state.snapshot()).unwrap();
        assert!(matches!(store.save(1, None, &other.snapshot(), &layout), Err(Error::Plan { .. })));
    }
}

#[test]
fn what_verifies_and_does_not_open_as_its_format_is_passed_over() {
    for format in FORMATS {
        let tiers = two_tiers(Arc::new(model()));
        let store = Store::open(tiers.clone(), options(Mode::Direct)).unwrap();
        let good = Model::of(1);
        let layout = format.plan("model", &good.snapshot()).unwrap();
        store.save(1, None, &good.snapshot(), &layout).unwrap();
        let names = layout.complete(&good.snapshot()).into_iter().map(|plan| plan.name);
        let bad = names.map(|name| FilePlan::new(&name, vec![Piece::Bytes(b"not what it says".to_vec())])).collect();
        store.save(2, None, &Snapshot::default(), &Layout::from_plans(bad)).unwrap();
        let restored = store.restore().unwrap();
        assert!(restored.name.step == 1 && good.is_in(&restored, format), "{}", format.name());
        let is_format = |one: &crate::PassedOver| matches!(one.damage, crate::Damage::Format { .. });
        assert!(!restored.passed_over.is_empty() && restored.passed_over.iter().all(is_format));
        assert_eq!(crate::Checkpoint::find(&tiers, None).unwrap().name().step, 1);
    }
}
