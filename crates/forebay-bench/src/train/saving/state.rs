//! The state of what is trained, as tensors and back.

use std::any::Any;
use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use forebay_checkpoint::format::{Catalog, Error as FormatError};
use forebay_checkpoint::{Dtype, Elsewhere, Header, Pages, Restored, Tensor, Values};
use forebay_train::{Entry, Fetch, HostMemory, Remote, State, Title, View};

/// Bytes of a tensor of a state that is made up.
const MADE_TENSOR: u64 = 16 << 20;

/// Names and shapes of a network's state.
pub(super) fn headers(view: &View<'_>) -> Vec<Header> {
    let header = |title: &Title| Header {
        name: title.name.clone(),
        dtype: Dtype::F32,
        shape: title.shape.iter().map(|n| *n as u64).collect(),
    };
    view.titles.iter().map(header).collect()
}

/// A network's state, where it lies.
pub(super) fn tensors<'a>(
    headers: &'a [Header],
    view: &'a View<'_>,
    device: Option<&'a OnDevice<'_>>,
) -> Vec<Tensor<'a>> {
    let there = |(index, header): (usize, &'a Header)| {
        let device = device.expect("values that are not here are on a device");
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

/// Values on a device, fetched straight to where they are saved from.
pub(super) struct OnDevice<'a>(&'a dyn Remote);

impl<'a> OnDevice<'a> {
    /// `None` where the values are in the host's memory.
    pub(super) fn of(view: &'a View<'_>) -> Option<Self> {
        match &view.values {
            forebay_train::Values::Here(_) => None,
            forebay_train::Values::There(remote) => Some(Self(remote.as_ref())),
        }
    }
}

impl Elsewhere for OnDevice<'_> {
    fn fetch(&self, fetches: &mut [forebay_checkpoint::Fetch<'_>]) -> io::Result<()> {
        self.0.fetch(&mut fetches.iter_mut().map(piece).collect::<Vec<_>>()).map_err(io::Error::other)
    }

    fn lock(&self, pages: Arc<Pages>) -> io::Result<Option<Box<dyn Any + Send>>> {
        // Where the system locks no more, the copy goes through the driver's own memory, and is slower.
        Ok(self.0.lock_pages(Arc::new(Pool(pages))).ok().map(|lock| Box::new(lock) as Box<dyn Any + Send>))
    }
}

/// The same request, as a device knows it.
fn piece<'a>(fetch: &'a mut forebay_checkpoint::Fetch<'_>) -> Fetch<'a> {
    Fetch { entry: fetch.index, offset: fetch.offset as usize, into: fetch.into }
}

/// Memory of the pool, as a device knows it.
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

/// The state of a network as a checkpoint has it.
pub(super) fn loaded<'a>(restored: &'a Restored, catalog: &Catalog) -> Result<State<'a>, FormatError> {
    let mut entries = Vec::with_capacity(catalog.tensors.len());
    for tensor in &catalog.tensors {
        let name = tensor.header.name.clone();
        let file = restored.file(&catalog.files[tensor.file]).unwrap_or_default();
        let bytes = file.get(tensor.offset as usize..(tensor.offset + tensor.n_bytes) as usize);
        let bytes = bytes.ok_or_else(|| FormatError::NoTensor { name: name.clone() })?;
        let shape = tensor.header.shape.iter().map(|n| *n as usize).collect();
        entries.push(Entry { name, shape, values: as_floats(bytes) });
    }
    Ok(State { n_steps: restored.name.step, entries })
}

/// Borrowed where they are aligned, which they are unless another program wrote them.
fn as_floats(bytes: &[u8]) -> Cow<'_, [f32]> {
    // SAFETY: every bit pattern is a float.
    let (before, floats, after) = unsafe { bytes.align_to::<f32>() };
    if before.is_empty() && after.is_empty() {
        return Cow::Borrowed(floats);
    }
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| f32::from_le_bytes(*word)).collect()
}

