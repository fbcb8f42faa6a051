//! Every layer's output and gradients against PyTorch.

use forebay_train::{
    AveragePool, BatchNorm, Block, Conv, Cpu, Engine, Layer, Linear, MaxPool, Node, Relu, Residual, Shape,
};

use crate::golden::{Golden, assert_close};

/// A golden file, the layers that make it, and the shape of its batch.
struct Case {
    name: &'static str,
    layers: Vec<Node>,
    batch: usize,
    input: Shape,
}

fn case(name: &'static str, batch: usize, (height, width, channels): (usize, usize, usize), layers: Vec<Node>) -> Case {
    Case { name, layers, batch, input: Shape::new(height, width, channels) }
}

/// A single layer, called as in a bare module.
fn one(layer: impl Into<Layer>) -> Vec<Node> {
    vec![Node::new("layer", layer)]
}

/// A layer with a ReLU after it, called as in `nn.Sequential`.
fn with_relu(layer: impl Into<Layer>) -> Vec<Node> {
    vec![Node::new("0", layer), Node::new("1", Relu)]
}

fn cases() -> Vec<Case> {
    let sum = Residual::new(
        vec![
            Node::new("main.0", Conv::new(6, 3).padding(1)),
            Node::new("main.1", Relu),
            Node::new("main.2", Conv::new(6, 1)),
        ],
        vec![Node::new("shortcut", Conv::new(6, 1))],
    );
    let same = Residual::new(
        vec![Node::new("main.0", Conv::new(3, 3).padding(1).without_bias()), Node::new("main.1", BatchNorm::new())],
        Vec::new(),
    );
    vec![
        case("conv", 2, (7, 6, 3), with_relu(Conv::new(5, 3).padding(1))),
        case("conv_wide", 2, (5, 9, 20), one(Conv::new(40, 3).padding(1))),
        case("conv_grouped", 2, (8, 7, 6), one(Conv::new(4, 3).stride(2).padding(1).groups(2))),
        case("conv_depthwise", 2, (5, 4, 6), one(Conv::new(6, 3).padding(1).groups(6))),
        case("conv_strided", 2, (23, 27, 3), one(Conv::new(4, 11).stride(4).padding(2))),
        case("conv_unpadded", 2, (14, 12, 3), one(Conv::new(4, 5).stride(3).without_bias())),
        case("conv_pointwise", 3, (4, 5, 8), one(Conv::new(4, 1).without_bias())),
        case("conv_skipping", 3, (5, 6, 8), one(Conv::new(4, 1).stride(2).without_bias())),
        case("conv_clashing", 1, (2, 3, 512), one(Conv::new(4, 1).without_bias())),
        case("linear", 3, (1, 1, 40), with_relu(Linear::new(37))),
        case("linear_on_image", 3, (2, 3, 4), one(Linear::new(5))),
        case("relu", 2, (4, 5, 3), with_relu(MaxPool::new(1, 1))),
        case("max_pool", 2, (9, 7, 4), one(MaxPool::new(3, 2))),
        case("max_pool_padded", 2, (8, 7, 4), one(MaxPool::new(3, 2).padding(1))),
        case("average_pool", 2, (4, 6, 3), one(AveragePool::new(2, 2))),
        case("average_pool_overlapping", 2, (7, 8, 3), one(AveragePool::new(3, 2))),
        case("average_pool_global", 2, (4, 4, 5), one(AveragePool::global())),
        case("batch_norm", 3, (4, 3, 5), one(BatchNorm::new())),
        case("batch_norm_relu", 3, (4, 3, 5), with_relu(BatchNorm::new())),
        case("residual", 2, (5, 5, 4), vec![Node::new("sum", sum), Node::new("relu", Relu)]),
        case("residual_identity", 2, (4, 5, 3), vec![Node::new("sum", same), Node::new("relu", Relu)]),
    ]
}

