//! A state that is not in the host's memory.

use std::any::Any;
use std::io;
use std::sync::Mutex;

use super::formats::Model;
use super::*;
use crate::format::{FORMATS, Format};
use crate::source::{Planned, Source};
use crate::{Elsewhere, Fetch, LocalFs, Pages, Region, Values};

/// Memory that the host can have only by asking, and what it was asked.
#[derive(Default)]
struct Device {
    values: Vec<Vec<u8>>,
    asked: Mutex<Asked>,
    /// Every lock that is held has one of these.
    held: Arc<()>,
}

#[derive(Default, Debug, PartialEq)]
struct Asked {
    n_calls: usize,
    n_ranges: usize,
    n_bytes: usize,
    n_locks: usize,
    fails: bool,
}

impl Elsewhere for Device {
    fn fetch(&self, fetches: &mut [Fetch<'_>]) -> io::Result<()> {
        let mut asked = self.asked.lock().unwrap();
        if asked.fails {
            return Err(io::Error::other("the device fell off its bus"));
        }
        asked.n_calls += 1;
        for fetch in fetches {
            asked.n_ranges += 1;
            asked.n_bytes += fetch.into.len();
            fetch.into.copy_from_slice(&self.values[fetch.index][fetch.offset as usize..][..fetch.into.len()]);
        }
        Ok(())
    }

    fn lock(&self, pages: Arc<Pages>) -> io::Result<Option<Box<dyn Any + Send>>> {
        assert!(pages.n_bytes() > 0 && (pages.address() as usize).is_multiple_of(4096));
        self.asked.lock().unwrap().n_locks += 1;
        Ok(Some(Box::new((pages, Arc::clone(&self.held)))))
    }
}

/// The model with its greater tensors on a device, which numbers them in its own way.
fn moved(model: &Model) -> Device {
    let mut values: Vec<Vec<u8>> = model.values().to_vec();
    values.reverse();
    Device { values, ..Device::default() }
}

fn snapshot<'a>(model: &'a Model, device: &'a Device) -> Snapshot<'a> {
    let mut snapshot = model.snapshot();
    let last = snapshot.tensors.len() - 1;
    for (k, tensor) in snapshot.tensors.iter_mut().enumerate().skip(1) {
        tensor.bytes = Values::There { device, index: last - k, n_bytes: tensor.bytes.n_bytes() };
    }
    snapshot
}

fn save(store: &Store, format: &dyn Format, step: u64, snapshot: &Snapshot<'_>) -> Result<Handle> {
    store.save(step, None, snapshot, &format.plan("model", snapshot).unwrap())
}

#[test]
fn every_mode_saves_what_is_on_a_device_and_fetches_each_byte_once() {
    for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
        for format in FORMATS {
            let store = Store::open(two_tiers(Arc::new(model())), options(mode)).unwrap();
            let model = Model::of(3);
            let device = moved(&model);
            let snapshot = snapshot(&model, &device);
            save(&store, format, 7, &snapshot).unwrap().wait(Level::DurableSlow).unwrap();
            assert!(model.is_in(&store.restore().unwrap(), format), "{mode:?}");
            let asked = device.asked.lock().unwrap();
            let n_bytes: usize = model.values()[1..].iter().map(Vec::len).sum();
            assert_eq!(asked.n_bytes, n_bytes, "{mode:?} {}", format.name());
            if mode == Mode::Async {
                assert_eq!((asked.n_calls, asked.n_ranges, asked.n_locks), (1, 3, 1));
            } else {
                assert!(asked.n_calls > 3 && asked.n_locks == 0, "a chunk at a time: {asked:?}");
            }
        }
    }
}

#[test]
fn memory_is_locked_once_and_let_go_with_the_store() {
    let store = Store::open(two_tiers(Arc::new(model())), options(Mode::Async)).unwrap();
    let model = Model::of(3);
    let device = moved(&model);
    let snapshot = snapshot(&model, &device);
    let layout = FORMATS[0].plan("model", &snapshot).unwrap();
    store.prepare_for(&layout, &device).unwrap();
    assert_eq!(device.asked.lock().unwrap().n_locks, 1);
    for step in 0..3 {
        store.save(step, None, &snapshot, &layout).unwrap().wait(Level::DurableFast).unwrap();
    }
    assert_eq!((device.asked.lock().unwrap().n_locks, Arc::strong_count(&device.held)), (1, 2));
    drop(store);
    assert_eq!(Arc::strong_count(&device.held), 1);
}

#[test]
fn a_device_that_fails_fails_the_save_and_the_next_one_works() {
    for mode in [Mode::Direct, Mode::Burst, Mode::Async] {
        let store = Store::open(two_tiers(Arc::new(model())), options(mode)).unwrap();
        let model = Model::of(3);
        let device = moved(&model);
        let snapshot = snapshot(&model, &device);
        device.asked.lock().unwrap().fails = true;
        assert!(matches!(save(&store, FORMATS[0], 1, &snapshot), Err(Error::Fetch { .. })), "{mode:?}");
        device.asked.lock().unwrap().fails = false;
        save(&store, FORMATS[0], 2, &snapshot).unwrap().wait(Level::DurableSlow).unwrap();
        assert!(model.is_in(&store.restore().unwrap(), FORMATS[0]));
        assert_eq!(store.close().counts.saved, 1);
    }
}

#[test]
fn page_aligned_values_are_written_from_where_they_are() {
    const N: usize = 3 * 4096;
    let mut region = Region::new(N + 4096).unwrap();
    region.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 253) as u8);
    let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![N as u64] };
    for (from, is_in_place) in [(0, true), (4096, true), (1, false)] {
        let values = &region[from..from + N];
        let snapshot = Snapshot { tensors: vec![Tensor::new(&header, values)], ..Snapshot::default() };
        let layout = FORMATS[0].plan("model", &snapshot).unwrap();
        let source = Planned { layout: &layout, snapshot: &snapshot, pace: &Pace::free() };
        let start = layout.files[0].len - N as u64;
        assert_eq!(start % 4096, 0, "where direct writes begin");
        for (k, wanted) in values.chunks(4096).enumerate() {
            let mut scratch = [0; 4096];
            let (bytes, _) = source.bytes(0, start + k as u64 * 4096, 4096, &mut scratch).unwrap();
            assert_eq!((bytes.as_ptr() == wanted.as_ptr(), bytes), (is_in_place, wanted), "chunk {k} from {from} on");
        }
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(vec![Tier::new(Arc::new(LocalFs), dir.path())], options(Mode::Direct)).unwrap();
        store.save(1, None, &snapshot, &layout).unwrap();
        let restored = store.restore().unwrap();
        let files = restored.by_name();
        assert_eq!(FORMATS[0].open("model", &files).unwrap().read(&files, "w").unwrap(), *values);
    }
}
