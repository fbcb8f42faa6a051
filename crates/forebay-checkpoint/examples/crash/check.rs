//! What must be true after anything that can happen.

use forebay_checkpoint::format::Files;
use forebay_checkpoint::{Level, Manifest, Name, Reading, Restored, Tier, restore, verify};

use crate::history::{Ledger, STEM, Short, State, Way, save};

/// The step that is saved when all is over.
const NEXT: u64 = 1000;

/// What is wrong with what is left, and with the next save.
pub(crate) fn check(tiers: &[Tier], way: Way, ledger: &Ledger) -> Result<(), String> {
    nothing_else_has_a_name(tiers, way)?;
    what_was_durable_is_there(tiers, ledger)?;
    let restored = restore(tiers).map_err(|error| format!("nothing was restored: {error}"))?;
    if ledger.all().any(|name| name > restored.name) {
        return Err(format!("{} was restored, and a newer one was durable", restored.name));
    }
    is_right(&restored, way)?;
    goes_on(tiers, way)
}

/// Whatever has a checkpoint's name verifies and holds the state of its step.
fn nothing_else_has_a_name(tiers: &[Tier], way: Way) -> Result<(), String> {
    for tier in tiers {
        for name in tier.names().map_err(|error| error.to_string())? {
            let place = || format!("{name} on {}", label(tier));
            let manifest = verify(tier, name).map_err(|damage| format!("{}: {damage}", place()))?;
            let files = read(tier, name, &manifest).map_err(|error| format!("{}: {error}", place()))?;
            holds(&files, way, name.step).map_err(|error| format!("{}: {error}", place()))?;
        }
    }
    Ok(())
}

/// The fast tier keeps one and the slow one two, of all that there are: one that was cut off before it could be
/// reported counts too. Where space was short, less has to be there.
fn what_was_durable_is_there(tiers: &[Tier], ledger: &Ledger) -> Result<(), String> {
    let is_good = |tier: &Tier, name| verify(tier, name).is_ok();
    let n_slow = if ledger.short == Short::Both { 1 } else { 2 };
    for (tier, durable, kept) in [(&tiers[0], &ledger.fast, 1), (&tiers[1], &ledger.slow, n_slow)] {
        for name in newest(std::slice::from_ref(tier), durable, kept) {
            if !is_good(tier, name) && (ledger.short == Short::Nowhere || !is_good(&tiers[1], name)) {
                return Err(format!("{name} was durable on {} and is missing", label(tier)));
            }
        }
    }
    for name in newest(tiers, &ledger.all().collect::<Vec<Name>>(), n_slow) {
        if !tiers.iter().any(|tier| is_good(tier, name)) {
            return Err(format!("{name} was durable and is on no tier"));
        }
    }
    Ok(())
}

/// Of the newest that are durable or seen, those that are durable.
fn newest(tiers: &[Tier], durable: &[Name], kept: usize) -> Vec<Name> {
    let mut all: Vec<Name> = tiers.iter().flat_map(|tier| tier.names().unwrap_or_default()).collect();
    all.extend(durable);
    all.sort();
    all.dedup();
    all.into_iter().rev().take(kept).filter(|name| durable.contains(name)).collect()
}

/// One more is saved and drained, and is the one that is restored.
pub(crate) fn goes_on(tiers: &[Tier], way: Way) -> Result<(), String> {
    let next = || -> Result<Restored, crate::Error> {
        let store = way.open(tiers.to_vec())?;
        save(&store, way, NEXT)?.wait(Level::DurableFast)?;
        // What is damaged on the fast tier is told here, and does not hold up the others.
        let told = store.drain();
        let newest = Name { step: NEXT, take: 0 };
        if let Err(damage) = verify(&tiers[1], newest) {
            return Err(format!("it is not drained: {damage} ({told:?})").into());
        }
        Ok(store.restore()?)
    };
    let restored = next().map_err(|error| format!("the next save: {error}"))?;
    if restored.name.step != NEXT {
        return Err(format!("{} was restored after the next save", restored.name));
    }
    is_right(&restored, way)
}

/// Whether a restored checkpoint holds the state of its step.
pub(crate) fn is_right(restored: &Restored, way: Way) -> Result<(), String> {
    let files = restored.files.iter().map(|file| (file.name.clone(), file.bytes().to_vec())).collect();
    holds(&files, way, restored.name.step).map_err(|error| format!("{} was restored: {error}", restored.name))
}

fn holds(files: &Files, way: Way, step: u64) -> Result<(), String> {
    let catalog = way.format.open(STEM, files).map_err(|error| error.to_string())?;
    for (name, expected) in State::of(step).tensors() {
        if catalog.read(files, name).map_err(|error| error.to_string())? != expected {
            return Err(format!("{name} is not that of step {step}"));
        }
    }
    Ok(())
}

fn read(tier: &Tier, name: Name, manifest: &Manifest) -> forebay_checkpoint::Result<Files> {
    let mut files = Files::new();
    for sum in &manifest.files {
        let file = tier.fs.open(&tier.path_of(name).join(&sum.name), Reading::Cached)?;
        let mut bytes = vec![0; sum.len as usize];
        file.read_at(0, &mut bytes)?;
        files.insert(sum.name.clone(), bytes);
    }
    Ok(files)
}

fn label(tier: &Tier) -> String {
    tier.dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
