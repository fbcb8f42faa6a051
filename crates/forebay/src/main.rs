//! forebay: measures, explains and removes the I/O stalls of deep-learning training.
//!
//! Exit status: 0 for success, 1 if the command ran but missed its goal, 2 if it could not run.

mod ceilings;
mod checkpoint;
mod cli;
mod cuda;
mod data;
mod doctor;
mod flags;
mod headings;
mod home;
mod ingest;
mod live;
mod manual;
mod output;
mod probe;
mod progress;
mod report;
mod stop;
mod store;
mod study;
mod terminal;
mod tier;
mod together;
mod trace;
mod train;
mod tune;
mod values;
mod version;
mod watch;
mod workload;

fn main() -> std::process::ExitCode {
    stop::survive_size_limit();
    output::exit_code(cli::run())
}
