//! Paths are bytes: every command takes any of them, prints none raw, and writes them so that they can be read back.
//!
//! Lines here are escaped as forebay escapes paths: `ph\xffotos` is one word with the byte 255 in it, `a\x20b` one with a
//! space.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_units::{PathText, unescape};
use serde_json::Value;

use crate::dir::{Dir, Ran};
use crate::workload;

/// A folder of images, with everything in its name that a name may hold.
const SET: &str = r"-ph\xffotos\x20\x22'%\\\x0a\x1b[31m";

/// The classes and the names of its images.
const FILES: [&str; 10] = [
    r"k\xfe/a\xfe.jpg",
    r"k\xfe/a\xff.jpg",
    r"k\xfe/\\xfe.jpg",
    r"k\xfe/new\x0aline.jpg",
    r"k\xfe/\x1b[31mred\x1b[0m.jpg",
    "ordinary/it's\"quoted\".jpg",
    r"ordinary/back\\slash.jpg",
    "ordinary/100%.jpg",
    "ordinary/-dash.jpg",
    r"ordinary/sp\x20ace\x20.jpg",
];

fn path(text: &str) -> PathBuf {
    PathBuf::from(unescape(text).unwrap())
}

/// The binary with the words of an escaped line.
fn command(dir: &Dir, line: &str) -> Command {
    let mut command = dir.command("");
    command.args(line.split_whitespace().map(|word| unescape(word).unwrap()));
    command.env("FOREBAY_HOME", dir.path(path(r"ho\xffme")));
    command
}

/// Runs an escaped line. What it prints is text without a control character, and without a character that stands for a
/// lost byte.
fn run(dir: &Dir, line: &str) -> Ran {
    let ran: Ran = command(dir, line).output().unwrap().into();
    for said in [&ran.stdout, &ran.stderr] {
        let raw = said.chars().find(|&c| c == '\u{fffd}' || (c.is_control() && c != '\n'));
        assert_eq!(raw, None, "{line}\n{said:?}");
    }
    ran
}

/// Runs what must end with status 0; its stdout.
fn met(dir: &Dir, line: &str) -> String {
    let ran = run(dir, line);
    assert_eq!(ran.code, Some(0), "{line}\n{}{}", ran.stdout, ran.stderr);
    ran.stdout
}

