//! The history that every case is a part of: two more checkpoints are saved, all is drained, both tiers are pruned.
//! And the ledger of what was reported durable on the way.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use forebay_checkpoint::format::{FORMATS, Format};
use forebay_checkpoint::{
    Dtype, Durability, Fate, Fs, Handle, Header, Keep, Level, LocalFs, Mode, Name, Options, Snapshot, Store, Tensor,
    Tier,
};

use crate::Error;

/// The name of the files of a checkpoint, before their endings.
pub(crate) const STEM: &str = "model";
/// Bytes of the great tensor: a few chunks and a bit.
const GREAT: usize = 68_000;
/// Room on the fast tier for one checkpoint and not for two.
const CRAMPED_BYTES: u64 = 120_000;

#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) mode: Mode,
    pub(crate) format: &'static dyn Format,
    /// One sync of the file system in place of one for each file.
    pub(crate) syncs_all: bool,
    /// Draining by itself, at the same time as saving.
    pub(crate) drains_behind: bool,
}

impl Way {
    pub(crate) fn all() -> Vec<Self> {
        let modes = [Mode::Direct, Mode::Burst, Mode::Async];
        // Draining when told, so that the operations of a history have one order.
        let way = |mode, format| Self { mode, format, syncs_all: false, drains_behind: false };
        modes.into_iter().flat_map(|mode| FORMATS.map(|format| way(mode, format))).collect()
    }

    pub(crate) fn of_mode(mode: Mode) -> Vec<Self> {
        Self::all().into_iter().filter(|way| way.mode == mode).collect()
    }

    /// As it is called in the summary and on the command line of a child.
    pub(crate) fn name(self) -> String {
        format!("{:?}-{}", self.mode, self.format.name()).to_lowercase()
    }

    pub(crate) fn options(self) -> Options {
        let durability = if self.syncs_all { Durability::FileSystem } else { Durability::EachFile };
        let (mode, drains_behind) = (self.mode, self.drains_behind);
        Options { mode, chunk_bytes: 32 << 10, durability, drains_behind, ..Options::default() }
    }

    pub(crate) fn open(self, tiers: Vec<Tier>) -> Result<Store, Error> {
        Ok(Store::open(tiers, self.options())?)
    }
}

/// A fast tier that keeps one, and a slow one that keeps two.
pub(crate) fn tiers(fs: &Arc<dyn Fs>, fast: &Path, slow: &Path) -> Vec<Tier> {
    let keeping = |dir: &Path, last| Tier { keep: Keep::last(last), ..Tier::new(Arc::clone(fs), dir) };
    vec![keeping(fast, 1), keeping(slow, 2)]
}

/// Both below one folder, as they are.
pub(crate) fn plain_tiers(root: &Path) -> Vec<Tier> {
    let fs: Arc<dyn Fs> = Arc::new(LocalFs);
    tiers(&fs, &root.join("fast"), &root.join("slow"))
}

pub(crate) struct State {
    headers: [Header; 2],
    values: [Vec<u8>; 2],
}

impl State {
    pub(crate) fn of(step: u64) -> Self {
        let header = |name: &str, dtype, n| Header { name: name.to_owned(), dtype, shape: vec![n] };
        let headers = [header("weights", Dtype::F32, GREAT as u64 / 4), header("step", Dtype::I64, 1)];
        // No byte is zero, so that what was never written is seen.
        let great = (0..GREAT as u64).map(|i| (step * 131 + i * i % 251) as u8 | 1).collect();
        Self { headers, values: [great, step.to_le_bytes().to_vec()] }
    }

    fn snapshot(&self) -> Snapshot<'_> {
        let tensors = self.headers.iter().zip(&self.values);
        let tensors = tensors.map(|(header, bytes)| Tensor::new(header, bytes.as_slice())).collect();
        Snapshot { tensors, ..Snapshot::default() }
    }

    pub(crate) fn tensors(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers.iter().map(|header| header.name.as_str()).zip(self.values.iter().map(Vec::as_slice))
    }
}

