//! The number of threads never shows in a result.

use forebay_train::{Cpu, Labels, Model, Network, Settings};

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
