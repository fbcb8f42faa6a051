//! The interposer in real processes: every call is counted, whatever the processes do, and whoever kills them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use forebay_trace::{Entry, Memory, Op, Ring, why_not_seen};

use crate::job::Job;

#[test]
fn every_call_of_a_c_program_is_counted_with_its_bytes() {
    let job = Job::new();
    let program = job.compile(include_str!("../every.c"), &[]);
    let mut command = job.command(program);
    command.arg(job.work());
    let ended = job.run(command);
    assert!(ended.status.success());
    let cell = ended.cell();
    let file = |name: &str| {
        let path = job.work().canonicalize().unwrap().join(name);
        cell.files.iter().find(|file| Path::new(&file.name) == path).cloned().unwrap_or_default()
    };
    let (a, b) = (file("a.bin"), file("b.bin"));
    // 3 reads, readv, preadv, preadv2, copy_file_range, sendfile, a read of the copied descriptor, 4 × 5,000 preads.
    assert_eq!(a.reads, 3 + 3 + 2 + 1 + 20_000);
    assert_eq!(a.bytes_read, 4096 * 2 + 50 + 90 + 1500 + 4096 + 20_000 * 64);
    assert_eq!((a.writes, a.bytes_written, a.opens), (5, 3 * 4096 + 130, 1 + 4));
    assert_eq!((b.reads, b.bytes_read, b.opens), (11, 640 + 50, 2));
    assert_eq!((b.writes, b.bytes_written), (2, 1500), "copies within the kernel");
    let calls = ["fsync", "fdatasync", "mmap", "fseek", "access", "opendir"].map(|name| ended.calls(name));
    assert_eq!(calls[0..2], [1, 1]);
    assert_eq!(calls[3..], [1, 1, 1]);
    assert!(calls[2] >= 1);
    let failed = cell.operations.iter().find(|operation| operation.name == "open").unwrap();
    assert!(failed.errors >= 1, "the missing file");
    // The first read follows the seek to 0; the second follows the first; the third follows a seek.
    assert!(a.sequential_reads >= 3, "{a:?}");
    let totals = ended.collected.tally.totals();
    assert_eq!(totals.lost_events, 0);
    assert!(job.rings().read_dir().unwrap().next().is_none(), "rings are removed");
}

/// Each worker counts in shared memory what has returned; a call that is under way may be in the trace or not.
#[test]
fn killed_workers_lose_no_call_that_had_returned() {
    let script = r#"
import mmap, os, random, signal, struct, sys, time
seed = int(sys.argv[1])
open("data", "wb").write(bytes(100000))
shared = mmap.mmap(-1, 64)
workers = []
for i in range(4):
    pid = os.fork()
    if pid == 0:
        fd = os.open("data", os.O_RDONLY)
        n = 0
        while True:
            os.pread(fd, 100, n % 99000)
            n += 1
            struct.pack_into("q", shared, i * 8, n)
    workers.append(pid)
random.seed(seed)
time.sleep(0.02 + random.random() * 0.1)
for pid in workers:
    os.kill(pid, signal.SIGKILL)
for pid in workers:
    os.waitpid(pid, 0)
print(*[f"{pid} {struct.unpack_from('q', shared, i * 8)[0]}" for i, pid in enumerate(workers)], sep="\n")
"#;
    for seed in 0..10 {
        let job = Job::new();
        let collector = job.collect();
        let mut command = job.python(script);
        let output = command.arg(seed.to_string()).stdout(Stdio::piped()).output().unwrap();
        let ended = job.end(output.status, collector);
        let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
        for (process, entry) in ended.entries() {
            if matches!(entry, Entry::Event(event) if event.op == Op::PREAD) {
                *seen.entry(ended.pid_of(process)).or_default() += 1;
            }
        }
        let totals = ended.collected.tally.totals();
        assert_eq!(totals.lost_events, 0, "run {seed}");
        let counted = String::from_utf8(output.stdout).unwrap();
        assert_eq!(counted.lines().count(), 4);
        for line in counted.lines() {
            let (pid, n) = line.split_once(' ').unwrap();
            let (pid, n): (u32, u64) = (pid.parse().unwrap(), n.parse().unwrap());
            let found = seen.get(&pid).copied().unwrap_or(0);
            assert!(found == n || found == n + 1, "run {seed}: worker {pid} counted {n}, the trace has {found}");
        }
    }
}

