//! Runs programs with the interposer and without a command line, and collects what they did.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use forebay_interpose::{FILE_NAME, LIBRARY, RINGS, SEGMENTS};
use forebay_record::{TraceCell, TraceFile};
use forebay_trace::{Chunk, Collected, Collector, Entry, Facts, Head, Options, PYTHON_HOOK, Reader, cell};
use tempfile::TempDir;

pub(crate) struct Job {
    pub(crate) dir: TempDir,
    max_bytes: u64,
    n_segments: Option<u32>,
}

pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) collected: Collected,
    pub(crate) chunks: Vec<Chunk>,
}

impl Job {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("rings")).unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        fs::write(dir.path().join(FILE_NAME), LIBRARY.expect("these tests run where the library is")).unwrap();
        fs::create_dir(dir.path().join("python")).unwrap();
        PYTHON_HOOK.iter().for_each(|(name, text)| fs::write(dir.path().join("python").join(name), text).unwrap());
        Self { dir, max_bytes: 1 << 30, n_segments: None }
    }

    pub(crate) fn limited(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    pub(crate) fn with_segments(mut self, n: u32) -> Self {
        self.n_segments = Some(n);
        self
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn rings(&self) -> PathBuf {
        self.dir.path().join("rings")
    }

    /// Makes a program of C source.
    pub(crate) fn compile(&self, source: &str, flags: &[&str]) -> PathBuf {
        let (code, program) = (self.dir.path().join("p.c"), self.dir.path().join("p"));
        fs::write(&code, source).unwrap();
        let made =
            Command::new("cc").arg(&code).args(["-O1", "-w", "-o"]).arg(&program).args(flags).arg("-lpthread").status();
        assert!(made.unwrap().success());
        program
    }

    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env("LD_PRELOAD", self.dir.path().join(FILE_NAME)).env(RINGS, self.rings());
        command.env("PYTHONPATH", self.dir.path().join("python")).current_dir(self.work());
        if let Some(n) = self.n_segments {
            command.env(SEGMENTS, n.to_string());
        }
        command
    }

    pub(crate) fn python(&self, script: &str) -> Command {
        let mut command = self.command("python3");
        command.args(["-c", script]);
        command
    }

    pub(crate) fn collect(&self) -> Collector {
        let options = Options { rings: self.rings(), head: Head::default(), max_bytes: self.max_bytes };
        Collector::start(options, fs::File::create(self.dir.path().join("trace.fbt")).unwrap()).unwrap()
    }

    pub(crate) fn end(&self, status: ExitStatus, collector: Collector) -> Ended {
        let collected = collector.finish().unwrap();
        let bytes = fs::read(self.dir.path().join("trace.fbt")).unwrap();
        let chunks = Reader::new(&bytes).unwrap().collect();
        Ended { status, collected, chunks }
    }

    pub(crate) fn run(&self, mut command: Command) -> Ended {
        let collector = self.collect();
        let status = command.status().unwrap();
        self.end(status, collector)
    }
}

impl Ended {
    pub(crate) fn cell(&self) -> TraceCell {
        cell(&self.collected.tally, &Facts { n_cores: 2, wall_s: 1.0, ..Facts::default() })
    }

    /// Sums over the files below a folder.
    pub(crate) fn below(&self, folder: &Path) -> TraceFile {
        let (mut sum, folder) = (TraceFile::default(), folder.canonicalize().unwrap());
        for file in self.cell().files.iter().filter(|file| Path::new(&file.name).starts_with(&folder)) {
            sum.files += 1;
            sum.opens += file.opens;
            sum.reads += file.reads;
            sum.bytes_read += file.bytes_read;
            sum.writes += file.writes;
            sum.bytes_written += file.bytes_written;
            sum.sequential_reads += file.sequential_reads;
        }
        sum
    }

    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.cell().operations.iter().find(|operation| operation.name == name).map_or(0, |operation| operation.calls)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let lists = self.chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Events { process, entries, .. } => Some((*process, entries)),
            _ => None,
        });
        lists.flat_map(|(process, entries)| entries.iter().map(move |entry| (process, entry)))
    }

    pub(crate) fn pid_of(&self, process: u32) -> u32 {
        let note = self.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Process(index, note) if *index == process => Some(note.pid),
            _ => None,
        });
        note.unwrap()
    }
}
