//! `forebay doctor`: what this machine allows, without a trace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use forebay_testing::{Reason, not_run};
use serde_json::Value;

use crate::dir::{Dir, Ran};
use crate::disk::with_mount;
use crate::process::is_root;

fn check<'a>(found: &'a Value, name: &str) -> &'a Value {
    let checks = found["checks"].as_array().unwrap();
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {found}"))
}

/// Every line fits, every obstacle has its price and its remedy.
fn assert_whole(text: &str, found: &Value) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(found["schema"], "forebay-doctor/1");
    for check in found["checks"].as_array().unwrap() {
        let is_ok = check["state"] == "ok";
        assert!(["ok", "limited", "missing"].contains(&check["state"].as_str().unwrap()), "{check}");
        assert_eq!((check["costs"].is_null(), check["hint"].is_null()), (is_ok, is_ok), "{check}");
        assert!(text.contains(check["name"].as_str().unwrap()) && check["found"] != "", "{check}");
    }
}

#[test]
fn it_says_what_a_folder_on_a_disk_allows_and_leaves_nothing() {
    let dir = Dir::new();
    let text = dir.met("doctor");
    let found: Value = serde_json::from_str(&dir.met("doctor . --json -")).unwrap();
    assert_whole(&text, &found);
    let said = dir.met("doctor --json found.json");
    assert!(said.lines().last().unwrap().ends_with(" missing"), "{said}");
    assert_eq!(dir.json("found.json")["checks"].as_array().unwrap().len(), found["checks"].as_array().unwrap().len());
    dir.write("notes", "of years");
    assert!(dir.refused("doctor --json notes").contains("--force"));
    dir.met("doctor --json notes --force");
    let names: Vec<_> = fs::read_dir(dir.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let features = [("MPI", cfg!(feature = "mpi")), ("HDF5", cfg!(feature = "hdf5"))];
    for (name, is_on) in features {
        assert_eq!(check(&found, name)["found"].as_str().unwrap().starts_with("built in"), is_on);
    }
    assert_eq!(dir.refused("doctor gone"), "forebay: gone: no such file or folder\n");
}

#[test]
fn a_file_is_only_read_and_not_written_over() {
    let dir = Dir::new();
    dir.write("file", "text");
    let found: Value = serde_json::from_str(&dir.met("doctor file --json -")).unwrap();
    let cold = check(&found, "cold files");
    assert_eq!(
        (&cold["state"], &cold["found"]),
        (&"limited".into(), &"not tested: PATH is a file, which is only read".into())
    );
    assert!(dir.refused("doctor file --json file --force").contains("it is the input file"));
    assert_eq!(dir.names("."), ["file"]);
}

#[test]
fn memory_is_no_disk_and_a_mount_that_is_read_only_is_read() {
    let dir = Dir::new();
    let script = "$forebay doctor small; echo x > small/file
        mount -o remount,ro small; $forebay doctor small; echo status $?";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs none small", script) else { return };
    assert_eq!(ran.stderr, "");
    let [in_memory, read_only] = ran.stdout.split("checking small").skip(1).collect::<Vec<_>>()[..] else {
        panic!("{}", ran.stdout)
    };
    assert!(in_memory.contains("free, in memory"), "{in_memory}");
    assert!(
        in_memory.contains("256.0 KiB of 256.0 KiB stayed in memory") || in_memory.contains("262.1 KB of 262.1 KB"),
        "{in_memory}"
    );
    assert!(read_only.contains("mounted") && read_only.contains("limited  cold files"), "{read_only}");
    assert!(read_only.ends_with("status 0\n"), "{read_only}");
}

#[test]
fn somebody_without_rights_learns_what_they_lack() {
    if is_root() && Command::new("setpriv").arg("--version").output().is_err() {
        return not_run(Reason::NoProgram, "setpriv");
    }
    // The target folder may be closed to others.
    let dir = tempfile::tempdir().unwrap();
    let set = |path: &std::path::Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let binary = dir.path().join("forebay");
    fs::copy(env!("CARGO_BIN_EXE_forebay"), &binary).unwrap();
    for (name, mode) in [("open", 0o777), ("closed", 0o700), ("others", 0o755)] {
        fs::create_dir(dir.path().join(name)).unwrap();
        set(&dir.path().join(name), mode);
    }
    [dir.path(), &binary].iter().for_each(|path| set(path, 0o755));
    let doctor = |path: &str| -> Ran {
        let mut command = Command::new(if is_root() { "setpriv" } else { "env" });
        if is_root() {
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        command.arg(&binary).args(["doctor", path, "--json", "-"]).env_remove("HOME").current_dir(dir.path());
        command.output().unwrap().into()
    };
    for (path, state, why) in
        [("open", "", ""), ("closed", "limited", "Permission denied"), ("others", "limited", "denied")]
    {
        if path == "others" && !is_root() {
            continue;
        }
        let ran = doctor(path);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{path}");
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(check(&found, "mounting")["found"], "only root can mount a loop device");
        assert_eq!(check(&found, "whole page cache")["state"], "limited");
        if is_root() && path != "open" {
            let cold = check(&found, "cold files");
            assert_eq!(cold["state"], state, "{path}: {cold}");
            let said = cold["found"].as_str().unwrap().to_lowercase();
            assert!(said.contains(&why.to_lowercase()), "{path}: {cold}");
        }
        assert_eq!(fs::read_dir(dir.path().join(path)).map_or(0, Iterator::count), 0, "{path}");
    }
}
