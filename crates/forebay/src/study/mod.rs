//! `forebay study`: runs many measurements from one file.

mod display;
mod dry_run;
mod run;
pub(crate) mod samples;
mod show;
mod slurm;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Subcommand;
use forebay_record::{DatasetSpec, StudySpec};
use forebay_study::{Error, Found, Placement, find};
use forebay_units::{PathText, chain};

use crate::output::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the built-in studies
    List,
    /// Show a study: its questions, its experiments, the published values
    Show(show::Args),
    /// Run or resume a study; writes a record of every cell and a report
    Run(run::Args),
    /// Print a Slurm job script that runs a whole study on one node
    Slurm(slurm::Args),
}

pub(crate) fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::List => show::list(),
        Command::Show(args) => show::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Slurm(args) => slurm::run(&args),
    }
}

fn found(name: &OsStr) -> Result<Found> {
    find(name).map_err(|error| explained(Some(name), error))
}

/// An error with its causes, its file if there is one, and the hint on its own line.
fn explained(file: Option<&OsStr>, error: Error) -> anyhow::Error {
    let of_file = matches!(error, Error::Syntax { .. } | Error::Plan { .. });
    let text = match file {
        Some(file) if of_file => format!("{}: {}", file.escaped(), chain(&error)),
        _ => chain(&error),
    };
    match error.hint() {
        Some(hint) => anyhow!("{text}\nhint: {hint}"),
        None => anyhow!(text),
    }
}

/// The tier of `forebay tier up` under a folder, if there is one.
fn find_placement(path: &Path) -> Placement {
    match crate::tier::placement(path) {
        Ok(found) => found,
        Err(error) => {
            Placement { notes: vec![format!("cannot check whether it is a tier: {error:#}")], ..Placement::default() }
        }
    }
}

#[derive(Debug, Clone)]
struct Replacement {
    name: String,
    path: PathBuf,
}

/// "hdd=/mnt/hdd", "images=/mnt/images".
fn parse_elsewhere(text: OsString) -> Result<Replacement, String> {
    let bytes = text.as_bytes();
    let split = bytes.iter().position(|&byte| byte == b'=').map(|at| (&bytes[..at], &bytes[at + 1..]));
    match split.map(|(name, path)| (std::str::from_utf8(name), OsStr::from_bytes(path))) {
        Some((Ok(name), path)) if !name.is_empty() && !path.is_empty() => {
            let path = std::path::absolute(path).map_err(|error| error.to_string())?;
            Ok(Replacement { name: name.to_owned(), path })
        }
        _ => Err("give NAME=PATH".to_owned()),
    }
}

fn put_elsewhere(spec: &mut StudySpec, tiers: &[Replacement], datasets: &[Replacement]) -> Result<()> {
    let of_tiers: Vec<String> = spec.tiers.iter().map(|tier| tier.name.clone()).collect();
    let of_datasets: Vec<String> = spec.datasets.iter().map(|dataset| dataset.name.clone()).collect();
    for (what, all, known) in [("tier", tiers, of_tiers), ("dataset", datasets, of_datasets)] {
        let mut seen = HashSet::new();
        if let Some(put) = all.iter().find(|put| !seen.insert(put.name.as_str())) {
            bail!("--{what} {} given twice", put.name);
        }
        if let Some(put) = all.iter().find(|put| !known.contains(&put.name)) {
            let there = if known.is_empty() { String::new() } else { format!("; the study has {}", known.join(", ")) };
            bail!("--{what} {}: unknown {what}{there}", put.name);
        }
    }
    for tier in &mut spec.tiers {
        if let Some(put) = tiers.iter().find(|put| put.name == tier.name) {
            (tier.profile, tier.path) = (None, Some(put.path.clone()));
        }
    }
    for dataset in &mut spec.datasets {
        if let Some(Replacement { name, path }) = datasets.iter().find(|put| put.name == dataset.name).cloned() {
            *dataset = DatasetSpec { name, path: Some(path), ..DatasetSpec::default() };
        }
    }
    Ok(())
}

const YEAR: u64 = 365 * 86_400;
/// Longer times are given in years.
const YEARS_FROM: u64 = 2 * YEAR;

/// An approximate time: "46 s", "1 min 46 s", "2 h 17 min", "3 years".
fn about(seconds: f64) -> String {
    match seconds.round() as u64 {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3_600 => format!("{} min {} s", s / 60, s % 60),
        s if s >= YEARS_FROM => format!("{} years", forebay_units::group_digits(s / YEAR)),
        s => format!("{} h {} min", s / 3_600, s / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_not_exact_has_two_units_at_most() {
        for (seconds, text) in [(0.2, "0 s"), (59.6, "1 min 0 s"), (106.0, "1 min 46 s"), (8_220.0, "2 h 17 min")] {
            assert_eq!(about(seconds), text);
        }
        for (seconds, text) in [(86_400.0 * 365.0, "8760 h 0 min"), (1e11, "3,170 years")] {
            assert_eq!(about(seconds), text);
        }
    }
}
