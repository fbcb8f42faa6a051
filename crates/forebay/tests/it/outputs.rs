//! What every output of every command may replace, and what it may not.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Stdio;

use crate::checkpoint::save;
use crate::dir::Dir;
use crate::outputs_table::{ARGUMENTS, Argument, Role};
use crate::{study, workload};

const FOREIGN: &str = "notes of years\n";

/// A folder with everything that the lines of the table read.
fn with_all() -> Dir {
    let dir = Dir::with_set();
    for folder in ["ck", "fast"] {
        save(&dir, folder, "safetensors", &[20]);
    }
    dir.met("checkpoint restore ck --to m.safetensors");
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-report/tests/fixtures/ingest.json");
    dir.write("run.json", fs::read(record).unwrap());
    dir.write("tiny.toml", study::TINY);
    dir.write("tiny.yaml", workload::TINY);
    dir.met("workload make tiny.yaml --data records");
    done(&dir, "trace --out traced -- true");
    dir
}

fn outputs(roles: &[Role]) -> impl Iterator<Item = &'static Argument> {
    ARGUMENTS.iter().filter(|argument| roles.contains(&argument.role))
}

/// A name that the command takes for this output.
fn name(argument: &Argument) -> &'static str {
    match (argument.role, argument.command) {
        (Role::Values, "data decode") => "out.npy",
        (Role::Values, _) => "out.safetensors",
        _ => "out",
    }
}

fn line(argument: &Argument, out: &str) -> String {
    argument.line.replace("OUT", out)
}

fn forced(line: &str) -> String {
    if line.contains(" --force") { line.to_owned() } else { format!("{line} --force") }
}

