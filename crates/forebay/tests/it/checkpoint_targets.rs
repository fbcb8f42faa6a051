//! Where `forebay checkpoint restore` and `convert` write, and where they do not; which folders all commands take.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::checkpoint::{named_step, save, tensor, values};
use crate::dir::Dir;
use crate::process::Running;

fn hidden(dir: &Dir) -> Vec<String> {
    let names = fs::read_dir(dir.path(".")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with('.') && name != ".home").collect()
}

/// Whether a file aside has bytes: it is locked before it gets any.
fn is_being_written(dir: &Dir) -> bool {
    hidden(dir).iter().any(|name| fs::metadata(dir.path(name)).is_ok_and(|found| found.len() > 0))
}

/// A restore to `out.safetensors` that stands still with half of it written.
fn stopped_restore(dir: &Dir) -> Running {
    // An emulated disk takes long to read the values, but a busy machine may look too late.
    for _ in 0..20 {
        let mut running = Running::start(dir, "checkpoint restore slow --tier hdd --to out.safetensors");
        if running.end_before("a file aside with bytes", |_| is_being_written(dir)).is_none() {
            running.signal(libc::SIGSTOP);
            if is_being_written(dir) {
                return running;
            }
            running.signal(libc::SIGCONT);
        }
        running.finish();
        fs::remove_file(dir.path("out.safetensors")).unwrap();
    }
    panic!("no restore was seen at work");
}

#[test]
fn what_a_killed_restore_left_is_removed_by_the_next_one_and_it_says_so() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    let running = stopped_restore(&dir);
    let aside = hidden(&dir);
    assert!(aside[0].starts_with(".out.safetensors."), "{aside:?}");
    dir.met("checkpoint restore slow --to other.safetensors");
    let beside = dir.run("checkpoint restore slow --to out.safetensors");
    assert_eq!((beside.code, beside.stderr.as_str()), (Some(0), ""), "what another run writes is left");
    assert_eq!(hidden(&dir), aside);
    running.signal(libc::SIGKILL);
    running.finish();
    let ran = dir.run("checkpoint restore slow --to out.safetensors --force");
    let said = format!("forebay: removed ./{}, left by a killed run\n", aside[0]);
    assert_eq!((ran.code, ran.stderr), (Some(0), said));
    assert_eq!(hidden(&dir), [] as [&str; 0]);
}

#[test]
fn the_slower_of_two_to_one_name_hears_that_it_is_there() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    let running = stopped_restore(&dir);
    dir.met("checkpoint restore slow --to out.safetensors");
    running.signal(libc::SIGCONT);
    let ran = running.finish();
    let said = "forebay: ./out.safetensors already exists\nhint: choose another name, or replace it with --force\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), said));
    assert_eq!(hidden(&dir), [] as [&str; 0]);
}

#[test]
fn a_tensorflow_checkpoint_is_replaced_as_a_whole() {
    let dir = Dir::new();
    save(&dir, "slow", "tensorflow", &[20, 40]);
    dir.met("checkpoint restore slow --step 20 --to model");
    let old = dir.read("model.index");
    dir.met("checkpoint restore slow --step 40 --to model --force");
    assert_ne!(dir.read("model.index"), old);
    dir.met("checkpoint convert model back.safetensors --to safetensors");
    assert_eq!(tensor(&dir.read("back.safetensors"), "layer/w"), values(40)[0]);
    assert_eq!(hidden(&dir), [] as [&str; 0]);
}

#[test]
fn json_never_takes_the_name_of_what_is_read_or_written() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    let refused = |line: &str| {
        let said = dir.refused(&format!("checkpoint {line}"));
        assert!(said.contains("part of the checkpoint itself\nhint: choose another path"), "{said}");
    };
    refused("restore slow --to out.safetensors --json out.safetensors");
    refused("restore slow --to out.safetensors --json ./slow/../out.safetensors");
    for json in ["out.index", "out.data-00000-of-00001", "out.meta", "checkpoint"] {
        refused(&format!("restore slow --to out --json {json}"));
    }
    dir.met("checkpoint restore slow --to out.safetensors --json out.json");
    assert_eq!(tensor(&dir.read("out.safetensors"), "layer/w"), values(20)[0]);
    refused("convert out.safetensors model --to tensorflow --json model.index");
    refused("convert out.safetensors model --to tensorflow --json out.safetensors");
    assert_eq!(tensor(&dir.read("out.safetensors"), "layer/w"), values(20)[0]);
    let into = format!("checkpoint restore slow --to x --json {}/model.safetensors", named_step("slow", 20));
    assert!(dir.refused(&into).contains("is inside the checkpoint"));
}

