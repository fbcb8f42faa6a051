//! A network's state as passed to a save: from host memory, or straight from its device.

use std::any::Any;
use std::borrow::Cow;
use std::io;
use std::sync::{Arc, OnceLock};

use forebay_checkpoint::format::Layout;
use forebay_checkpoint::{Dtype, Elsewhere, Header, Pages, Snapshot, Store, Tensor, Values};
use forebay_train::{Engine, Fetch, HostMemory, Network, Remote, Title, View};

/// A network whose state can be viewed in place.
pub(crate) trait Holder {
    /// For display.
    fn device(&self) -> String;

    fn view(&self) -> forebay_train::Result<View<'_>>;
}

impl<E: Engine> Holder for Network<E> {
    fn device(&self) -> String {
        self.describe_device()
    }

    fn view(&self) -> forebay_train::Result<View<'_>> {
        Self::view(self)
    }
}

pub(crate) fn headers(view: &View<'_>) -> Vec<Header> {
    let header = |title: &Title| Header {
        name: title.name.clone(),
        dtype: Dtype::F32,
        shape: title.shape.iter().map(|n| *n as u64).collect(),
    };
    view.titles.iter().map(header).collect()
}

/// # Panics
/// If values are on a device and none is given.
pub(crate) fn tensors<'a>(
    headers: &'a [Header],
    view: &'a View<'_>,
    device: Option<&'a OnDevice<'_>>,
) -> Vec<Tensor<'a>> {
    let there = |(index, header): (usize, &'a Header)| {
        let device = device.expect("values that are not in host memory are on a device");
        let n_bytes = header.n_bytes().expect("a network's tensors fit in memory");
        Tensor { header, bytes: Values::There { device, index, n_bytes } }
    };
    match &view.values {
        forebay_train::Values::Here(values) => {
            let here = |(header, values): (&'a Header, &'a Cow<'_, [f32]>)| Tensor {
                header,
                bytes: Values::Here(as_bytes(values)),
            };
            headers.iter().zip(values).map(here).collect()
        }
        forebay_train::Values::There(_) => headers.iter().enumerate().map(there).collect(),
    }
}

/// Allocates the store's pool before the first save. Its pages are locked if the state is on a device.
pub(crate) fn prepare(
    store: &Store,
    layout: &Layout,
    snapshot: &Snapshot<'_>,
) -> Result<(), forebay_checkpoint::Error> {
    match snapshot.device() {
        Some(device) => store.prepare_for(layout, device),
        None => store.prepare(layout),
    }
}

/// Values on a device, copied straight to the memory they are saved from.
pub(crate) struct OnDevice<'a> {
    remote: &'a dyn Remote,
    /// Why memory could not be locked.
    unlocked: OnceLock<String>,
}

impl<'a> OnDevice<'a> {
    /// `None` if the values are in host memory.
    pub(crate) fn of(view: &'a View<'_>) -> Option<Self> {
        match &view.values {
            forebay_train::Values::Here(_) => None,
            forebay_train::Values::There(remote) => Some(Self { remote: remote.as_ref(), unlocked: OnceLock::new() }),
        }
    }

    /// A note if memory could not be locked.
    pub(crate) fn doubt(&self) -> Option<String> {
        self.unlocked.get().map(|error| format!("states were copied twice on the host, which is slower: {error}"))
    }
}

impl Elsewhere for OnDevice<'_> {
    fn fetch(&self, fetches: &mut [forebay_checkpoint::Fetch<'_>]) -> io::Result<()> {
        self.remote.fetch(&mut fetches.iter_mut().map(piece).collect::<Vec<_>>()).map_err(io::Error::other)
    }

    fn lock(&self, pages: Arc<Pages>) -> io::Result<Option<Box<dyn Any + Send>>> {
        // Without locked pages the copy goes through the driver's own memory and is slower.
        let locked = self.remote.lock_pages(Arc::new(Pool(pages)));
        let locked = locked.inspect_err(|error| _ = self.unlocked.set(error.to_string()));
        Ok(locked.ok().map(|lock| Box::new(lock) as Box<dyn Any + Send>))
    }
}

fn piece<'a>(fetch: &'a mut forebay_checkpoint::Fetch<'_>) -> Fetch<'a> {
    Fetch { entry: fetch.index, offset: fetch.offset as usize, into: fetch.into }
}

struct Pool(Arc<Pages>);

impl HostMemory for Pool {
    fn address(&self) -> *const u8 {
        self.0.address()
    }

    fn n_bytes(&self) -> usize {
        self.0.n_bytes()
    }
}

fn as_bytes(values: &[f32]) -> &[u8] {
    // SAFETY: a float is four bytes, each of which may be anything; the slice covers the same memory.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
pub(crate) mod tests {
    use forebay_checkpoint::{Level, LocalFs, Mode, Options, Tier, format};

    use super::*;

    /// A device that holds the values of a network on the CPU.
    struct Far(Vec<Vec<u8>>);

    impl Remote for Far {
        fn fetch(&self, pieces: &mut [Fetch<'_>]) -> forebay_train::Result<()> {
            for Fetch { entry, offset, into } in pieces {
                into.copy_from_slice(&self.0[*entry][*offset..*offset + into.len()]);
            }
            Ok(())
        }

        fn lock_pages(&self, _memory: Arc<dyn HostMemory>) -> forebay_train::Result<forebay_train::PageLock> {
            Err(forebay_train::Error::Order("no page can be locked"))
        }
    }

    /// A network that holds two tensors on such a device.
    pub(crate) struct Fake(pub(crate) [Vec<f32>; 2]);

    impl Holder for Fake {
        fn device(&self) -> String {
            "a fake".to_owned()
        }

        fn view(&self) -> forebay_train::Result<View<'_>> {
            let title = |(name, values): (&str, &Vec<f32>)| Title { name: name.to_owned(), shape: vec![values.len()] };
            let far = Far(self.0.iter().map(|values| as_bytes(values).to_vec()).collect());
            let titles = ["w", "b"].into_iter().zip(&self.0).map(title).collect();
            Ok(View { n_steps: 1, titles, values: forebay_train::Values::There(Box::new(far)) })
        }
    }

    #[test]
    fn values_on_a_device_are_saved_as_those_in_memory_are() {
        let fake = Fake([vec![1.0_f32, 2.0, 3.0], vec![4.0_f32]]);
        let files = |view: &View<'_>| {
            let (headers, device) = (headers(view), OnDevice::of(view));
            let snapshot = Snapshot { tensors: tensors(&headers, view, device.as_ref()), ..Snapshot::default() };
            let dir = tempfile::tempdir().unwrap();
            let options = Options { mode: Mode::Async, ..Options::default() };
            let store = Store::open(vec![Tier::new(Arc::new(LocalFs), dir.path())], options).unwrap();
            let layout = format::FORMATS[0].plan("model", &snapshot).unwrap();
            store.save(1, None, &snapshot, &layout).unwrap().wait(Level::DurableSlow).unwrap();
            if let Some(device) = &device {
                let doubt = device.doubt().unwrap_or_default();
                assert!(doubt.contains("no page can be locked"), "a device that locks no pages is reported: {doubt:?}");
            }
            store.restore().unwrap().file("model.safetensors").unwrap().to_vec()
        };
        let far = fake.view().unwrap();
        let values = forebay_train::Values::Here(fake.0.iter().map(Cow::from).collect());
        let here = View { n_steps: 1, titles: far.titles.clone(), values };
        assert_eq!(files(&here), files(&far));
    }
}
