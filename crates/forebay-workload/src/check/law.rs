//! Parsing time distributions: a number of seconds, "224 ms", or a table with a type.

use super::keys::Role;
use super::section::{Section, no_unit, seconds};
use super::tree::Tree;
use crate::time::Time;

#[derive(Clone, Copy)]
pub(super) enum Law {
    Normal,
    Uniform,
    Gamma,
    Exponential,
    Poisson,
}

pub(super) const LAWS: [(&str, Law); 5] = [
    ("normal", Law::Normal),
    ("uniform", Law::Uniform),
    ("gamma", Law::Gamma),
    ("exponential", Law::Exponential),
    ("poisson", Law::Poisson),
];

/// Reads a distribution, and its deviation if that is a separate key.
pub(super) fn read(section: &mut Section<'_>, key: &'static str, stdev_key: &'static str, target: &mut Time) {
    section.declare(key, Role::Honoured { value: "seconds, or a [distribution](#distributions)".to_owned() });
    match section.take(key) {
        None => {}
        Some(Tree::Table(entries)) => *target = table(section.child(key, Tree::Table(entries))),
        Some(value) => {
            let mut one = section.child("", Tree::Table(vec![(key.to_owned(), value)]));
            if let Some(mean) = one.seconds(key) {
                *target = Time::Normal { mean, stdev: 0.0 };
            }
        }
    }
    let Some(given) = section.seconds(stdev_key) else { return };
    match target {
        Time::Normal { stdev, .. } => *stdev = given,
        _ => section.refuse(stdev_key, format!("only a normal distribution has a deviation, but {key} is not normal")),
    }
}

/// An empty table is DLIO's way to say that there is none.
fn table(mut law: Section<'_>) -> Time {
    if law.is_empty() {
        return Time::default();
    }
    let which = law.choice("type", &LAWS).unwrap_or(Law::Normal);
    let stdev = if matches!(which, Law::Normal) { law.seconds("stdev").unwrap_or(0.0) } else { 0.0 };
    let mut part = |key, unit: fn(&str) -> Option<f64>| {
        law.declare(key, Role::Honoured { value: "number".to_owned() });
        if !law.has(key) {
            law.refuse(key, "missing; this distribution needs it");
        }
        law.amount(key, unit).unwrap_or(0.0)
    };
    let time = match which {
        Law::Normal => Time::Normal { mean: part("mean", seconds), stdev },
        Law::Uniform => Time::Uniform { min: part("min", seconds), max: part("max", seconds) },
        Law::Gamma => Time::Gamma { shape: part("shape", no_unit), scale: part("scale", seconds) },
        Law::Exponential => Time::Exponential { scale: part("scale", seconds) },
        Law::Poisson => Time::Poisson { lam: part("lam", seconds) },
    };
    if let Time::Uniform { min, max } = time
        && min > max
    {
        law.refuse("min", format!("must not be above max: {min} > {max}"));
    }
    law.finish();
    time
}
