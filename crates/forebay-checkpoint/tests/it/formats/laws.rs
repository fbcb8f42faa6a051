//! The laws of the trait, for any snapshot that a format can hold.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use forebay_checkpoint::format::{FORMATS, Files, Source, named};
use forebay_checkpoint::{Dtype, Header, Piece};
use proptest::prelude::*;

use super::{State, example, read, write};

/// Types that both formats have.
const SHARED: [Dtype; 18] = [
    Dtype::Bool,
    Dtype::U8,
    Dtype::I8,
    Dtype::U16,
    Dtype::I16,
    Dtype::F16,
    Dtype::Bf16,
    Dtype::U32,
    Dtype::I32,
    Dtype::F32,
    Dtype::U64,
    Dtype::I64,
    Dtype::F64,
    Dtype::F8E5m2,
    Dtype::F8E4m3,
    Dtype::F8E4m3Fnuz,
    Dtype::F8E5m2Fnuz,
    Dtype::C64,
];

/// Types that one of them lacks.
const OF_SAFETENSORS: [Dtype; 4] = [Dtype::F4, Dtype::F6E2m3, Dtype::F6E3m2, Dtype::F8E8m0];
const OF_TENSORFLOW: [Dtype; 1] = [Dtype::C128];

fn shape() -> impl Strategy<Value = Vec<u64>> {
    let small = proptest::collection::vec(0..5_u64, 0..4);
    let flat = (0..200_u64).prop_map(|n| vec![n]);
    let deep = (0..=254_usize).prop_map(|rank| vec![1; rank]);
    prop_oneof![4 => small, 2 => flat, 1 => deep]
}

fn state() -> impl Strategy<Value = State> {
    let tensor = (proptest::sample::select(SHARED.to_vec()), shape(), any::<u8>());
    // Any text but what a format keeps to itself: the empty name, and names that begin with a zero.
    let name = any::<String>().prop_filter("a name", |name| !name.is_empty() && !name.starts_with('\0'));
    let tensors = proptest::collection::btree_map(name, tensor, 0..40);
    let notes = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..4);
    (tensors, notes).prop_map(|(tensors, notes)| State {
        tensors: tensors
            .into_iter()
            .map(|(name, (dtype, shape, seed))| filled(Header { name, dtype, shape }, seed))
            .collect(),
        notes,
    })
}

fn filled(header: Header, seed: u8) -> (Header, Vec<u8>) {
    let n_bytes = header.n_bytes().expect("is small");
    (header, (0..n_bytes).map(|n| (n as u8).wrapping_mul(31).wrapping_add(seed)).collect())
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(state in state(), step in 1..5000_usize) {
        for format in FORMATS {
            let files = write(format, &state, step);
            let back = read(format, "model", &files).expect("was just written");
            prop_assert_eq!(back.sorted(), state.clone().sorted(), "{}", format.name());
        }
    }

    #[test]
    fn a_plan_holds_every_byte_once_and_reads_none(state in state()) {
        for format in FORMATS {
            let plan = format.plan("model", &state.lend()).expect("can be saved");
            let mut seen = vec![0; state.tensors.len()];
            for piece in plan.files.iter().flat_map(|file| &file.pieces) {
                if let Piece::Tensor { index, range } = piece {
                    prop_assert_eq!(range.start, seen[*index]);
                    seen[*index] = range.end;
                }
            }
            let lens: Vec<u64> = state.tensors.iter().map(|(_, bytes)| bytes.len() as u64).collect();
            prop_assert_eq!(seen, lens);
            let mut other = state.clone();
            other.tensors.iter_mut().for_each(|(_, bytes)| bytes.fill(9));
            let again = format.plan("model", &other.lend()).expect("can be saved");
            prop_assert_eq!(&again.files, &plan.files);
            let sums = vec![7; state.tensors.len()];
            prop_assert_eq!(again.close(&sums), plan.close(&sums));
            let at_once: Vec<_> = plan.complete(&state.lend()).into_iter().map(|file| (file.name, file.len)).collect();
            let in_steps = write(format, &state, 4096).into_iter().map(|(name, bytes)| (name, bytes.len() as u64));
            prop_assert_eq!(at_once.into_iter().collect::<BTreeMap<_, _>>(), in_steps.collect());
        }
    }
}

