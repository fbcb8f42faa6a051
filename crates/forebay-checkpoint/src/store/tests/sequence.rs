//! Any sequence of saves, drains, prunes, crashes and restores against a simple model: a list of what was durable.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{Better, Crash, restore, verify};

#[derive(Debug, Clone)]
enum Step {
    /// Steps may go back: a run was resumed from an older checkpoint.
    Save {
        step: u64,
        metric: Option<f64>,
    },
    Drain,
    Prune,
    Crash(Crash),
    Reopen,
    Restore,
}

fn step() -> impl Strategy<Value = Step> {
    let crash =
        prop_oneof![Just(Crash::Nothing), Just(Crash::All), Just(Crash::Lengths), any::<u64>().prop_map(Crash::Some)];
    let metric = proptest::option::of((0..5_u8).prop_map(f64::from));
    prop_oneof![
        4 => (0..12_u64, metric).prop_map(|(step, metric)| Step::Save { step, metric }),
        2 => Just(Step::Drain),
        1 => Just(Step::Prune),
        2 => crash.prop_map(Step::Crash),
        1 => Just(Step::Reopen),
        2 => Just(Step::Restore),
    ]
}

fn keep() -> impl Strategy<Value = Keep> {
    let best = proptest::option::of((1..3_usize, prop_oneof![Just(Better::Lower), Just(Better::Higher)]));
    (0..4_usize, proptest::option::of(1..6_u64), best).prop_map(|(last, every, best)| Keep { last, every, best })
}

struct World {
    model: ModelFs,
    keeps: [Keep; 2],
    options: Options,
    store: Option<Store>,
    /// What was durable, with its metric, and the seed of its state.
    durable: BTreeMap<Name, (Option<f64>, u64)>,
}

impl World {
    fn tiers(&self) -> Vec<Tier> {
        let mut tiers = two_tiers(Arc::new(self.model.clone()));
        tiers.iter_mut().zip(&self.keeps).for_each(|(tier, keep)| tier.keep = keep.clone());
        tiers
    }

    fn reopen(&mut self) {
        self.store = None;
        self.store = Some(Store::open(self.tiers(), self.options.clone()).unwrap());
    }

    fn act(&mut self, seed: u64, step: &Step) {
        let store = self.store.as_ref().unwrap();
        match step {
            Step::Save { step, metric } => {
                let sample = Sample::of(seed);
                let handle = store.save(*step, *metric, &sample.snapshot(), &sample.layout()).unwrap();
                assert_eq!(handle.wait(Level::DurableFast).unwrap(), Fate::Reached);
                self.durable.insert(handle.name(), (*metric, seed));
            }
            Step::Drain => drop(store.drain().unwrap()),
            Step::Prune => store.prune().unwrap(),
            Step::Reopen => self.reopen(),
            Step::Restore => self.check(),
            Step::Crash(crash) => {
                self.store = None;
                self.model.crash(*crash);
                self.reopen();
                self.check();
            }
        }
    }

    /// The newest is restored as it was saved; what the last tier keeps of all that was ever saved is on some tier.
    fn check(&self) {
        let tiers = self.tiers();
        for tier in &tiers {
            for name in tier.names().unwrap() {
                // The drain may be removing one just now.
                let verified = verify(tier, name);
                assert!(verified.is_ok() || !tier.names().unwrap().contains(&name), "{name}: {verified:?}");
            }
        }
        let Some((newest, (_, seed))) = self.durable.last_key_value() else {
            assert!(matches!(restore(&tiers), Err(Error::NothingGood { passed_over, .. }) if passed_over.is_empty()));
            return;
        };
        let restored = restore(&tiers).unwrap();
        assert_eq!(restored.name, *newest);
        assert!(Sample::of(*seed).is_in(&restored));
        let mut last = self.durable.keys().rev().take(self.keeps[1].last.max(1));
        // Twice, because the drain may move one from the tier not yet looked at to the one already looked at.
        let is_somewhere = |name: &Name| tiers.iter().chain(&tiers).any(|tier| verify(tier, *name).is_ok());
        assert!(last.all(is_somewhere), "{:?}", self.durable.keys());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_history_keeps_what_was_durable(
        history in proptest::collection::vec(step(), 1..20),
        keeps in (keep(), keep()),
        mode in prop_oneof![Just(Mode::Direct), Just(Mode::Burst), Just(Mode::Async)],
        drains_behind in any::<bool>(),
    ) {
        let keeps = [keeps.0, keeps.1];
        let options = Options { drains_behind, ..options(mode) };
        let mut world = World { model: model(), keeps, options, store: None, durable: BTreeMap::new() };
        world.reopen();
        for (seed, step) in history.iter().enumerate() {
            world.act(seed as u64, step);
        }
        world.act(0, &Step::Crash(Crash::Nothing));
    }
}
