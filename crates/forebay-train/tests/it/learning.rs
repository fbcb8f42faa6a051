//! Networks learn.

use forebay_train::optimizer::Adam;
use forebay_train::{Cpu, Engine, Labels, Model, Network, Optimizer, Settings, Shape};

use crate::golden::pixels;

const N_CLASSES: usize = 4;
const BATCH: usize = 16;

/// Noise with a patch that is bright in one of four quarters, and the quarter's number.
fn samples(n: usize, shape: Shape) -> (Vec<f32>, Vec<i64>) {
    let mut images = pixels(n * shape.len());
    let labels: Vec<i64> = (0..n as i64).map(|i| (i * 7 + i / 4) % N_CLASSES as i64).collect();
    for (image, label) in images.chunks_exact_mut(shape.len()).zip(&labels) {
        let (bottom, right) = (label / 2 == 1, label % 2 == 1);
        for (i, value) in image.iter_mut().enumerate() {
            let (y, x) = (i / shape.channels / shape.width, i / shape.channels % shape.width);
            let bright = (y >= shape.height / 2) == bottom && (x >= shape.width / 2) == right;
            *value = *value * 0.5 + if bright { 0.4 } else { 0.0 };
        }
    }
    (images, labels)
}

/// Trains on a tiny set and gives the share of it that is told rightly afterwards.
pub(crate) fn learn<E: Engine>(engine: E, name: &str, n_epochs: usize) -> f64 {
    let model = Model::named(name, N_CLASSES).unwrap();
    let (images, labels) = samples(4 * BATCH, model.input);
    let optimizer = Optimizer::Adam(Adam { learning_rate: 3e-3, ..Adam::default() });
    let mut network = Network::new(engine, &model, Settings { optimizer, ..Settings::new(BATCH, 1) }).unwrap();
    let batches = || images.chunks_exact(BATCH * model.input.len()).zip(labels.chunks_exact(BATCH));
    for _ in 0..n_epochs {
        for (images, labels) in batches() {
            network.step(images, Labels::Index(labels)).unwrap();
        }
    }
    let n_right: usize =
        batches().map(|(images, labels)| network.evaluate(images, Labels::Index(labels)).unwrap().n_right).sum();
    n_right as f64 / labels.len() as f64
}

#[test]
fn at_first_all_classes_are_nearly_alike() {
    let model = Model::named("alexnet-small", 102).unwrap();
    let images: Vec<f32> = pixels(4 * model.input.len()).iter().map(|value| value * 4.0).collect();
    let mut network = Network::new(Cpu::new(2).unwrap(), &model, Settings::new(4, 1)).unwrap();
    let loss = network.step(&images, Labels::Index(&[1, 20, 50, 101])).unwrap();
    assert!((loss - 102_f32.ln()).abs() < 0.5, "{loss}");
}

#[test]
fn a_tiny_set_is_learnt() {
    for (name, n_epochs) in [("alexnet-small", 40), ("resnet-small", 20)] {
        let share = learn(Cpu::new(2).unwrap(), name, n_epochs);
        assert!(share > 0.95, "{name}: {share}");
    }
}

#[test]
fn evaluation_takes_less_than_a_batch_and_agrees_with_the_whole() {
    let model = Model::named("resnet-small", N_CLASSES).unwrap();
    let (images, labels) = samples(4, model.input);
    let mut network = Network::new(Cpu::new(2).unwrap(), &model, Settings::new(4, 1)).unwrap();
    let whole = network.predict(&images).unwrap();
    let one = network.predict(&images[..model.input.len()]).unwrap();
    assert_eq!(one, whole[..N_CLASSES]);
    let judged = network.evaluate(&images[..3 * model.input.len()], Labels::Index(&labels[..3])).unwrap();
    let right = whole.chunks_exact(N_CLASSES).zip(&labels[..3]).filter(|(row, label)| {
        let best = (0..N_CLASSES).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
        best as i64 == **label
    });
    assert_eq!(judged.n_right, right.count());
}
