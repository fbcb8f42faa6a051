//! What stands in the way of a probe is said before it begins, with what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran};
use crate::disk::with_mount;
use crate::probe::left_overs;
use crate::process::is_root;

#[test]
fn a_target_that_is_no_folder_is_named() {
    let dir = Dir::new();
    let said = "forebay: gone: no such folder; create it, or name another\n";
    assert_eq!(dir.refused("probe gone"), said);
    assert_eq!(dir.refused("probe gone --like set --dry-run"), said, "before the data is looked at");
    let said = "forebay: /dev/null: neither a folder nor a regular file; name a folder on the disk to be measured\n";
    assert_eq!(dir.refused("probe /dev/null"), said);
    let said = "forebay: /proc: nothing can be created there; name another folder\n";
    assert_eq!(dir.refused("probe /proc --size 1MiB"), said);
    dir.write("small", [0; 8192]);
    let said = dir.refused("probe small");
    assert!(said.ends_with("; give a smaller --block or --mix, or a larger file\n"), "{said}");
}

#[test]
fn numbers_and_flags_without_sense_are_refused() {
    let dir = Dir::with_set();
    for (flags, wanted) in [
        ("--runs 1", "1 is not in 2..=1000000"),
        ("--depth 0", "give a whole number from 1 to 1,024"),
        ("--depth 1,x", "\"x\": give a whole number from 1 to 1,024"),
        ("--mode sideways", "give sequential, random or files"),
        ("--engine mmap", "give sync, direct or uring"),
        ("--mix 4K/50", "the percentages sum to 50, not 100"),
        ("--size many", "does not start with a number"),
        ("--save a/b", "a name is up to 100 letters"),
        ("--save .hidden", "a name is up to 100 letters"),
        ("--tier tape", "\"tape\" is not one of hdd, ssd, optane, lustre, s3"),
        ("--block 0", "give a size from 1 B to 1.07 GB"),
        ("--block 2GiB", "give a size from 1 B to 1.07 GB"),
    ] {
        let said = dir.refused(&format!("probe . {flags}"));
        assert!(said.starts_with("error: ") && said.contains(wanted), "{flags}\n{said}");
    }
    for (flags, said) in [
        ("--block 100KB", "--block: 100000 is not a multiple of 512 bytes; use a binary unit, such as 128KiB"),
        ("--size 64KiB", "a file of 65.5 KB is too small for a request of 1.0 MB; give a larger --size"),
        (
            "--tier hdd --engine uring",
            "--tier is emulated in the reading threads, which io_uring bypasses; use --engine sync or direct",
        ),
        (
            "--sequential --mix 4K",
            "--mix sets the sizes of random requests and of files; sequential requests use --block",
        ),
        (
            "--sequential --like set",
            "--like sets the sizes of random requests and of files; sequential requests use --block",
        ),
        ("--mix 4K --like set", "--mix and --like both set the sizes; omit one"),
        ("--random --mix 4K --block 4KiB", "--mix and --block both set the sizes; omit one"),
        ("--files --block 2MB --size 1MB", "no file fits into 1.0 MB; give a larger --size"),
        ("--like gone", "listing gone: no such file or folder"),
    ] {
        assert_eq!(dir.refused(&format!("probe . {flags} --dry-run")), format!("forebay: {said}\n"), "{flags}");
    }
    let said = dir.refused("probe . --json no/record.json");
    assert_eq!(said, "forebay: cannot write no/record.json: No such file or directory (os error 2)\n");
    assert_eq!(left_overs(&dir), [] as [&str; 0]);
}

#[test]
fn buffers_that_do_not_fit_into_memory_are_refused() {
    let dir = Dir::new();
    let said = dir.refused("probe . --size 1GiB --block 1GiB --depth 1024");
    let wanted = [
        "forebay: the buffers need 1.10 TB of memory, but only ",
        " are available; give a smaller --block, --depth or --mix\n",
    ];
    assert!(said.starts_with(wanted[0]) && said.ends_with(wanted[1]), "{said}");
}

#[test]
fn too_little_space_is_said_with_both_numbers() {
    let dir = Dir::new();
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=1m none small", "$forebay probe small; echo status $?")
    else {
        return;
    };
    let said =
        "forebay: small: the probe needs 5.37 GB, but only 1.0 MB are free; give a smaller --size, or another folder\n";
    assert_eq!((ran.stderr.as_str(), ran.stdout.as_str()), (said, "status 2\n"));
}

