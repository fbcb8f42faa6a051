//! `forebay workload`: what is known of a workload before it is run.

use serde_json::Value;

use crate::dir::Dir;

/// Eight files of 4 KB, two epochs of steps of 1 ms: runs in an instant.
pub(crate) const TINY: &str = "\
model:
  name: tiny
framework: pytorch
workflow:
  train: True
dataset:
  data_folder: data/tiny
  format: npz
  num_files_train: 8
  record_length_bytes: 4096
reader:
  data_loader: pytorch
  batch_size: 2
  read_threads: 2
train:
  epochs: 2
  computation_time: 0.001
metric:
  au: 0.001
";

/// A folder with the workload in `tiny.yaml`.
pub(crate) fn with_tiny() -> Dir {
    let dir = Dir::new();
    dir.write("tiny.yaml", TINY);
    dir
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_built_in_workload_is_listed_and_can_be_shown() {
    let dir = Dir::new();
    let all = json(&dir.met("workload list --json -"));
    let names: Vec<&str> =
        all["workloads"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"unet3d_h100") && names.contains(&"llama_70b") && names.len() >= 24, "{names:?}");
    let text = dir.met("workload list");
    for name in names {
        assert!(text.lines().any(|line| line.split_whitespace().next() == Some(name)), "{name}: {text}");
    }
}

#[test]
fn show_says_the_plan_with_totals_bytes_steps_and_demand() {
    let dir = with_tiny();
    let wanted = "\
workload    tiny
data        8 npz files of 1 sample, 32.8 KB; data/tiny
sample      4.1 KB
reader      batch 2, 2 read threads, prefetch 2, files in order, samples in order
train       2 epochs of 2 steps for each of 2 accelerators, 1.0 ms of compute per step; 4.0 ms at least; 65.5 KB read
demand      8.2 MB/s per accelerator that never waits, 16.4 MB/s of all 2
threshold   an AU of 0.1 %
";
    assert_eq!(dir.met("workload show tiny.yaml --accelerators 2"), wanted);
    let shown = json(&dir.met("workload show tiny.yaml --accelerators 2 --json -"));
    assert_eq!((&shown["plan"]["steps_per_epoch"], &shown["plan"]["bytes_train"]), (&2.into(), &32_768.into()));
    assert_eq!(shown["plan"]["accelerators"], 2);
    let bert = dir.met("workload show bert_v100");
    assert!(bert.contains("; 120.0 MB read") && bert.contains("reads of at most 262.1 KB"), "{bert}");
    let overridden = dir.met("workload show tiny.yaml ++workload.reader.batch_size=4 ++workload.train.epochs=7");
    assert!(
        overridden.contains("batch 4, ") && overridden.contains("\ntrain       7 epochs of 2 steps"),
        "{overridden}"
    );
    assert!(
        dir.refused("workload show tiny.yaml --accelerators 5")
            .contains("8 samples are not one batch of 2 for each of 5")
    );
}

#[test]
fn the_checkpoint_of_a_spread_model_is_shown_for_as_few_ranks_as_can_hold_it() {
    let dir = Dir::new();
    let text = dir.met("workload show llama_70b");
    let saved = text.lines().find(|line| line.starts_with("checkpoint")).unwrap();
    assert!(saved.contains("10 checkpoints of ") && saved.contains(" parameters"), "{saved}");
    assert!(saved.contains(", by 32 ranks, "), "tensor 8, pipeline 4: {saved}");
}

#[test]
fn check_names_every_key_that_is_refused_and_every_note() {
    let dir = with_tiny();
    let bad = TINY.replace("format:", "fromat:").replace("epochs:", "epocs:");
    dir.write("bad.yaml", &bad);
    dir.write("noted.yaml", format!("{TINY}checkpoint:\n  fsync: True\n"));
    assert_eq!(dir.met("workload check tiny.yaml"), "tiny.yaml: every key is honoured\n");
    dir.write("empty.yaml", "");
    assert_eq!(dir.met("workload check empty.yaml"), "empty.yaml: no keys: all DLIO defaults\n");
    assert!(dir.missed("workload check tiny.yaml ++workload.reader.batch_size=x").stdout.contains("batch_size"));
    assert!(dir.refused("workload check ++workload.reader.batch_size=2").contains("give a file"));
    let noted = dir.met("workload check noted.yaml");
    assert!(noted.starts_with("noted.yaml: every key is honoured, 1 note\n  note: checkpoint.fsync: "), "{noted}");
    let ran = dir.missed("workload check tiny.yaml bad.yaml noted.yaml");
    assert!(ran.stdout.contains("\nbad.yaml: refused, 2 problems\n") && ran.stderr.is_empty(), "{ran:?}");
    for (key, near) in [("dataset.fromat", "format"), ("train.epocs", "epochs")] {
        let told = ran.stdout.lines().find(|line| line.contains(key)).unwrap_or_else(|| panic!("{}", ran.stdout));
        let written = key.split('.').next_back().unwrap();
        let number = 1 + bad.lines().position(|line| line.trim_start().starts_with(written)).unwrap();
        assert!(told.starts_with(&format!("  line {number}: ")) && told.contains(near), "{told}");
    }
    let found = json(&dir.missed("workload check bad.yaml tiny.yaml --json -").stdout);
    let found = &found["workloads"];
    assert_eq!((&found[0]["is_accepted"], &found[1]["is_accepted"]), (&false.into(), &true.into()));
    assert_eq!(found[0]["problems"].as_array().unwrap().len(), 2);
    assert!(found[0]["problems"][0]["line"].is_u64(), "{found}");
    assert!(dir.refused("workload check none.yaml").starts_with("forebay: cannot read none.yaml: No such file"));
}

