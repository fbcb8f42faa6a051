//! forebay: measures, explains and removes the I/O stalls of deep-learning training.
//!
//! Exit status: 0 ran and met what was asked, 1 ran and did not, 2 could not run.

mod ceilings;
mod checkpoint;
mod cli;
mod cuda;
mod data;
mod flags;
mod home;
mod ingest;
mod live;
mod output;
mod probe;
mod progress;
mod report;
mod stop;
mod study;
mod tier;
mod train;
mod values;
mod watch;
mod workload;

fn main() -> std::process::ExitCode {
    stop::survive_size_limit();
    output::exit_code(match cli::command() {
        cli::Command::Checkpoint(command) => checkpoint::run(command),
        cli::Command::Data(command) => data::run(command),
        cli::Command::Ingest(args) => ingest::run(args),
        cli::Command::Probe(args) => probe::run(args),
        cli::Command::Train(args) => train::run(*args),
        cli::Command::Watch(args) => watch::run(args),
        cli::Command::Study(command) => study::run(command),
        cli::Command::Report(args) => report::run(&args),
        cli::Command::Tier(command) => tier::run(command),
        cli::Command::Workload(command) => workload::run(command),
    })
}
