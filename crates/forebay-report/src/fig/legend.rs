//! What a figure's legend is made of.

use crate::markup::Markup;
use crate::palette;
use crate::svg::{Area, Canvas, Svg};

use super::pen::hatched;

#[derive(Debug, Clone)]
pub(crate) struct Key {
    /// The sample, 18 × 14 points.
    pub(crate) sample: Markup,
    pub(crate) name: String,
}

const BOX: Area = Area { left: 1.0, top: 1.0, right: 17.0, bottom: 13.0 };

impl Key {
    fn new(name: impl Into<String>, draw: impl FnOnce(&mut Svg)) -> Self {
        let mut svg = Svg::new(Canvas { width: 18.0, narrow: false }, 14.0);
        draw(&mut svg);
        Self { sample: svg.finish_sample(), name: name.into() }
    }

    pub(super) fn swatch(class: &str, name: impl Into<String>) -> Self {
        Self::new(name, |svg| svg.rect(class, BOX))
    }

    pub(super) fn hatched(name: &str) -> Self {
        Self::new(name, |svg| hatched(svg, BOX))
    }

    pub(super) fn line(class: &str, name: impl Into<String>) -> Self {
        Self::new(name, |svg| svg.line(class, (0.0, 7.0), (18.0, 7.0)))
    }

    pub(super) fn marker(class: &str, shape: usize, name: &str) -> Self {
        Self::new(name, |svg| palette::marker(svg, class, shape, (9.0, 7.0), 4.5))
    }

    /// A line a series with its marker; a single one needs none.
    pub(super) fn series(names: &[String]) -> Vec<Self> {
        if names.len() > 1 { names.iter().enumerate().map(Self::of_series).collect() } else { Vec::new() }
    }

    pub(super) fn of_series((i, name): (usize, &String)) -> Self {
        let class = palette::hue(i);
        Self::new(name.clone(), |svg| {
            svg.line(&format!("ln {class}l"), (0.0, 7.0), (18.0, 7.0));
            palette::marker(svg, &format!("dot {class}"), i, (9.0, 7.0), 4.0);
        })
    }

    /// A box a series of bars; a single one needs none.
    pub(super) fn bars(names: &[String], classes: &[String]) -> Vec<Self> {
        let key = |(name, class): (&String, &String)| Self::swatch(&format!("bar {class}"), name.clone());
        if names.len() > 1 { names.iter().zip(classes).map(key).collect() } else { Vec::new() }
    }
}