#[test]
fn an_imported_workload_plans_the_same() {
    let dir = with_tiny();
    let toml = dir.met("workload import tiny.yaml ++workload.reader.batch_size=4");
    dir.write("tiny.toml", &toml);
    assert_eq!(
        dir.met("workload show tiny.toml"),
        dir.met("workload show tiny.yaml ++workload.reader.batch_size=4"),
        "{toml}"
    );
}

#[test]
fn size_gives_both_terms_of_the_rule_and_the_override() {
    let dir = Dir::new();
    let line = "workload size unet3d_h100 --accelerators 8 --host-memory 512GiB";
    let wanted = "\
unet3d_h100: 8 accelerators on 1 host of 549.76 GB
500 steps of every accelerator   28,000 samples  <- decides
5 times the memory of the hosts  18,750 samples
28,000 files of 1 sample, 4.10 TB
";
    let text = dir.met(line);
    assert!(text.starts_with(wanted), "{text}");
    let overrides =
        "\noverrides to use:\n  ++workload.dataset.num_files_train=28000\n  ++workload.dataset.num_subfolders_train=";
    assert!(text.contains(overrides), "{text}");
    let size = json(&dir.met(&format!("{line} --hosts 2 --json -")));
    assert_eq!((&size["samples_for_memory"], &size["files"]), (&37_500.into(), &37_500.into()));
    assert!(dir.refused("workload size llama_7b --accelerators 8 --host-memory 1GiB").contains("no training"));
    assert!(dir.refused("workload size dlrm --accelerators 1 --host-memory 512").contains("give a unit"));
}

#[test]
fn check_foresees_what_no_run_could_do() {
    let dir = with_tiny();
    dir.write("long.yaml", TINY.replace("epochs: 2", "epochs: 2\n  total_training_steps: 9"));
    let said = dir.missed("workload check long.yaml").stdout;
    assert!(
        said.contains(
            "line 17: train.total_training_steps: 9 steps requested, but the data provides 4 steps for 1 accelerator\n"
        ),
        "{said}"
    );
    dir.write("arrays.yaml", TINY.replace("npz", "hdf5"));
    let said = dir.met("workload check arrays.yaml");
    assert_eq!(said.contains("note: dataset.format: this build has no HDF5"), !cfg!(feature = "hdf5"), "{said}");
}

#[test]
fn a_workload_that_is_not_there_is_explained() {
    let dir = with_tiny();
    let said = dir.refused("workload show unet3d_h10");
    assert_eq!(
        said,
        "forebay: no workload or file named unet3d_h10; did you mean `unet3d_h100`?\n\
         hint: `forebay workload list` lists them\n"
    );
    assert!(dir.refused("workload run workload=unet3d").contains("workload=unet3d: give the name alone: unet3d"));
    let said = dir.refused("workload run tiny.yaml workload=unet3d");
    assert!(said.contains("give the workload's name as the first argument: unet3d"), "{said}");
    let said = dir.refused("workload show tiny.yaml ++workload.train.epocs=4");
    assert!(said.starts_with("forebay: tiny.yaml: ") && said.contains("epocs") && said.contains("epochs"), "{said}");
    assert!(dir.refused("workload show tiny.yaml ++hydra.run.dir=x").contains("use --out DIR for results"));
}

#[test]
fn the_help_of_every_command_has_an_example() {
    let dir = Dir::new();
    for command in ["list", "show", "check", "import", "size", "make", "run", "slurm"] {
        let help = dir.met(&format!("workload {command} --help"));
        assert!(help.contains(&format!("forebay workload {command}")) && help.contains("Example"), "{help}");
    }
}

#[test]
fn the_job_script_names_nodes_ranks_data_and_overrides() {
    let dir = with_tiny();
    let line = "workload slurm tiny.yaml --nodes 2 --ranks-per-node 1 --accelerators 2 --data /lustre/tiny ++workload.train.epochs=3";
    let script = dir.met(line);
    for part in [
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=1",
        "/lustre/tiny",
        "++workload.train.epochs=3",
        "accelerators=2",
    ] {
        assert!(script.contains(part), "{part}: {script}");
    }
    let said = dir.refused("workload slurm tiny.yaml --nodes 4 --ranks-per-node 2");
    assert!(said.contains("8 samples are not one batch of 2 for each of 8 accelerators"), "{said}");
}
