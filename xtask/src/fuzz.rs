//! Mutated inputs for every decoder.

use anyhow::{Result, bail};

use crate::ci;
use crate::shell::{cargo, program, run, target};

/// Runs one target or all of them for the given time each, optimised and with the checks of a debug build.
pub fn run_targets(args: &[&str]) -> Result<()> {
    let (seconds, chosen) = match args {
        [] => ("60", "all"),
        ["--seconds", seconds] => (*seconds, "all"),
        ["--seconds", seconds, chosen] => (*seconds, *chosen),
        [chosen] => ("60", *chosen),
        _ => bail!("usage: cargo xtask fuzz [--seconds N] [TARGET]"),
    };
    let fuzz = ["run", "--profile", "fuzz", "--quiet", "--package", "forebay-fuzz", "--", chosen, "--seconds", seconds];
    run(&mut cargo(&fuzz))
}

/// Runs all targets for a few seconds each, built as the tests are.
pub fn run_short() -> Result<()> {
    ci::build_like_tests(&["--bin", "forebay-fuzz"])?;
    run(program(target().join("debug/forebay-fuzz")).args(["all", "--seconds", "5"]))
}
