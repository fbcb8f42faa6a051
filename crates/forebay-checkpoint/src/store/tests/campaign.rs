//! Everything that can go wrong, at every operation: in each mode, for a save, a drain and a prune.
//!
//! A case is a short history, cut at operation k. After it, with every kind of crash, what was reported durable must be
//! there, nothing that does not verify may have a checkpoint's name, and the next save must work. The same campaign
//! with the syncs of one place left out must find losses, or it would prove nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::{Crash, Cut, Durability, FaultyFs, SyncPoint, restore, verify};

/// What was reported durable, and the seed of each state that a save was begun for.
#[derive(Default, Clone)]
struct Ledger {
    durable: Vec<Name>,
    seeds: BTreeMap<Name, u64>,
}

impl Ledger {
    fn save(&mut self, store: &Store, step: u64) {
        let take = self.seeds.keys().filter(|name| name.step == step).count() as u32;
        let seed = step * 10 + u64::from(take);
        if let Ok(handle) = save_as(store, step, seed) {
            self.seeds.insert(handle.name(), seed);
            if let Ok(Fate::Reached) = handle.wait(Level::DurableFast) {
                self.durable.push(handle.name());
            }
        }
    }
}

/// Histories: what is done after two checkpoints were saved and drained.
#[derive(Debug, Clone, Copy)]
enum History {
    Save,
    /// Two more are saved, and all is drained, which prunes both tiers.
    Drain,
    /// The same step is saved twice, all is drained and pruned.
    Again,
    /// One is stopped, and the same step is saved.
    Stopped,
    /// A later one is saved, with room for one only on the fast tier.
    Cramped,
}

const HISTORIES: [History; 4] = [History::Save, History::Drain, History::Again, History::Stopped];
const CRASHES: [Crash; 7] =
    [Crash::Nothing, Crash::All, Crash::Lengths, Crash::Some(1), Crash::Some(2), Crash::Some(3), Crash::Some(4)];

impl History {
    fn run(self, store: &Store, ledger: &mut Ledger) {
        if let Self::Cramped = self {
            return ledger.save(store, 50);
        }
        if let Self::Stopped = self {
            let stopped = super::stopped::save_stopped(store, 30, 309, 1);
            assert!(stopped.is_err(), "it was told to stop, or failed before");
        }
        ledger.save(store, 30);
        match self {
            Self::Drain => ledger.save(store, 40),
            Self::Again => ledger.save(store, 30),
            Self::Save | Self::Stopped | Self::Cramped => return,
        }
        let _ = store.drain();
        let _ = store.prune();
    }

    fn tiers(self, fs: Arc<dyn Fs>) -> Vec<Tier> {
        let mut tiers = two_tiers(fs);
        if let Self::Cramped = self {
            let lens = Sample::of(0).plans().into_iter().map(|plan| plan.len);
            tiers[0].limit_bytes = Some(super::bytes_on_disk(lens, 4096) + 1);
        }
        tiers
    }
}

/// Each mode draining only when told, so that the operations of a history have one order; one sync for all files; and
/// all at once, in any order.
fn ways() -> Vec<Options> {
    let quiet = |mode| Options { drains_behind: false, ..options(mode) };
    let whole = Options { durability: Durability::FileSystem, ..quiet(Mode::Burst) };
    vec![quiet(Mode::Direct), quiet(Mode::Burst), quiet(Mode::Async), whole, options(Mode::Async)]
}

fn ways_and_histories() -> Vec<(Options, History)> {
    ways().into_iter().flat_map(|way| HISTORIES.map(|history| (way.clone(), history))).collect()
}

fn label(way: &Options, history: History) -> String {
    let behind = if way.drains_behind { ", draining behind" } else { "" };
    format!("{history:?}, {:?}, {:?}{behind}", way.mode, way.durability)
}

fn prepared(way: &Options) -> (ModelFs, Ledger) {
    let (model, mut ledger) = (model(), Ledger::default());
    let store = Store::open(two_tiers(Arc::new(model.clone())), way.clone()).unwrap();
    ledger.save(&store, 10);
    ledger.save(&store, 20);
    store.drain().unwrap();
    assert_eq!(ledger.durable.len(), 2);
    (model, ledger)
}

/// Runs a history that goes wrong, and says whether it came to that.
fn run_cut(
    model: &ModelFs,
    ledger: &mut Ledger,
    way: &Options,
    history: History,
    cut: Cut,
    without: Option<SyncPoint>,
) -> bool {
    let fs = Arc::new(model.clone());
    let faulty = match without {
        Some(point) => FaultyFs::without(fs, cut, point),
        None => FaultyFs::new(fs, cut),
    };
    if let Ok(store) = Store::open(history.tiers(Arc::new(faulty.clone())), way.clone()) {
        history.run(&store, ledger);
        let _ = store.close();
    }
    faulty.has_cut()
}

