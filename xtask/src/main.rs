//! Set-up, demonstration and everything that guards the project.

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
mod prefetch;
mod python;
mod ranks;
mod reports;
mod savers;
mod shell;
mod system;
mod tally;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  demo           make a small dataset, run the ingest sweep, print the table
  ci             everything that guards the project; installs what it needs
  test           all tests of the workspace; says which cannot run on this machine
  tidy           house rules that no compiler checks
  layers         which crate may depend on which
  generate [--check]
                 write the generated pages of docs/; with --check, say which are out of date
  book [PAGE…]   the documentation: builds it, follows its links, runs its commands
  browser        reports opened in a headless Chromium
  reports [STUDY…]
                 runs the built-in studies, keeps their pages in docs/reports, takes the picture of README.md
  interop        our files read by TensorFlow and webdataset, and theirs by us
  ranks          workloads on many ranks: mpirun, and a Slurm of four nodes on this machine
  fuzz [--seconds N] [TARGET]
                 mutated inputs for every decoder (60 s each by default)
  crash [--short] [--in DIR] [--summary FILE]
                 checkpoints through power cuts, kills, failing and full disks, at every operation of a save, a drain
                 and a prune; on real ext4 and xfs where it runs as root
  hostile [--short] [--attack NAME] [--command NAME] [--binary PATH]
                 every command under limits, full disks, foreign files, signals, outputs onto inputs
  bench jpeg     our JPEG decoder beside libjpeg-turbo: pixels and speed
  bench parquet  our Parquet beside the parquet crate: rows and speed
  bench fio [--in DIR] [--rounds N] [ROW…]
                 forebay probe beside fio on the same file; fails when a row is off by more than 5 %
  bench prefetch an emulated accelerator on every tier, with and without prefetch, beside a run that never waits
  bench checkpoint [--in DIR]
                 a durable save beside torch.save, safetensors and TensorFlow; stalls, tiers, training with checkpoints
  bench dlio [--rounds N] [--core N] [--only generation|truth|held|memory|crowds]…
                 workloads beside DLIO on the same files: utilisation, bytes a core, first step, generation, memory
  bench peers [OPTIONS…]
                 ingest beside tf.data, torchvision, DALI and FFCV on the same files
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
        ["ranks"] => tally::of(ranks::run_tests),
        ["fuzz", rest @ ..] => fuzz::run_targets(rest),
        ["crash", rest @ ..] => tally::of(|tally| crash::run_campaign(tally, rest)),
        ["hostile", rest @ ..] => tally::of(|tally| hostile::run_campaign(tally, rest)),
        ["bench", "peers", rest @ ..] => bench::peers(rest),
        ["bench", "jpeg"] => bench::jpeg(),
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
