//! Every argument that names a file or a folder, and what the command does with it.
//!
//! The program's own tests compare this table with the command line, so that no output is added without being here; the
//! tests of the binary try each output of it.

/// What a command does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is only read.
    Read,
    /// A place to work in: scratch files, emulated devices, data that is made and recognised again.
    Work,
    /// A folder that is filled.
    Folder,
    /// A file whose earlier version we know again and replace.
    File,
    /// A file that nothing tells from that of others, and that is never replaced unasked.
    Values,
}

/// A path of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    pub(crate) command: &'static str,
    pub(crate) id: &'static str,
    pub(crate) role: Role,
    /// For an output: a line that writes to `OUT`.
    #[allow(dead_code, reason = "the program's own tests run nothing")]
    pub(crate) line: &'static str,
    /// For an output: a path inside what the line reads; empty where it reads nothing.
    #[allow(dead_code, reason = "the program's own tests run nothing")]
    pub(crate) inside: &'static str,
}

const fn read(command: &'static str, id: &'static str) -> Argument {
    Argument { command, id, role: Role::Read, line: "", inside: "" }
}

const fn work(command: &'static str, id: &'static str) -> Argument {
    Argument { command, id, role: Role::Work, line: "", inside: "" }
}

const fn folder(command: &'static str, id: &'static str, line: &'static str, inside: &'static str) -> Argument {
    Argument { command, id, role: Role::Folder, line, inside }
}

const fn file(command: &'static str, id: &'static str, line: &'static str, inside: &'static str) -> Argument {
    Argument { command, id, role: Role::File, line, inside }
}

const fn values(command: &'static str, id: &'static str, line: &'static str, inside: &'static str) -> Argument {
    Argument { command, id, role: Role::Values, line, inside }
}

/// All of them.
pub(crate) const ARGUMENTS: &[Argument] = &[
    file("checkpoint bench", "json", "checkpoint bench ck --size 1MB --saves 1 --no-ceiling --json OUT", ""),
    work("checkpoint bench", "dir"),
    work("checkpoint bench", "burst_dir"),
    file(
        "checkpoint convert",
        "json",
        "checkpoint convert m.safetensors other --to tensorflow --force --json OUT",
        "m.safetensors",
    ),
    values("checkpoint convert", "out", "checkpoint convert m.safetensors OUT --to safetensors", "m.safetensors"),
    read("checkpoint convert", "input"),
    file("checkpoint drain", "json", "checkpoint drain ck --burst-dir fast --json OUT", "fast/new.json"),
    work("checkpoint drain", "dir"),
    read("checkpoint drain", "burst_dir"),
    file("checkpoint ls", "json", "checkpoint ls ck --json OUT", "ck/new.json"),
    read("checkpoint ls", "dir"),
    read("checkpoint ls", "burst_dir"),
    file("checkpoint prune", "json", "checkpoint prune ck --json OUT", "ck/new.json"),
    work("checkpoint prune", "dir"),
    work("checkpoint prune", "burst_dir"),
    file(
        "checkpoint restore",
        "json",
        "checkpoint restore ck --to other.safetensors --force --json OUT",
        "ck/new.json",
    ),
    values("checkpoint restore", "to", "checkpoint restore ck --to OUT", "ck/new.safetensors"),
    read("checkpoint restore", "dir"),
    read("checkpoint restore", "burst_dir"),
    file("checkpoint verify", "json", "checkpoint verify ck --json OUT", "ck/new.json"),
    read("checkpoint verify", "dir"),
    read("checkpoint verify", "burst_dir"),
    values("data decode", "to", "data decode set --size 8 --to OUT", "set/list.txt"),
    read("data decode", "path"),
    file("data inspect", "json", "data inspect set --json OUT", "set/class_004/class_004_000004.jpg"),
    read("data inspect", "path"),
    work("data make", "dir"),
    folder("data pack", "out", "data pack set OUT --to tar", "set/shards"),
    read("data pack", "input"),
    file("data verify", "json", "data verify set --json OUT", "set/new.json"),
    read("data verify", "path"),
    file("doctor", "json", "doctor --json OUT", ""),
    work("doctor", "path"),
    file("ingest", "json", "ingest set --threads 1 --repeats 1 --warmups 0 --json OUT", "set/.forebay-dataset.json"),
    read("ingest", "data"),
    folder("man", "out", "man --out OUT", ""),
    file("probe", "json", "probe . --like set --random --size 1MiB --depth 1 --runs 2 --json OUT", "set/new.json"),
    work("probe", "target"),
    read("probe", "like"),
    file("report", "csv", "report run.json --csv OUT", "run.json"),
    read("report", "from_dlio"),
    file("report", "html", "report run.json --html OUT", "run.json"),
    file("report", "json", "report run.json --json OUT", "run.json"),
    read("report", "runs"),
    work("study run", "data"),
    folder("study run", "out", "study run tiny.toml --dataset set=set --out OUT", "set/run"),
    file("tier list", "json", "tier list --json OUT", ""),
    work("tier up", "dir"),
    folder("trace", "out", "trace --out OUT -- true", ""),
    folder(
        "train",
        "burst_dir",
        "train set --accelerator emulated:1ms --steps 1 --batch 4 --checkpoint-every 1 \
        --checkpoint-size 1MB --checkpoint-dir saves --burst-dir OUT",
        "set/saves",
    ),
    folder(
        "train",
        "checkpoint_dir",
        "train set --accelerator emulated:1ms --steps 1 --batch 4 --checkpoint-every 1 \
        --checkpoint-size 1MB --checkpoint-dir OUT",
        "set/saves",
    ),
    read("study slurm", "data"),
    read("train", "data"),
    file("train", "json", "train set --accelerator emulated:1ms --steps 1 --batch 4 --json OUT", "set/new.json"),
    folder(
        "tune",
        "burst_dir",
        "tune set --accelerator emulated:1ms --steps 2 --batch 4 --threads 1 --checkpoint-every 1 \
        --checkpoint-size 1MB --checkpoint-dir saves --burst-dir OUT",
        "set/saves",
    ),
    folder(
        "tune",
        "checkpoint_dir",
        "tune set --accelerator emulated:1ms --steps 2 --batch 4 --threads 1 --checkpoint-every 1 \
        --checkpoint-size 1MB --checkpoint-dir OUT",
        "set/saves",
    ),
    read("tune", "data"),
    file(
        "tune",
        "json",
        "tune set --accelerator emulated:1ms --steps 2 --batch 4 --threads 1 --json OUT",
        "set/new.json",
    ),
    work("tune", "scratch"),
    file("watch", "csv", "watch --interval 10ms --count 1 --csv OUT", ""),
    file("workload check", "json", "workload check tiny.yaml --json OUT", "tiny.yaml"),
    file("workload list", "json", "workload list --json OUT", ""),
    work("workload make", "data"),
    folder(
        "workload run",
        "checkpoint_dir",
        "workload run tiny.yaml --data records --checkpoint-dir OUT",
        "records/train/saves",
    ),
    read("workload run", "data"),
    file("workload run", "json", "workload run tiny.yaml --data records --json OUT", "records/train/new.json"),
    folder("workload run", "out", "workload run tiny.yaml --data records --out OUT", "records/train/results"),
    file("workload show", "json", "workload show tiny.yaml --json OUT", "tiny.yaml"),
    file(
        "workload size",
        "json",
        "workload size tiny.yaml --accelerators 1 --host-memory 1GiB --json OUT",
        "tiny.yaml",
    ),
    read("workload slurm", "data"),
];
