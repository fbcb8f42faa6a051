//! `forebay trace -- COMMAND`: the job is left as it is, its I/O is recorded exactly, and a trace is never lost.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use serde_json::Value;

use crate::dir::{Dir, Ran, flat};
use crate::disk::with_mount;
use crate::process::Load;

/// Traces a script with flags.
fn trace(dir: &Dir, flags: &str, script: &str) -> Ran {
    dir.command(&format!("trace {flags} --")).args(["sh", "-c", script]).output().unwrap().into()
}

fn totals(dir: &Dir) -> Value {
    dir.json("out/record.json")["cells"][0]["totals"].clone()
}

#[test]
fn the_record_has_the_jobs_calls_and_the_report_shows_them_in_every_form() {
    let dir = Dir::new();
    dir.write("data.bin", [7; 100_000]);
    let ran = trace(&dir, "--out out", "cat data.bin > copy.bin; exit 3");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{}", ran.stderr);
    assert!(flat(&ran.stderr).contains("its training loop was not seen"), "{}", ran.stderr);
    let cell = &dir.json("out/record.json")["cells"][0];
    assert_eq!(
        (cell["status"].as_i64(), cell["job"].as_str()),
        (Some(3), Some("sh -c cat data.bin > copy.bin; exit 3"))
    );
    let file = |name: &str| {
        let files = cell["files"].as_array().unwrap();
        files.iter().find(|file| file["name"].as_str().unwrap().ends_with(name)).unwrap().clone()
    };
    let (data, copy) = (file("/data.bin"), file("/copy.bin"));
    let moved = |file: &Value, way: &str| file[way].as_u64().unwrap();
    // Newer versions of cat copy within the kernel, which is a read of one file by one call.
    let written = moved(&copy, "bytes_written") + moved(&data, "bytes_read");
    assert!(written == 100_000 || written == 200_000, "{data} {copy}");
    assert_eq!(moved(&data, "bytes_read"), 100_000);
    assert_eq!(totals(&dir)["lost_events"], 0);
    let kernel = cell["read"]["kernel"].as_u64().unwrap();
    assert!(kernel >= cell["read"]["calls"].as_u64().unwrap(), "{}", cell["read"]);
    let mut left = dir.names("out");
    left.sort();
    assert_eq!(left, ["record.json", "report.html", "trace.fbt"], "what only the job needed is gone");
    for form in ["--json", "--csv"] {
        assert!(dir.met(&format!("report out {form} -")).contains("bytes_read"), "{form}");
    }
    let shown = String::from_utf8(dir.command("report out").output().unwrap().stdout).unwrap();
    assert!(shown.contains("R15"), "rules are shown");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let rows = |name: &str| shown.lines().filter(|line| line.contains(name)).count();
    assert_eq!(rows("/data.bin"), 1, "a file has one row\n{shown}");
    dir.met("report out --html page.html");
    assert!(String::from_utf8(dir.read("page.html")).unwrap().contains("data.bin"));
}

#[test]
fn a_command_that_cannot_be_run_leaves_nothing() {
    let dir = Dir::new();
    let ran = dir.run("trace --out out -- ./nothing");
    let said = "forebay: cannot run ./nothing: No such file or directory (os error 2)\n";
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(127), "", said));
    dir.write("text", "not a program");
    let ran = dir.run("trace --out out -- ./text");
    let said = "forebay: cannot run ./text: Permission denied (os error 13)\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(126), said));
    assert!(!dir.path("out").exists());
}

#[test]
fn a_command_without_its_separator_gets_a_hint() {
    let dir = Dir::new();
    for what in ["trace", "watch"] {
        let said = dir.refused(&format!("{what} ./python train.py"));
        let hint = format!("\nhint: put `--` before the command: forebay {what} -- ./python …\n");
        assert!(said.ends_with(&hint), "{said}");
    }
    assert!(!dir.refused("trace --outt x -- true").contains("hint: put"));
}

