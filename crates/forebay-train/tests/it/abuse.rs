//! What nobody should do, and what sizes seldom are: nothing panics, and nothing is hidden.

use forebay_train::optimizer::Sgd;
use forebay_train::{
    AveragePool, BatchNorm, Block, Conv, Cpu, Labels, Linear, MaxPool, Model, Network, Node, Optimizer, Relu, Residual,
    Settings, Shape,
};

use crate::golden::pixels;

fn network(name: &str, n_classes: usize, batch: usize, optimizer: Optimizer) -> (Network<Cpu>, Vec<f32>) {
    let model = Model::named(name, n_classes).unwrap();
    let images = pixels(batch * model.input.len());
    let settings = Settings { optimizer, ..Settings::new(batch, 1) };
    (Network::new(Cpu::new(2).unwrap(), &model, settings).unwrap(), images)
}

fn adam() -> Optimizer {
    Optimizer::named("adam", None).unwrap()
}

#[test]
fn every_layer_hands_nan_on() {
    let layers: [(&str, Vec<Node>); 8] = [
        ("conv", vec![Node::new("layer", Conv::new(3, 3).padding(1)), Node::new("relu", Relu)]),
        ("linear", vec![Node::new("layer", Linear::new(4)), Node::new("relu", Relu)]),
        ("relu", vec![Node::new("layer", MaxPool::new(1, 1)), Node::new("relu", Relu)]),
        ("max pool", vec![Node::new("layer", MaxPool::new(3, 2))]),
        ("average pool", vec![Node::new("layer", AveragePool::new(2, 2))]),
        ("batch norm", vec![Node::new("layer", BatchNorm::new())]),
        ("batch norm and relu", vec![Node::new("layer", BatchNorm::new()), Node::new("relu", Relu)]),
        ("sum", vec![Node::new("layer", Residual::new(vec![Node::new("in", Relu)], Vec::new())), Node::new("r", Relu)]),
    ];
    let shape = Shape::new(5, 5, 3);
    for (name, layers) in layers {
        let mut x = pixels(shape.len());
        // The middle pixel is under a window of every pool.
        x[12 * 3] = f32::NAN;
        let mut block = Block::new(Cpu::new(1).unwrap(), &layers, shape, 1, 1).unwrap();
        let y = block.forward(&x, true).unwrap();
        assert!(y.iter().any(|v| v.is_nan()), "{name}: {y:?}");
        let dx = block.backward(&vec![1.0; y.len()]).unwrap();
        assert_eq!(dx.len(), x.len(), "{name}");
    }
}

#[test]
fn a_run_that_diverges_says_so_and_goes_on() {
    for optimizer in Optimizer::names() {
        for name in ["alexnet-small", "resnet-small"] {
            let optimizer = Optimizer::named(optimizer, Some(1e30)).unwrap();
            let (mut network, images) = network(name, 5, 2, optimizer);
            let losses: Vec<f32> = (0..4).map(|_| network.step(&images, Labels::Index(&[0, 1])).unwrap()).collect();
            assert!(losses[0].is_finite() && !losses[3].is_finite(), "{name} {optimizer:?}: {losses:?}");
            let judged = network.evaluate(&images, Labels::Index(&[0, 1])).unwrap();
            assert!(!judged.loss.is_finite(), "{name} {optimizer:?}: {judged:?}");
        }
    }
}

#[test]
fn images_that_are_no_numbers_give_a_loss_that_is_none_and_no_hits() {
    let (mut network, mut images) = network("alexnet-small", 5, 2, adam());
    images.fill(f32::NAN);
    let judged = network.evaluate(&images, Labels::Index(&[0, 0])).unwrap();
    assert!(judged.loss.is_nan());
    assert_eq!(judged.n_right, 0);
    assert!(network.step(&images, Labels::Index(&[0, 0])).unwrap().is_nan());
}

#[test]
fn a_learning_rate_of_0_learns_nothing() {
    for name in Optimizer::names() {
        let optimizer = Optimizer::named(name, Some(0.0)).unwrap();
        let (mut network, images) = network("alexnet-small", 5, 2, optimizer);
        let mut loss = || network.step(&images, Labels::Index(&[3, 1])).unwrap();
        let first = loss();
        assert_eq!([loss(), loss()], [first, first], "{name}");
    }
}

#[test]
fn one_class_costs_nothing_and_a_hundred_thousand_are_told_apart() {
    let (mut one, images) = network("resnet-small", 1, 3, adam());
    assert_eq!(one.step(&images, Labels::Index(&[0, 0, 0])).unwrap(), 0.0);
    assert_eq!(one.evaluate(&images, Labels::Index(&[0, 0, 0])).unwrap().n_right, 3);
    let (mut many, images) = network("resnet-small", 100_000, 2, adam());
    let loss = many.step(&images, Labels::Index(&[0, 99_999])).unwrap();
    assert!((loss - 100_000f32.ln()).abs() < 2.0, "{loss}");
    let error = many.step(&images, Labels::Index(&[0, 100_000])).unwrap_err().to_string();
    assert_eq!(error, "label 100000 of sample 1 is out of range: the network has 100000 classes");
    assert!(many.step(&images, Labels::Index(&[0, 99_999])).unwrap() < loss);
}

