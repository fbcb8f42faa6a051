//! Probes under the limits of a process or a file system: the first real error ends them, and nothing stays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran, default_signals, unfolded};
use crate::disk::with_mount;
use crate::probe::left_overs;
use crate::process::is_root;

/// Runs a probe of 4 MiB in the test's folder after a line of shell, which sets a limit.
fn limited(dir: &Dir, limit: &str, flags: &str) -> Ran {
    let script = format!("{limit}; exec $forebay probe . --size 4MiB --runs 2 {flags}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).env("forebay", env!("CARGO_BIN_EXE_forebay"));
    command.env("FOREBAY_HOME", dir.path(".home")).current_dir(dir.path(""));
    default_signals(&mut command);
    command.output().unwrap().into()
}

#[test]
fn too_few_open_files_end_a_probe_with_the_limit_to_raise() {
    let dir = Dir::new();
    // Some of these leave a descriptor for the folder, some for a file in it, none for 32 readers.
    for limit in [8, 10, 12, 13, 14, 15, 16, 17, 18, 20, 30] {
        let ran = limited(&dir, &format!("ulimit -n {limit}"), "--depth 32");
        assert_eq!(ran.code, Some(2), "{limit}: {}", ran.stderr);
        assert!(ran.stderr.contains("Too many open files (os error 24)\n"), "{limit}: {}", ran.stderr);
        let hint = format!("hint: raise the limit on open files, now {limit}, with `ulimit -n`\n");
        assert!(ran.stderr.ends_with(&hint), "{}", ran.stderr);
        assert_eq!(left_overs(&dir), [] as [&str; 0], "{limit}");
    }
    let ran = limited(&dir, "ulimit -n 200", "--depth 32");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_not_the_end_of_the_process() {
    let dir = Dir::new();
    for blocks in [0, 100, 4096] {
        let ran = limited(&dir, &format!("ulimit -f {blocks}"), "--depth 1");
        assert_eq!(ran.code, Some(2), "{blocks}: {}", ran.stderr);
        let said = "File too large (os error 27)\nhint: raise the limit on file sizes with `ulimit -f`\n";
        assert!(ran.stderr.ends_with(said), "{blocks}: {}", ran.stderr);
        assert_eq!(left_overs(&dir), [] as [&str; 0], "{blocks}");
    }
}

#[test]
fn a_limit_on_memory_is_what_the_buffers_are_held_against() {
    let dir = Dir::new();
    let ran = limited(&dir, "ulimit -v 2000000", "--block 64KiB --depth 1024 --mix 4M");
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("forebay: the buffers need 4.30 GB of memory, but only "), "{}", ran.stderr);
    assert_eq!(left_overs(&dir), [] as [&str; 0]);
}

#[test]
fn a_umask_that_shuts_the_owner_out_is_named_and_one_folder_is_tried() {
    let dir = Dir::new();
    for path in [dir.path(""), dir.path("open")] {
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    for umask in ["0777", "0477", "0277"] {
        let script = format!("umask {umask}; exec $0 probe open --size 4MiB --runs 2 --depth 1");
        // Root may open what nobody may.
        let mut command = if is_root() { Command::new("setpriv") } else { Command::new("env") };
        if is_root() {
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        }
        let args = ["sh", "-c", &script, env!("CARGO_BIN_EXE_forebay")];
        let output = command.args(args).env("FOREBAY_HOME", dir.path("open/.home")).current_dir(dir.path("")).output();
        let ran = match output {
            Ok(output) if !matches!(output.status.code(), Some(126 | 127)) => Ran::from(output),
            other => return not_run(Reason::NoOtherUser, format!("{other:?}")),
        };
        assert_eq!(ran.code, Some(2), "{umask}: {}", ran.stderr);
        let said = ": just created, but not accessible; allow the owner access with `umask 077`\n";
        assert!(
            ran.stderr.starts_with("forebay: open/.forebay-probe-") && ran.stderr.ends_with(said),
            "{}",
            ran.stderr
        );
        let left = fs::read_dir(dir.path("open")).unwrap().count();
        assert_eq!(left, 0, "{umask}");
    }
}

#[test]
fn a_file_system_without_inodes_is_said_before_anything_is_made() {
    let dir = Dir::new();
    let script = "$forebay probe small --engine sync --size 4MiB --block 64K --runs 2 --depth 1 --files 2> said
        echo status $?; ls -A small";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=32m,nr_inodes=20 none small", script) else { return };
    assert_eq!(ran.stdout, "status 2\n");
    let said = unfolded(&String::from_utf8(dir.read("said")).unwrap());
    let wanted =
        "forebay: small: the probe creates 69 files and folders, but only 19 inodes are free; give another folder\n";
    assert_eq!(said, wanted);
}
