//! A network that is loaded with another's state goes on exactly as that one does.

use forebay_train::{Cpu, Entry, Labels, Model, Network, Optimizer, Settings, State};

use crate::golden::pixels;

fn network(model: &Model, optimizer: &str, seed: u64) -> Network<Cpu> {
    let optimizer = Optimizer::named(optimizer).unwrap();
    Network::new(Cpu::new(2).unwrap(), model, Settings { optimizer, ..Settings::new(3, seed) }).unwrap()
}

#[test]
fn a_loaded_network_makes_the_same_steps() {
    let model = Model::named("resnet-small", 4).unwrap();
    let images = pixels(3 * model.input.len());
    let labels = Labels::Index(&[0, 1, 2]);
    for optimizer in Optimizer::names() {
        let mut first = network(&model, optimizer, 1);
        first.step(&images, labels).unwrap();
        first.step(&images, labels).unwrap();
        let mut second = network(&model, optimizer, 2);
        second.load_state(&first.state().unwrap()).unwrap();
        assert_eq!(second.n_steps(), 2);
        for _ in 0..2 {
            assert_eq!(first.step(&images, labels).unwrap(), second.step(&images, labels).unwrap(), "{optimizer}");
        }
        assert_eq!(first.state().unwrap(), second.state().unwrap());
    }
}

#[test]
fn a_network_that_is_reset_makes_the_steps_of_a_new_one() {
    let images = pixels(3 * Model::named("alexnet-small", 4).unwrap().input.len());
    for (name, optimizer) in [("alexnet-small", "adam"), ("alexnet-small", "sgd"), ("resnet-small", "adamw")] {
        let model = Model::named(name, 4).unwrap();
        let (images, labels) = (&images[..3 * model.input.len()], Labels::Index(&[0, 1, 2]));
        let mut used = network(&model, optimizer, 7);
        let losses: Vec<f32> = (0..3).map(|_| used.step(images, labels).unwrap()).collect();
        used.reset().unwrap();
        assert_eq!(used.n_steps(), 0);
        assert_eq!(used.state().unwrap(), network(&model, optimizer, 7).state().unwrap());
        let again: Vec<f32> = (0..3).map(|_| used.step(images, labels).unwrap()).collect();
        assert_eq!(losses, again, "{name} {optimizer}");
    }
    let model = Model::named("resnet-small", 4).unwrap();
    let mut staged = network(&model, "adam", 7);
    staged.stage(&images[..3 * model.input.len()], Labels::Index(&[0, 1, 2])).unwrap();
    assert!(staged.reset().unwrap_err().to_string().contains("a batch is staged"));
}

#[test]
fn the_state_names_parameters_statistics_and_moments_with_their_shapes() {
    let network = network(&Model::named("resnet-small", 4).unwrap(), "adam", 1);
    let state = network.state().unwrap();
    let shape = |name: &str| state.entries.iter().find(|entry| entry.name == name).map(|entry| entry.shape.clone());
    assert_eq!(shape("conv1.weight"), Some(vec![4, 7, 7, 3]));
    assert_eq!(shape("layer1.0.downsample.1.running_var"), Some(vec![16]));
    assert_eq!(shape("fc.weight.exp_avg_sq"), Some(vec![4, 32]));
    assert_eq!(shape("bn1.running_mean.exp_avg"), None);
}

#[test]
fn a_state_that_does_not_fit_is_refused_and_changes_nothing() {
    let mut network = network(&Model::named("resnet-small", 4).unwrap(), "sgd", 1);
    let before = network.state().unwrap().into_owned();
    let mut refused = |entries: Vec<Entry<'static>>| {
        let error = network.load_state(&State { n_steps: 5, entries }).unwrap_err().to_string();
        assert_eq!(network.state().unwrap(), before);
        error
    };
    let mut missing = before.entries.clone();
    missing.remove(0);
    assert_eq!(refused(missing), "the state does not fit: \"conv1.weight\" is missing");
    let mut bent = before.entries.clone();
    bent[1].shape = vec![5];
    assert_eq!(refused(bent), "the state does not fit: \"bn1.weight\" has shape [5], not [4]");
    let mut more = before.entries.clone();
    more.push(Entry { name: "extra".to_owned(), ..more[0].clone() });
    assert_eq!(refused(more), "the state does not fit: \"extra\" is not part of this network");
}