/// A state for what has none: bytes without any pattern, so that nothing on the way can make them fewer.
pub(super) struct Made {
    headers: Vec<Header>,
    values: Vec<Vec<u8>>,
}

impl Made {
    pub(super) fn new(n_bytes: u64, seed: u64) -> Self {
        let mut draw = seed;
        let lens = (0..n_bytes.div_ceil(MADE_TENSOR)).map(|at| MADE_TENSOR.min(n_bytes - at * MADE_TENSOR));
        let (mut headers, mut values) = (Vec::new(), Vec::new());
        for (at, len) in lens.enumerate() {
            headers.push(Header { name: format!("state.{at:04}"), dtype: Dtype::U8, shape: vec![len] });
            let mut bytes = Vec::with_capacity(len as usize + 8);
            while bytes.len() < len as usize {
                // The steps of SplitMix64: small, and the same on every machine.
                draw = draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (draw ^ (draw >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                bytes.extend_from_slice(&(mixed ^ (mixed >> 27)).to_le_bytes());
            }
            bytes.truncate(len as usize);
            values.push(bytes);
        }
        Self { headers, values }
    }

    pub(super) fn tensors(&self) -> Vec<Tensor<'_>> {
        self.headers.iter().zip(&self.values).map(|(header, bytes)| Tensor { header, bytes: bytes.into() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use forebay_checkpoint::{Level, LocalFs, Mode, Options, Snapshot, Store, Tier, format};

    use super::*;

    /// A device whose values are those of a network on the CPU.
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

    #[test]
    fn values_on_a_device_are_saved_as_those_in_memory_are() {
        let values = [vec![1.0_f32, 2.0, 3.0], vec![4.0_f32]];
        let title = |name: &str, n| Title { name: name.to_owned(), shape: vec![n] };
        let view = |values| View { n_steps: 1, titles: vec![title("w", 3), title("b", 1)], values };
        let files = |view: &View<'_>| {
            let (headers, device) = (headers(view), OnDevice::of(view));
            let snapshot = Snapshot { tensors: tensors(&headers, view, device.as_ref()), ..Snapshot::default() };
            let dir = tempfile::tempdir().unwrap();
            let options = Options { mode: Mode::Async, ..Options::default() };
            let store = Store::open(vec![Tier::new(Arc::new(LocalFs), dir.path())], options).unwrap();
            let layout = format::FORMATS[0].plan("model", &snapshot).unwrap();
            store.save(1, None, &snapshot, &layout).unwrap().wait(Level::DurableSlow).unwrap();
            store.restore().unwrap().file("model.safetensors").unwrap().to_vec()
        };
        let here = view(forebay_train::Values::Here(values.iter().map(Cow::from).collect()));
        let far = Far(values.iter().map(|values| as_bytes(values).to_vec()).collect());
        assert_eq!(files(&here), files(&view(forebay_train::Values::There(Box::new(far)))));
    }

    #[test]
    fn a_state_that_is_made_up_has_the_size_that_was_asked_for() {
        let made = Made::new((16 << 20) + 5, 3);
        let lens: Vec<u64> = made.tensors().iter().map(|tensor| tensor.bytes.n_bytes()).collect();
        assert_eq!(lens, [16 << 20, 5]);
        assert!(made.tensors().iter().all(|tensor| tensor.header.n_bytes() == Some(tensor.bytes.n_bytes())));
        assert_ne!(made.values[0][..8], made.values[0][8..16]);
    }

    #[test]
    fn floats_are_the_same_wherever_they_lie() {
        let bytes: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        for at in 0..4 {
            let shifted: Vec<u8> = std::iter::repeat_n(0, at).chain(bytes.iter().copied()).collect();
            assert_eq!(as_floats(&shifted[at..]).as_ref(), [1.5, -2.0], "{at} bytes further on");
        }
        assert_eq!(as_bytes(&[1.5, -2.0]), bytes);
    }
}