#[test]
fn a_process_that_runs_another_program_in_its_place_has_one_row() {
    let dir = Dir::new();
    dir.write("data.bin", [7; 1_000]);
    trace(&dir, "--out out", "read line < data.bin; exec cat data.bin");
    let cell = &dir.json("out/record.json")["cells"][0];
    let processes = cell["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{processes:?}");
    assert_eq!(cell["totals"]["processes"], 1);
    assert_eq!((&processes[0]["command"], &processes[0]["reads"]), (&"cat data.bin".into(), &cell["totals"]["reads"]));
}

#[test]
fn a_trace_beside_others_says_so() {
    let (dir, load) = (Dir::new(), Load::start());
    let ran = load.beside(&dir, "trace --out out -- sleep 0.3");
    assert!(flat(&ran.stderr).contains(" note: During the job, other processes used "), "{}", ran.stderr);
    assert!(dir.json("out/record.json")["notes"][0].as_str().unwrap().starts_with("During the job, "));
}

#[test]
fn traces_beside_each_other_are_compared_without_their_tables() {
    let dir = Dir::new();
    dir.write("data.bin", [7; 1_000]);
    for out in ["a", "b"] {
        trace(&dir, &format!("--out {out}"), "cat data.bin");
    }
    let shown = dir.met("report a b");
    assert!(shown.contains("\nb compared with a\n") && !shown.contains("/data.bin"), "{shown}");
    let said = flat(&shown);
    assert!(said.contains("The cell in common was measured only once: no verdict."), "{said}");
    assert!(said.contains("A trace is one run: trace each job several times"), "{said}");
    assert!(!said.contains("the only cell"), "{said}");
}

#[test]
fn a_folder_with_something_in_it_is_refused_and_unchanged() {
    let dir = Dir::new();
    dir.write("out/mine", "x");
    let said = dir.refused("trace --out out -- true");
    assert!(said.contains("--out out: the folder is not empty"), "{said}");
    assert_eq!(dir.names("out"), ["mine"]);
    let said = dir.refused("trace --max-trace 1kB --out new -- true");
    assert!(said.contains("give at least 1MiB"), "{said}");
}

#[test]
fn python_jobs_get_the_hook_unless_it_is_refused() {
    let dir = Dir::new();
    let script = "python3 -c 'import sys; print(any(\"_Finder\" in repr(finder) for finder in sys.meta_path))'";
    for (flags, said) in [("--out a", "True\n"), ("--out b --no-python", "False\n")] {
        assert_eq!(trace(&dir, flags, script).stdout, said, "{flags}");
    }
}

#[test]
fn near_its_limit_the_trace_keeps_some_calls_and_totals_are_exact() {
    let dir = Dir::new();
    let script = "import os\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nos.write(fd, bytes(1000))\n\
        for i in range(600000): os.pread(fd, 1 + i * 7919 % 97, i * 31337 % 900)";
    let ran = dir.command("trace --out out --max-trace 1MiB -- python3 -c").arg(script).output().unwrap();
    assert!(ran.status.success());
    let record = dir.json("out/record.json");
    let cell = &record["cells"][0];
    assert!(cell["kept_every"].as_u64().unwrap() >= 10, "{}", cell["kept_every"]);
    let all = cell["operations"].as_array().unwrap();
    let preads = all.iter().find(|operation| operation["name"] == "pread").unwrap();
    assert_eq!(preads["calls"], 600_000);
    assert!(record["notes"].to_string().contains("--max-trace"), "{}", record["notes"]);
}

#[test]
fn ctrl_c_goes_to_the_job_and_the_trace_is_kept() {
    let dir = Dir::new();
    let script = "trap 'exit 5' INT; cat /etc/hostname; while :; do sleep 0.05; done";
    let mut command = dir.command("trace --out out -- sh -c");
    let mut child = command.arg(script).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    // The job has begun when it prints.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // SAFETY: plain numbers; the group is that of the child, which has not been waited for.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(totals(&dir)["reads"].as_u64().unwrap() >= 1);
}

