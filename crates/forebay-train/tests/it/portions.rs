//! Networks that share the batches of their steps.

use forebay_train::{
    BatchNorm, Conv, Cpu, Dropout, Error, Labels, Linear, MaxPool, Model, Network, Node, Relu, Settings, Shape,
};

use crate::golden::pixels;

const BATCH: usize = 12;
const N_CLASSES: usize = 5;

/// With dropout, whose choices depend on a sample's place in the batch.
fn model(norm: bool) -> Model {
    let mut layers = vec![Node::new("conv", Conv::new(6, 3).padding(1))];
    if norm {
        layers.push(Node::new("bn", BatchNorm::new()));
    }
    layers.extend([
        Node::new("relu", Relu),
        Node::new("pool", MaxPool::new(2, 2)),
        Node::new("drop", Dropout::new(0.4)),
        Node::new("hidden", Linear::new(9)),
        Node::new("relu2", Relu),
        Node::new("drop2", Dropout::new(0.5)),
        Node::new("out", Linear::new(N_CLASSES)),
    ]);
    Model { name: "dropping".to_owned(), input: Shape::new(8, 8, 3), layers }
}

fn network(model: &Model, batch: usize, portion: u64) -> Network<Cpu> {
    Network::new(Cpu::new(1).unwrap(), model, Settings { portion, ..Settings::new(batch, 3) }).unwrap()
}

/// A step of all; returns their mean loss.
fn step(networks: &mut [Network<Cpu>], images: &[f32], labels: &[i64]) -> f32 {
    let n = networks.len();
    let (images_of, labels_of) = (images.len() / n, labels.len() / n);
    let (mut sums, mut loss) = (Vec::new(), 0.0);
    for (i, network) in networks.iter_mut().enumerate() {
        let own = Labels::Index(&labels[i * labels_of..][..labels_of]);
        network.stage(&images[i * images_of..][..images_of], own).unwrap();
        network.start_portion().unwrap();
        loss += network.finish().unwrap() / n as f32;
        let add = |values: &mut [f32]| -> Result<(), Error> {
            sums.resize(values.len(), 0.0);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += *value / n as f32);
            Ok(())
        };
        network.exchange(add).unwrap();
    }
    for network in networks {
        let set = |values: &mut [f32]| -> Result<(), Error> {
            values.copy_from_slice(&sums);
            Ok(())
        };
        network.exchange(set).unwrap();
        network.apply().unwrap();
    }
    loss
}

#[test]
fn portions_make_the_steps_of_the_whole_batch_with_dropout_too() {
    let model = model(false);
    let images = pixels(BATCH * model.input.len());
    let labels: Vec<i64> = (0..BATCH as i64).map(|i| i * 3 % N_CLASSES as i64).collect();
    let mut whole = network(&model, BATCH, 0);
    let losses: Vec<f32> = (0..6).map(|_| whole.step(&images, Labels::Index(&labels)).unwrap()).collect();
    assert!(losses.windows(2).all(|pair| pair[0] != pair[1]), "every step drops others: {losses:?}");
    for n in [1, 2, 3, 4] {
        let mut parts: Vec<_> = (0..n).map(|portion| network(&model, BATCH / n as usize, portion)).collect();
        for loss in &losses {
            let ours = step(&mut parts, &images, &labels);
            assert!((ours - loss).abs() <= 1e-4 * loss, "{n} portions: {ours} and {loss}");
        }
        let first = parts[0].state().unwrap().into_owned();
        assert!(parts.iter().all(|part| part.state().unwrap() == first), "all portions have the same network");
    }
    // The portion matters: the first twice has the first's dropout twice.
    let mut same = [network(&model, BATCH / 2, 0), network(&model, BATCH / 2, 0)];
    let others: Vec<f32> = losses.iter().map(|_| step(&mut same, &images, &labels)).collect();
    assert!(others.iter().zip(&losses).any(|(other, loss)| (other - loss).abs() > 1e-3 * loss), "{others:?}");
}

#[test]
fn running_statistics_are_averaged() {
    let model = model(true);
    let images = pixels(BATCH * model.input.len());
    let labels: Vec<i64> = (0..BATCH as i64).map(|i| i % N_CLASSES as i64).collect();
    let mut parts = [network(&model, BATCH / 2, 0), network(&model, BATCH / 2, 1)];
    let mut whole = network(&model, BATCH, 0);
    step(&mut parts, &images, &labels);
    whole.step(&images, Labels::Index(&labels)).unwrap();
    let mean = |network: &Network<Cpu>| {
        let state = network.state().unwrap().into_owned();
        state.entries.into_iter().find(|entry| entry.name == "bn.running_mean").unwrap().values.into_owned()
    };
    assert_eq!(mean(&parts[0]), mean(&parts[1]));
    for (ours, theirs) in mean(&parts[0]).iter().zip(mean(&whole)) {
        assert!((ours - theirs).abs() <= 1e-4 * theirs.abs().max(1e-3), "{ours} and {theirs}");
    }
}
