//! Hostile use of every command: conditions that ordinary tests do not cover.
//!
//! A *subject* is a command with small inputs (`subject`). An *attack* changes one thing around it: a limit, a disk, a file among
//! the inputs, a signal, an output path, the environment. Each pair is a *case*, run in a fresh copy of the inputs. Whatever
//! happens, these must hold (`verdict`): no panic, no abort, no hang, exit status 0, 1 or 2, inputs unchanged, nothing written
//! outside the outputs, no temporary files left, no NaN.

mod arena;
mod attack;
mod case;
mod process;
mod snapshot;
mod subject;
mod verdict;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::shell::{binary, cargo, run};
use crate::tally::Tally;
use arena::Arena;
use attack::Attack;
use case::Case;

const USAGE: &str = "usage: cargo xtask hostile [--short] [--attack NAME] [--command NAME] [--binary PATH]";

/// What is to be run.
#[derive(Default)]
struct Options {
    is_short: bool,
    attack: Option<String>,
    command: Option<String>,
    binary: Option<PathBuf>,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut words = args.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().map(|value| (*value).to_owned());
            match *word {
                "--short" => options.is_short = true,
                "--attack" => options.attack = value(),
                "--command" => options.command = value(),
                "--binary" => options.binary = value().map(PathBuf::from),
                _ => bail!("{USAGE}"),
            }
        }
        Ok(options)
    }

    fn wants(&self, attack: Attack) -> bool {
        self.attack.as_ref().is_none_or(|name| name == attack.name())
    }

    fn wants_case(&self, case: &Case) -> bool {
        self.command.as_ref().is_none_or(|name| name == case.subject.name)
    }
}

/// Runs the campaign; an error that names every case that went wrong.
pub fn run_campaign(tally: &Tally, args: &[&str]) -> Result<()> {
    let options = Options::parse(args)?;
    let program = match &options.binary {
        Some(path) => path.canonicalize()?,
        None => {
            run(&mut cargo(&["build", "--release", "--quiet"]))?;
            binary()
        }
    };
    let arena = Arena::build(&program)?;
    arena.knows_every_command()?;
    let (mut n_run, mut wrong) = (0, Vec::new());
    for attack in Attack::ALL.into_iter().filter(|attack| options.wants(*attack)) {
        if let Some(reason) = attack.impossible() {
            tally.leave_out(&format!("hostile use, {}", attack.name()), reason)?;
            continue;
        }
        let (start, failed_before) = (Instant::now(), wrong.len());
        let cases: Vec<Case> =
            attack.cases(options.is_short).into_iter().filter(|case| options.wants_case(case)).collect();
        for case in &cases {
            wrong.extend(
                arena
                    .play(case)?
                    .into_iter()
                    .map(|fault| format!("{attack}: {case}\n    {fault}", attack = attack.name())),
            );
        }
        n_run += cases.len();
        let (n, failed) = (cases.len(), wrong.len() - failed_before);
        eprintln!("{:12} {n:5} cases, {failed} wrong, {:.1} s", attack.name(), start.elapsed().as_secs_f64());
    }
    if !wrong.is_empty() {
        bail!("{} faults in {n_run} cases:\n{}", wrong.len(), wrong.join("\n"));
    }
    if n_run == 0 {
        bail!("no case matches; {USAGE}");
    }
    eprintln!("{n_run} cases, none wrong");
    Ok(())
}
