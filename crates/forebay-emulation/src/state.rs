//! The state of an emulated model: its bytes are generated on demand, so a checkpoint of any size takes no memory.
//!
//! Random bytes come from one mebibyte, generated once and combined with a key of tensor, save and offset at each use:
//! as fast as a copy, neither compressible nor repeated.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_checkpoint::format::{self, Format, Layout, Safetensors};
use forebay_checkpoint::{Dtype, Elsewhere, Fetch, FilePlan, Header, Piece, Snapshot, Tensor, Values};
use forebay_units::random;
use forebay_workload::Element;
use forebay_workload::model::ShardFile;

const WORDS: usize = 1 << 17;
const WORD: usize = size_of::<u64>();

pub(super) struct State {
    headers: Vec<Header>,
    elements: Vec<Element>,
    /// Per file: its name, and one more than the index of its last tensor.
    files: Vec<(String, usize)>,
    /// Random words; `None` if all values are ones.
    pool: Option<Vec<u64>>,
    seed: u64,
    /// Number of the save; each save has its own values.
    save: AtomicU64,
}

impl State {
    pub(super) fn new(shard: &[ShardFile], randomize: bool, seed: u64) -> Self {
        let tensors = || shard.iter().flat_map(|file| &file.tensors);
        let header = |tensor: &forebay_workload::model::ShardTensor| Header {
            name: tensor.name.clone(),
            dtype: dtype(tensor.element),
            shape: tensor.shape.clone(),
        };
        let ends = shard.iter().scan(0, |end, file| {
            *end += file.tensors.len();
            Some((file.name.clone(), *end))
        });
        Self {
            headers: tensors().map(header).collect(),
            elements: tensors().map(|tensor| tensor.element).collect(),
            files: ends.collect(),
            pool: randomize.then(|| (0..WORDS as u64).map(|at| random::at(seed, at)).collect()),
            seed,
            save: AtomicU64::new(0),
        }
    }

    pub(super) fn change(&self, save: u64) {
        self.save.store(save, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        let tensors = self.headers.iter().enumerate().map(|(index, header)| {
            let n_bytes = header.n_bytes().expect("a shard's tensors have whole bytes");
            Tensor { header, bytes: Values::There { device: self, index, n_bytes } }
        });
        Snapshot { tensors: tensors.collect(), ..Snapshot::default() }
    }

    /// Each file is laid out as safetensors.
    pub(super) fn layout(&self) -> Result<Layout, format::Error> {
        let (whole, mut from, mut plans) = (self.snapshot(), 0, Vec::new());
        for (name, end) in &self.files {
            let part = Snapshot { tensors: whole.tensors[from..*end].to_vec(), ..Snapshot::default() };
            let files = Safetensors.plan(name, &part)?.files;
            plans.extend(files.into_iter().map(|file| shifted(file, from)));
            from = *end;
        }
        Ok(Layout::from_plans(plans))
    }

    /// From `offset` on.
    pub(super) fn fill(&self, index: usize, offset: u64, into: &mut [u8]) {
        match &self.pool {
            Some(pool) => self.fill_random(pool, index as u64, offset, into),
            None => {
                let one = one(self.elements[index]);
                into.iter_mut().zip(offset as usize..).for_each(|(byte, at)| *byte = one[at % one.len()]);
            }
        }
    }

    fn fill_random(&self, pool: &[u64], index: u64, offset: u64, into: &mut [u8]) {
        let tensor = random::at(self.seed ^ self.save.load(Ordering::Relaxed).rotate_left(32), index);
        let key = |word: u64| random::at(tensor, word / WORDS as u64);
        let word = |at: u64| (pool[(at % WORDS as u64) as usize] ^ key(at)).to_le_bytes();
        let (first, skip) = (offset / WORD as u64, (offset % WORD as u64) as usize);
        let (head, rest) = into.split_at_mut(if skip == 0 { 0 } else { into.len().min(WORD - skip) });
        head.copy_from_slice(&word(first)[skip..skip + head.len()]);
        let (mut at, mut rest) = (first + u64::from(skip > 0), rest);
        while rest.len() >= WORD {
            // One pass over the pool has one key.
            let from = (at % WORDS as u64) as usize;
            let n = (WORDS - from).min(rest.len() / WORD);
            let (turn, left) = rest.split_at_mut(n * WORD);
            let key = key(at);
            let words = turn.chunks_exact_mut(WORD).zip(&pool[from..from + n]);
            words.for_each(|(into, value)| into.copy_from_slice(&(value ^ key).to_le_bytes()));
            (at, rest) = (at + n as u64, left);
        }
        rest.copy_from_slice(&word(at)[..rest.len()]);
    }
}

impl Elsewhere for State {
    fn fetch(&self, fetches: &mut [Fetch<'_>]) -> io::Result<()> {
        fetches.iter_mut().for_each(|fetch| self.fill(fetch.index, fetch.offset, fetch.into));
        Ok(())
    }
}

/// Renumbers the tensors of a file.
fn shifted(file: FilePlan, by: usize) -> FilePlan {
    let pieces = file.pieces.into_iter().map(|piece| match piece {
        Piece::Tensor { index, range } => Piece::Tensor { index: index + by, range },
        bytes => bytes,
    });
    FilePlan::new(file.name, pieces.collect())
}

/// Little-endian.
fn one(element: Element) -> Vec<u8> {
    match element {
        Element::U8 | Element::I8 => vec![1],
        Element::U16 | Element::I16 => 1_u16.to_le_bytes().to_vec(),
        Element::U32 | Element::I32 => 1_u32.to_le_bytes().to_vec(),
        Element::U64 | Element::I64 => 1_u64.to_le_bytes().to_vec(),
        Element::F16 => 0x3C00_u16.to_le_bytes().to_vec(),
        Element::Bf16 => 0x3F80_u16.to_le_bytes().to_vec(),
        Element::F32 => 1_f32.to_le_bytes().to_vec(),
        Element::F64 => 1_f64.to_le_bytes().to_vec(),
    }
}

fn dtype(element: Element) -> Dtype {
    match element {
        Element::U8 => Dtype::U8,
        Element::I8 => Dtype::I8,
        Element::U16 => Dtype::U16,
        Element::I16 => Dtype::I16,
        Element::U32 => Dtype::U32,
        Element::I32 => Dtype::I32,
        Element::U64 => Dtype::U64,
        Element::I64 => Dtype::I64,
        Element::F16 => Dtype::F16,
        Element::Bf16 => Dtype::Bf16,
        Element::F32 => Dtype::F32,
        Element::F64 => Dtype::F64,
    }
}

#[cfg(test)]
mod tests {
    use forebay_workload::model::ShardTensor;

