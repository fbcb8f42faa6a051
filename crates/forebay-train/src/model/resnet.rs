//! ResNet-50 (He et al., 2015) in version 1.5: the middle convolution of a bottleneck has the stride. Uses
//! torchvision's names.

use super::Model;
use crate::init::Init;
use crate::layer::{AveragePool, BatchNorm, Conv, Linear, MaxPool, Node, Relu, Residual};
use crate::shape::Shape;

/// The ratio of a bottleneck's output width to its middle width.
const EXPANSION: usize = 4;

/// Four stages of 3, 4, 6 and 3 bottlenecks on 224 × 224 images.
pub(super) fn resnet50(n_classes: usize) -> Model {
    build("resnet50", Shape::new(224, 224, 3), 64, &[3, 4, 6, 3], n_classes)
}

/// Two narrow stages of two bottlenecks and one, on 32 × 32 images: for tests.
pub(super) fn resnet_small(n_classes: usize) -> Model {
    build("resnet-small", Shape::new(32, 32, 3), 4, &[2, 1], n_classes)
}

fn build(name: &str, input: Shape, width: usize, stages: &[usize], n_classes: usize) -> Model {
    let mut layers = vec![
        Node::new("conv1", conv(width, 7).stride(2).padding(3)),
        Node::new("bn1", BatchNorm::new()),
        Node::new("relu", Relu),
        Node::new("maxpool", MaxPool::new(3, 2).padding(1)),
    ];
    for (stage, n_blocks) in stages.iter().enumerate() {
        for block in 0..*n_blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let prefix = format!("layer{}.{block}", stage + 1);
            layers.push(bottleneck(&prefix, width << stage, stride, block == 0));
            layers.push(Node::new(format!("{prefix}.relu"), Relu));
        }
    }
    layers.push(Node::new("avgpool", AveragePool::global()));
    layers.push(Node::new("fc", Linear::new(n_classes).init(Init::XavierUniform)));
    Model { name: name.to_owned(), input, layers }
}

/// 1 × 1, 3 × 3, 1 × 1; the first of a stage also has a projection.
fn bottleneck(prefix: &str, width: usize, stride: usize, projects: bool) -> Node {
    let named = |name: &str| format!("{prefix}.{name}");
    let main = vec![
        Node::new(named("conv1"), conv(width, 1)),
        Node::new(named("bn1"), BatchNorm::new()),
        Node::new(named("relu1"), Relu),
        Node::new(named("conv2"), conv(width, 3).stride(stride).padding(1)),
        Node::new(named("bn2"), BatchNorm::new()),
        Node::new(named("relu2"), Relu),
        Node::new(named("conv3"), conv(width * EXPANSION, 1)),
        Node::new(named("bn3"), BatchNorm::new()),
    ];
    let projection = || {
        vec![
            Node::new(named("downsample.0"), conv(width * EXPANSION, 1).stride(stride)),
            Node::new(named("downsample.1"), BatchNorm::new()),
        ]
    };
    Node::new(prefix, Residual::new(main, if projects { projection() } else { Vec::new() }))
}

fn conv(filters: usize, kernel: usize) -> Conv {
    Conv::new(filters, kernel).without_bias().init(Init::HeNormal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resnet50_has_the_parameters_of_torchvision() {
        assert_eq!(resnet50(102).n_parameters().unwrap(), 23_717_030);
        assert_eq!(resnet50(1000).n_parameters().unwrap(), 25_557_032);
        assert_eq!(resnet50(102).n_classes().unwrap(), 102);
    }
}