/// Runs every case on an engine and compares all that PyTorch gave.
pub(crate) fn check<E: Engine>(make: impl Fn() -> E, tolerance: f64) {
    for case in cases() {
        let golden = Golden::open(case.name);
        let mut block = Block::new(make(), &case.layers, case.input, case.batch, 1).unwrap();
        for (name, values) in golden.under("before.") {
            block.set_value(&full(name), values).unwrap();
        }
        let what = |part: &str| format!("{} {part}", case.name);
        let y = block.forward(golden.get("x"), true).unwrap();
        assert_close(&what("y"), &y, golden.get("y"), tolerance);
        let dx = block.backward(golden.get("dy")).unwrap();
        assert_close(&what("dx"), &dx, golden.get("dx"), tolerance);
        for (name, want) in golden.under("gradient.") {
            assert_close(&what(name), &block.gradient(&full(name)).unwrap(), want, tolerance);
        }
        for (name, want) in golden.under("after.") {
            assert_close(&what(name), &block.value(&full(name)).unwrap(), want, tolerance);
        }
        if let Some(want) = golden.find("y_evaluating") {
            assert_close(&what("y_evaluating"), &block.forward(golden.get("x"), false).unwrap(), want, tolerance);
        }
    }
}

/// Runs every case on an engine and on the CPU, from inputs that the engine's precision holds, and compares all results.
pub(crate) fn compare<E: Engine>(make: impl Fn() -> E, round: impl Fn(f32) -> f32, tolerance: f64) {
    for case in cases() {
        let golden = Golden::open(case.name);
        let rounded = |values: &[f32]| values.iter().map(|v| round(*v)).collect::<Vec<f32>>();
        let (ours, theirs) =
            (run(make(), &case, &golden, &rounded), run(Cpu::new(2).unwrap(), &case, &golden, &rounded));
        for ((name, got), (_, want)) in ours.iter().zip(&theirs) {
            assert_close(&format!("{} {name}", case.name), got, want, tolerance);
        }
    }
}

/// All results of a case by name.
fn run<E: Engine>(
    engine: E,
    case: &Case,
    golden: &Golden,
    rounded: &dyn Fn(&[f32]) -> Vec<f32>,
) -> Vec<(String, Vec<f32>)> {
    let mut block = Block::new(engine, &case.layers, case.input, case.batch, 1).unwrap();
    for (name, values) in golden.under("before.") {
        block.set_value(&full(name), &rounded(values)).unwrap();
    }
    let y = block.forward(&rounded(golden.get("x")), true).unwrap();
    let dx = block.backward(&rounded(golden.get("dy"))).unwrap();
    let mut results = vec![("y".to_owned(), y), ("dx".to_owned(), dx)];
    for (name, _) in golden.under("gradient.") {
        results.push((name.to_owned(), block.gradient(&full(name)).unwrap().into_owned()));
    }
    results
}

/// A bare module's parameters have no layer's name before them.
fn full(name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("layer.{name}") }
}

#[test]
fn every_layer_agrees_with_pytorch_on_the_cpu() {
    check(|| Cpu::new(2).unwrap(), 1e-4);
}

#[test]
fn dropout_keeps_its_share_scales_it_and_masks_gradients_alike() {
    let n = 40_000;
    let dropout = vec![Node::new("drop", forebay_train::Dropout::new(0.3))];
    let mut block = Block::new(Cpu::new(2).unwrap(), &dropout, Shape::vector(n), 1, 5).unwrap();
    let ones = vec![1.0; n];
    let y = block.forward(&ones, true).unwrap();
    let kept = y.iter().filter(|v| **v != 0.0).count();
    assert!((kept as f64 / n as f64 - 0.7).abs() < 0.01, "{kept} of {n} kept");
    assert!(y.iter().all(|v| *v == 0.0 || *v == 1.0 / (1.0 - 0.3)));
    assert_eq!(block.backward(&ones).unwrap(), y);
    assert_ne!(block.forward(&ones, true).unwrap(), y, "the next step drops others");
    assert_eq!(block.forward(&ones, false).unwrap(), ones, "evaluation drops nothing");
}
