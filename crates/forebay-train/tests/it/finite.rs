//! Gradients against finite differences: the slope of a function is what it is, whoever computes it.

use forebay_train::{AveragePool, BatchNorm, Block, Conv, Cpu, Linear, MaxPool, Node, Relu, Residual, Shape};

use crate::golden::pixels;

/// Compares the slope of Σ weightᵢ · outputᵢ along the gradient with the gradient's own length.
///
/// Going along the gradient makes the difference as large as can be, so that single precision can tell it.
fn check(layers: &[Node], input: Shape, batch: usize) {
    let mut block = Block::new(Cpu::new(2).unwrap(), layers, input, batch, 3).unwrap();
    let x: Vec<f32> = pixels(batch * input.len()).iter().map(|v| v - 0.5).collect();
    let n_outputs = block.forward(&x, true).unwrap().len();
    let weights: Vec<f32> = pixels(n_outputs + 99)[99..].iter().map(|v| v - 0.5).collect();
    let dx = block.backward(&weights).unwrap();
    let names: Vec<String> = block.names().into_iter().filter(|name| !name.contains("running")).collect();
    let gradients: Vec<Vec<f32>> = names.iter().map(|name| block.gradient(name).unwrap().into_owned()).collect();
    let total = |block: &mut Block<Cpu>, x: &[f32]| {
        let y = block.forward(x, true).unwrap();
        y.iter().zip(&weights).map(|(y, w)| f64::from(*y) * f64::from(*w)).sum::<f64>()
    };
    compare("input", &dx, |step| total(&mut block, &moved(&x, &dx, step)));
    for (name, gradient) in names.iter().zip(&gradients) {
        let value = block.value(name).unwrap().into_owned();
        compare(name, gradient, |step| {
            block.set_value(name, &moved(&value, gradient, step)).unwrap();
            total(&mut block, &x)
        });
        block.set_value(name, &value).unwrap();
    }
}

fn moved(from: &[f32], along: &[f32], step: f64) -> Vec<f32> {
    from.iter().zip(along).map(|(v, d)| (f64::from(*v) + step * f64::from(*d)) as f32).collect()
}

fn compare(what: &str, gradient: &[f32], mut at: impl FnMut(f64) -> f64) {
    let square: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum();
    assert!(square > 1e-8, "{what} has a gradient");
    let step = 2e-3 / square.sqrt();
    let slope = (at(step) - at(-step)) / (2.0 * step);
    assert!((slope / square - 1.0).abs() < 0.01, "{what}: slope {slope}, gradient {square}");
}

#[test]
fn gradients_of_convolutions_are_slopes() {
    check(&[Node::new("conv", Conv::new(5, 3).padding(1).stride(2))], Shape::new(6, 7, 4), 2);
    check(&[Node::new("conv", Conv::new(6, 3).groups(2))], Shape::new(5, 5, 4), 3);
}

#[test]
fn gradients_of_linear_layers_and_pools_are_slopes() {
    check(&[Node::new("pool", MaxPool::new(3, 2)), Node::new("linear", Linear::new(5))], Shape::new(7, 7, 2), 2);
    check(&[Node::new("pool", AveragePool::new(2, 2)), Node::new("linear", Linear::new(5))], Shape::new(4, 4, 2), 2);
}

#[test]
fn gradients_of_a_residual_block_with_batch_norm_are_slopes() {
    let main = vec![
        Node::new("conv1", Conv::new(4, 3).padding(1).without_bias()),
        Node::new("bn1", BatchNorm::new()),
        Node::new("relu1", Relu),
        Node::new("conv2", Conv::new(3, 3).padding(1).without_bias()),
        Node::new("bn2", BatchNorm::new()),
    ];
    let block = [Node::new("block", Residual::new(main, Vec::new())), Node::new("relu", Relu)];
    check(&block, Shape::new(5, 5, 3), 4);
}

#[test]
fn a_branch_that_ends_in_a_relu_leaves_the_gradient_to_the_shortcut() {
    let main = vec![Node::new("conv", Conv::new(3, 1)), Node::new("relu", Relu)];
    check(&[Node::new("block", Residual::new(main, Vec::new()))], Shape::new(4, 4, 3), 2);
}