#[test]
fn children_by_fork_spawn_exec_and_shell_are_followed() {
    let script = r#"
import multiprocessing, os, subprocess, sys
def work(_):
    with open("data", "rb", buffering=0) as file:
        return len(file.read(1000))
if __name__ == "__main__":
    open("data", "wb").write(bytes(5000))
    for how in ["fork", "spawn", "forkserver"]:
        with multiprocessing.get_context(how).Pool(2) as pool:
            assert pool.map(work, range(6)) == [1000] * 6
    subprocess.run(["cat", "data"], stdout=subprocess.DEVNULL, check=True)
    subprocess.run("cat data | wc -c", shell=True, stdout=subprocess.DEVNULL, check=True)
    os.posix_spawn("/bin/cat", ["cat", "data"], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    os.wait()
    os.execvp("cat", ["cat", "data"])
"#;
    let job = Job::new();
    fs::write(job.work().join("main.py"), script).unwrap();
    let mut command = job.command("python3");
    command.arg("main.py").stdout(Stdio::null());
    let ended = job.run(command);
    assert!(ended.status.success());
    let data = ended.cell().files.into_iter().find(|file| file.name.ends_with("/work/data")).unwrap();
    assert_eq!((data.writes, data.bytes_written), (1, 5000));
    // 18 reads by workers, and 4 programs that read the whole file.
    assert_eq!(data.bytes_read, 18 * 1000 + 4 * 5000);
    assert!(ended.collected.tally.without_ring().is_empty(), "{:?}", ended.collected.tally.without_ring());
}

#[test]
fn many_forks_at_once_are_all_seen() {
    let script = r#"
import os
open("data", "wb").write(bytes(5000))
for _ in range(10):
    pids = []
    for i in range(16):
        pid = os.fork()
        if pid == 0:
            fd = os.open("data", os.O_RDONLY)
            for i in range(20): os.pread(fd, 10, i)
            os._exit(0)
        pids.append(pid)
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in pids)
"#;
    let job = Job::new();
    let ended = job.run(job.python(script));
    assert!(ended.status.success());
    assert_eq!(ended.below(&job.work()).reads, 10 * 16 * 20);
}

#[test]
fn what_has_no_room_is_counted_and_totals_stay_exact() {
    let job = Job::new().with_segments(1);
    let script = "import os\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\nos.write(fd, bytes(1000))\n\
        for i in range(20000): os.pread(fd, 10, i % 900)";
    // Nobody reads the ring meanwhile.
    let status = job.python(script).status().unwrap();
    let ended = job.end(status, job.collect());
    assert!(ended.status.success());
    let totals = ended.collected.tally.totals();
    assert!(totals.lost_events > 10_000, "{totals:?}");
    let preads = ended.cell().operations.into_iter().find(|operation| operation.name == "pread").unwrap();
    assert_eq!((preads.calls, preads.bytes), (20_000, 200_000));
    let stored =
        ended.entries().filter(|(_, entry)| matches!(entry, Entry::Event(event) if event.op == Op::PREAD)).count();
    assert!(stored > 100 && stored < 20_000, "{stored}");
}

#[test]
fn a_job_with_limits_runs_as_without_the_interposer() {
    let job = Job::new();
    for limit in ["ulimit -f 8", "ulimit -n 10", "ulimit -v 2000000"] {
        let mut command = job.command("sh");
        let output = command.arg("-c").arg(format!("{limit}; head -c 100 /dev/zero | wc -c")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "100", "{limit}: {output:?}");
    }
}

