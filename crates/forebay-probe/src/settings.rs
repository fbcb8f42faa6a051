//! What a probe can be told.

use forebay_measure::value::{bytes, integer, list, one_of, parsed, some};
use forebay_measure::{Level, Refused};
use forebay_record::Engine;
use forebay_units::Bytes;

use super::mix::Mix;
use super::plan::Unit;

/// The file's length where nothing says how long it is.
const SIZE: Bytes = Bytes(5 << 30);

/// Bytes of a sequential request where nothing says how many.
const BLOCK: &[Bytes] = &[Bytes(1 << 20)];

/// The largest request, of which io_uring still makes one.
const BLOCK_MAX: u64 = 1 << 30;

/// A kind of probing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One file written and read from end to end.
    Sequential,
    /// Reads at random places of that file.
    Random,
    /// Open, read and close of many small files.
    Files,
}

impl Kind {
    /// In the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Sequential, Self::Random, Self::Files];

    fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
            Self::Files => "files",
        }
    }
}

forebay_measure::settings! {
    /// What a probe can be told.
    pub struct ProbeSettings for Probe {
        /// What is measured, one of sequential, random and files or a list of them; sequential and random by default
        mode: Vec<Kind>, list(one_of(Kind::ALL.map(|kind| (kind.name(), kind)))), "MODE,…" [list];
        /// Length of the file that is written and read, and of all small files together; 5GiB by default
        size: Option<Bytes>, some(bytes(1..=64 << 40)), "SIZE";
        /// Sizes of random requests, as fio's bssplit: 4K/25:64K/75, with K = 1,024 bytes
        ///
        /// By default 2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1, the reads of an image set, or the block if one
        /// is given.
        mix: Option<Mix>, some(parsed::<Mix>), "SPEC";
        /// Bytes per request; a list is swept; 1MiB by default; 64K is 65,536 bytes, as in a mix
        ///
        /// K, M and G alone are powers of two, as fio has them: 64K and 64KiB are 65,536 bytes, 64KB is 64,000.
        block: Vec<Bytes>, list(block), "SIZE,…" [list];
        /// Requests in flight; a list is swept
        depth: Vec<usize> = "1,8,32", list(integer(1..=1_024)), "N,…" [list];
        /// How requests are made; a list is swept
        ///
        /// sync goes through the page cache, direct past it, both with one thread per request in flight; uring is one
        /// io_uring past the page cache. By default direct, or sync where the file system knows no direct I/O.
        engine: Vec<Engine>, list(one_of(Engine::ALL.map(|engine| (engine.name(), engine)))), "sync|direct|uring" [list];
    }
}

impl ProbeSettings {
    /// What contradicts itself depends on whether a dataset is imitated: see [`Self::check_with`].
    fn check(&self) -> Result<(), Refused> {
        Ok(())
    }

    /// What contradicts itself; `is_like` is whether the sizes are those of a dataset, which `like` names.
    ///
    /// # Errors
    /// The contradiction, with settings named in backquotes.
    pub fn check_with(&self, is_like: bool) -> Result<(), Refused> {
        if let Some(block) = self.block.iter().find(|block| self.has_file() && block.0 % 512 != 0) {
            let bytes = block.0;
            return Err(format!("`block`: {bytes} is not a multiple of 512 bytes; use a binary unit, such as 128KiB"));
        }
        let sized = match (&self.mix, is_like) {
            (Some(_), true) => return Err("`mix` and `like` both give the sizes; leave one out".to_owned()),
            (Some(_), false) => "mix",
            (None, true) => "like",
            (None, false) => return Ok(()),
        };
        if self.is_sequential() {
            return Err(format!(
                "`{sized}` gives the sizes of random requests and of files; sequential ones have `block`"
            ));
        }
        if !self.does(Kind::Sequential) && !self.block.is_empty() {
            return Err(format!("`{sized}` and `block` both give the sizes; leave one out"));
        }
        Ok(())
    }

    /// Whether it measures this; sequential and random where nothing is said.
    pub fn does(&self, kind: Kind) -> bool {
        if self.mode.is_empty() { kind != Kind::Files } else { self.mode.contains(&kind) }
    }

    /// Whether it has the one file of sequential and random requests.
    pub fn has_file(&self) -> bool {
        self.does(Kind::Sequential) || self.does(Kind::Random)
    }

    /// Whether it only goes from end to end, so that its bytes are known; anything else ends by a time limit.
    pub fn is_sequential(&self) -> bool {
        self.mode == [Kind::Sequential]
    }

    /// Length of the file.
    pub fn file_size(&self) -> Bytes {
        self.size.unwrap_or(SIZE)
    }

    /// Bytes of sequential requests.
    pub(super) fn blocks(&self) -> &[Bytes] {
        if self.block.is_empty() { BLOCK } else { &self.block }
    }

    /// Random requests; files have the same sizes.
    pub(super) fn pieces(&self) -> Vec<Unit> {
        match &self.mix {
            Some(mix) => vec![Unit::Mix(mix.clone())],
            None if self.block.is_empty() => vec![Unit::Mix(Mix::of_images())],
            None => self.block.iter().map(|block| Unit::Block(block.0)).collect(),
        }
    }
}

/// A size whose K, M and G alone are powers of two, as fio has them.
fn block(level: &Level) -> Result<Bytes, Refused> {
    let binary = Level::Text(format!("{level}iB"));
    let is_binary = level.to_string().ends_with(['k', 'K', 'm', 'M', 'g', 'G']) && parsed::<Bytes>(&binary).is_ok();
    bytes(1..=BLOCK_MAX)(if is_binary { &binary } else { level })
}
