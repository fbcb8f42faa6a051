//! All checks of the project, cheapest first.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::shell::{cargo, program, run, target};
use crate::tally::Tally;
use crate::{advise, book, crash, fuzz, generate, hostile, layers, objects, python, ranks, system, tidy, wheel};

/// A named step.
type Step = (&'static str, fn(&Tally) -> Result<()>);

/// What is off by default and checked all the same.
const FEATURES: &str = "forebay/mpi,forebay/hdf5,forebay/object,forebay-record/schema";

/// The steps of a row run at the same time: each leaves a core idle, or waits for the network.
const ROWS: &[&[Step]] = &[
    &[("formatting", |_| run(&mut cargo(&["fmt", "--all", "--check"])))],
    &[("tidy", |_| tidy::run())],
    &[("layers", |_| layers::run())],
    &[("generated pages", |_| generate::check())],
    &[("clippy", |_| clippy()), ("packages", |_| packages())],
    &[("documentation", |_| documentation())],
    &[("tests", tests)],
    &[("ranks", ranks::run_tests), ("release build", |_| release())],
    &[("examples", |_| examples()), ("Python package", wheel::test)],
    &[("book", |tally| book::run_book(tally, &[]))],
    // Alone: its verdicts are about what else runs.
    &[("verdicts, short", |_| advise::run_campaign(&["--short"]))],
    &[("fuzz, short", |_| fuzz::run_short())],
    &[("crashes, short", crashes)],
    &[
        ("hostile use, short", |tally| hostile::run_campaign(tally, &["--short"])),
        ("object store", |_| objects::run_campaign(&[])),
        ("browser", python::browser),
        ("interoperability", python::interop),
    ],
];

/// Runs all steps; stops after the first row with one that fails.
pub fn run_ci() -> Result<()> {
    if std::env::var_os("CARGO_INCREMENTAL").is_none() {
        // Files for later builds to go on from cost time, and here there is one build.
        return run(program(std::env::current_exe()?).arg("ci").env("CARGO_INCREMENTAL", "0"));
    }
    system::need("cc", "gcc")?;
    ranks::need_all()?;
    python::cmake()?;
    let (tally, start, mut times) = (Tally::new()?, Instant::now(), Vec::new());
    for row in ROWS {
        times.extend(run_row(row, &tally)?);
    }
    eprintln!();
    for (name, seconds) in times {
        eprintln!("  {name:18} {seconds:6.1} s");
    }
    eprintln!("  {:18} {:6.1} s", "all", start.elapsed().as_secs_f64());
    tally.finish()
}

/// Runs the steps at the same time; the seconds that each took.
fn run_row(row: &[Step], tally: &Tally) -> Result<Vec<(&'static str, f64)>> {
    let timed = |(name, step): Step| {
        eprintln!("\n=== {name}");
        let start = Instant::now();
        step(tally).with_context(|| format!("{name} failed"))?;
        Ok((name, start.elapsed().as_secs_f64()))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = row.iter().map(|step| scope.spawn(move || timed(*step))).collect();
        threads.into_iter().map(|thread| thread.join().expect("steps do not panic")).collect()
    })
}

/// All tests of the workspace. The examples have none; they are run.
pub fn tests(tally: &Tally) -> Result<()> {
    ranks::need_mpi()?;
    python::cmake()?;
    let test = ["test", "--workspace", "--exclude", "forebay-examples", "--quiet", "--features", FEATURES];
    tally.run(&mut cargo(&test))
}

/// What later steps take from the network: the tools that `forebay watch` is compared with, a browser, Python's packages.
fn packages() -> Result<()> {
    if !system::works("iostat", &["-V"]) {
        system::install(&["sysstat"], "iostat is missing")?;
    }
    system::need("dstat", "dstat")?;
    book::mdbook()?;
    python::chromium()?;
    python::environments()
}

/// Builds what is installed, on the time that the tests beside it leave.
fn release() -> Result<()> {
    run(program("nice").args(["-n", "19", env!("CARGO"), "build", "--release", "--quiet"]))
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

/// Runs every example of the examples' crate.
fn examples() -> Result<()> {
    build_like_tests(&["--bins"])?;
    tidy::examples()?.iter().try_for_each(|name| run(&mut program(target().join("debug").join(name))))
}

fn crashes(tally: &Tally) -> Result<()> {
    build_like_tests(&["--example", "crash"])?;
    crash::run_built(tally, program(target().join("debug/examples/crash")), &["--short"])
}
