//! The state that is saved: tensors as a network has them, with values that no device can shrink.

use forebay_checkpoint::{Dtype, Header, Region, Snapshot, Tensor};
use forebay_train::{Cpu, Labels, Model, Network, Settings};
use forebay_units::Bytes;

use super::{Error, State};
use crate::probe::Random;

/// AlexNet's parameters, as torchvision names them.
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
/// The parameters, and what an optimiser keeps of each.
const COPIES: [&str; 3] = ["", ".m", ".v"];
/// The largest tensor that fills up what is left.
const FILLER_BYTES: u64 = 64 << 20;
/// Classes of a network whose state is saved.
const CLASSES: usize = 1000;

/// A state in memory, its tensors end to end.
pub(super) struct Values {
    /// What it is, in words.
    pub(super) what: String,
    headers: Vec<Header>,
    memory: Region,
    n_bytes: usize,
}

impl Values {
    /// The state of a plan.
    pub(super) fn of(state: &State, seed: u64) -> Result<Self, Error> {
        match state {
            State::Bytes(bytes) => Self::of_size(*bytes, seed),
            State::Model(name) => Self::of_model(name, seed),
        }
    }

    fn of_size(bytes: u64, seed: u64) -> Result<Self, Error> {
        let headers = headers_of(bytes);
        let n_bytes = headers.iter().filter_map(Header::n_bytes).sum::<u64>() as usize;
        let mut memory = Region::new(n_bytes)?;
        Random::new(seed, 0).fill(&mut memory[..n_bytes]);
        memory[..n_bytes].chunks_exact_mut(4).for_each(make_finite);
        let what = format!("{} in {} tensors", Bytes(n_bytes as u64), headers.len());
        Ok(Self { what, headers, memory, n_bytes })
    }

    /// Weights and moments after one step, so that the moments are not all zero.
    fn of_model(name: &str, seed: u64) -> Result<Self, Error> {
        let model = Model::named(name, CLASSES)?;
        let mut network = Network::new(Cpu::new(0)?, &model, Settings::new(1, seed))?;
        let n_values = model.input.height * model.input.width * model.input.channels;
        let mut random = Random::new(seed, 1);
        let image: Vec<f32> = (0..n_values).map(|_| (random.bits() >> 40) as f32 / (1 << 24) as f32).collect();
        network.step(&image, Labels::Index(&[0]))?;
        let state = network.state()?;
        let n_bytes = state.entries.iter().map(|entry| entry.values.len() * 4).sum();
        let (mut memory, mut at, mut headers) = (Region::new(n_bytes)?, 0, Vec::new());
        for entry in &state.entries {
            for value in entry.values.iter() {
                memory[at..at + 4].copy_from_slice(&value.to_le_bytes());
                at += 4;
            }
            let shape = entry.shape.iter().map(|n| *n as u64).collect();
            headers.push(Header { name: entry.name.clone(), dtype: Dtype::F32, shape });
        }
        Ok(Self { what: format!("{name} with adam, {}", Bytes(n_bytes as u64)), headers, memory, n_bytes })
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.memory[..self.n_bytes]
    }

    pub(super) fn n_tensors(&self) -> u64 {
        self.headers.len() as u64
    }

    /// Each tensor with its values.
    pub(super) fn tensors(&self) -> impl Iterator<Item = (&Header, &[u8])> {
        let mut rest = self.bytes();
        self.headers.iter().map(move |header| {
            let (bytes, others) = rest.split_at(n_bytes_of(header));
            rest = others;
            (header, bytes)
        })
    }

    /// The state as it is lent to be saved.
    pub(super) fn snapshot(&self) -> Snapshot<'_> {
        let tensors = self.tensors().map(|(header, bytes)| Tensor::new(header, bytes));
        Snapshot { tensors: tensors.collect(), ..Snapshot::default() }
    }
}

fn n_bytes_of(header: &Header) -> usize {
    header.n_bytes().expect("memory for it was had") as usize
}

/// AlexNet's parameters and their moments as far as they fit, and one or more tensors that fill up the rest.
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

/// Any bits but those that are no number.
fn make_finite(value: &mut [u8]) {
    if value[3] & 0x7F == 0x7F && value[2] & 0x80 != 0 {
        value[3] &= 0xBF;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_exactly_its_size_whatever_that_is() {
        for bytes in [4, 1_000, 1_234_567, 99_999_996] {
            let values = Values::of(&State::Bytes(bytes), 1).unwrap();
            let snapshot = values.snapshot();
            assert_eq!(snapshot.n_bytes(), bytes / 4 * 4);
            assert!(values.tensors().all(|(header, bytes)| header.n_bytes() == Some(bytes.len() as u64)));
        }
        let headers = headers_of(600_000_000);
        assert_eq!(headers.iter().filter_map(Header::n_bytes).sum::<u64>(), 600_000_000);
        assert!(headers.len() > 32, "{} tensors", headers.len());
    }

    #[test]
    fn values_are_numbers_and_follow_the_seed() {
        let of = |seed| Values::of(&State::Bytes(400_000), seed).unwrap();
        let is_number = |value: &[u8]| f32::from_le_bytes(value.try_into().unwrap()).is_finite();
        assert!(of(1).bytes().chunks(4).all(is_number));
        assert_eq!(of(1).bytes(), of(1).bytes());
        assert_ne!(of(1).bytes(), of(2).bytes());
    }

    #[test]
    fn a_networks_state_is_its_weights_and_two_moments_that_are_not_zero() {
        let values = Values::of(&State::Model("alexnet-small".to_owned()), 1).unwrap();
        let parameters = Model::named("alexnet-small", CLASSES).unwrap().n_parameters().unwrap();
        assert_eq!(values.bytes().len(), 3 * 4 * parameters);
        assert!(values.bytes()[2 * 4 * parameters..].iter().any(|byte| *byte != 0));
        assert!(values.what.starts_with("alexnet-small with adam, "), "{}", values.what);
    }
}
