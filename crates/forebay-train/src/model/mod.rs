//! Models: one file each, and one line in the table below.

mod alexnet;
mod resnet;

use crate::error::{Error, Result};
use crate::layer::{Node, count_parameters, output_shape};
use crate::shape::Shape;

/// A network as a list of layers.
///
/// Layers have torchvision's names, so states use the same names on both sides.
#[derive(Debug, Clone)]
pub struct Model {
    pub name: String,
    pub input: Shape,
    /// Its layers; the last returns one value per class.
    pub layers: Vec<Node>,
}

/// Builds a model for a number of classes.
type Make = fn(usize) -> Model;

const MODELS: &[(&str, Make)] = &[
    ("alexnet", alexnet::alexnet),
    ("alexnet-small", alexnet::alexnet_small),
    ("resnet50", resnet::resnet50),
    ("resnet-small", resnet::resnet_small),
];

impl Model {
    /// The model with this name for `n_classes` classes.
    ///
    /// # Errors
    /// When no model has this name.
    pub fn named(name: &str, n_classes: usize) -> Result<Self> {
        let known = MODELS.iter().find(|(known, _)| *known == name);
        let unknown =
            || Error::UnknownModel { name: name.to_owned(), known: Self::names().collect::<Vec<_>>().join(", ") };
        known.map(|(_, make)| make(n_classes)).ok_or_else(unknown)
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        MODELS.iter().map(|(name, _)| *name)
    }

    /// The number of values it learns.
    ///
    /// # Errors
    /// When its layers do not fit together.
    pub fn n_parameters(&self) -> Result<usize> {
        count_parameters(&self.layers, self.input)
    }

    /// The number of classes it distinguishes.
    ///
    /// # Errors
    /// When its layers do not fit together.
    pub fn n_classes(&self) -> Result<usize> {
        Ok(output_shape(&self.layers, self.input)?.len())
    }
}
