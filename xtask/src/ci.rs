//! Everything that guards the project, cheapest first.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::shell::{cargo, program, run, target};
use crate::tally::Tally;
use crate::{crash, fuzz, hostile, layers, python, ranks, system, tidy};

/// A named step.
type Step = (&'static str, fn(&Tally) -> Result<()>);

/// What is off by default and checked all the same.
const FEATURES: &str = "forebay/mpi,forebay/hdf5";

const STEPS: &[Step] = &[
    ("formatting", |_| run(&mut cargo(&["fmt", "--all", "--check"]))),
    ("tidy", |_| tidy::run()),
    ("layers", |_| layers::run()),
    ("clippy", |_| clippy()),
    ("documentation", |_| documentation()),
    ("tools to compare with", |_| tools()),
    ("tests", tests),
    ("ranks", ranks::run_tests),
    ("release build", |_| run(&mut cargo(&["build", "--release"]))),
    ("examples", |_| examples()),
    ("fuzz, short", |_| fuzz::run_short()),
    ("crashes, short", crashes),
    ("hostile use, short", |tally| hostile::run_campaign(tally, &["--short"])),
    ("browser", python::browser),
    ("interoperability", python::interop),
];

/// Runs all steps; stops at the first that fails.
pub fn run_ci() -> Result<()> {
    system::need("cc", "gcc")?;
    ranks::need_all()?;
    python::cmake()?;
    let (tally, mut times) = (Tally::new()?, Vec::new());
    for (name, step) in STEPS {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        step(&tally).with_context(|| format!("{name} failed"))?;
        times.push((name, start.elapsed().as_secs_f64()));
    }
    eprintln!();
    for (name, seconds) in times {
        eprintln!("  {name:18} {seconds:6.1} s");
    }
    tally.finish()
}

/// All tests of the workspace.
pub fn tests(tally: &Tally) -> Result<()> {
    ranks::need_mpi()?;
    python::cmake()?;
    tally.run(&mut cargo(&["test", "--workspace", "--quiet", "--features", FEATURES]))
}

/// What the tests of `forebay watch` are compared with; without them those tests say that they did not run.
fn tools() -> Result<()> {
    if !system::works("iostat", &["-V"]) {
        system::install(&["sysstat"], "iostat is missing")?;
    }
    system::need("dstat", "dstat")
}

fn clippy() -> Result<()> {
    run(&mut cargo(&["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "-D", "warnings"]))
}

fn documentation() -> Result<()> {
    let doc = ["doc", "--workspace", "--no-deps", "--quiet", "--features", FEATURES];
    run(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Builds programs and examples as the tests are built. Cargo takes features together over the packages that are chosen: with a
/// choice of its own every step would build the libraries again.
pub fn build_like_tests(targets: &[&str]) -> Result<()> {
    ranks::need_mpi()?;
    python::cmake()?;
    run(cargo(&["build", "--workspace", "--quiet", "--features", FEATURES]).args(targets))
}

/// Runs every example of the examples' crate. They are built together with forebay, whose release build has most of what they need.
fn examples() -> Result<()> {
    let names = tidy::examples()?;
    let mut build = cargo(&["build", "--release", "--quiet", "--package", "forebay", "--package", "forebay-examples"]);
    run(build.args(names.iter().flat_map(|name| ["--bin", name])))?;
    names.iter().try_for_each(|name| run(&mut program(target().join("release").join(name))))
}

fn crashes(tally: &Tally) -> Result<()> {
    build_like_tests(&["--example", "crash"])?;
    crash::run_built(tally, program(target().join("debug/examples/crash")), &["--short"])
}
