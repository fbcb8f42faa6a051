//! Set-up, the demonstration, and all checks of the project.

mod advise;
mod bench;
mod book;
mod ci;
mod crash;
mod demo;
mod dlio;
mod fio;
mod fuzz;
mod generate;
mod hostile;
mod layers;
mod objects;
mod prefetch;
mod python;
mod ranks;
mod reports;
mod savers;
mod shell;
mod system;
mod tally;
mod tidy;
mod traced;
mod wheel;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo           runs the built-in study chien-2018 at the quick scale and writes its report
  ci             all checks, cheapest first; installs what it needs
  test           all tests of the workspace; lists those that cannot run on this machine
  tidy           rules that no compiler checks
  layers         checks the dependencies between crates
  generate [--check]
                 writes the generated pages of docs/; with --check, lists those that are out of date
  book [PAGE…]   builds the documentation, follows its links, runs its commands
  browser        opens reports in a headless Chromium
  reports [STUDY…]
                 runs the built-in studies, keeps their pages in docs/reports, takes the screenshot of README.md
  interop        file exchange with TensorFlow and webdataset, in both directions
  trace-torch    forebay trace on jobs of PyTorch, which it installs (1 GB)
  wheel [object] [hdf5]
                 builds the Python package into target/wheels, with these features
  wheel test     builds it, installs it into a fresh environment, tests it
  torch          the same, with PyTorch and torchvision; downloads several gigabytes
  soak [MINUTES] loaders and a saver of the Python package for an hour: do memory, threads or files grow?
  ranks          workloads on many ranks: mpirun, and a Slurm of four nodes on this machine
  objects [--ceph]
                 the laws of storage on an object store: moto, or Ceph from Debian
  fuzz [--seconds N] [TARGET]
                 mutated inputs for every decoder (60 s each by default)
  crash [--short] [--in DIR] [--summary FILE]
                 power cuts, kills, failing and full disks at every operation of saving, draining and pruning
                 checkpoints; as root also on real ext4 and xfs
  advise [--short]
                 runs with a planted cause, each alone and beside programs that use all cores: does the verdict name it?
  hostile [--short] [--attack NAME] [--command NAME] [--binary PATH]
                 every command under limits, on full disks, with foreign files, signals, and outputs that are inputs
  bench jpeg     our JPEG decoder and libjpeg-turbo: pixels and speed
  bench objects [OPTIONS…]
                 objects read from Ceph beside obstore, s3torchconnector and boto3: processor time and rate
  bench parquet  our Parquet and the parquet crate: rows and speed
  bench fio [--in DIR] [--rounds N] [ROW…]
                 forebay probe and fio on the same file; fails if a row is off by more than 5 %
  bench trace    processor time per traced call, beside DFTracer; bytes per event; a report of 10,000,000 events
  bench prefetch an emulated accelerator on every tier, with and without prefetch, and a run that never waits
  bench checkpoint [--in DIR]
                 a durable save compared with torch.save, safetensors and TensorFlow; stalls, tiers, training
  bench dlio [--rounds N] [--core N] [--only generation|truth|held|memory|crowds]…
                 workloads compared with DLIO on the same files: AU, bytes per core, first step, generation, memory
  bench python [--rounds N] [--threads N] [--only NAME…]
                 the Python loader compared with ingest, DataLoader, tf.data, DALI, SPDL and FFCV; downloads gigabytes
  bench peers [OPTIONS…]
                 ingest compared with tf.data, torchvision, DALI and FFCV on the same files
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["demo"] => demo::run_demo(),
        ["ci"] => ci::run_ci(),
        ["tidy"] => tidy::run(),
        ["layers"] => layers::run(),
        ["generate"] => generate::write(),
        ["generate", "--check"] => generate::check(),
        ["test"] => tally::of(ci::tests),
        ["book", rest @ ..] => tally::of(|tally| book::run_book(tally, rest)),
        ["reports", rest @ ..] => reports::write(rest),
        ["browser"] => tally::of(python::browser),
        ["interop"] => tally::of(python::interop),
        ["wheel", "test"] => tally::of(wheel::test),
        ["wheel", features @ ..] => wheel::built(features),
        ["torch"] => tally::of(wheel::test_torch),
        ["soak"] => wheel::soak("60"),
        ["soak", minutes] => wheel::soak(minutes),
        ["objects", rest @ ..] => objects::run_campaign(rest),
        ["ranks"] => tally::of(ranks::run_tests),
        ["fuzz", rest @ ..] => fuzz::run_targets(rest),
        ["crash", rest @ ..] => tally::of(|tally| crash::run_campaign(tally, rest)),
        ["hostile", rest @ ..] => tally::of(|tally| hostile::run_campaign(tally, rest)),
        ["advise", rest @ ..] => advise::run_campaign(rest),
        ["bench", "peers", rest @ ..] => bench::peers(rest),
        ["bench", "trace"] => traced::compare(),
        ["trace-torch"] => tally::of(python::torch),
        ["bench", "python", rest @ ..] => bench::loader(rest),
        ["bench", "jpeg"] => bench::jpeg(),
        ["bench", "objects", rest @ ..] => objects::compare(rest),
        ["bench", "parquet"] => bench::parquet(),
        ["bench", "prefetch"] => prefetch::compare(),
        ["bench", "checkpoint"] => savers::compare(None),
        ["bench", "checkpoint", "--in", folder] => savers::compare(Some(folder)),
        ["bench", "fio", rest @ ..] => fio::compare(rest),
        ["bench", "dlio", rest @ ..] => dlio::compare(rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