#[test]
fn types_that_one_format_lacks_are_held_by_the_other() {
    for (name, has, lacks) in
        [("safetensors", &OF_SAFETENSORS[..], &OF_TENSORFLOW[..]), ("tensorflow", &OF_TENSORFLOW, &OF_SAFETENSORS)]
    {
        let format = named(name).expect("is in the table");
        let state = |dtype| {
            let header = Header { name: "w".to_owned(), dtype, shape: vec![8] };
            State { tensors: vec![filled(header, 3)], notes: BTreeMap::new() }
        };
        for &dtype in has {
            assert_eq!(read(format, "model", &write(format, &state(dtype), 64)).expect("just written"), state(dtype));
        }
        for &dtype in lacks {
            let said = format.plan("model", &state(dtype).lend()).expect_err("has no name for it").to_string();
            assert_eq!(said, format!("cannot save as {name}: tensor \"w\" has type {dtype:?}"));
        }
    }
}

#[test]
fn snapshots_that_cannot_be_saved_say_why() {
    let said = |format: &str, stem: &str, headers: &[(&str, &[u64])], n_bytes: usize| {
        let header = |(name, shape): &(&str, &[u64])| {
            let header = Header { name: (*name).to_owned(), dtype: Dtype::U8, shape: shape.to_vec() };
            (header, vec![0; n_bytes])
        };
        let state = State { tensors: headers.iter().map(header).collect(), notes: BTreeMap::new() };
        let plan = named(format).expect("is in the table").plan(stem, &state.lend());
        plan.expect_err("cannot be saved").to_string().replace(&format!("cannot save as {format}: "), "")
    };
    for format in ["safetensors", "tensorflow"] {
        assert_eq!(said(format, "a/b", &[], 0), "\"a/b\" is not a valid file name");
        assert_eq!(said(format, "m", &[("w", &[2]), ("w", &[2])], 2), "duplicate tensor name \"w\"");
        assert_eq!(
            said(format, "m", &[("w", &[2])], 3),
            "tensor \"w\" has 3 bytes, which does not match its shape (U8, [2])"
        );
        assert_eq!(
            said(format, "m", &[("w", &[u64::MAX, 2])], 3),
            format!("tensor \"w\" has 3 bytes, which does not match its shape (U8, [{}, 2])", u64::MAX)
        );
    }
    assert_eq!(said("safetensors", "m", &[("__metadata__", &[2])], 2), "\"__metadata__\" is not a valid tensor name");
    for name in ["", "\0w", "_forebay/notes/x"] {
        assert_eq!(said("tensorflow", "m", &[(name, &[2])], 2), format!("{name:?} is not a valid tensor name"));
    }
    assert_eq!(
        said("tensorflow", "m", &[("w", &[1; 255])], 1),
        "tensor \"w\" has 255 dimensions; at most 254 are supported"
    );
    let huge = said("tensorflow", "m", &[("w", &[0, u64::MAX])], 0);
    assert_eq!(huge, format!("tensor \"w\" has a dimension of size {}", u64::MAX));
}

/// Files that remember which ranges were asked for.
struct Watched {
    files: Files,
    asked: RefCell<Vec<(String, u64, usize)>>,
}

impl Source for Watched {
    fn size(&self, file: &str) -> io::Result<u64> {
        self.files.size(file)
    }

    fn read_at(&self, file: &str, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.asked.borrow_mut().push((file.to_owned(), offset, into.len()));
        self.files.read_at(file, offset, into)
    }
}

#[test]
fn one_tensor_is_read_without_the_rest() {
    for format in FORMATS {
        let state = example();
        let watched = Watched { files: write(format, &state, 4096), asked: RefCell::default() };
        let catalog = format.open("model", &watched).expect("was just written");
        let values: Vec<(u64, u64)> = catalog.tensors.iter().map(|e| (e.offset, e.offset + e.n_bytes)).collect();
        let file = &catalog.files[catalog.tensors[0].file];
        let touches = |(asked, from, len): &(String, u64, usize)| {
            asked == file && values.iter().any(|&(begin, end)| *from < end && begin < from + *len as u64)
        };
        assert!(!watched.asked.borrow().iter().any(touches), "{}: opening read values", format.name());
        watched.asked.borrow_mut().clear();
        let (header, bytes) = &state.tensors[1];
        assert_eq!(&catalog.read(&watched, &header.name).expect("is there"), bytes);
        assert_eq!(watched.asked.borrow().iter().map(|(_, _, len)| len).sum::<usize>(), bytes.len());
        let said = catalog.read(&watched, "nothing").expect_err("is not there").to_string();
        assert_eq!(said, "no tensor named \"nothing\"");
    }
}

#[test]
fn values_of_safetensors_begin_on_a_page_and_each_at_a_multiple_of_its_size() {
    let format = named("safetensors").expect("is in the table");
    let files = write(format, &example(), 100);
    let catalog = format.open("model", &files).expect("was just written");
    assert_eq!(catalog.tensors[0].offset % 4096, 0);
    assert!(catalog.tensors.iter().all(|entry| entry.offset % entry.header.dtype.size() as u64 == 0));
}