#[test]
fn memory_is_no_disk_and_its_cells_are_warm() {
    let dir = Dir::new();
    let script =
        "$forebay probe small --size 4MiB --depth 1 --runs 2 --engine sync --json record.json --save ram; ls -A small";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=16m none small", script) else { return };
    let remark =
        "small is on tmpfs, which is memory, not a disk: its reads are marked warm and are not a disk's ceiling";
    let last = "forebay: ram cannot be used as a ceiling: no undisturbed cell is proven cold";
    assert_eq!(ran.stderr, format!("forebay: {remark}\nforebay: saved as the ceiling ram\n{last}\n"));
    assert!(
        ran.stdout.contains(&format!("\nnote: {remark}\nnote: cells marked warm or mixed are not a ceiling")),
        "{}",
        ran.stdout
    );
    let record = dir.json("record.json");
    for cell in record["cells"].as_array().unwrap() {
        assert_eq!(cell["medium"]["cache"], "warm", "{cell}");
    }
}

#[test]
fn a_read_only_disk_is_named_and_a_file_on_it_can_be_read() {
    let dir = Dir::new();
    let mount = "mount -t tmpfs -o size=16m none small && head -c 4194304 /dev/urandom > small/big && mount -o remount,ro small";
    let script =
        "$forebay probe small; echo status $?; $forebay probe small/big --depth 1 --runs 2 > table; echo status $?";
    let Some(ran) = with_mount(&dir, mount, script) else { return };
    let said = "forebay: small: the file system is mounted read-only; name a folder on another, or a large file to \
                measure its reads alone\n";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    assert_eq!(ran.stdout, "status 2\nstatus 0\n", "{}", ran.stderr);
}

#[test]
fn a_file_system_without_direct_reads_is_measured_through_the_cache_and_says_so() {
    let dir = Dir::new();
    let script = "$forebay probe small --engine direct --size 4MiB; echo status $?
        $forebay probe small --size 4MiB --depth 1 --runs 2 --json record.json > table; echo status $?; ls -A small";
    let Some(ran) = with_mount(&dir, "mount -t ramfs none small", script) else { return };
    assert_eq!(ran.stdout, "status 2\nstatus 0\n", "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let refused = "forebay: small: this file system does not support direct I/O (Invalid argument (os error 22)); use --engine sync";
    assert_eq!(lines[0], refused);
    let fallen = "forebay: this file system does not support direct I/O (Invalid argument (os error 22)): measured with --engine sync";
    assert_eq!(lines[2], fallen, "after the remark that it is memory: {}", ran.stderr);
    assert_eq!(dir.json("record.json")["cells"][0]["engine"], "sync");
}

#[test]
fn a_folder_one_may_not_write_to_is_named() {
    let dir = Dir::new();
    if !is_root() {
        fs::create_dir(dir.path("closed")).unwrap();
        fs::set_permissions(dir.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
        return assert_denied(&dir.run("probe closed --size 1MiB --runs 2"));
    }
    fs::create_dir(dir.path("closed")).unwrap();
    fs::set_permissions(dir.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let nobody = 65_534;
    match dir.command("probe closed --size 1MiB --runs 2").uid(nobody).gid(nobody).output() {
        Ok(output) => assert_denied(&output.into()),
        Err(error) => not_run(Reason::NoOtherUser, error),
    }
}

fn assert_denied(ran: &Ran) {
    let said = "forebay: closed: permission denied; name a folder you may write to, or a large file to measure its reads alone\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), said));
}

#[test]
fn a_kernel_that_forbids_io_uring_is_said() {
    let dir = Dir::new();
    let mut command = dir.command("probe . --engine uring --size 1MiB --runs 2");
    // SAFETY: between fork and exec the closure makes two system calls and touches nothing but its own stack.
    let output = unsafe { command.pre_exec(forbid_io_uring) }.output().unwrap();
    let ran: Ran = output.into();
    let said =
        "forebay: io_uring cannot be used here (Operation not permitted (os error 1)); use --engine direct or sync\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), said));
    assert_eq!(left_overs(&dir), [] as [&str; 0]);
}

/// Has the kernel answer `io_uring_setup` with EPERM in this process, as containers do.
fn forbid_io_uring() -> std::io::Result<()> {
    let op = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut program = [
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_io_uring_setup as u32, 0, 1),
        op(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32, 0, 0),
        op(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program lives through the calls, which copy it.
    let codes = unsafe {
        (
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter),
        )
    };
    if codes == (0, 0) { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
