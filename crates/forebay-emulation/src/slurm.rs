//! The script that runs a workload on the nodes of a Slurm cluster.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use forebay_dataset::RECORDS_MARKER;
use forebay_units::shell_word;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// As on the command line: a built-in's name or a file.
    pub workload: OsString,
    /// For the job and its results.
    pub name: String,
    /// On a file system that all nodes share.
    pub data: PathBuf,
    pub nodes: u64,
    pub ranks_per_node: u64,
    /// Emulated, per process.
    pub accelerators: u64,
    /// Reading threads per process, shared by all its accelerators.
    pub threads: u64,
    /// `++workload.a.b=c`, in order.
    pub overrides: Vec<String>,
}

/// For `sbatch`. The environment variables `DATA`, `OUT` and `FOREBAY` override the data, the results and the binary.
pub fn job_script(job: &Job) -> String {
    let mut text = head(job);
    text.push_str(&names(job));
    text.push_str(&BODY.replace("MARKER", RECORDS_MARKER));
    text
}

fn head(job: &Job) -> String {
    let Job { nodes, ranks_per_node, accelerators, threads, .. } = job;
    let name: String =
        job.name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    let total = nodes * ranks_per_node * accelerators;
    format!(
        "#!/bin/bash
#SBATCH --job-name=forebay-{name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node={ranks_per_node}
#SBATCH --cpus-per-task={threads}
#SBATCH --output=forebay-{name}-%j.log
#
# {total} emulated accelerators: {nodes} nodes x {ranks_per_node} ranks x {accelerators}. Wants a forebay built with --features mpi,
# and a folder of data and one of results that all nodes see. Fewer cores for a task than its read threads slow it down;
# a partition, an account or a time limit are given to sbatch.
set -euo pipefail

"
    )
}

fn names(job: &Job) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name}={value}").expect("a string takes all");
    line("forebay", "${FOREBAY:-forebay}");
    line("workload", &shell_word(&job.workload));
    line("data", &shell_word(&job.data));
    line("out", &shell_word(format!("results/{}", job.name)));
    line("data", "${DATA:-$data}");
    line("out", "${OUT:-$out-${SLURM_JOB_ID:?start this script with sbatch}}");
    line("accelerators", &job.accelerators.to_string());
    let overrides: Vec<String> = job.overrides.iter().map(shell_word).collect();
    line("overrides", &format!("({})", overrides.join(" ")));
    text
}

/// `--kill-on-bad-exit` ends the job if a rank dies; Open MPI needs `--mpi=pmix` to connect processes; `srun` does not
/// inherit the job's cores per task.
const BODY: &str = r#"
ranks() {
    srun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" "$@"
}

# A workload that is refused, or a binary that is missing, ends the job before anything is written.
"$forebay" workload show "$workload" "${overrides[@]}" > /dev/null

# Data that is not forebay's own is left as it is; what a job left half made is finished.
if [ ! -d "$data/train" ] || [ -e "$data/MARKER" ]; then
    ranks "$forebay" workload make "$workload" --data "$data" "${overrides[@]}"
fi

ranks "$forebay" workload run "$workload" --data "$data" --accelerators "$accelerators" --out "$out" "${overrides[@]}"
echo "results: $out"
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn job() -> Job {
        Job {
            workload: "my files/it's a unet.yaml".into(),
            name: "it's a unet".to_owned(),
            data: "/scratch/$USER".into(),
            nodes: 4,
            ranks_per_node: 2,
            accelerators: 3,
            threads: 12,
            overrides: vec!["++workload.reader.read_threads=8".to_owned(), "++workload.model.name=a b".to_owned()],
        }
    }

    fn bash(arguments: &[&str], script: &str) -> String {
        let mut child = Command::new("bash");
        child.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().expect("bash starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), script.as_bytes()).expect("bash reads");
        let output = child.wait_with_output().expect("bash ends");
        assert!(output.status.success(), "{script}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn it_asks_for_the_nodes_and_ranks_that_were_named() {
        let script = job_script(&job());
        for line in ["#SBATCH --nodes=4\n", "#SBATCH --ntasks-per-node=2\n", "#SBATCH --cpus-per-task=12\n"] {
            assert!(script.contains(line), "{script}");
        }
        assert!(script.contains("24 emulated accelerators"), "{script}");
    }

    #[test]
    fn bash_finds_no_fault_in_it() {
        bash(&["-n"], &job_script(&job()));
    }

    #[test]
    fn names_with_quotes_spaces_and_dollars_arrive_as_they_are() {
        let names = names(&job());
        let script = format!(
            "SLURM_JOB_ID=7\nunset DATA OUT FOREBAY\n{names}\nprintf '%s\\n' \"$workload\" \"$data\" \"$out\" \"${{overrides[@]}}\""
        );
        let expected = "my files/it's a unet.yaml\n/scratch/$USER\nresults/it's a unet-7\n\
             ++workload.reader.read_threads=8\n++workload.model.name=a b\n";
        assert_eq!(bash(&[], &script), expected);
    }

    #[test]
    fn no_overrides_are_no_words() {
        let script = format!("set -u\n{}\necho ${{#overrides[@]}}", names(&Job { overrides: Vec::new(), ..job() }));
        assert_eq!(bash(&[], &format!("export SLURM_JOB_ID=7\n{script}")), "0\n");
    }
}
