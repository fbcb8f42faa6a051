//! Any sequence of saves, drains, prunes, crashes and restores against a simple model: a list of what was durable.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::formats::Model;
use super::*;
use crate::format::{FORMATS, Format};
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

/// What a state is saved as: plain files, or one of the formats.
#[derive(Debug, Clone, Copy)]
struct Kind(usize);

impl Kind {
    fn format(self) -> Option<&'static dyn Format> {
        FORMATS.get(self.0).copied()
    }

    fn save(self, store: &Store, seed: u64, step: u64, metric: Option<f64>) -> Result<Handle> {
        let (sample, model) = (Sample::of(seed), Model::of(seed));
        match self.format() {
            None => store.save(step, metric, &sample.snapshot(), &sample.layout()),
            Some(format) => {
                let layout = format.plan("model", &model.snapshot()).unwrap();
                store.save(step, metric, &model.snapshot(), &layout)
            }
        }
    }

    fn is_in(self, restored: &Restored, seed: u64) -> bool {
        match self.format() {
            None => Sample::of(seed).is_in(restored),
            Some(format) => Model::of(seed).is_in(restored, format),
        }
    }

    /// Bytes of two checkpoints and a bit.
    fn two(self) -> u64 {
        let layout = match self.format() {
            None => Sample::of(0).layout(),
            Some(format) => format.plan("model", &Model::of(0).snapshot()).unwrap(),
        };
        let lens = layout.files.iter().map(|plan| plan.len).chain(layout.last_files().into_iter().map(|plan| plan.len));
        super::super::bytes_on_disk(lens, 4096) * 5 / 2
    }
}

struct World {
    kind: Kind,
    /// Whether the fast tier has room for two only.
    is_cramped: bool,
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
        tiers[0].limit_bytes = self.is_cramped.then(|| self.kind.two());
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
                if let Some(name) = self.save(seed, *step, *metric) {
                    self.durable.insert(name, (*metric, seed));
                }
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

    /// Saves a state; `None` when there was no room for it, which is no wonder where nobody makes some.
    fn save(&self, seed: u64, step: u64, metric: Option<f64>) -> Option<Name> {
        let store = self.store.as_ref().unwrap();
        let save = || self.kind.save(store, seed, step, metric);
        // One that found no room behind the caller's back is told by the next call.
        let saved = match save() {
            Err(Error::Background { .. }) if self.is_cramped => save(),
            other => other,
        };
        let may_lack_room = self.is_cramped && !self.options.drains_behind && self.options.mode != Mode::Direct;
        match saved.and_then(|handle| Ok((handle.name(), handle.wait(Level::DurableFast)?))) {
            Ok((name, Fate::Reached)) => Some(name),
            Ok((_, Fate::Skipped)) if self.is_cramped && self.options.when_behind == WhenBehind::Skip => None,
            Err(Error::NoRoom { .. }) if may_lack_room => None,
            other => panic!("{other:?}"),
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
        assert!(self.kind.is_in(&restored, *seed));
        // Those that wait to be drained give way to newer ones where that is the policy.
        if self.is_cramped && self.options.when_behind == WhenBehind::Coalesce {
            return;
        }
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
        when_behind in prop_oneof![Just(WhenBehind::Wait), Just(WhenBehind::Skip), Just(WhenBehind::Coalesce)],
        kind in (0..3_usize).prop_map(Kind),
        (drains_behind, is_cramped) in any::<(bool, bool)>(),
    ) {
        let keeps = [keeps.0, keeps.1];
        let options = Options { drains_behind, when_behind, ..options(mode) };
        let mut world = World { kind, is_cramped, model: model(), keeps, options, store: None, durable: BTreeMap::new() };
        world.reopen();
        for (seed, step) in history.iter().enumerate() {
            world.act(seed as u64, step);
        }
        world.act(0, &Step::Crash(Crash::Nothing));
    }
}