#[test]
fn batches_of_any_size_give_each_sample_the_same_outputs() {
    let (mut whole, images) = network("alexnet-small", 5, 31, adam());
    let outputs = whole.predict(&images).unwrap();
    for batch in [1, 2, 5, 13] {
        let (mut part, some) = network("alexnet-small", 5, batch, adam());
        assert_eq!(part.predict(&some).unwrap(), outputs[..batch * 5], "{batch}");
        let labels: Vec<i64> = (0..batch as i64).map(|i| i % 5).collect();
        let first = part.step(&some, Labels::Index(&labels)).unwrap();
        assert!(part.step(&some, Labels::Index(&labels)).unwrap() < first, "{batch}");
    }
}

#[test]
fn two_networks_at_once_do_not_disturb_each_other() {
    let sgd = Optimizer::Sgd(Sgd { momentum: 0.0, ..Sgd::default() });
    let losses = || {
        let (mut network, images) = network("resnet-small", 5, 3, sgd);
        (0..5).map(|_| network.step(&images, Labels::Index(&[0, 1, 2])).unwrap()).collect::<Vec<f32>>()
    };
    let alone = losses();
    std::thread::scope(|scope| {
        let both = [scope.spawn(losses), scope.spawn(losses)];
        assert_eq!(both.map(|thread| thread.join().unwrap()), [alone.clone(), alone.clone()]);
    });
}

#[test]
fn a_network_may_be_dropped_with_a_batch_staged_or_a_step_begun() {
    let (mut staged, images) = network("alexnet-small", 5, 2, adam());
    staged.stage(&images, Labels::Index(&[1, 2])).unwrap();
    drop(staged);
    let (mut begun, images) = network("alexnet-small", 5, 2, adam());
    begun.stage(&images, Labels::Index(&[1, 2])).unwrap();
    begun.start().unwrap();
    let error = begun.predict(&images).unwrap_err().to_string();
    assert_eq!(error, "evaluation requested before the last step was finished");
    drop(begun);
}

#[test]
fn a_batch_of_nothing_or_beyond_all_measure_is_refused() {
    let model = Model::named("alexnet", 10).unwrap();
    let error = |batch| match Network::new(Cpu::new(1).unwrap(), &model, Settings::new(batch, 1)) {
        Ok(_) => panic!("{batch} images were taken"),
        Err(error) => error.to_string(),
    };
    let most = 1u64 << 40;
    assert_eq!(error(1 << 40), format!("layer input: [{most}, 224, 224, 3] has more than {most} values"));
    assert!(error(usize::MAX).ends_with("values"));
    assert!(error(0).ends_with("one sample per batch and one value per sample"));
}

#[test]
fn threads_beyond_all_measure_are_refused() {
    let error = Cpu::new(usize::MAX).err().expect("so many threads were taken").to_string();
    assert_eq!(error, "at most 4096 threads are supported");
}

#[test]
fn sizes_beyond_all_measure_are_refused_before_anything_is_computed() {
    let image = Shape::new(8, 8, 3);
    let refused = |layer: Node| match Block::new(Cpu::new(1).unwrap(), &[layer], image, 1, 1) {
        Ok(_) => panic!("the layer was taken"),
        Err(error) => error.to_string(),
    };
    let huge = usize::MAX;
    assert!(refused(Node::new("wide", Linear::new(huge))).starts_with("layer wide: [1, 1, "));
    assert!(refused(Node::new("deep", Conv::new(huge, 3))).starts_with("layer deep: [6, 6, "));
    let most = "layer far: stride and padding must be at most 1024";
    assert_eq!(refused(Node::new("far", Conv::new(2, 3).padding(huge))), most);
    assert_eq!(refused(Node::new("far", Conv::new(2, 3).stride(huge))), most);
    assert!(refused(Node::new("far", AveragePool::new(huge, 1))).contains("does not fit into 8 pixels"));
    assert_eq!(refused(Node::new("big", Conv::new(2, huge))), format!("layer big: kernel size {huge} exceeds 1024"));
    assert!(refused(Node::new("pool", MaxPool::new(2, 2).padding(huge))).ends_with("may contain no pixel"));
}

#[test]
fn a_network_of_no_layers_or_of_two_with_one_name_is_refused() {
    let refused = |layers: &[Node]| match Block::new(Cpu::new(1).unwrap(), layers, Shape::vector(3), 1, 1) {
        Ok(_) => panic!("the layers were taken"),
        Err(error) => error.to_string(),
    };
    assert!(refused(&[]).ends_with("one sample per batch and one value per sample"));
    let twice = [Node::new("fc", Linear::new(2)), Node::new("fc", Linear::new(2))];
    assert_eq!(refused(&twice), "layer fc: duplicate layer name");
}

#[test]
fn the_state_of_another_model_or_optimiser_is_refused() {
    let (small, _) = network("alexnet-small", 5, 1, adam());
    let refused = |name: &str, n_classes, optimizer: &str| {
        let (mut other, _) = network(name, n_classes, 1, Optimizer::named(optimizer, None).unwrap());
        other.load_state(&small.state().unwrap()).unwrap_err().to_string()
    };
    assert_eq!(refused("resnet-small", 5, "adam"), "the state does not match the network: \"conv1.weight\" is missing");
    let classes = refused("alexnet-small", 6, "adam");
    assert_eq!(classes, "the state does not match the network: \"classifier.6.weight\" has shape [5, 16], not [6, 16]");
    let momentum = refused("alexnet-small", 5, "sgd");
    assert_eq!(momentum, "the state does not match the network: \"features.0.weight.momentum_buffer\" is missing");
}