#[test]
fn a_trace_whose_tracer_was_killed_is_shown_from_its_file() {
    let dir = Dir::new();
    dir.write("data.bin", [1; 5_000]);
    let script = "cat data.bin > /dev/null; sleep 1.5; echo ready; sleep 100";
    let mut command = dir.command("trace --out out -- sh -c");
    let mut child = command.arg(script).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    // SAFETY: as above; the job would outlive its tracer otherwise.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
    child.wait().unwrap();
    assert!(!dir.path("out/record.json").exists());
    let said = dir.met("report out --json -");
    assert!(said.contains("The tracer did not finish"), "{said}");
    assert!(said.contains("data.bin"), "{said}");
}

#[test]
fn a_program_without_a_loader_is_named_and_runs() {
    let dir = Dir::new();
    dir.write("p.c", "int main(void) { return 4; }");
    let made = std::process::Command::new("cc").args(["-static", "-o", "p", "p.c"]).current_dir(dir.path("")).status();
    assert!(made.unwrap().success());
    let ran = dir.run("trace --out out -- ./p");
    assert_eq!(ran.code, Some(4));
    assert!(ran.stderr.contains("./p: it is statically linked will not be seen"), "{}", ran.stderr);
    assert!(dir.json("out/record.json")["cells"][0]["not_seen"][0].as_str().unwrap().contains("statically linked"));
}

#[test]
fn a_folder_that_is_no_trace_is_refused_and_a_damaged_trace_shows_what_is_before() {
    let dir = Dir::new();
    trace(&dir, "--out out", "cat /etc/hostname");
    std::fs::remove_file(dir.path("out/record.json")).unwrap();
    let whole = dir.read("out/trace.fbt");
    dir.write("out/trace.fbt", &whole[..whole.len() - 5]);
    assert!(dir.met("report out --json -").contains("of the trace file are incomplete"));
    dir.edit("out/trace.fbt", |bytes| bytes[8] = 9);
    assert!(dir.refused("report out").contains("this trace has version 9; this forebay reads version 1"));
    dir.write("out/trace.fbt", "something else");
    assert!(dir.refused("report out").contains("not a trace of forebay"));
}

#[test]
fn a_full_disk_leaves_the_job_alone_and_the_totals_exact() {
    let dir = Dir::new();
    let job = "import os\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nos.write(fd, bytes(1000))\n\
        for i in range(600000): os.pread(fd, 1 + i * 7919 % 97, i * 31337 % 900)\nraise SystemExit(3)";
    dir.write("job.py", job);
    let script = "head -c 600000 /dev/zero > small/fill
        $forebay trace --out small/out --no-python -- python3 job.py; echo status $?
        rm small/fill
        $forebay report small/out --json -";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=1m none small", script) else { return };
    let (status, record) = ran.stdout.split_once('\n').unwrap();
    assert_eq!(status, "status 3", "that of the job");
    let said = flat(&ran.stderr);
    assert!(said.contains("No space left on device"), "{said}");
    // The calls of the shell and of Python's start come to the 600,000.
    assert!(said.contains("MB in 600,"), "all calls are in the summary: {said}");
    // The record may have found room when the library was removed.
    let is_known = ["The trace file ends after", "The tracer did not finish"].iter().any(|why| record.contains(why));
    assert!(is_known && record.contains("\"pread\""), "{record}");
}

/// A trace of known calls in `traced`.
fn with_trace() -> Dir {
    let dir = Dir::new();
    let script = "import os, time\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nos.write(fd, bytes(1000))\n\
        for i in range(50): os.pread(fd, 100, i)\ntime.sleep(0.3)\nos.pread(fd, 7, 500)";
    let ran = dir.command("trace --out traced --no-python -- python3 -c").arg(script).output().unwrap();
    assert!(ran.status.success());
    dir
}

