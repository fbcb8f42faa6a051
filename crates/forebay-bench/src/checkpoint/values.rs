//! The state to save: tensors of a network, with values that do not compress.

use std::sync::atomic::{AtomicBool, Ordering};

use forebay_checkpoint::{Dtype, Header, Region, Snapshot, Tensor};
use forebay_train::{Cpu, Cuda, Engine, Labels, Model, Network, Precision, Settings};
use forebay_units::Bytes;
use forebay_units::random::Random;

use super::device::{self, Holder, OnDevice};
use super::plan::CLASSES;
use super::{Error, Plan, StateDevice, bare};

/// Names and shapes as in torchvision.
const ALEXNET: [(&str, &[u64]); 16] = [
    ("features.0.weight", &[64, 3, 11, 11]),
    ("features.0.bias", &[64]),
    ("features.3.weight", &[192, 64, 5, 5]),
    ("features.3.bias", &[192]),
    ("features.6.weight", &[384, 192, 3, 3]),
    ("features.6.bias", &[384]),
    ("features.8.weight", &[256, 384, 3, 3]),
    ("features.8.bias", &[256]),
    ("features.10.weight", &[256, 256, 3, 3]),
    ("features.10.bias", &[256]),
    ("classifier.1.weight", &[4096, 9216]),
    ("classifier.1.bias", &[4096]),
    ("classifier.4.weight", &[4096, 4096]),
    ("classifier.4.bias", &[4096]),
    ("classifier.6.weight", &[1000, 4096]),
    ("classifier.6.bias", &[1000]),
];
/// Suffixes of the parameters and of Adam's moments of each.
const COPIES: [&str; 3] = ["", ".m", ".v"];
/// Maximum size of the tensors that fill the remaining bytes.
const FILLER_BYTES: u64 = 64 << 20;
/// Bytes generated between two checks for cancellation; a multiple of the size of a random number.
const PIECE: usize = 16 << 20;

/// A state in memory, its tensors end to end; with the network it is a copy of, if that is saved instead.
pub(super) struct Values {
    /// For display.
    pub(super) what: String,
    headers: Vec<Header>,
    memory: Region,
    n_bytes: usize,
    /// Set if its memory is on a device.
    holder: Option<Box<dyn Holder>>,
}

impl Values {
    /// Generates the state; `None` if cancelled.
    pub(super) fn of(plan: &Plan, cancel: &AtomicBool) -> Result<Option<Self>, Error> {
        let settings = &plan.settings;
        let Some(name) = &settings.model else {
            return Self::of_size(settings.state_bytes(), settings.seed, cancel);
        };
        Ok(Some(match settings.device {
            Some(StateDevice::Cuda(ordinal)) => {
                let cuda = Cuda::with_folders(ordinal, Precision::F32, &plan.cuda_folders)?;
                Self::held(with_adam(name), Box::new(after_a_step(name, cuda, settings.seed)?))?
            }
            Some(StateDevice::Cpu) | None => {
                let network = after_a_step(name, Cpu::new(0)?, settings.seed)?;
                Self { holder: None, ..Self::held(with_adam(name), Box::new(network))? }
            }
        }))
    }

    fn of_size(bytes: u64, seed: u64, cancel: &AtomicBool) -> Result<Option<Self>, Error> {
        let headers = headers_of(bytes);
        let n_bytes = headers.iter().filter_map(Header::n_bytes).sum::<u64>() as usize;
        let mut memory = Region::new(n_bytes)?;
        let mut random = Random::stream(seed, 0);
        for piece in memory[..n_bytes].chunks_mut(PIECE) {
            if cancel.load(Ordering::Relaxed) {
                return Ok(None);
            }
            random.fill(piece);
            piece.chunks_exact_mut(4).for_each(make_finite);
        }
        let what = format!("{} in {} tensors", Bytes(n_bytes as u64), headers.len());
        Ok(Some(Self { what, headers, memory, n_bytes, holder: None }))
    }

    /// Keeps a copy for comparison.
    pub(super) fn held(what: String, holder: Box<dyn Holder>) -> Result<Self, Error> {
        let view = holder.view()?;
        let headers = device::headers(&view);
        drop(view);
        let n_bytes = headers.iter().map(n_bytes_of).sum();
        let what = format!("{what}, {}", Bytes(n_bytes as u64));
        let mut values = Self { what, headers, memory: Region::new(0)?, n_bytes, holder: Some(holder) };
        let mut memory = Region::new(n_bytes)?;
        values.copy_s(&mut memory)?;
        values.memory = memory;
        Ok(values)
    }

    /// `None` for host memory.
    pub(super) fn device(&self) -> Option<String> {
        self.holder.as_ref().map(|holder| holder.device())
    }

    /// Seconds of a plain copy.
    pub(super) fn copy_s(&self, into: &mut Region) -> Result<f64, Error> {
        if self.holder.is_none() {
            return Ok(bare::copy_s(self.bytes(), into));
        }
        self.with_snapshot(|snapshot| Ok(bare::fetch_s(snapshot, into)?))
    }

    /// Allocates memory for copies, touched, and locked for the state's device.
    pub(super) fn memory_for_copies(&self, cancel: &AtomicBool) -> Result<Region, Error> {
        let mut copy = Region::new(self.n_bytes)?;
        copy.fault_in_until(cancel);
        self.with_snapshot(|snapshot| Ok(snapshot.device().map_or(Ok(()), |device| copy.lock_for(device))?))?;
        Ok(copy)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[..self.n_bytes]
    }

    pub(super) fn n_tensors(&self) -> u64 {
        self.headers.len() as u64
    }