#[test]
fn programs_that_cannot_be_seen_are_named() {
    let job = Job::new();
    let program = job.compile("int main(void) { return 0; }", &["-static"]);
    let mut command = job.command("sh");
    command.arg("-c").arg(format!("{}; env -i cat /dev/null; true", program.display()));
    let ended = job.run(command);
    let unseen: Vec<String> =
        ended.collected.tally.without_ring().iter().map(|started| why_not_seen(&started.path)).collect();
    assert_eq!(unseen.len(), 2, "{unseen:?}");
    // In the order of their numbers, which begin anew at the kernel's highest.
    assert!(unseen.iter().any(|why| why.ends_with("/p: it is statically linked")), "{unseen:?}");
    assert!(unseen.iter().any(|why| why.contains("cat") && why.contains("env -i")), "{unseen:?}");
}

#[test]
fn beyond_the_limit_the_trace_is_thinned_and_sums_are_not() {
    let job = Job::new().limited(200_000);
    let script = "import os\nfd = os.open('data', os.O_RDWR | os.O_CREAT)\nos.write(fd, os.urandom(100000))\n\
        for i in range(150000): os.pread(fd, 1 + i * 7919 % 999, i * 31337 % 99000)";
    let ended = job.run(job.python(script));
    let n_bytes = fs::metadata(job.dir.path().join("trace.fbt")).unwrap().len();
    assert!(ended.collected.kept_every >= 10, "{}", ended.collected.kept_every);
    // What is collected when the limit comes near is still written.
    assert!(n_bytes < 900_000, "{n_bytes}");
    let preads = ended.cell().operations.into_iter().find(|operation| operation.name == "pread").unwrap();
    assert_eq!(preads.calls, 150_000);
    assert!(ended.collected.error.is_none());
}

#[test]
fn a_program_that_the_user_preloads_nothing_into_is_not_disturbed() {
    let job = Job::new();
    // The library without a folder for rings does nothing.
    let mut command = Command::new("cat");
    command.env("LD_PRELOAD", job.dir.path().join(forebay_interpose::FILE_NAME)).arg("/etc/hostname");
    assert!(command.output().unwrap().status.success());
    // Nor with a folder that does not exist.
    let mut command = job.command("cat");
    command.env(forebay_interpose::RINGS, "/no/such/folder").arg("/etc/hostname");
    assert!(command.output().unwrap().status.success());
}

/// The reader frees a segment the moment its last slot is complete, before the writer has left it.
#[test]
fn a_segment_that_is_read_before_the_writer_leaves_it_is_followed_by_the_next() {
    let job = Job::new();
    let source = "#include <fcntl.h>\n#include <unistd.h>\nint main(int n, char **w) {\n\
        int fd = open(w[0], O_RDONLY); char c;\n\
        while (read(0, &c, 1) == 1) { pread(fd, &c, 1, 0); write(1, &c, 1); }\n  return 0;\n}";
    let program = job.compile(source, &[]);
    let mut command = job.command(program);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut call = || {
        to.write_all(b"x").unwrap();
        from.read_exact(&mut [0]).unwrap();
    };
    call();
    let path = job.rings().read_dir().unwrap().next().unwrap().unwrap().path();
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let memory = memmap2::MmapOptions::new().map_raw(&file).unwrap();
    // SAFETY: the mapping outlives the ring.
    let mut ring = Ring::open(unsafe { Memory::new(memory.as_ptr(), memory.len()) }).unwrap();
    let mut preads = || {
        let mut n = 0;
        ring.drain(false, |entry| n += u64::from(matches!(entry, Entry::Event(event) if event.op == Op::PREAD)));
        n
    };
    assert_eq!(preads(), 1);
    for i in 0..3 * forebay_interpose::layout::SLOTS {
        call();
        assert_eq!(preads(), 1, "call {i}");
    }
    drop((to, from));
    assert!(child.wait().unwrap().success());
}