fn json(dir: &Dir, line: &str) -> Value {
    serde_json::from_str(&met(dir, line)).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The path that JSON holds at a pointer.
fn path_in(json: &Value, pointer: &str) -> PathBuf {
    let text = json.pointer(pointer).and_then(Value::as_str);
    PathBuf::from(unescape(text.unwrap_or_else(|| panic!("{pointer} in {json}"))).unwrap())
}

/// Images under the odd names, and one whose name is as long as a name may be.
fn with_odd_set() -> Dir {
    let dir = Dir::with_set();
    let images: Vec<Vec<u8>> = dir.images("set").into_values().collect();
    let longest = format!("ordinary/{}.jpg", "n".repeat(251));
    for (name, image) in FILES.into_iter().chain([longest.as_str()]).zip(images) {
        write(&dir, &path(SET).join(path(name)), &image);
    }
    dir
}

fn write(dir: &Dir, name: &Path, bytes: &[u8]) {
    fs::create_dir_all(dir.path(name).parent().unwrap()).unwrap();
    fs::write(dir.path(name), bytes).unwrap();
}

/// The images below a folder, by the bytes of their names.
fn images(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("jpg")) {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_look_at_data_names_it_by_its_bytes() {
    let dir = with_odd_set();
    for look in ["inspect", "verify"] {
        met(&dir, &format!("data {look} ./{SET}"));
        let found = json(&dir, &format!("data {look} ./{SET} --json -"));
        assert_eq!(path_in(&found, "/path"), path(&format!("./{SET}")), "{look}");
        met(&dir, &format!(r"data {look} --json f\xffound.json -- {SET}"));
        assert!(dir.path(path(r"f\xffound.json")).is_file(), "{look}");
    }
    let found = json(&dir, &format!("data inspect ./{SET} --json -"));
    assert_eq!(found["n_samples"], 11);
    assert_eq!(path_in(&found, "/classes/0/name"), path(r"k\xfe"));
}

#[test]
fn a_damaged_file_is_named_so_that_it_can_be_found() {
    let dir = with_odd_set();
    for name in FILES {
        write(&dir, &path(SET).join(path(name)), b"damaged");
    }
    let ran = run(&dir, &format!("data verify ./{SET} --json -"));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let mut named: Vec<PathBuf> = (0..10).map(|n| path_in(&found, &format!("/bad/{n}/path"))).collect();
    let mut damaged: Vec<PathBuf> = FILES.map(|name| Path::new(".").join(path(SET)).join(path(name))).to_vec();
    named.sort();
    damaged.sort();
    assert_eq!(named, damaged);
    let ran = run(&dir, &format!("ingest ./{SET} --threads 1 --repeats 1 --warmups 0"));
    assert!(ran.stdout.contains(r"k\xfe/\\xfe.jpg: not recognised"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn packed_names_come_back_byte_for_byte() {
    let dir = with_odd_set();
    let mut files = images(&dir.path(path(SET)));
    // A list has a line for a file, so that a name with a line's end cannot stand in it: that one is named and left out.
    let split = path(r"k\xfe/new\x0aline.jpg");
    assert!(files.remove(&split).is_some());
    for to in ["tfrecord", "tar"] {
        let made = format!(r"p\xff-{to}");
        met(&dir, &format!("data pack ./{SET} {made} --to {to}"));
        met(&dir, &format!("data pack ./{SET} {made} --to {to}"));
        assert_eq!(json(&dir, &format!("data verify {made} --json -"))["n_good"], 11);
        let manifest: Value =
            serde_json::from_slice(&fs::read(dir.path(path(&made)).join("manifest.json")).unwrap()).unwrap();
        let shard = dir.path(path(&made)).join(path_in(&manifest, "/shards/0/file"));
        assert!(shard.is_file() && shard.file_name().unwrap().as_bytes().starts_with(path(SET).as_os_str().as_bytes()));
        let ran = run(&dir, &format!(r"data pack {made} u\xff-{to} --to files"));
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert!(
            ran.stderr.contains(r#"file name "k\xfe/new\x0aline.jpg" cannot be written to list.txt"#),
            "{}",
            ran.stderr
        );
        assert_eq!(images(&dir.path(path(&format!(r"u\xff-{to}")))), files, "{to}");
        let list = json(&dir, &format!(r"data inspect u\xff-{to}/list.txt --json -"));
        assert_eq!((&list["n_samples"], &list["n_bad"]), (&10.into(), &0.into()));
    }
    met(&dir, &format!(r"data pack ./{SET} t\xff --to tensor --size 8"));
    met(&dir, &format!(r"data decode ./{SET} --to d\xff.npy --size 8"));
    assert!(dir.path(path(r"d\xff.npy")).is_file());
}

#[test]
fn a_list_names_files_by_bytes() {
    let dir = with_odd_set();
    // The folder's own name has a line's end in it, which a list cannot hold.
    fs::rename(dir.path(path(SET)), dir.path(path(r"o\xffdd"))).unwrap();
    let line = |name: &str| [path(r"o\xffdd").join(path(name)).into_os_string().into_vec(), b" 3\n".to_vec()].concat();
    let listed = FILES.iter().filter(|name| !name.contains("x0a"));
    fs::write(dir.path(path(r"l\xffist")), listed.flat_map(|name| line(name)).collect::<Vec<u8>>()).unwrap();
    let record = json(&dir, r"ingest l\xffist --threads 1 --repeats 1 --warmups 0 --json -");
    assert_eq!(record["dataset"]["n_samples"], 9);
    assert_eq!(path_in(&record, "/dataset/path"), path(r"l\xffist"));
    assert_eq!(json(&dir, r"data inspect l\xffist --json -")["n_samples"], 9);
}

#[test]
fn a_record_keeps_its_paths_and_its_command_line() {
    let dir = with_odd_set();
    fs::create_dir(dir.path(path(r"\xffdisk"))).unwrap();
    let emulated = "--accelerator emulated:1ms --batch 4";
    let saves = r"--checkpoint-every 2 --checkpoint-dir ./c\xff --burst-dir b\xff --checkpoint-size 8KB";
    let runs = [
        (format!("ingest ./{SET} --threads 1 --repeats 1 --warmups 0"), format!("./{SET}")),
        (format!("train ./{SET} {emulated} --steps 4 {saves}"), format!("./{SET}")),
        (format!("train ./{SET} {emulated} --steps 6 {saves} --resume"), format!("./{SET}")),
        (r"probe \xffdisk --size 1MiB --runs 2 --save p1".to_owned(), r"\xffdisk".to_owned()),
        (r"checkpoint bench \xffdisk --size 8KB --saves 1".to_owned(), r"\xffdisk".to_owned()),
    ];
    for (line, data) in runs {
        let record = json(&dir, &format!("{line} --json -"));
        assert_eq!(path_in(&record, "/dataset/path"), path(&data), "{line}");
        let words = record["command_line"].as_array().unwrap()[1..]
            .iter()
            .map(|word| unescape(word.as_str().unwrap()).unwrap());
        let given: Vec<OsString> =
            line.split_whitespace().map(|word| unescape(word).unwrap()).chain(["--json".into(), "-".into()]).collect();
        assert_eq!(words.collect::<Vec<_>>(), given);
        fs::write(dir.path(path(r"r\xff.json")), record.to_string()).unwrap();
        met(&dir, r"report r\xff.json");
        met(&dir, r"report r\xff.json --html h\xff.html --csv c\xff.csv");
        let page = fs::read_to_string(dir.path(path(r"h\xff.html"))).unwrap();
        assert!(page.contains(r"\xff") && !page.contains('\u{fffd}') && !page.contains('\u{1b}'), "{line}");
        let shown = json(&dir, r"report r\xff.json --json -");
        assert!(shown.to_string().contains(r"$'"), "the command can be pasted: {line}");
    }
}

#[test]
fn checkpoints_lie_in_folders_and_files_of_any_name() {
    let dir = Dir::new();
    let made = "--synthetic --batch 2 --accelerator emulated:1ms --checkpoint-size 8KB";
    met(&dir, &format!(r"train {made} --steps 4 --checkpoint-every 2 --checkpoint-dir c\xff --burst-dir b\xff"));
    let listed = json(&dir, r"checkpoint ls c\xff --burst-dir b\xff --json -");
    assert_eq!(listed["folders"].as_array().unwrap().len(), 2);
    let folders = [path_in(&listed, "/folders/0/path"), path_in(&listed, "/folders/1/path")];
    assert!(folders.contains(&path(r"c\xff")) && folders.contains(&path(r"b\xff")), "{folders:?}");
    assert_eq!(path_in(&json(&dir, r"checkpoint verify c\xff --json -"), "/copies/0/folder"), path(r"c\xff"));
    json(&dir, r"checkpoint drain c\xff --burst-dir b\xff --json -");
    let pruned = json(&dir, r"checkpoint prune c\xff --keep 1 --json -");
    assert_eq!(path_in(&pruned, "/removed/0/folder"), path(r"c\xff"));
    let restored = json(&dir, r"checkpoint restore c\xff --to s\xff\x1b.safetensors --json -");
    assert_eq!(path_in(&restored, "/files/0"), path(r"./s\xff\x1b.safetensors"));
    met(&dir, r"checkpoint convert s\xff\x1b.safetensors m\xff\\o --to tensorflow");
    assert_eq!(
        dir.read("checkpoint").split(|&byte| byte == b'\n').next().unwrap(),
        br#"model_checkpoint_path: "m\377\\o""#
    );
    // By its prefix and by its index.
    for (n, from) in [r"m\xff\\o", r"m\xff\\o.index"].into_iter().enumerate() {
        met(&dir, &format!(r"checkpoint convert {from} back{n}\xff.safetensors --to safetensors"));
        let back = fs::read(dir.path(path(&format!(r"back{n}\xff.safetensors")))).unwrap();
        assert_eq!(back, fs::read(dir.path(path(r"s\xff\x1b.safetensors"))).unwrap());
    }
    let ran = run(&dir, r"checkpoint convert m\xff\\o m\xff\\o --to tensorflow");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(r"cannot write ./m\xff\\o.index: it is the input ./m\xff\\o.index"), "{}", ran.stderr);
}

#[test]
fn a_workload_its_data_and_its_results_have_any_names() {
    let dir = Dir::new();
    write(&dir, &path(r"w\xff.yaml"), workload::TINY.as_bytes());
    assert_eq!(path_in(&json(&dir, r"workload check w\xff.yaml --json -"), "/workloads/0/file"), path(r"w\xff.yaml"));
    for command in ["show", "size --accelerators 2 --host-memory 1GiB", "import"] {
        met(&dir, &format!(r"workload {command} w\xff.yaml"));
    }
    let ran = run(&dir, r"workload run w\xff.yaml --data d\xff");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.ends_with("hint: forebay workload make $'w\\xff.yaml' --data $'d\\xff'\n"), "{}", ran.stderr);
    met(&dir, r"workload make w\xff.yaml --data d\xff");
    let line = r"workload run w\xff.yaml --data d\xff --out o\xff --access-log --threshold 0.001 --json r\xff.json";
    met(&dir, line);
    let record: Value = serde_json::from_slice(&fs::read(dir.path(path(r"r\xff.json"))).unwrap()).unwrap();
    assert_eq!(path_in(&record, "/dataset/path"), path(r"d\xff"));
    met(&dir, r"report o\xff");
    met(&dir, r"report --from-dlio o\xff --html h\xff.html");
}

#[test]
fn a_job_script_holds_the_paths_as_bash_reads_them() {
    let dir = Dir::new();
    write(&dir, &path(r"w\xff'$x.yaml"), workload::TINY.as_bytes());
    let script = met(&dir, r"workload slurm w\xff'$x.yaml --nodes 1 --ranks-per-node 1 --data d\xff\x20\x22`\x0a\x1b");
    let names: Vec<&str> =
        script.lines().filter(|line| line.starts_with("workload=") || line.starts_with("data=$'")).collect();
    let script = format!("{}\nprintf '%s|%s' \"$workload\" \"$data\"", names.join("\n"));
    let output = Command::new("bash").args(["-euc", &script]).output().unwrap();
    assert_eq!(output.stdout, b"w\xff'$x.yaml|d\xff \"`\n\x1b", "{script}");
}

#[test]
fn a_study_keeps_its_paths_through_plan_and_resumption() {
    let dir = with_odd_set();
    fs::rename(dir.path(path(SET)), dir.path(path(r"o\xffdd"))).unwrap();
    fs::create_dir(dir.path(path(r"t\xff"))).unwrap();
    let study = r#"
name = "s"
title = "t"
[[dataset]]
name = "there"
path = 'o\xffdd'
[[dataset]]
name = "made"
make = "caltech101"
count = 8
[[tier]]
name = "disk"
path = 'gone'
[[experiment]]
name = "read"
run = "ingest"
repeats = 1
warmups = 0
factors = { threads = [1, 2] }
settings = { dataset = "there", batch = 4 }
[[experiment]]
name = "on"
run = "ingest"
repeats = 1
warmups = 0
factors = { tier = ["disk"] }
settings = { dataset = "made", batch = 4, threads = 1 }
"#;
    write(&dir, &path(r"s\xff.toml"), study.as_bytes());
    met(&dir, r"study show s\xff.toml");
    let line = r"study run s\xff.toml --tier disk=t\xff --out r\xffun --data m\xff";
    met(&dir, &format!("{line} --dry-run"));
    met(&dir, line);
    let run_dir = dir.path(path(r"r\xffun"));
    let plan = fs::read_to_string(run_dir.join("plan.toml")).unwrap();
    let there = dir.path(path(r"o\xffdd")).canonicalize().unwrap();
    assert!(plan.contains(&format!("path = '{}'", there.escaped())), "{plan}");
    let environment: Value = serde_json::from_slice(&fs::read(run_dir.join("environment.json")).unwrap()).unwrap();
    assert!(environment["started_at"].is_string());
    // The last cell again, and none where all are done.
    let record = fs::read(run_dir.join("record.jsonl")).unwrap();
    let end = record[..record.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    fs::write(run_dir.join("record.jsonl"), &record[..end]).unwrap();
    assert!(met(&dir, &format!("{line} --resume")).contains(r"3 of 3 cells done, 0 failed; r\xffun/report.html"));
    // The plan is a study of its own, which names the same data.
    met(&dir, r"study run r\xffun/plan.toml --dataset there=o\xffdd --out r\xff2");
    met(&dir, r"report r\xffun r\xff2 --html b\xff.html");
    json(&dir, r"report r\xffun --json -");
    met(&dir, r"report r\xffun --csv c\xff.csv");
}

#[test]
fn a_tier_in_a_folder_of_any_name_is_listed_and_removed() {
    let dir = Dir::new();
    fs::create_dir(dir.path(path(r"t\xff"))).unwrap();
    met(&dir, r"tier up hdd --shaped --dir t\xff");
    let listed = json(&dir, "tier list --json -");
    let data = path_in(&listed, "/tiers/0/data");
    assert_eq!(data, dir.path(path(r"t\xff")).canonicalize().unwrap().join("hdd/data"));
    assert!(met(&dir, "tier list").contains("forebay probe $'"));
    met(&dir, "tier down hdd");
    assert!(!data.exists());
}

#[test]
fn a_watched_command_and_its_table_have_any_names() {
    let dir = Dir::new();
    std::os::unix::fs::symlink("/bin/true", dir.path(path(r"t\xff\x1b"))).unwrap();
    let ran = run(&dir, r"watch --interval 50ms --csv w\xff.csv -- ./t\xff\x1b a\xfe");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(r"./t\xff\x1b a\xfe"), "{}", ran.stderr);
    assert!(fs::read_to_string(dir.path(path(r"w\xff.csv"))).unwrap().starts_with("time,elapsed_s,"));
}

#[test]
fn what_is_not_there_is_refused_by_its_name() {
    let dir = Dir::new();
    let gone = r"./go\xffne\x1b[31m\x0a";
    for line in [
        "data inspect",
        "data verify",
        "data decode --to x.npy",
        "ingest",
        "train",
        "probe",
        "report",
        "report --from-dlio",
        "checkpoint ls",
        "checkpoint verify",
        "checkpoint prune --keep 1",
        "checkpoint restore --to x",
        "workload show",
        "workload check",
        "workload slurm --nodes 1 --ranks-per-node 1",
        "study show",
        "study slurm",
        "study run",
    ] {
        let ran = run(&dir, &format!("{line} {gone}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}\n{}", ran.stderr);
        assert!(ran.stderr.contains(gone), "{line}\n{}", ran.stderr);
    }
    for line in [
        r"data pack G x --to tar",
        r"checkpoint convert G x.safetensors --to safetensors",
        r"checkpoint drain G --burst-dir G2",
    ] {
        let ran = run(&dir, &line.replace('G', gone));
        assert_eq!(ran.code, Some(2), "{line}\n{}", ran.stderr);
        assert!(ran.stderr.contains(gone), "{line}\n{}", ran.stderr);
    }
}
