//! Every command with inputs small enough to be run hundreds of times.

/// A command line, what it reads and what it may write.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The command, as `forebay help` lists it.
    pub name: &'static str,
    /// Its arguments.
    pub line: &'static str,
    /// What it reads, below the case's folder: it must stay as it is.
    pub reads: &'static [&'static str],
    /// What it may make or change.
    pub writes: &'static [&'static str],
    /// The arguments of a run that takes longer than any wait here, for signals; `None` when the command is over at once.
    pub long: Option<&'static str>,
    /// Flags that name a file to write.
    pub outputs: &'static [&'static str],
}

const fn subject(name: &'static str, line: &'static str, reads: &'static [&'static str]) -> Subject {
    Subject { name, line, reads, writes: &[], long: None, outputs: &[] }
}

impl Subject {
    const fn writes(self, writes: &'static [&'static str]) -> Self {
        Self { writes, ..self }
    }

    const fn long(self, line: &'static str) -> Self {
        Self { long: Some(line), ..self }
    }

    const fn outputs(self, outputs: &'static [&'static str]) -> Self {
        Self { outputs, ..self }
    }
}

const JSON: &[&str] = &["--json"];

/// All of them. `Arena::knows_every_command` fails when a command is missing here.
pub const SUBJECTS: &[Subject] = &[
    subject("data make", "data make caltech101 out --count 6 --median-size 4KB", &[])
        .writes(&["out"])
        .long("data make imagenet out --count 1000000"),
    subject("data inspect", "data inspect photos", &["photos"]).outputs(JSON).long("data inspect many"),
    subject("data pack", "data pack photos out --to tfrecord", &["photos"])
        .writes(&["out"])
        .long("data pack many out --to tfrecord --compression gzip"),
    subject("data pack", "data pack shards out --to files", &["shards"]).writes(&["out"]),
    subject("data verify", "data verify photos", &["photos"]).outputs(JSON).long("data verify many"),
    subject("data verify", "data verify shards", &["shards"]).outputs(JSON),
    subject("data decode", "data decode photos --to out.npy --size 32", &["photos"])
        .writes(&["out.npy"])
        .outputs(&["--to"])
        .long("data decode many --to out.npy --size 512"),
    subject("ingest", "ingest photos --threads 1,2 --repeats 1 --warmups 0 --batch 4", &["photos"])
        .outputs(JSON)
        .long("ingest photos --repeats 1000000 --batch 4"),
    subject("ingest", "ingest shards --threads 2 --repeats 1 --warmups 0 --batch 4", &["shards"])
        .outputs(JSON)
        .long("ingest photos --tier hdd --cold --repeats 1000 --batch 4"),
    subject("probe", "probe . --size 1MiB --runs 2 --depth 4 --block 64KiB", &[])
        .outputs(JSON)
        .long("probe . --size 512MiB --runs 1000"),
    subject("train", "train photos --accelerator emulated:1ms --steps 4 --batch 4 --threads 2", &["photos"])
        .outputs(JSON)
        .long("train photos --accelerator emulated:5ms --steps 1000000 --batch 4"),
    subject(
        "train",
        "train photos --accelerator emulated:1ms --steps 4 --batch 4 --checkpoint-every 2 \
         --checkpoint-dir slow --burst-dir fast --checkpoint-size 1MB",
        &["photos"],
    )
    .writes(&["slow", "fast"])
    .long(
        "train photos --accelerator emulated:5ms --steps 1000000 --batch 4 --checkpoint-every 9 \
         --checkpoint-dir slow --burst-dir fast --checkpoint-size 40MB",
    ),
    subject("train", "train photos --model alexnet --steps 1 --batch 2 --baseline 1", &["photos"])
        .long("train photos --model alexnet --steps 1000 --batch 8"),
    subject(
        "tune",
        "tune photos --accelerator emulated:1ms --steps 4 --batch 4 --threads 1 --tier lustre --scratch .",
        &["photos"],
    )
    .outputs(JSON)
    .long("tune photos --accelerator emulated:5ms --steps 1000000 --batch 4 --threads 1 --tier hdd"),
    subject(
        "tune",
        "tune photos --accelerator emulated:1ms --steps 4 --batch 4 --threads 1 --checkpoint-every 2 \
         --checkpoint-dir slow --burst-dir fast --checkpoint-size 1MB",
        &["photos"],
    )
    .writes(&["slow", "fast"]),
    subject("checkpoint bench", "checkpoint bench bench --size 1MB --saves 1", &[])
        .writes(&["bench"])
        .outputs(JSON)
        .long("checkpoint bench bench --size 1GB --saves 100"),
    subject("checkpoint ls", "checkpoint ls kept --burst-dir near", &["kept", "near"]).outputs(JSON),
    subject("checkpoint verify", "checkpoint verify kept --burst-dir near", &["kept", "near"])
        .outputs(JSON)
        .long("checkpoint verify kept --tier hdd --burst-dir near"),
    subject("checkpoint drain", "checkpoint drain kept --burst-dir near", &[])
        .writes(&["kept", "near"])
        .long("checkpoint drain kept --burst-dir near --drain-rate 100kB"),
    subject("checkpoint prune", "checkpoint prune kept --burst-dir near --keep 1", &[]).writes(&["kept", "near"]),
    subject("checkpoint restore", "checkpoint restore kept --burst-dir near --to out.safetensors", &["kept", "near"])
        .writes(&["out.safetensors"])
        .outputs(JSON),
    subject("checkpoint convert", "checkpoint convert model.safetensors out --to tensorflow", &["model.safetensors"])
        .writes(&["out.index", "out.data-00000-of-00001", "out.meta", "checkpoint"])
        .outputs(JSON),
    subject("watch", "watch --count 2 --interval 20ms", &[])
        .outputs(&["--csv"])
        .long("watch --count 100000 --interval 20ms"),
    subject("watch", "watch --interval 20ms -- true", &[]).long("watch --interval 20ms -- sleep 1000"),
    subject("trace", "trace --out traced -- true", &[]).writes(&["traced"]).long("trace --out traced -- sleep 1000"),
    subject("trace export", "trace export traced out.csv --to csv", &["traced"]).writes(&["out.csv"]),
    subject("trace export", "trace export traced - --to csv", &["traced"]),
    subject("study list", "study list", &[]),
    subject("study show", "study show tiny.toml", &["tiny.toml"]),
    subject("study run", "study run tiny.toml --out run", &["tiny.toml"])
        .writes(&["run"])
        .long("study run long.toml --out run"),
    subject("study slurm", "study slurm tiny.toml --data records", &["tiny.toml"]),
    subject("report", "report record.json", &["record.json"]).outputs(&["--json", "--html", "--csv"]),
    // A run's folder may get pages and tables of its own record.
    subject("report", "report study", &[]).outputs(&["--json", "--html", "--csv"]),
    subject("tier up", "tier up hdd --shaped --dir tiers", &[]).writes(&["tiers"]),
    subject("tier down", "tier down", &[]),
    subject("tier list", "tier list", &[]).outputs(JSON),
    subject("doctor", "doctor", &[]).outputs(JSON),
    subject("completions", "completions bash", &[]),
    subject("man", "man --out out", &[]).writes(&["out"]),
    subject("workload list", "workload list", &[]).outputs(JSON),
    subject("workload show", "workload show tiny.yaml", &["tiny.yaml"]).outputs(JSON),
    subject("workload check", "workload check tiny.yaml", &["tiny.yaml"]).outputs(JSON),
    subject("workload import", "workload import tiny.yaml", &["tiny.yaml"]),
    subject("workload size", "workload size unet3d_h100 --accelerators 8 --host-memory 64GiB", &[]).outputs(JSON),
    subject("workload make", "workload make tiny.yaml --data out", &["tiny.yaml"])
        .writes(&["out"])
        .long("workload make tiny.yaml --data out ++workload.dataset.num_files_train=1000000"),
    subject("workload run", "workload run tiny.yaml --data records --out results", &["tiny.yaml", "records/train"])
        .writes(&["results"])
        .outputs(JSON)
        .long("workload run tiny.yaml --data records --out results ++workload.train.epochs=1000000"),
    subject("workload slurm", "workload slurm tiny.yaml --nodes 2 --ranks-per-node 2 --data records", &["tiny.yaml"]),
];
