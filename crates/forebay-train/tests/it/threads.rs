//! The number of threads never shows in a result.

use forebay_train::{Block, Conv, Cpu, Dropout, Labels, Linear, Model, Network, Node, Relu, Settings, Shape};

use crate::golden::pixels;

/// Losses of a few steps and all parameters afterwards, as bits.
fn train(name: &str, threads: usize) -> (Vec<u32>, Vec<u32>) {
    let model = Model::named(name, 10).unwrap();
    let images = pixels(6 * model.input.len());
    let mut network = Network::new(Cpu::new(threads).unwrap(), &model, Settings::new(6, 9)).unwrap();
    let labels = [0, 3, 6, 9, 2, 5];
    let losses = (0..4).map(|_| network.step(&images, Labels::Index(&labels)).unwrap().to_bits()).collect();
    let state = network.state().unwrap();
    let values = state.entries.iter().flat_map(|entry| entry.values.iter().map(|v| v.to_bits())).collect();
    (losses, values)
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for name in ["alexnet-small", "resnet-small"] {
        let one = train(name, 1);
        for threads in [2, 3, 8] {
            assert_eq!(train(name, threads), one, "{name} with {threads} threads");
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits_where_work_is_cut_by_channels_too() {
    let layers = [
        Node::new("conv1", Conv::new(200, 3).padding(1)),
        Node::new("relu", Relu),
        Node::new("conv2", Conv::new(72, 3).stride(2).groups(2)),
        Node::new("drop", Dropout::new(0.4)),
        Node::new("fc", Linear::new(300)),
    ];
    let (shape, batch) = (Shape::new(13, 11, 70), 3);
    let run = |threads| {
        let mut block = Block::new(Cpu::new(threads).unwrap(), &layers, shape, batch, 4).unwrap();
        let mut results = block.forward(&pixels(batch * shape.len()), true).unwrap();
        results.extend(block.backward(&pixels(results.len())).unwrap());
        for name in block.names() {
            results.extend_from_slice(&block.gradient(&name).unwrap());
        }
        results.into_iter().map(f32::to_bits).collect::<Vec<u32>>()
    };
    let one = run(1);
    for threads in [2, 3, 8] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

#[test]
fn another_seed_gives_other_losses() {
    let model = Model::named("alexnet-small", 10).unwrap();
    let images = pixels(2 * model.input.len());
    let first = |seed| {
        let mut network = Network::new(Cpu::new(1).unwrap(), &model, Settings::new(2, seed)).unwrap();
        network.step(&images, Labels::Index(&[1, 2])).unwrap()
    };
    assert_ne!(first(1), first(2));
    assert_eq!(first(1), first(1));
}
