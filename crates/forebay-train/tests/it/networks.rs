//! Whole training steps against PyTorch: losses, updated parameters, running statistics, outputs.

use forebay_train::optimizer::{Adam, Sgd};
use forebay_train::{Cpu, Engine, Entry, Labels, Model, Network, Optimizer, Settings, State};

use crate::golden::{Golden, assert_close, pixels};

const BATCH: usize = 4;
const N_CLASSES: usize = 7;

fn optimizers() -> [(&'static str, Optimizer); 3] {
    let adam = Adam { learning_rate: 2e-3, epsilon: 1e-3, weight_decay: 1e-2, ..Adam::default() };
    let adamw = Adam { learning_rate: 2e-3, epsilon: 1e-3, weight_decay: 5e-2, ..Adam::decoupled() };
    let sgd = Sgd { learning_rate: 2e-2, momentum: 0.9, weight_decay: 1e-2, nesterov: true };
    [("adam", Optimizer::Adam(adam)), ("adamw", Optimizer::Adam(adamw)), ("sgd", Optimizer::Sgd(sgd))]
}

/// Gives a fresh network the golden parameters; moments stay zero.
pub(crate) fn load<E: Engine>(network: &mut Network<E>, golden: &Golden) {
    let entries = network.state().unwrap().into_owned().entries;
    let set = |entry: Entry<'static>| match golden.find(&format!("before.{}", entry.name)) {
        Some(values) => Entry { values: values.to_vec().into(), ..entry },
        None => entry,
    };
    network.load_state(&State { n_steps: 0, entries: entries.into_iter().map(set).collect() }).unwrap();
}

/// Trains the small models on an engine with every optimiser and compares with PyTorch.
pub(crate) fn check<E: Engine>(make: impl Fn() -> E, tolerance: f64) {
    for name in ["alexnet-small", "resnet-small"] {
        let golden = Golden::open(name);
        let model = Model::named(name, N_CLASSES).unwrap();
        let images = pixels(BATCH * model.input.len());
        let labels: Vec<i64> = (0..BATCH as i64).map(|i| i * 3 % N_CLASSES as i64).collect();
        for (rule, optimizer) in optimizers() {
            let mut network = Network::new(make(), &model, Settings { optimizer, ..Settings::new(BATCH, 1) }).unwrap();
            load(&mut network, &golden);
            let want = golden.get(&format!("{rule}.losses"));
            let losses: Vec<f32> =
                want.iter().map(|_| network.step(&images, Labels::Index(&labels)).unwrap()).collect();
            assert_close(&format!("{name} {rule} losses"), &losses, want, tolerance);
            let prefix = format!("{rule}.after.");
            let state = network.state().unwrap();
            for (parameter, want) in golden.under(&prefix) {
                let entry = state.entries.iter().find(|entry| entry.name == parameter).unwrap();
                assert_close(&format!("{name} {rule} {parameter}"), &entry.values, want, tolerance);
            }
            let logits = network.predict(&images).unwrap();
            assert_close(&format!("{name} {rule} logits"), &logits, golden.get(&format!("{rule}.logits")), tolerance);
        }
    }
}

#[test]
fn steps_of_small_networks_agree_with_pytorch_on_the_cpu() {
    check(|| Cpu::new(2).unwrap(), 1e-4);
}

#[test]
fn every_golden_parameter_is_one_of_ours_and_the_other_way_round() {
    for name in ["alexnet-small", "resnet-small"] {
        let golden = Golden::open(name);
        let network =
            Network::new(Cpu::new(1).unwrap(), &Model::named(name, N_CLASSES).unwrap(), Settings::new(2, 1)).unwrap();
        let state = network.state().unwrap();
        let ours = state.entries.iter().filter(|entry| !entry.name.contains("exp_avg")).count();
        let theirs = golden.under("before.").filter(|(theirs, values)| {
            let entry = state.entries.iter().find(|entry| entry.name == *theirs).expect("a parameter of this name");
            entry.values.len() == values.len()
        });
        assert_eq!(theirs.count(), ours, "{name}");
    }
}

#[test]
fn one_hot_labels_are_index_labels() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let images = pixels(2 * model.input.len());
    let loss = |labels: Labels<'_>| {
        let mut network = Network::new(Cpu::new(1).unwrap(), &model, Settings::new(2, 1)).unwrap();
        network.step(&images, labels).unwrap()
    };
    let one_hot = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(loss(Labels::Index(&[2, 0])), loss(Labels::OneHot(&one_hot)));
    assert_ne!(loss(Labels::Index(&[2, 0])), loss(Labels::Index(&[2, 1])));
}