    use super::*;

    fn shard() -> Vec<ShardFile> {
        let tensor =
            |name: &str, element, shape: &[u64]| ShardTensor { name: name.to_owned(), element, shape: shape.to_vec() };
        let weights = vec![tensor("w", Element::F16, &[300, 7]), tensor("n", Element::Bf16, &[5])];
        let optimizer = vec![tensor("w", Element::F32, &[400_000])];
        vec![
            ShardFile { name: "model_0".to_owned(), tensors: weights },
            ShardFile { name: "optim_0".to_owned(), tensors: optimizer },
        ]
    }

    #[test]
    fn any_part_of_the_values_is_the_same_however_it_is_asked_for() {
        let state = State::new(&shard(), true, 7);
        let mut whole = vec![0; 1_600_000];
        state.fill(2, 0, &mut whole);
        for (from, len) in [(0, 1), (3, 2), (7, 9), (1_048_570, 40), (1_048_576, 8), (999_999, 600_001)] {
            let mut part = vec![0; len];
            state.fill(2, from as u64, &mut part);
            assert!(part == whole[from..from + len], "{len} from {from}");
        }
        let ones = whole.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        assert!((ones as f64 / (whole.len() * 8) as f64 - 0.5).abs() < 0.01, "the bytes are random");
        assert_ne!(whole[..1024], whole[1_048_576..][..1024], "the bytes do not repeat");
        let before = whole.clone();
        state.change(2);
        state.fill(2, 0, &mut whole);
        assert_ne!(before[..64], whole[..64], "another save has other values");
    }

    #[test]
    fn without_random_values_all_are_ones() {
        let state = State::new(&shard(), false, 7);
        let mut bytes = vec![0; 6];
        state.fill(0, 2, &mut bytes);
        assert_eq!(bytes, [0, 0x3C, 0, 0x3C, 0, 0x3C]);
        state.fill(2, 1, &mut bytes[..4]);
        assert_eq!(bytes[..4], [0, 0x80, 0x3F, 0], "the first byte of the second value comes last");
    }

    #[test]
    fn every_file_has_its_own_tensors() {
        let state = State::new(&shard(), true, 7);
        let layout = state.layout().unwrap();
        let names: Vec<&str> = layout.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["model_0.safetensors", "optim_0.safetensors"]);
        let of = |file: &FilePlan| {
            let tensors = file.pieces.iter().filter_map(|piece| match piece {
                Piece::Tensor { index, range } => Some((*index, range.end - range.start)),
                Piece::Bytes(_) => None,
            });
            tensors.collect::<Vec<_>>()
        };
        let mut first = of(&layout.files[0]);
        first.sort_unstable();
        assert_eq!(first, [(0, 4_200), (1, 10)]);
        assert_eq!(of(&layout.files[1]), [(2, 1_600_000)]);
    }
}
