//! Prints, for `cargo xtask generate`, what a step of a study can be given: a section of `docs/reference/study-file.md`.

use forebay_measure::Takes;
use forebay_record::Step;
use forebay_study::{COUNTED_IN_CORES, Declared, declared};
use forebay_units::markdown::{code, head, prose, row, split_default, wrapped};

const INTRODUCTION: &str = "What an experiment can be given under `factors`, `settings` and `set`, by its `run`. The settings are the \
                            command's flags with `_` in place of hyphens. A quantity is a text with its unit, as `\"256MiB\"`. A \
                            default that is a factor holds if the experiment gives the name neither as a factor nor as a setting.";
const OF_WORKLOADS: &str = "Every key of the workload can be given too, in quotes: `\"reader.batch_size\" = [1, 4]`; see \
                            [workload files](workload-file.md). Folders are the exception: a study has its own.";

#[allow(clippy::print_stdout)]
fn main() {
    let mut out = format!("\n## Settings and factors\n\n{}\n", wrapped(INTRODUCTION));
    out.push_str(&format!("\n{}\n", wrapped(&cores())));
    for step in Step::ALL {
        out.push_str(&format!("\n### `run = \"{}\"`\n\n", step.name()));
        head(&mut out, &["name", "value", "default", "meaning"]);
        declared(step).iter().for_each(|setting| line(setting, &mut out));
        if step == Step::Workload {
            out.push_str(&format!("\n{}\n", wrapped(OF_WORKLOADS)));
        }
    }
    print!("{out}");
}

fn cores() -> String {
    let names: Vec<String> = COUNTED_IN_CORES.iter().map(|name| code(name)).collect();
    format!(
        "{} may depend on the machine: `\"cores\"` is its number of cores, `\"cores*2\"` twice that. In a factor, `\"1..cores*2\"` \
         stands for the powers of two up to twice the cores, and that number itself.",
        names.join(", ")
    )
}

fn line(setting: &Declared, out: &mut String) {
    let (help, said) = split_default(setting.help);
    let default = match (setting.default, setting.takes) {
        (Some(levels), Takes::Sweep) => format!("a factor: {}", levels.replace(',', ", ")),
        (Some(default), _) => code(default),
        (None, Takes::Switch) => code("false"),
        (None, _) => said.map(prose).unwrap_or_default(),
    };
    row(out, &[&code(setting.name), &value(setting), &default, &paragraphs(&help)]);
}

fn value(setting: &Declared) -> String {
    if !setting.choices.is_empty() {
        return setting.choices.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ");
    }
    match setting.takes {
        Takes::Switch => "`true` or `false`".to_owned(),
        // A cell has one value.
        Takes::Sweep => code(&setting.value.replace(",…", "")),
        Takes::One | Takes::List => code(setting.value),
    }
}

/// The paragraphs of a help; the first is one line, the others are wrapped in the source.
fn paragraphs(help: &str) -> String {
    let joined: Vec<String> =
        help.trim().split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    prose(&joined.join("\n\n"))
}
