//! AlexNet in its one-tower form (Krizhevsky, 2014), with torchvision's sizes and names.

use super::Model;
use crate::init::Init;
use crate::layer::{Conv, Dropout, Linear, MaxPool, Node, Relu};
use crate::shape::Shape;

/// Filters of the five convolutions, and outputs of the first two linear layers.
struct Widths {
    filters: [usize; 5],
    hidden: usize,
}

/// Five convolutions, three overlapping max pools and three linear layers on 224 × 224 images.
pub(super) fn alexnet(n_classes: usize) -> Model {
    let widths = Widths { filters: [64, 192, 384, 256, 256], hidden: 4096 };
    build("alexnet", Shape::new(224, 224, 3), &widths, 0.5, n_classes)
}

/// The same layers, narrow and without dropout, on 63 × 63 images: for tests.
pub(super) fn alexnet_small(n_classes: usize) -> Model {
    build("alexnet-small", Shape::new(63, 63, 3), &Widths { filters: [6, 8, 10, 8, 8], hidden: 16 }, 0.0, n_classes)
}

fn build(name: &str, input: Shape, widths: &Widths, dropout: f32, n_classes: usize) -> Model {
    let [first, second, third, fourth, fifth] = widths.filters;
    let feature = |place: usize| format!("features.{place}");
    let classifier = |place: usize| format!("classifier.{place}");
    let layers = vec![
        Node::new(feature(0), Conv::new(first, 11).stride(4).padding(2)),
        Node::new(feature(1), Relu),
        Node::new(feature(2), MaxPool::new(3, 2)),
        Node::new(feature(3), Conv::new(second, 5).padding(2)),
        Node::new(feature(4), Relu),
        Node::new(feature(5), MaxPool::new(3, 2)),
        Node::new(feature(6), Conv::new(third, 3).padding(1)),
        Node::new(feature(7), Relu),
        Node::new(feature(8), Conv::new(fourth, 3).padding(1)),
        Node::new(feature(9), Relu),
        Node::new(feature(10), Conv::new(fifth, 3).padding(1)),
        Node::new(feature(11), Relu),
        Node::new(feature(12), MaxPool::new(3, 2)),
        Node::new(classifier(0), Dropout::new(dropout)),
        Node::new(classifier(1), Linear::new(widths.hidden)),
        Node::new(classifier(2), Relu),
        Node::new(classifier(3), Dropout::new(dropout)),
        Node::new(classifier(4), Linear::new(widths.hidden)),
        Node::new(classifier(5), Relu),
        Node::new(classifier(6), Linear::new(n_classes).init(Init::Normal(0.01))),
    ];
    Model { name: name.to_owned(), input, layers }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Layer;

    #[test]
    fn alexnet_has_the_parameters_of_torchvision() {
        assert_eq!(alexnet(102).n_parameters().unwrap(), 57_421_734);
        assert_eq!(alexnet(102).n_classes().unwrap(), 102);
        assert_eq!(alexnet(1000).n_parameters().unwrap(), 61_100_840);
    }

    #[test]
    fn alexnet_weighs_230_mb_and_690_mb_with_the_moments_of_adam() {
        let mb = |n_vectors: usize| (alexnet(102).n_parameters().unwrap() * 4 * n_vectors) as f64 / 1e6;
        assert_eq!((mb(1).round(), mb(3).round()), (230.0, 689.0));
    }

    #[test]
    fn alexnet_has_five_convolutions_three_overlapping_pools_and_three_linear_layers() {
        let layers = alexnet(102).layers;
        let count = |is: fn(&Layer) -> bool| layers.iter().filter(|node| is(&node.layer)).count();
        let pools: Vec<String> = layers
            .iter()
            .filter(|node| matches!(node.layer, Layer::MaxPool(_)))
            .map(|n| format!("{:?}", n.layer))
            .collect();
        assert_eq!(count(|layer| matches!(layer, Layer::Conv(_))), 5);
        assert_eq!(count(|layer| matches!(layer, Layer::Linear(_))), 3);
        assert_eq!(count(|layer| matches!(layer, Layer::Relu(_))), 7);
        assert_eq!(pools, ["MaxPool(MaxPool { kernel: 3, stride: 2, padding: 0 })"; 3]);
    }
}
