//! `emulated:224ms`, `emulated:normal(224ms,20ms),busy` and back.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use forebay_units::parse_duration;

use super::{Emulation, Law, Manner};
use crate::error::Error;

/// The accepted distributions, for error messages.
const LAWS: &str =
    "a duration, uniform(FROM,TO), normal(MEAN,DEVIATION), exponential(MEAN), gamma(SHAPE,SCALE) or poisson(MEAN)";
/// Longer steps are assumed to be typing errors.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl FromStr for Emulation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Accelerator { text: text.to_owned(), reason };
        let rest = text
            .strip_prefix("emulated:")
            .ok_or_else(|| wrong("expected \"emulated:\" at the beginning".to_owned()))?;
        let (law, manner) = match rest.rsplit_once(',') {
            Some((law, "busy")) => (law, Manner::Busy),
            _ => (rest, Manner::Sleeping),
        };
        Ok(Self { law: parse_law(law.trim()).map_err(wrong)?, manner })
    }
}

impl fmt::Display for Emulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let manner = if self.manner == Manner::Busy { ",busy" } else { "" };
        write!(f, "emulated:{}{manner}", self.law)
    }
}

fn parse_law(text: &str) -> Result<Law, String> {
    let Some((name, arguments)) = text.split_once('(') else {
        return Ok(Law::Constant(duration(text).map_err(|error| format!("{error}; expected {LAWS}"))?));
    };
    let arguments = arguments.strip_suffix(')').ok_or("missing \")\"")?;
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    match (name.trim(), arguments.as_slice()) {
        ("uniform", [from, to]) => {
            let (from, to) = (duration(from)?, duration(to)?);
            if from > to { Err(format!("{from:?} is greater than {to:?}")) } else { Ok(Law::Uniform(from, to)) }
        }
        ("normal", [mean, deviation]) => Ok(Law::Normal(duration(mean)?, duration(deviation)?)),
        ("exponential", [mean]) => Ok(Law::Exponential(duration(mean)?)),
        ("gamma", [shape, scale]) => gamma(shape, scale),
        ("poisson", [mean]) => Ok(Law::Poisson(duration(mean)?)),
        ("uniform" | "normal" | "gamma", _) => {
            Err(format!("{} takes two values, not {}", name.trim(), arguments.len()))
        }
        ("exponential" | "poisson", _) => Err(format!("{} takes one value, not {}", name.trim(), arguments.len())),
        (name, _) => Err(format!("unknown distribution \"{name}\"; expected {LAWS}")),
    }
}

fn gamma(shape: &str, scale: &str) -> Result<Law, String> {
    let (times, each) = (positive(shape)?, duration(scale)?);
    if each.mul_f64(times) > LONGEST {
        return Err(format!("the mean, {shape} times {scale}, is longer than one day"));
    }
    Ok(Law::Gamma(times, each))
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    if duration > LONGEST { Err(format!("{text} is longer than one day")) } else { Ok(duration) }
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= 1e6);
    number.ok_or_else(|| format!("\"{text}\" is not a positive number"))
}
