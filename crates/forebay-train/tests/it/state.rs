//! A network that is loaded with another's state goes on exactly as that one does.

use forebay_train::{
    Cpu, Engine, Entry, Fetch, Labels, Model, Network, Optimizer, Settings, State, Title, Values, View,
};

use crate::golden::pixels;

fn network(model: &Model, optimizer: &str, seed: u64) -> Network<Cpu> {
    let optimizer = Optimizer::named(optimizer, None).unwrap();
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
    assert_eq!(refused(missing), "the state does not match the network: \"conv1.weight\" is missing");
    let mut bent = before.entries.clone();
    bent[1].shape = vec![5];
    assert_eq!(refused(bent), "the state does not match the network: \"bn1.weight\" has shape [5], not [4]");
    let mut more = before.entries.clone();
    more.push(Entry { name: "extra".to_owned(), ..more[0].clone() });
    assert_eq!(refused(more), "the state does not match the network: \"extra\" is not part of this network");
}

/// A view's values, gathered in odd pieces from several threads where they are on a device.
pub(crate) fn gathered(view: &View<'_>) -> Vec<Vec<u8>> {
    let n_bytes = |title: &Title| 4 * title.shape.iter().product::<usize>();
    match &view.values {
        Values::Here(values) => {
            values.iter().map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect()).collect()
        }
        Values::There(remote) => {
            let mut whole: Vec<Vec<u8>> = view.titles.iter().map(|title| vec![7; n_bytes(title)]).collect();
            let pieces = whole.iter_mut().enumerate().flat_map(|(entry, bytes)| {
                let piece = move |(k, into)| Fetch { entry, offset: k * 999, into };
                bytes.chunks_mut(999).enumerate().map(piece)
            });
            let (mut odd, mut even): (Vec<_>, Vec<_>) = pieces.enumerate().partition(|(k, _)| k % 2 == 1);
            let fetch = |half: &mut Vec<(usize, Fetch<'_>)>| {
                let mut pieces: Vec<Fetch<'_>> = half.drain(..).map(|(_, piece)| piece).collect();
                remote.fetch(&mut pieces).unwrap();
            };
            std::thread::scope(|scope| {
                scope.spawn(|| fetch(&mut odd));
                fetch(&mut even);
            });
            drop((odd, even));
            whole
        }
    }
}

/// A network seen where it lies is the network copied out, before its first step and after two.
pub(crate) fn a_view_is_the_state<E: Engine>(engine: E) {
    let model = Model::named("resnet-small", 4).unwrap();
    let images = pixels(3 * model.input.len());
    let mut network = Network::new(engine, &model, Settings::new(3, 1)).unwrap();
    for n_steps in [0, 2] {
        let state = network.state().unwrap().into_owned();
        let view = network.view().unwrap();
        let titles = state.entries.iter().map(|entry| Title { name: entry.name.clone(), shape: entry.shape.clone() });
        assert_eq!((view.n_steps, &view.titles), (n_steps, &titles.collect::<Vec<_>>()));
        for (entry, bytes) in state.entries.iter().zip(gathered(&view)) {
            let expected: Vec<u8> = entry.values.iter().flat_map(|value| value.to_le_bytes()).collect();
            assert!(expected == bytes, "{} after {n_steps} steps", entry.name);
        }
        drop(view);
        network.step(&images, Labels::Index(&[0, 1, 2])).unwrap();
        network.step(&images, Labels::Index(&[0, 1, 2])).unwrap();
    }
}

#[test]
fn a_network_seen_where_it_lies_is_the_network_copied_out() {
    a_view_is_the_state(Cpu::new(2).unwrap());
}
