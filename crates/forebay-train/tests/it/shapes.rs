//! What does not fit is refused with the layer's name, before anything is computed.

use forebay_train::{
    AveragePool, Block, Conv, Cpu, Dropout, Labels, MaxPool, Model, Network, Node, Residual, Settings, Shape,
};

fn refusal(layers: Vec<Node>, input: Shape) -> String {
    match Block::new(Cpu::new(1).unwrap(), &layers, input, 1, 1) {
        Ok(_) => panic!("the layers were taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn shapes_that_do_not_fit_name_the_layer() {
    let image = Shape::new(8, 8, 3);
    let conv = Node::new("features.0", Conv::new(4, 3));
    let too_big = refusal(vec![conv.clone(), Node::new("features.3", Conv::new(4, 9))], image);
    assert_eq!(too_big, "layer features.3: a kernel of 9 does not fit into 6 pixels with padding 0");
    let groups = refusal(vec![Node::new("grouped", Conv::new(4, 3).groups(2))], image);
    assert_eq!(groups, "layer grouped: 3 channels and 4 filters cannot be split into 2 equal groups");
    let pool = refusal(vec![Node::new("pool", MaxPool::new(2, 2).padding(2))], image);
    assert_eq!(pool, "layer pool: a window of 2 with padding 2 may contain no pixel");
    let global = refusal(vec![Node::new("mean", AveragePool::global())], Shape::new(4, 5, 1));
    assert_eq!(global, "layer mean: 4×5×1 is not square");
    let dropout = refusal(vec![Node::new("drop", Dropout::new(1.0))], image);
    assert_eq!(dropout, "layer drop: rate 1 is out of range: expected at least 0 and less than 1");
    let branches = refusal(vec![Node::new("block", Residual::new(vec![conv], Vec::new()))], image);
    assert_eq!(branches, "layer block: the branches have different output shapes: 6×6×4 and 8×8×3");
    let inner =
        refusal(vec![Node::new("block", Residual::new(vec![Node::new("inner", Conv::new(3, 20))], Vec::new()))], image);
    assert_eq!(inner, "layer inner: a kernel of 20 does not fit into 8 pixels with padding 0");
}

#[test]
fn an_unknown_model_is_refused_with_the_known_names() {
    let error = Model::named("vgg", 10).unwrap_err().to_string();
    assert_eq!(error, "unknown model \"vgg\"; expected one of alexnet, alexnet-small, resnet50, resnet-small");
}

#[test]
fn a_batch_of_the_wrong_size_or_label_is_refused_and_the_network_goes_on() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let mut network = Network::new(Cpu::new(1).unwrap(), &model, Settings::new(2, 1)).unwrap();
    let images = vec![0.5; 2 * model.input.len()];
    let mut refused = |images: &[f32], labels: Labels<'_>| network.step(images, labels).unwrap_err().to_string();
    assert_eq!(
        refused(&images[1..], Labels::Index(&[1, 2])),
        "the images of a step: expected 23814 values, found 23813"
    );
    assert_eq!(refused(&images, Labels::Index(&[1])), "labels: expected 2 values, found 1");
    assert_eq!(
        refused(&images, Labels::Index(&[1, 5])),
        "label 5 of sample 1 is out of range: the network has 5 classes"
    );
    assert_eq!(
        refused(&images, Labels::Index(&[-1, 0])),
        "label -1 of sample 0 is out of range: the network has 5 classes"
    );
    assert_eq!(refused(&images, Labels::OneHot(&[1.0])), "one-hot labels: expected 10 values, found 1");
    assert!(network.step(&images, Labels::Index(&[1, 2])).unwrap().is_finite());
    assert_eq!(network.n_steps(), 1);
}

#[test]
fn batches_are_taken_in_the_order_they_were_staged_in() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let new = |places| Network::new(Cpu::new(1).unwrap(), &model, Settings { places, ..Settings::new(1, 1) }).unwrap();
    let (dark, bright) = (vec![0.1; model.input.len()], vec![0.9; model.input.len()]);
    let mut plain = new(1);
    let want = [plain.step(&dark, Labels::Index(&[1])).unwrap(), plain.step(&bright, Labels::Index(&[2])).unwrap()];
    let mut ahead = new(2);
    ahead.stage(&dark, Labels::Index(&[1])).unwrap();
    ahead.stage(&bright, Labels::Index(&[2])).unwrap();
    assert_eq!(ahead.n_free(), 0);
    let full = ahead.stage(&dark, Labels::Index(&[1])).unwrap_err().to_string();
    assert_eq!(full, "no input slot is free");
    let got = [(); 2].map(|()| {
        ahead.start().unwrap();
        ahead.finish().unwrap()
    });
    assert_eq!(got, want);
    assert_eq!(ahead.start().unwrap_err().to_string(), "`start` called with no batch staged");
}

#[test]
fn pixels_filled_before_a_step_is_started_are_those_sent_after_it() {
    let model = Model::named("alexnet-small", 5).unwrap();
    let new = |places| Network::new(Cpu::new(1).unwrap(), &model, Settings { places, ..Settings::new(1, 1) }).unwrap();
    let (dark, bright) = (vec![0.1; model.input.len()], vec![0.9; model.input.len()]);
    let mut plain = new(1);
    let want = [plain.step(&dark, Labels::Index(&[1])).unwrap(), plain.step(&bright, Labels::Index(&[2])).unwrap()];
    let mut ahead = new(2);
    ahead.stage(&dark, Labels::Index(&[1])).unwrap();
    ahead.pixels().unwrap().copy_from_slice(&bright);
    ahead.start().unwrap();
    let early = ahead.step(&dark, Labels::Index(&[1])).unwrap_err().to_string();
    assert_eq!(early, "`step` called while another batch is staged or computed");
    ahead.stage_filled(Labels::Index(&[2])).unwrap();
    let first = ahead.finish().unwrap();
    ahead.start().unwrap();
    assert_eq!([first, ahead.finish().unwrap()], want);
}