pub(crate) fn save(store: &Store, way: Way, step: u64) -> Result<Handle, Error> {
    let state = State::of(step);
    let snapshot = state.snapshot();
    let layout = way.format.plan(STEM, &snapshot)?;
    Ok(store.save(step, None, &snapshot, &layout)?)
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Short {
    #[default]
    Nowhere,
    /// On the fast tier: it may have given its own to the slow one.
    Fast,
    /// On both: the slow one may have made room for one that never came.
    Both,
}

/// What was reported durable, and where.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) fast: Vec<Name>,
    pub(crate) slow: Vec<Name>,
    /// Where space was short, so that checkpoints may have gone that would otherwise have stayed.
    pub(crate) short: Short,
    /// Where it is written to at once, for whoever reads it after this process was killed.
    file: Option<std::fs::File>,
}

impl Clone for Ledger {
    fn clone(&self) -> Self {
        Self { fast: self.fast.clone(), slow: self.slow.clone(), short: self.short, file: None }
    }
}

impl Ledger {
    pub(crate) fn in_file(path: &Path) -> Result<Self, Error> {
        Ok(Self { file: Some(std::fs::File::create(path)?), ..Self::default() })
    }

    /// Adds what a process wrote before it was killed.
    pub(crate) fn read(&mut self, path: &Path) -> Result<(), Error> {
        for line in std::fs::read_to_string(path)?.lines() {
            let (tier, name) = line.split_once(' ').ok_or("a line of the ledger has two words")?;
            let name = Name::parse(name).ok_or("a line of the ledger ends with a name")?;
            if tier == "fast" { self.fast.push(name) } else { self.slow.push(name) }
        }
        Ok(())
    }

    fn note(&mut self, tier: &str, name: Name) {
        if tier == "fast" {
            self.fast.push(name)
        } else {
            self.slow.push(name)
        }
        if let Some(file) = &mut self.file {
            writeln!(file, "{tier} {name}").expect("the ledger lies where nothing goes wrong");
        }
    }

    /// Saves a step, and notes it when it is durable.
    pub(crate) fn save(&mut self, store: &Store, way: Way, step: u64) -> Option<Handle> {
        let handle = save(store, way, step).ok()?;
        if let Ok(Fate::Reached) = handle.wait(Level::DurableFast) {
            self.note(if way.mode == Mode::Direct { "slow" } else { "fast" }, handle.name());
        }
        Some(handle)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Name> {
        self.fast.iter().chain(&self.slow).copied()
    }
}

/// Two checkpoints, saved and drained: what each case starts with.
pub(crate) fn prepare(tiers: Vec<Tier>, way: Way) -> Result<Ledger, Error> {
    let mut ledger = Ledger::default();
    go_on(way.open(tiers)?, way, &[10, 20], &mut ledger, &|| {});
    if ledger.slow.len() != 2 {
        return Err("nothing went wrong yet, and two checkpoints are not on the slow tier".into());
    }
    Ok(ledger)
}

/// The history; whatever goes wrong in it, it goes on.
pub(crate) fn run(tiers: Vec<Tier>, way: Way, ledger: &mut Ledger) {
    if let Ok(store) = way.open(tiers) {
        go_on(store, way, &[30, 40], ledger, &|| {});
    }
}

/// Saves these steps, drains, prunes; `between` is done after each call.
pub(crate) fn go_on(store: Store, way: Way, steps: &[u64], ledger: &mut Ledger, between: &dyn Fn()) {
    let mut handles = Vec::new();
    for step in steps {
        handles.extend(ledger.save(&store, way, *step));
        between();
    }
    if store.drain().is_ok() && way.mode != Mode::Direct {
        for handle in &handles {
            if let Ok(Fate::Reached) = handle.wait(Level::DurableSlow) {
                ledger.note("slow", handle.name());
            }
        }
    }
    between();
    let _ = store.prune();
    between();
    let _ = store.close();
}

/// The next process finds room for one checkpoint on its fast tier, and saves.
pub(crate) fn resume(mut tiers: Vec<Tier>, way: Way, ledger: &mut Ledger) {
    tiers[0].limit_bytes = Some(CRAMPED_BYTES);
    ledger.short = Short::Fast;
    if let Ok(store) = way.open(tiers) {
        ledger.save(&store, way, 50);
        let _ = store.close();
    }
}