#[test]
fn every_format_of_an_export_has_the_calls() {
    let dir = with_trace();
    for format in ["perfetto", "chrome", "csv", "dftracer", "parquet"] {
        dir.met(&format!("trace export traced out.{format} --to {format}"));
    }
    let chrome = dir.json("out.chrome");
    assert_eq!(chrome, dir.json("out.perfetto"));
    let preads =
        chrome["traceEvents"].as_array().unwrap().iter().filter(|event| event["name"] == "pread").collect::<Vec<_>>();
    assert_eq!(preads.len(), 51);
    assert_eq!((&preads[50]["args"]["bytes"], &preads[50]["args"]["offset"]), (&7.into(), &500.into()));
    assert!(preads[0]["args"]["file"].as_str().unwrap().ends_with("/f"));
    let csv = String::from_utf8(dir.read("out.csv")).unwrap();
    assert_eq!(csv.lines().filter(|line| line.contains(",pread,read,100,")).count(), 50);
    let parquet = dir.read("out.parquet");
    assert!(
        parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"),
        "its content is read by pyarrow in the tests in Python"
    );
    assert!(dir.read("out.dftracer").starts_with(&[0x1f, 0x8b]));
}

#[test]
fn an_export_has_only_what_its_flags_leave() {
    let dir = with_trace();
    let n = |flags: &str| {
        let text = dir.met(&format!("trace export traced - --to csv {flags}"));
        text.lines().filter(|line| line.contains(",pread,")).count()
    };
    assert_eq!(n(""), 51);
    let csv = dir.met("trace export traced - --to csv");
    // Other processes may come last: python3 can be a script.
    let last: Vec<&str> = csv.lines().rfind(|line| line.contains(",pread,read,7,500,")).unwrap().split(',').collect();
    let (pid, last) = (last[0].to_owned(), last[2].parse::<u64>().unwrap());
    let between = format!("{}ms", last / 1_000_000 - 150);
    assert_eq!((n(&format!("--from {between}")), n(&format!("--until {between}"))), (1, 50));
    assert_eq!((n(&format!("--pid {pid}")), n("--pid 1")), (51, 0));
    assert_eq!(n("--min-duration 10s"), 0);
    assert!(dir.refused("trace export traced x --to csv --from 2s --until 1s").contains("--until must be later"));
    assert!(dir.refused("trace export traced x --to pdf").contains("perfetto"));
    assert!(dir.refused("trace export . x --to csv").contains("there is no trace.fbt"));
    dir.write("cut/trace.fbt", &dir.read("traced/trace.fbt")[..dir.read("traced/trace.fbt").len() - 3]);
    let ran = dir.run("trace export cut - --to csv");
    assert!(ran.code == Some(0) && ran.stderr.contains("of the trace are incomplete and left out"), "{}", ran.stderr);
    dir.write("x", "mine");
    assert!(dir.refused("trace export traced x --to csv").contains("--force"));
    dir.met("trace export traced x --to csv --force");
    assert!(dir.refused("trace export traced traced/new.csv --to csv").contains("is inside the input"));
    let mut child = dir.command("trace export traced - --to csv").stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0), "whoever reads stdout has seen enough");
}

#[test]
fn the_series_of_a_trace_has_what_the_job_did_over_time() {
    let dir = Dir::new();
    let script = "import os, time\nfd = os.open('f', os.O_RDWR | os.O_CREAT)\nos.write(fd, bytes(5000))\n\
        os.pread(fd, 5000, 0)\ntime.sleep(2.2)";
    let ran = dir.command("trace --out out --no-python -- python3 -c").arg(script).output().unwrap();
    assert!(ran.status.success());
    let series = dir.json("out/record.json")["series"].clone();
    let column = |name: &str| {
        let columns = series["columns"].as_array().unwrap();
        let values =
            &columns.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("{name}"))["values"];
        values.as_array().unwrap().iter().filter_map(Value::as_f64).sum::<f64>()
    };
    assert!(column("job.read_bytes_per_s") > 4_000.0 && column("job.write_bytes_per_s") > 4_000.0);
    let page = String::from_utf8(dir.read("out/report.html")).unwrap();
    assert!(page.contains("Calls of the job per second"));
}