#[test]
fn only_the_path_of_a_regular_file_outside_a_checkpoint_is_written() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    fs::create_dir(dir.path("there")).unwrap();
    let inside = format!("{}/x.safetensors", named_step("slow", 20));
    for (to, said) in [
        ("there", "forebay: there is a folder\nhint: name a file in it\n"),
        ("new/", "forebay: new/ is a folder\nhint: name a file in it\n"),
        ("/dev/full", "forebay: /dev/full is not a regular file\n"),
    ] {
        assert_eq!(dir.refused(&format!("checkpoint restore slow --to {to} --force")), said);
        let input = format!("{}/model.safetensors", named_step("slow", 20));
        assert_eq!(dir.refused(&format!("checkpoint convert {input} {to} --to tensorflow")), said);
    }
    assert!(dir.refused(&format!("checkpoint restore slow --to {inside}")).contains("is inside the checkpoint "));
    let input = format!("{}/model.safetensors", named_step("slow", 20));
    let said = dir.refused(&format!("checkpoint convert {input} {}/model --to tensorflow", named_step("slow", 20)));
    assert!(said.contains("is inside the checkpoint "), "{said}");
    dir.met("checkpoint verify slow");
    assert_eq!(fs::read_dir(dir.path(named_step("slow", 20))).unwrap().count(), 2, "values and manifest");
}

#[test]
fn nothing_good_is_told_in_json_too() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    dir.edit(&format!("{}/model.safetensors", named_step("slow", 20)), |bytes| bytes.truncate(5000));
    dir.missed("checkpoint restore slow --to out.safetensors --json report.json");
    let found = dir.json("report.json");
    assert_eq!((&found["name"], &found["step"]), (&json!(null), &json!(null)));
    let passed_over = found["passed_over"].as_array().unwrap();
    assert!(passed_over.len() == 1 && passed_over[0].as_str().unwrap().contains("is truncated"), "{found}");
    let ran = dir.missed("checkpoint restore slow --to out.safetensors --json -");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.stdout).unwrap(), found);
}

#[test]
fn every_command_says_what_is_wrong_with_a_folder() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    dir.write("file", "text");
    for name in ["slow/inner", "fast"] {
        fs::create_dir(dir.path(name)).unwrap();
    }
    let one = named_step("slow", 20);
    for command in ["bench", "ls", "verify", "prune", "restore --to x", "drain --burst-dir fast"] {
        let refused = |more: &str| dir.refused(&format!("checkpoint {command} {more}"));
        assert_eq!(refused("file"), "forebay: file is not a folder\n");
        // Those that write to it create it.
        if !command.starts_with("bench") && !command.starts_with("drain") {
            assert_eq!(refused("missing"), "forebay: missing: no such folder\n");
        }
        let said = refused(&one);
        assert!(said.starts_with(&format!("forebay: {one} is a checkpoint\nhint: give the folder that contains it, ")));
        assert!(said.ends_with("/slow\n"), "{said}");
        if !command.starts_with("drain") {
            for line in ["slow --burst-dir slow/inner", "slow/inner --burst-dir slow"] {
                assert!(refused(line).contains("must not contain one another"), "{command} {line}");
            }
        }
    }
    assert!(dir.refused("checkpoint drain slow/inner --burst-dir slow").contains("must not contain one another"));
    let said = dir.refused("checkpoint convert slow x --to tensorflow");
    assert!(said.contains("is a folder of checkpoints\nhint: name one, or use `forebay checkpoint restore`"), "{said}");
}

/// TensorFlow's own checkpoint with tensors of strings.
fn with_strings(dir: &Dir) {
    with_golden(dir, "strings");
}

