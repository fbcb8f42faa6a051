//! Settings of a probe, shared by the command and studies.

use forebay_measure::value::{bytes, integer, list, one_of, parsed, some};
use forebay_measure::{Level, Refused};
use forebay_record::Engine;
use forebay_units::Bytes;

use super::mix::Mix;
use super::plan::Unit;

/// Default length of the file.
const SIZE: Bytes = Bytes(5 << 30);

/// Default size of sequential requests.
const BLOCK: &[Bytes] = &[Bytes(1 << 20)];

/// Largest request that io_uring performs at once.
const BLOCK_MAX: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Sequential,
    Random,
    Files,
}

impl Kind {
    /// In the order of measurement.
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
    pub struct ProbeSettings for Probe {
        /// Access patterns: sequential, random, files, or a list of them [default: sequential,random]
        mode: Vec<Kind>, list(one_of(Kind::ALL.map(|kind| (kind.name(), kind)))), "MODE,…" [list];
        /// Length of the test file, and total size of all small files [default: 5GiB]
        size: Option<Bytes>, some(bytes(1..=64 << 40)), "SIZE";
        /// Sizes of random requests in the syntax of fio's bssplit: 4K/25:64K/75, with K = 1,024 bytes
        ///
        /// Defaults to the block size if one is given, otherwise to the reads of an image dataset:
        /// 2K/1:4K/2:8K/4:16K/8:32K/13:64K/38:128K/33:256K/1.
        mix: Option<Mix>, some(parsed::<Mix>), "SPEC";
        /// Bytes per request, or a list to sweep; 64K is 65,536 bytes, as in a mix [default: 1MiB]
        ///
        /// K, M and G alone are powers of two, as in fio: 64K and 64KiB are 65,536 bytes, 64KB is 64,000.
        block: Vec<Bytes>, list(block), "SIZE,…" [list];
        /// Requests in flight, or a list to sweep
        depth: Vec<usize> = "1,8,32", list(integer(1..=1_024)), "N,…" [list];
        /// I/O engine, or a list to sweep
        ///
        /// sync uses the page cache, direct bypasses it; both use one thread per request in flight. uring is one io_uring that bypasses
        /// the page cache. Defaults to direct, or to sync if the file system has no direct I/O.
        engine: Vec<Engine>, list(one_of(Engine::ALL.map(|engine| (engine.name(), engine)))), "sync|direct|uring" [list];
    }
}

impl ProbeSettings {
    /// Contradictions depend on whether a dataset is imitated: see [`Self::check_with`].
    fn check(&self) -> Result<(), Refused> {
        Ok(())
    }

    /// `is_like`: the sizes are those of the dataset given by the setting `like`.
    ///
    /// # Errors
    /// The contradiction, with settings named in backquotes.
    pub fn check_with(&self, is_like: bool) -> Result<(), Refused> {
        if let Some(block) = self.block.iter().find(|block| self.has_file() && block.0 % 512 != 0) {
            let bytes = block.0;
            return Err(format!("`block`: {bytes} is not a multiple of 512 bytes; use a binary unit, such as 128KiB"));
        }
        let sized = match (&self.mix, is_like) {
            (Some(_), true) => return Err("`mix` and `like` both set the sizes; omit one".to_owned()),
            (Some(_), false) => "mix",
            (None, true) => "like",
            (None, false) => return Ok(()),
        };
        if self.is_sequential() {
            return Err(format!(
                "`{sized}` sets the sizes of random requests and of files; sequential requests use `block`"
            ));
        }
        if !self.does(Kind::Sequential) && !self.block.is_empty() {
            return Err(format!("`{sized}` and `block` both set the sizes; omit one"));
        }
        Ok(())
    }

    /// Without any mode, sequential and random are measured.
    pub fn does(&self, kind: Kind) -> bool {
        if self.mode.is_empty() { kind != Kind::Files } else { self.mode.contains(&kind) }
    }

    /// Sequential and random requests share the file.
    pub fn has_file(&self) -> bool {
        self.does(Kind::Sequential) || self.does(Kind::Random)
    }

    /// Only then is the number of bytes known; other modes end by a time limit.
    pub fn is_sequential(&self) -> bool {
        self.mode == [Kind::Sequential]
    }

    pub fn file_size(&self) -> Bytes {
        self.size.unwrap_or(SIZE)
    }

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

/// K, M and G alone are powers of two, as in fio.
fn block(level: &Level) -> Result<Bytes, Refused> {
    let binary = Level::Text(format!("{level}iB"));
    let is_binary = level.to_string().ends_with(['k', 'K', 'm', 'M', 'g', 'G']) && parsed::<Bytes>(&binary).is_ok();
    bytes(1..=BLOCK_MAX)(if is_binary { &binary } else { level })
}
