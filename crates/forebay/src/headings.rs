//! Headings in the help of commands with many flags. The flags that most people need stay together at the top.

use clap::Arg;

const HEADINGS: [(&str, &[&str]); 5] = [
    (
        "Samples",
        &["split", "image_key", "label_key", "max_sample_size", "shuffle", "interleave", "crop", "flip", "antialias"],
    ),
    ("Network", &["precision", "optimizer", "lr", "classes", "device_prefetch", "validate"]),
    ("Object stores", &["inflight", "readahead", "cache", "storage_option", "timeout"]),
    (
        "Checkpoints",
        &[
            "checkpoint_dir",
            "checkpoint_every",
            "checkpoint_mode",
            "checkpoint_format",
            "checkpoint_size",
            "checkpoint_behind",
            "checkpoint_tier",
            "burst_dir",
            "burst_tier",
            "drain_rate",
            "keep",
            "keep_fast",
            "keep_slow",
            "resume",
            "fail_every",
        ],
    ),
    ("Measurement", &["baseline", "warmups", "repeats", "least_time", "interval", "extra_repeats"]),
];

/// The flag under its heading, if it has one.
pub(crate) fn headed(arg: Arg) -> Arg {
    let id = arg.get_id().to_string();
    match HEADINGS.iter().find(|(_, names)| names.contains(&id.as_str())) {
        Some((heading, _)) => arg.help_heading(*heading),
        None => arg,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_flag_under_a_heading_is_one_of_train() {
        let command = Cli::command();
        let train = command.find_subcommand("train").unwrap();
        let of = |id: &str| train.get_arguments().find(|arg| arg.get_id() == id);
        for (heading, names) in HEADINGS {
            for name in names.iter().filter(|name| **name != "extra_repeats") {
                assert_eq!(of(name).and_then(Arg::get_help_heading), Some(heading), "{name}");
            }
        }
        assert_eq!(of("threads").and_then(Arg::get_help_heading), None);
    }
}