/// A checkpoint that TensorFlow wrote.
fn with_golden(dir: &Dir, stem: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-checkpoint/tests/golden");
    for file in [format!("{stem}.index"), format!("{stem}.data-00000-of-00001")] {
        fs::copy(golden.join(&file), dir.path(&file)).unwrap();
    }
}

#[test]
fn the_object_graph_of_a_checkpoint_of_keras_is_left_out_with_a_note() {
    let dir = Dir::new();
    with_golden(&dir, "keras");
    let ran = dir.run("checkpoint convert keras out.safetensors --to safetensors");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stdout, "out.safetensors: 9 tensors, 106 B as safetensors\n");
    assert_eq!(
        ran.stderr,
        "forebay: left out the object graph of tf.train.Checkpoint, which describes Python objects: all variables are kept \
         under their names in the checkpoint\n"
    );
    let bytes = dir.read("out.safetensors");
    let n = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + n]).unwrap();
    for (name, dtype, shape, values) in [
        ("model/bias", "BF16", "[2]", &[0xc0, 0x3f, 0x10, 0xc0][..]),
        ("model/count", "I64", "[]", &(-7_i64).to_le_bytes()),
        ("model/mask", "BOOL", "[2]", &[1, 0]),
        ("optimizer/_iterations", "I64", "[]", &3_i64.to_le_bytes()),
        ("optimizer/_variables/2", "F32", "[2,3]", &0.125_f32.to_le_bytes().repeat(6)),
        ("save_counter", "I64", "[]", &1_i64.to_le_bytes()),
    ] {
        let entry = &header[format!("{name}/.ATTRIBUTES/VARIABLE_VALUE")];
        assert_eq!((entry["dtype"].as_str(), entry["shape"].to_string()), (Some(dtype), shape.to_owned()), "{name}");
        let at = |i: usize| 8 + n + entry["data_offsets"][i].as_u64().unwrap() as usize;
        assert_eq!(&bytes[at(0)..at(1)], values, "{name}");
    }
}

#[test]
fn tensors_of_strings_are_left_out_only_when_that_is_asked_for() {
    let dir = Dir::new();
    with_strings(&dir);
    let line = "checkpoint convert strings out.safetensors --to safetensors";
    let ran = dir.missed(line);
    assert!(ran.stderr.contains(" of strings (") && ran.stderr.contains("--drop-strings"), "{ran:?}");
    assert!(ran.stdout.is_empty() && !dir.path("out.safetensors").exists(), "{ran:?}");
    let ran = dir.run(&format!("{line} --drop-strings"));
    assert!(ran.code == Some(0) && ran.stderr.starts_with("forebay: left out "), "{ran:?}");
    assert!(dir.path("out.safetensors").exists());
}

#[test]
fn the_exit_status_of_every_command_is_met_missed_or_could_not_run() {
    let dir = Dir::new();
    with_strings(&dir);
    for folder in ["slow", "fast", "bad"] {
        save(&dir, folder, "safetensors", &[20]);
    }
    dir.edit(&format!("{}/model.safetensors", named_step("bad", 20)), |bytes| bytes[9000] ^= 1);
    fs::create_dir(dir.path("empty")).unwrap();
    for (line, code) in [
        ("bench slow --size 1MB --saves 1 --no-ceiling", 0),
        ("bench strings.index/new", 2),
        ("ls slow", 0),
        ("ls bad", 0),
        ("ls missing", 2),
        ("verify slow", 0),
        ("verify bad", 1),
        ("verify missing", 2),
        ("drain slow --burst-dir fast", 0),
        ("drain empty --burst-dir bad", 1),
        ("drain slow --burst-dir missing", 2),
        ("prune slow", 0),
        ("prune missing", 2),
        ("restore slow --to a.safetensors", 0),
        ("restore bad --to b.safetensors", 1),
        ("restore slow --to a.safetensors", 2),
        ("convert a.safetensors a --to tensorflow", 0),
        ("convert strings b.safetensors --to safetensors", 1),
        ("convert missing b.safetensors --to safetensors", 2),
    ] {
        let ran = dir.run(&format!("checkpoint {line}"));
        assert_eq!(ran.code, Some(code), "{line}: {ran:?}");
    }
}