    pub(super) fn tensors(&self) -> impl Iterator<Item = (&Header, &[u8])> {
        let mut rest = self.bytes();
        self.headers.iter().map(move |header| {
            let (bytes, others) = rest.split_at(n_bytes_of(header));
            rest = others;
            (header, bytes)
        })
    }

    /// Passes the state to a save without copying it first.
    pub(super) fn with_snapshot<T>(&self, act: impl FnOnce(&Snapshot<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let Some(holder) = &self.holder else {
            let tensors = self.tensors().map(|(header, bytes)| Tensor::new(header, bytes));
            return act(&Snapshot { tensors: tensors.collect(), ..Snapshot::default() });
        };
        let view = holder.view()?;
        let there = OnDevice::of(&view);
        let tensors = device::tensors(&self.headers, &view, there.as_ref());
        act(&Snapshot { tensors, ..Snapshot::default() })
    }
}

fn with_adam(name: &str) -> String {
    format!("{name} with adam")
}

/// Makes one step, because the moments are zero before it.
fn after_a_step<E: Engine>(name: &str, engine: E, seed: u64) -> Result<Network<E>, Error> {
    let model = Model::named(name, CLASSES)?;
    let mut network = Network::new(engine, &model, Settings::new(1, seed))?;
    let n_values = model.input.height * model.input.width * model.input.channels;
    let mut random = Random::stream(seed, 1);
    let image: Vec<f32> = (0..n_values).map(|_| (random.bits() >> 40) as f32 / (1 << 24) as f32).collect();
    network.step(&image, Labels::Index(&[0]))?;
    Ok(network)
}

fn n_bytes_of(header: &Header) -> usize {
    header.n_bytes().expect("its memory was allocated") as usize
}

/// AlexNet's parameters and moments as far as they fit, then filler tensors.
fn headers_of(bytes: u64) -> Vec<Header> {
    let (mut headers, mut left) = (Vec::new(), bytes / 4 * 4);
    for copy in COPIES {
        for (name, shape) in ALEXNET {
            let header = Header { name: format!("{name}{copy}"), dtype: Dtype::F32, shape: shape.to_vec() };
            let n_bytes = n_bytes_of(&header) as u64;
            if n_bytes <= left {
                left -= n_bytes;
                headers.push(header);
            }
        }
    }
    for n in 0.. {
        if left == 0 {
            break;
        }
        let n_bytes = left.min(FILLER_BYTES);
        left -= n_bytes;
        headers.push(Header { name: format!("filler.{n}"), dtype: Dtype::F32, shape: vec![n_bytes / 4] });
    }
    headers
}

/// Clears the exponent of infinities and NaNs.
fn make_finite(value: &mut [u8]) {
    if value[3] & 0x7F == 0x7F && value[2] & 0x80 != 0 {
        value[3] &= 0xBF;
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::tests::Fake;
    use super::*;

    #[test]
    fn a_state_has_exactly_its_size_whatever_that_is() {
        for bytes in [4, 1_000, 1_234_567, 99_999_996] {
            let values = Values::of_size(bytes, 1, &AtomicBool::new(false)).unwrap().unwrap();
            let n_bytes = values.with_snapshot(|snapshot| Ok(snapshot.n_bytes())).unwrap();
            assert_eq!((n_bytes, values.device()), (bytes / 4 * 4, None));
            assert!(values.tensors().all(|(header, bytes)| header.n_bytes() == Some(bytes.len() as u64)));
        }
        let headers = headers_of(600_000_000);
        assert_eq!(headers.iter().filter_map(Header::n_bytes).sum::<u64>(), 600_000_000);
        assert!(headers.len() > 32, "{} tensors", headers.len());
    }

    #[test]
    fn values_are_numbers_and_follow_the_seed() {
        let of = |seed| Values::of_size(400_000, seed, &AtomicBool::new(false)).unwrap().unwrap();
        let is_number = |value: &[u8]| f32::from_le_bytes(value.try_into().unwrap()).is_finite();
        assert!(of(1).bytes().chunks(4).all(is_number));
        assert_eq!(of(1).bytes(), of(1).bytes());
        assert_ne!(of(1).bytes(), of(2).bytes());
    }

    #[test]
    fn a_networks_state_is_its_weights_and_two_moments_that_are_not_zero() {
        let network = after_a_step("alexnet-small", Cpu::new(0).unwrap(), 1).unwrap();
        let values = Values::held(with_adam("alexnet-small"), Box::new(network)).unwrap();
        let parameters = Model::named("alexnet-small", CLASSES).unwrap().n_parameters().unwrap();
        assert_eq!(values.bytes().len(), 3 * 4 * parameters);
        assert!(values.bytes()[2 * 4 * parameters..].iter().any(|byte| *byte != 0));
        assert!(values.what.starts_with("alexnet-small with adam, "), "{}", values.what);
    }
    #[test]
    fn a_state_on_a_device_is_lent_from_there_and_copied_from_there() {
        let values = Values::held("two tensors".to_owned(), Box::new(Fake([vec![1.5; 3], vec![-2.0]]))).unwrap();
        assert_eq!((values.n_tensors(), values.device().as_deref()), (2, Some("a fake")));
        let expected: Vec<u8> = [1.5_f32, 1.5, 1.5, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(values.bytes(), expected);
        let is_there = |snapshot: &Snapshot<'_>| Ok(snapshot.tensors.iter().all(|t| t.bytes.here().is_none()));
        assert!(values.with_snapshot(is_there).unwrap());
        let mut copy = values.memory_for_copies(&AtomicBool::new(false)).unwrap();
        assert!(values.copy_s(&mut copy).unwrap() >= 0.0);
        assert_eq!(copy[..expected.len()], expected);
    }
}