/// Runs a line that must end with status 0.
fn done(dir: &Dir, line: &str) {
    let ran = dir.run(line);
    assert_eq!(ran.code, Some(0), "{line}\n{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_file_that_forebay_did_not_write_is_replaced_only_with_force() {
    let dir = with_all();
    for argument in outputs(&[Role::File, Role::Values]) {
        let (out, line) = (name(argument), line(argument, name(argument)));
        dir.write(out, FOREIGN);
        // Lines that write two files have --force for the other one.
        if !line.contains("--force") {
            let said = dir.refused(&line);
            assert!(said.contains(out) && said.contains("--force"), "{line}: {said}");
            assert_eq!(dir.read(out), FOREIGN.as_bytes(), "{line}");
        }
        done(&dir, &forced(&line));
        assert_ne!(dir.read(out), FOREIGN.as_bytes(), "{line}");
        fs::remove_file(dir.path(out)).unwrap();
    }
}

#[test]
fn a_second_run_replaces_what_the_first_one_wrote_where_that_can_be_known() {
    let dir = with_all();
    for argument in outputs(&[Role::File]) {
        let line = line(argument, "out");
        done(&dir, &line);
        let first = dir.read("out");
        assert!(!first.is_empty(), "{line}");
        done(&dir, &line);
        assert!(!dir.read("out").is_empty(), "{line}");
        fs::remove_file(dir.path("out")).unwrap();
    }
    for argument in outputs(&[Role::Values]) {
        let (out, line) = (name(argument), line(argument, name(argument)));
        done(&dir, &line);
        let first = dir.read(out);
        assert!(dir.refused(&line).contains("--force"), "{line}");
        assert_eq!(dir.read(out), first, "{line}");
        fs::remove_file(dir.path(out)).unwrap();
    }
}

#[test]
fn nothing_is_written_into_what_is_read_be_it_with_force() {
    let dir = with_all();
    let inputs = ["set", "ck", "fast", "records"];
    let before: Vec<_> = inputs.iter().map(|input| dir.tree(input)).collect();
    let files = ["m.safetensors", "run.json", "tiny.yaml"].map(|file| (file, dir.read(file)));
    symlink("set", dir.path("link")).unwrap();
    fs::create_dir(dir.path("apart")).unwrap();
    for argument in outputs(&[Role::File, Role::Values, Role::Folder]).filter(|argument| !argument.inside.is_empty()) {
        let is_file = argument.role != Role::Folder;
        let linked = argument.inside.replacen("set/", "link/", 1);
        for inside in [argument.inside, &linked, &format!("apart/../{}", argument.inside)] {
            let line = line(argument, inside);
            for line in [line.clone(), forced(&line)].iter().filter(|line| is_file || !line.contains("--force")) {
                let said = dir.refused(line);
                let wanted = [" is inside the input ", " is the input ", " part of the checkpoint itself"];
                assert!(wanted.iter().any(|wanted| said.contains(wanted)), "{line}: {said}");
            }
        }
    }
    assert_eq!(inputs.map(|input| dir.tree(input)).to_vec(), before);
    assert_eq!(files.clone().map(|(file, _)| (file, dir.read(file))), files);
    let said = dir.refused("data decode set --to set/list.txt");
    let hint = "hint: choose a path outside set\n";
    assert_eq!(said, format!("forebay: cannot write set/list.txt: it is inside the input set\n{hint}"));
}

#[test]
fn a_file_of_an_input_is_known_by_every_name() {
    let dir = Dir::with_set();
    let image = "class_004/class_004_000004.jpg";
    fs::hard_link(dir.path(format!("set/{image}")), dir.path("hard.jpg")).unwrap();
    symlink(format!("set/{image}"), dir.path("soft.jpg")).unwrap();
    symlink("set/new.json", dir.path("dangling.json")).unwrap();
    dir.write("list.txt", format!("set/{image} 0\n"));
    let before = dir.tree("set");
    for line in [
        "data inspect set --json hard.jpg --force",
        "data inspect set --json soft.jpg --force",
        "data inspect set --json dangling.json",
        "data decode set --to hard.jpg --force",
        "data inspect list.txt --json hard.jpg --force",
        &format!("data verify list.txt --json set/{image} --force"),
        "data verify hard.jpg --json soft.jpg --force",
    ] {
        let said = dir.refused(line);
        assert!(said.contains(" the input "), "{line}: {said}");
    }
    assert_eq!(dir.tree("set"), before);
    assert!(dir.path("hard.jpg").exists() && !dir.path("set/new.json").exists());
}

#[test]
fn an_empty_file_a_device_a_pipe_and_stdout_are_no_loss() {
    let dir = with_all();
    let fifo = dir.path("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    for argument in outputs(&[Role::File, Role::Values]) {
        let (out, empty) = (name(argument), line(argument, name(argument)));
        dir.write(out, "");
        done(&dir, &empty);
        assert!(!dir.read(out).is_empty(), "{empty}");
        fs::remove_file(dir.path(out)).unwrap();
        // A model is more than a stream of bytes.
        if out == "out.safetensors" {
            continue;
        }
        done(&dir, &line(argument, "/dev/null"));
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        let child = dir.command(&line(argument, "fifo")).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let read = fs::read(&fifo).unwrap();
        assert!(child.unwrap().wait().unwrap().success() && !read.is_empty(), "{empty}");
        assert!(fs::metadata(&fifo).unwrap().file_type().is_fifo());
        if argument.id != "html" {
            let printed = dir.command(&line(argument, "-")).output().unwrap();
            assert!(printed.status.success() && !printed.stdout.is_empty(), "{empty}");
            let same = dir.command(&line(argument, "/dev/stdout")).output().unwrap();
            assert!(same.status.success() && same.stdout[0] == printed.stdout[0], "{empty}");
        }
        assert!(!dir.path("-").exists());
    }
}

#[test]
fn two_outputs_of_a_command_never_share_a_file() {
    let dir = with_all();
    symlink("same", dir.path("alias")).unwrap();
    for (line, said) in [
        ("report run.json --html same --json same", "forebay: --html and --json cannot both be written to same\n"),
        ("report run.json --json ./same --csv alias", "forebay: --json and --csv cannot both be written to alias\n"),
        ("report run.json --json - --csv /dev/stdout", "forebay: --json - and --csv - cannot both go to stdout\n"),
        (
            "workload run tiny.yaml --data records --out results --json results/record.json",
            "forebay: cannot write results/record.json: it is inside --out results, to which this command writes\n",
        ),
    ] {
        assert_eq!(dir.refused(line), said, "{line}");
    }
    assert!(!dir.path("same").exists() && !dir.path("results").exists());
}

#[test]
fn data_is_packed_beside_its_input_never_around_it() {
    let dir = Dir::with_set();
    dir.write("around/set/a.jpg", dir.read("set/class_004/class_004_000004.jpg"));
    let before = dir.tree("around");
    let said = dir.refused("data pack around/set around --to tar");
    let hint = "hint: choose a folder beside the input\n";
    assert_eq!(said, format!("forebay: cannot write to around: it contains the input around/set\n{hint}"));
    assert!(dir.refused("data pack set set --to tar").contains("cannot write set: it is the input set"));
    assert!(dir.refused("data pack around around/set/out --to tar").contains("is inside the input around"));
    assert_eq!(dir.tree("around"), before);
    dir.met("data pack around/set around/shards --to tar");
    dir.met("data pack around/shards around/files --to files");
}

#[test]
fn what_a_run_keeps_is_not_replaced_by_another_command() {
    let dir = Dir::new();
    fs::create_dir(dir.path("run")).unwrap();
    let line = "watch --interval 10ms --count 1 --csv run/samples.csv";
    done(&dir, line);
    done(&dir, line);
    dir.write("run/record.jsonl", "{}\n");
    let rows = dir.read("run/samples.csv");
    assert!(dir.refused(line).contains("the file exists and was not written by forebay"));
    assert_eq!(dir.read("run/samples.csv"), rows);
}

#[test]
fn a_ceiling_is_not_saved_over_a_file_of_others() {
    let dir = Dir::new();
    dir.write(".home/ceilings/disk.json", FOREIGN);
    let line = "probe . --random --size 1MiB --block 4KiB --depth 1 --runs 2 --save disk";
    let said = dir.refused(line);
    assert!(said.starts_with("forebay: cannot save disk: ") && said.contains("was not written by forebay"), "{said}");
    assert_eq!(dir.read(".home/ceilings/disk.json"), FOREIGN.as_bytes());
    fs::remove_file(dir.path(".home/ceilings/disk.json")).unwrap();
    done(&dir, line);
    done(&dir, line);
}