/// What is wrong with what is left.
fn check(model: &ModelFs, ledger: &Ledger) -> std::result::Result<(), String> {
    let tiers = two_tiers(Arc::new(model.clone()));
    for tier in &tiers {
        for name in tier.names().map_err(|e| e.to_string())? {
            verify(tier, name).map_err(|damage| format!("{name} in {}: {damage}", tier.dir.display()))?;
        }
    }
    let newest = *ledger.durable.iter().max().expect("two were saved before");
    let restored = restore(&tiers).map_err(|error| format!("nothing restored: {error}"))?;
    if restored.name < newest {
        return Err(format!("{newest} was durable, and {} was restored", restored.name));
    }
    let seed = ledger.seeds.get(&restored.name);
    // A save that failed after its name was durable returns no handle, and is whole all the same.
    let seeds: Vec<u64> = seed.map_or((0..10).map(|take| restored.name.step * 10 + take).collect(), |seed| vec![*seed]);
    if !seeds.iter().any(|seed| Sample::of(*seed).is_in(&restored)) {
        return Err(format!("{} holds another state", restored.name));
    }
    // The last two stay, of all that there are: one that was cut off before it could be reported counts too.
    let mut all = ledger.durable.clone();
    tiers.iter().for_each(|tier| all.extend(tier.names().unwrap_or_default()));
    all.sort();
    all.dedup();
    for name in all.iter().rev().take(2) {
        if ledger.durable.contains(name) && !tiers.iter().any(|tier| verify(tier, *name).is_ok()) {
            return Err(format!("{name} was durable, and is on no tier"));
        }
    }
    Ok(())
}

/// Opens what is left, and saves and drains one more, which must then be the newest.
fn goes_on(model: &ModelFs, way: &Options) -> std::result::Result<(), String> {
    let text = |error: Error| format!("the next save: {error}");
    let store = Store::open(two_tiers(Arc::new(model.clone())), way.clone()).map_err(text)?;
    let handle = save(&store, 1000).map_err(text)?;
    handle.wait(Level::DurableFast).map_err(text)?;
    store.drain().map_err(text)?;
    let restored = store.restore().map_err(text)?;
    if restored.name.step != 1000 || !Sample::of(1000).is_in(&restored) {
        return Err(format!("the next save gave {}", restored.name));
    }
    Ok(())
}

#[derive(Default)]
struct Tally {
    n_cases: usize,
    losses: Vec<String>,
}

impl Tally {
    fn count(&mut self, what: String, outcome: std::result::Result<(), String>) {
        self.n_cases += 1;
        if let Err(loss) = outcome {
            self.losses.push(format!("{what}: {loss}"));
        }
    }
}

/// A power cut before every operation, every kind of crash after it.
fn cut_off(without: Option<SyncPoint>) -> Tally {
    let mut tally = Tally::default();
    for (way, history) in ways_and_histories() {
        for k in 0.. {
            let (model, mut ledger) = prepared(&way);
            let has_cut = run_cut(&model, &mut ledger, &way, history, Cut::Off(k), without);
            for crash in CRASHES {
                let left = model.fork();
                left.crash(crash);
                let outcome = check(&left, &ledger).and_then(|()| goes_on(&left, &way));
                tally.count(format!("{}, off at {k}, {crash:?}", label(&way, history)), outcome);
            }
            for then in [History::Again, History::Cramped] {
                let outcome = resume_and_cut(&model, &ledger, &way, then, without);
                tally.count(format!("{}, killed at {k}, then {then:?} and a power cut", label(&way, history)), outcome);
            }
            // Losses are looked for, and one is enough.
            if without.is_some() && !tally.losses.is_empty() {
                return tally;
            }
            if !has_cut {
                break;
            }
        }
    }
    tally
}

/// The process was killed, and what it had not synced is still only in memory; the next one goes on; the power goes.
fn resume_and_cut(
    model: &ModelFs,
    ledger: &Ledger,
    way: &Options,
    then: History,
    without: Option<SyncPoint>,
) -> std::result::Result<(), String> {
    let left = model.fork();
    let mut ledger = ledger.clone();
    run_cut(&left, &mut ledger, way, then, Cut::Never, without);
    left.crash(Crash::Nothing);
    check(&left, &ledger)
}

#[test]
fn a_power_cut_before_any_operation_loses_nothing_that_was_durable() {
    let tally = cut_off(None);
    assert_eq!(tally.losses, Vec::<String>::new());
    println!("{} cases", tally.n_cases);
    assert!(tally.n_cases > 2000, "{} cases", tally.n_cases);
}

#[test]
fn an_operation_that_fails_a_full_disk_and_a_tier_that_vanishes_lose_nothing() {
    let mut tally = Tally::default();
    let cuts: [fn(u64) -> Cut; 4] =
        [Cut::Fail, Cut::Full, |k| Cut::Gone(k, PathBuf::from("/slow")), |k| Cut::Gone(k, PathBuf::from("/fast"))];
    for (way, history) in ways_and_histories() {
        for cut in cuts {
            for k in 0.. {
                let (model, mut ledger) = prepared(&way);
                let has_cut = run_cut(&model, &mut ledger, &way, history, cut(k), None);
                for crash in [Crash::All, Crash::Nothing, Crash::Some(k)] {
                    let left = model.fork();
                    left.crash(crash);
                    let outcome = check(&left, &ledger).and_then(|()| goes_on(&left, &way));
                    tally.count(format!("{}, {:?}, {crash:?}", label(&way, history), cut(k)), outcome);
                }
                if !has_cut {
                    break;
                }
            }
        }
    }
    assert_eq!(tally.losses, Vec::<String>::new());
    println!("{} cases", tally.n_cases);
    assert!(tally.n_cases > 2000, "{} cases", tally.n_cases);
}

#[test]
fn without_the_syncs_of_any_one_place_the_campaign_finds_losses() {
    for point in SyncPoint::ALL {
        let tally = cut_off(Some(point));
        println!("{point:?}: after {} cases {:?}", tally.n_cases, tally.losses.first());
        assert!(!tally.losses.is_empty(), "the syncs of {point:?} could be left out in {} cases", tally.n_cases);
    }
}
