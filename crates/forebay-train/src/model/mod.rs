//! Models: one file each, and one line in the table below.

mod alexnet;
mod resnet;

use crate::error::{Error, Result};
use crate::layer::{Node, count_parameters, output_shape};
use crate::shape::Shape;

/// A network as a list of layers.
///
/// Layers bear torchvision's names, so that states are called the same on both sides.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub input: Shape,
    /// Its layers; the last gives one value per class.
    pub layers: Vec<Node>,
}

/// Describes a model for a number of classes.
type Make = fn(usize) -> Model;

const MODELS: &[(&str, Make)] = &[
    ("alexnet", alexnet::alexnet),
    ("alexnet-small", alexnet::alexnet_small),
    ("resnet50", resnet::resnet50),
    ("resnet-small", resnet::resnet_small),
];

impl Model {
    /// The model of this name for `n_classes` classes.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn named(name: &str, n_classes: usize) -> Result<Self> {
        let known = MODELS.iter().find(|(known, _)| *known == name);
        let unknown =
            || Error::UnknownModel { name: name.to_owned(), known: Self::names().collect::<Vec<_>>().join(", ") };
        known.map(|(_, make)| make(n_classes)).ok_or_else(unknown)
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        MODELS.iter().map(|(name, _)| *name)
    }

    /// How many values it learns.
    ///
    /// # Errors
    /// Its layers do not fit each other.
    pub fn n_parameters(&self) -> Result<usize> {
        count_parameters(&self.layers, self.input)
    }

    /// How many classes it tells apart.
    ///
    /// # Errors
    /// Its layers do not fit each other.
    pub fn n_classes(&self) -> Result<usize> {
        Ok(output_shape(&self.layers, self.input)?.len())
    }
}
