//! Batches that are lent: the same losses as copied ones, and given back as soon as they have left.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_train::{Cpu, Engine, Error, HostMemory, Labels, Lent, Model, Network, Settings};

use crate::golden::{assert_close, pixels};

const BATCH: usize = 2;

/// A part of a larger piece of memory, counted while it lives, as the pipeline's batches are.
struct Part {
    memory: Arc<Vec<f32>>,
    number: usize,
    len: usize,
    n_living: Arc<AtomicUsize>,
}

impl Lent for Part {
    fn floats(&self) -> &[f32] {
        &self.memory[self.number * self.len..][..self.len]
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.n_living.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Memory with several batches, to lend from.
struct Lender {
    memory: Arc<Vec<f32>>,
    len: usize,
    n_living: Arc<AtomicUsize>,
}

impl Lender {
    fn new(model: &Model, n_batches: usize) -> Self {
        let len = BATCH * model.input.len();
        Self { memory: Arc::new(pixels(n_batches * len)), len, n_living: Arc::default() }
    }

    fn lend(&self, number: usize) -> Box<Part> {
        self.n_living.fetch_add(1, Ordering::SeqCst);
        let (memory, n_living) = (Arc::clone(&self.memory), Arc::clone(&self.n_living));
        Box::new(Part { memory, number, len: self.len, n_living })
    }

    fn n_living(&self) -> usize {
        self.n_living.load(Ordering::SeqCst)
    }
}

fn network<E: Engine>(engine: E, model: &Model, places: usize) -> Network<E> {
    Network::new(engine, model, Settings { places, ..Settings::new(BATCH, 1) }).unwrap()
}

/// Trains on lent batches, one on its way while another is computed, with and without locked pages, and compares with copied ones.
pub(crate) fn check<E: Engine>(make: impl Fn() -> E, tolerance: f64) {
    const N_BATCHES: usize = 6;
    let model = Model::named("alexnet-small", 5).unwrap();
    let labels = Labels::Index(&[1, 2]);
    let lender = Lender::new(&model, N_BATCHES);
    let mut plain = network(make(), &model, 1);
    let want: Vec<f32> =
        lender.memory.chunks_exact(lender.len).map(|batch| plain.step(batch, labels).unwrap()).collect();
    for locks in [false, true] {
        let mut network = network(make(), &model, 2);
        let memory: Arc<dyn HostMemory> = Arc::clone(&lender.memory) as _;
        let lock = locks.then(|| network.lock_pages(memory).unwrap());
        network.stage_lent(lender.lend(0), labels).unwrap();
        let mut got = Vec::new();
        for next in 1..=N_BATCHES {
            network.start().unwrap();
            if next < N_BATCHES {
                network.stage_lent(lender.lend(next), labels).unwrap();
            }
            while !network.is_done().unwrap() {
                std::thread::yield_now();
            }
            got.push(network.finish().unwrap());
            network.wait_arrived().unwrap();
            assert_eq!(lender.n_living(), 0, "all have left the host, locked: {locks}");
        }
        assert_close("losses", &got, &want, tolerance);
        network.stage_lent(lender.lend(0), labels).unwrap();
        drop(lock);
        drop(network);
        assert_eq!(lender.n_living(), 0, "a network keeps nothing, locked: {locks}");
    }
}

#[test]
fn lent_batches_give_the_losses_of_copied_ones_on_the_cpu_and_come_back() {
    check(|| Cpu::new(2).unwrap(), 0.0);
}

#[test]
fn a_lent_batch_of_the_wrong_length_is_refused_and_comes_back() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let mut network = network(Cpu::new(1).unwrap(), &model, 1);
    let lender = Lender { len: 7, ..Lender::new(&model, 1) };
    let error = network.stage_lent(lender.lend(0), Labels::Index(&[1, 2])).unwrap_err();
    let expected = BATCH * model.input.len();
    assert_eq!(error.to_string(), format!("the images of a step: expected {expected} values, found 7"));
    assert_eq!(lender.n_living(), 0);
    assert_eq!(network.n_free(), 1, "its place is free");
}

#[test]
fn a_lent_batch_with_no_place_is_refused_and_comes_back() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let mut network = network(Cpu::new(1).unwrap(), &model, 1);
    let (lender, labels) = (Lender::new(&model, 1), Labels::Index(&[1, 2]));
    network.stage_lent(lender.lend(0), labels).unwrap();
    assert_eq!(network.n_free(), 0);
    let error = network.stage_lent(lender.lend(0), labels).unwrap_err();
    assert_eq!(error.to_string(), "no input slot is free");
    assert_eq!(lender.n_living(), 0);
}

#[test]
fn asking_after_a_step_that_was_not_started_is_an_error() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let mut network = network(Cpu::new(1).unwrap(), &model, 1);
    let images = pixels(BATCH * model.input.len());
    assert!(matches!(network.is_done(), Err(Error::Order("`is_done` called without a started step"))));
    network.stage(&images, Labels::Index(&[1, 2])).unwrap();
    assert!(matches!(network.is_done(), Err(Error::Order(_))), "staged is not started");
    network.start().unwrap();
    assert!(network.is_done().unwrap());
    network.finish().unwrap();
    assert!(matches!(network.is_done(), Err(Error::Order(_))), "it was finished");
}
