//! The inputs of all subjects, made once, and the folder where each case gets a copy of them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::case::Case;
use super::process;
use super::snapshot::Snapshot;
use super::subject::SUBJECTS;
use super::verdict::{Traces, faults};
use crate::shell::{output, scratch};

/// A study of two cells.
const TINY_STUDY: &str = r#"
name = "tiny"
title = "a tiny study"

[[dataset]]
name = "set"
path = "photos"

[[experiment]]
name = "read"
run = "ingest"
dataset = "set"
repeats = 1
warmups = 0

[experiment.factors]
threads = [1, 2]

[experiment.settings]
batch = 4
"#;

const TINY_WORKLOAD: &str = "
model: {name: tiny, model_size_bytes: 100000}
framework: pytorch
workflow: {generate_data: false, train: true, checkpoint: true}
dataset: {data_folder: data, format: npz, num_files_train: 4, num_samples_per_file: 1, record_length_bytes: 4096}
reader: {batch_size: 2, read_threads: 2, prefetch_size: 2, file_shuffle: seed, sample_shuffle: seed}
train: {epochs: 1, computation_time: 0.001}
checkpoint: {checkpoint_after_epoch: 1, epochs_between_checkpoints: 1}
";

/// How the inputs are made. Most lines are what a user would type.
const MAKING: &[&str] = &[
    "data make caltech101 photos --count 12 --median-size 4KB",
    "data pack photos shards --to tfrecord",
    "ingest photos --threads 1,2 --repeats 2 --warmups 0 --batch 4 --json record.json",
    "train photos --accelerator emulated:1ms --steps 4 --batch 4 --checkpoint-every 1 --checkpoint-dir kept \
     --burst-dir near --checkpoint-size 1MB",
    "checkpoint restore kept --burst-dir near --to model.safetensors",
    "workload make tiny.yaml --data records",
    "study run tiny.toml --out study",
    "trace --out traced -- true",
    "data make caltech101 ../many --count 3000 --median-size 4KB",
];

pub struct Arena {
    program: PathBuf,
    /// The inputs, a case's copy of them, and what no case may touch.
    root: PathBuf,
}

impl Arena {
    /// Makes the inputs with the program that is to be attacked.
    pub fn build(program: &Path) -> Result<Self> {
        let root = scratch("hostile")?;
        let inputs = root.join("inputs");
        let _ = fs::remove_dir_all(&inputs);
        for folder in ["inputs/bystander", "aside/home", "aside/tmp"] {
            fs::create_dir_all(root.join(folder))?;
        }
        for name in ["slow", "fast", "bench", "tiers"] {
            fs::create_dir(inputs.join(name))?;
        }
        fs::write(inputs.join("bystander/notes.txt"), "not ours\n")?;
        fs::write(inputs.join("tiny.toml"), TINY_STUDY)?;
        fs::write(inputs.join("long.toml"), TINY_STUDY.replace("repeats = 1", "repeats = 100000"))?;
        fs::write(inputs.join("tiny.yaml"), TINY_WORKLOAD)?;
        for line in MAKING {
            let mut command = Command::new(program);
            command.args(line.split(' ')).current_dir(&inputs).env("FOREBAY_HOME", root.join("aside/made"));
            output(&mut command).with_context(|| format!("cannot make the inputs: forebay {line}"))?;
        }
        std::os::unix::fs::symlink(root.join("many"), inputs.join("many"))?;
        Ok(Self { program: program.to_owned(), root })
    }

    /// Fails when the program has a command that no subject tries.
    pub fn knows_every_command(&self) -> Result<()> {
        let tried: BTreeSet<&str> = SUBJECTS.iter().map(|subject| subject.name).collect();
        let there = self.commands("")?;
        let missing: Vec<&str> = there.iter().map(String::as_str).filter(|name| !tried.contains(name)).collect();
        if missing.is_empty() { Ok(()) } else { bail!("no subject of the campaign tries: {}", missing.join(", ")) }
    }

    /// The commands below one, as its help lists them; the command itself where it has none.
    fn commands(&self, name: &str) -> Result<Vec<String>> {
        let help = output(Command::new(&self.program).args(name.split_whitespace()).arg("--help"))?;
        let Some((_, listed)) = help.split_once("\nCommands:\n") else { return Ok(vec![name.to_owned()]) };
        let lines = listed.lines().take_while(|line| !line.is_empty());
        let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let names = names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        let below = names.map(|word| self.commands(format!("{name} {word}").trim()));
        let mut all = below.collect::<Result<Vec<_>>>()?.concat();
        if help.contains("\nArguments:\n") {
            all.push(name.to_owned());
        }
        Ok(all)
    }

    /// Runs a case in a fresh copy; what was wrong.
    pub fn play(&self, case: &Case) -> Result<Vec<String>> {
        let (folder, aside) = (self.root.join("case"), self.root.join("aside"));
        remove(&folder)?;
        run_quietly(Command::new("cp").arg("-a").arg(self.root.join("inputs")).arg(&folder))?;
        if let Some(prepare) = &case.prepare {
            prepare(&folder).with_context(|| format!("cannot prepare {case}"))?;
        }
        let before = [Snapshot::of(&folder), Snapshot::of(&aside)];
        let ended = process::play(&self.program, case, &folder, &aside)?;
        let after = [Snapshot::of(&folder), Snapshot::of(&aside)];
        let changed = owned(before[0].changes(&after[0]));
        let traces = Traces { texts: texts(&folder, &changed), changed, outside: owned(before[1].changes(&after[1])) };
        let found = faults(case, &ended, &traces);
        if let Some(clear) = &case.clear {
            clear(&folder);
        }
        Ok(found)
    }
}

fn owned(changes: Vec<(&Path, &'static str)>) -> Vec<(PathBuf, &'static str)> {
    changes.into_iter().map(|(path, what)| (path.to_owned(), what)).collect()
}

/// The texts among the files that were made; a page's script, which may name what is no number, is left out.
fn texts(folder: &Path, changed: &[(PathBuf, &'static str)]) -> Vec<(PathBuf, String)> {
    let made = changed.iter().filter(|(_, what)| *what == "was made").map(|(path, _)| path);
    let is_text = |path: &&PathBuf| {
        path.extension().is_some_and(|end| ["json", "jsonl", "csv", "html"].iter().any(|text| end == *text))
    };
    made.filter(is_text)
        .filter_map(|path| Some((path.clone(), without_scripts(&fs::read_to_string(folder.join(path)).ok()?))))
        .collect()
}

fn without_scripts(text: &str) -> String {
    let mut pieces = text.split("<script");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |kept, piece| kept + piece.split_once("</script>").map_or("", |(_, rest)| rest))
}

/// Removes a case's folder, also where an attack took rights away.
fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        run_quietly(Command::new("chmod").args(["-R", "u+rwX"]).arg(folder))?;
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Runs a program whose words matter only when it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    output(command).map(drop)
}
