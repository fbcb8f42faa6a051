//! A full disk: the message names the file, what is finished stays, and a run with room goes on.

use std::process::Command;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran};
use crate::process::is_root;

/// Runs a script with `small` as a file system of a megabyte in memory, in mounts of its own.
fn with_small_disk(dir: &Dir, script: &str) -> Option<Ran> {
    with_mount(dir, "mount -t tmpfs -o size=1m none small", script)
}

/// Runs a script in mounts of its own, after mounting something on `small`. `None` where that cannot be done.
pub(crate) fn with_mount(dir: &Dir, mount: &str, script: &str) -> Option<Ran> {
    std::fs::create_dir(dir.path("small")).unwrap();
    let mount = format!("{mount} || exit 99");
    let output = Command::new("unshare")
        .args([if is_root() { "-m" } else { "-rm" }, "sh", "-c", &format!("{mount}\n{script}")])
        .env("forebay", env!("CARGO_BIN_EXE_forebay"))
        .env("FOREBAY_HOME", dir.path(".home"))
        .current_dir(dir.path(""))
        .output();
    match output {
        Ok(output) if output.status.success() => Some(output.into()),
        Ok(output) => {
            not_run(Reason::NoMounts, String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) => {
            not_run(Reason::NoMounts, format!("unshare: {error}"));
            None
        }
    }
}

#[test]
fn making_more_than_fits_names_the_file_and_goes_on_when_there_is_room() {
    let dir = Dir::new();
    let script = "make='data make caltech101 small/set --count 100'
        $forebay $make --threads 1; echo status $?
        $forebay data verify small/set; echo status $?
        mount -o remount,size=8m small
        $forebay $make; echo status $?
        $forebay data verify small/set; echo status $?";
    let Some(ran) = with_small_disk(&dir, script) else { return };
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let (first, rest) = ran.stderr.split_once('\n').unwrap();
    assert!(first.starts_with("forebay: writing small/set/") && first.ends_with(".jpg: no space left on the device"));
    assert_eq!((lines[0], rest), ("status 2", ""));
    assert!(lines[1].contains(" samples good, 0 bad; "), "what is there is whole: {}", lines[1]);
    assert!(lines[3].starts_with("small/set: 100 images, ") && lines[3].ends_with(" of them already there"));
    assert!(lines[5].starts_with("small/set: 100 samples good, 0 bad"), "{}", lines[5]);
    assert_eq!([lines[2], lines[4], lines[6]], ["status 0"; 3]);
}

#[test]
fn packing_more_than_fits_names_the_shard_and_goes_on_when_there_is_room() {
    let dir = Dir::with_set();
    let script = "pack='data pack set small/out --to tensor --shard-size 256KiB'
        $forebay $pack --threads 1; echo status $?
        $forebay data verify small/out; echo status $?
        mount -o remount,size=16m small
        $forebay $pack; echo status $?
        $forebay data verify small/out; echo status $?";
    let Some(ran) = with_small_disk(&dir, script) else { return };
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let (first, rest) = ran.stderr.split_once('\n').unwrap();
    assert!(first.starts_with("forebay: ") && first.ends_with(".fbt: no space left on the device"), "{first}");
    assert!(first.contains("small/out/set-"), "{first}");
    assert_eq!((lines[0], rest), ("status 2", ""));
    assert!(lines[1].contains(" samples good, 0 bad; "), "what is there is whole: {}", lines[1]);
    assert!(lines[3].starts_with("small/out: 24 samples in 24 tensor shards, "), "{}", lines[3]);
    assert!(lines[3].ends_with(" already there"), "{}", lines[3]);
    assert!(lines[5].starts_with("small/out: 24 samples good, 0 bad"), "{}", lines[5]);
    assert_eq!([lines[2], lines[4], lines[6]], ["status 0"; 3]);
}

#[test]
fn a_record_that_cannot_be_written_does_not_lose_the_table() {
    let dir = Dir::with_set();
    let ran = dir.run("ingest set --threads 1 --repeats 1 --warmups 0 --json /dev/full");
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr, "forebay: cannot write /dev/full: No space left on device (os error 28)\n");
    assert!(ran.stdout.contains("24 samples in 24 files") && ran.stdout.contains("images/s"), "{}", ran.stdout);
}

#[test]
fn a_full_stdout_is_an_error_that_says_so() {
    let dir = Dir::with_set();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = dir.command("data inspect set").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "forebay: cannot write to stdout: No space left on device (os error 28)\n");
}
