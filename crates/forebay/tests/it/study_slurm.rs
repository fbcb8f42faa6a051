//! The job script of a study: what it runs, and what it refuses before the job waits for a node.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::dir::Dir;

/// Runs the script with programs of the test: `srun` runs what follows its options, `forebay` notes its arguments.
fn run(dir: &Dir, script: &str) -> String {
    dir.write("job.sh", script);
    let programs = [
        ("srun", "shift; exec \"$@\""),
        ("forebay", "printf '%s\\n' \"$*\" >> calls; if [ \"$2\" = run ]; then mkdir -p o; touch o/record.jsonl; fi"),
    ];
    for (name, body) in programs {
        dir.write(format!("bin/{name}"), format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(dir.path(format!("bin/{name}")), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", dir.path("bin").display());
    let mut bash = Command::new("bash");
    bash.arg("job.sh").current_dir(dir.path("")).env("PATH", path).env("OUT", "o").env("SLURM_JOB_ID", "7");
    let ran = bash.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(dir.read("calls")).unwrap()
}

#[test]
fn the_script_runs_the_whole_study_and_goes_on_when_it_is_requeued() {
    let dir = Dir::new();
    let script = dir.met("study slurm hugen-2025 --scale quick --data /scratch/data");
    for part in ["#SBATCH --nodes=1", "#SBATCH --exclusive", " of hugen-2025 at the quick scale"] {
        assert!(script.contains(part), "{part}: {script}");
    }
    let first = "study run hugen-2025 --scale quick --data /scratch/data --out o";
    let calls = run(&dir, &script);
    assert_eq!(calls.lines().collect::<Vec<_>>(), ["study show hugen-2025", &format!("{first} ")].map(str::trim_end));
    let calls = run(&dir, &script);
    assert_eq!(calls.lines().last(), Some(format!("{first} --resume").as_str()));
    assert!(script.contains("emulated accelerators of one forebay process: the job needs no MPI"), "{script}");
    assert!(!dir.met("study slurm chien-2018").contains("MPI"), "it has no workloads");
    let full = dir.met("study slurm hugen-2025");
    assert!(full.contains("--scale full --data \"$data\"") && full.contains("data=\"$out/data\""), "{full}");
}

#[test]
fn a_study_that_cannot_be_planned_gives_no_script() {
    let dir = Dir::new();
    dir.write(
        "bad.toml",
        "name = \"bad\"\ntitle = \"t\"\n[[experiment]]\nname = \"e\"\nrun = \"ingest\"\nrepeat = 1\n",
    );
    let said = dir.refused("study slurm bad.toml");
    assert!(said.contains("repeat"), "{said}");
    let said = dir.refused("study slurm hugen");
    assert!(said.contains("no built-in study or file named \"hugen\""), "{said}");
}
