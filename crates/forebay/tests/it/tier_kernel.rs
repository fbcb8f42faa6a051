//! Tiers that the kernel throttles: what is mounted, how fast it is, and that nothing stays. They need root and loop devices.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use forebay_testing::{Reason, not_run};

use crate::dir::{Dir, Ran};
use crate::process::is_root;
use crate::record::{number, of};

/// A folder whose tiers go with it, whatever became of the test.
struct Tiers(Dir);

impl Deref for Tiers {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        &self.0
    }
}

impl Drop for Tiers {
    fn drop(&mut self) {
        let _ = self.0.command("tier down").output();
    }
}

impl Tiers {
    /// `None` where there can be no kernel tiers.
    fn new() -> Option<Self> {
        if is_root() && fs::exists("/dev/loop-control").unwrap() {
            return Some(Self(Dir::new()));
        }
        not_run(Reason::NoKernelTier, "no root, or no /dev/loop-control");
        None
    }

    /// Runs the binary, which must meet what was asked and say no more than whom its limits do not reach.
    fn met(&self, line: &str) -> String {
        let ran = self.run(line);
        let is_expected = |line: &str| line.contains("because cgroup v1 limits are not inherited; ");
        assert!(ran.code == Some(0) && ran.stderr.lines().all(is_expected), "{line}\n{ran:?}");
        ran.stdout
    }

    fn data(&self, name: &str) -> String {
        self.path(format!(".home/tiers/{name}/data")).canonicalize().unwrap().display().to_string()
    }

    /// Lines of the mount table and backing files of loop devices that lie in this folder.
    fn traces(&self) -> Vec<String> {
        let root = self.path("").canonicalize().unwrap().display().to_string();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut found: Vec<String> = mounts.lines().filter(|line| line.contains(&root)).map(str::to_owned).collect();
        for block in fs::read_dir("/sys/block").unwrap().flatten() {
            let backing = fs::read_to_string(block.path().join("loop/backing_file")).unwrap_or_default();
            found.extend(backing.contains(&root).then_some(backing));
        }
        found
    }
}

/// The lines of the root group's throttle for reads that set this many bytes a second.
fn limits(bytes_per_s: u64) -> Vec<String> {
    let path = "/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device";
    let Ok(text) = fs::read_to_string(path) else { return Vec::new() };
    text.lines().filter(|line| line.ends_with(&format!(" {bytes_per_s}"))).map(str::to_owned).collect()
}

#[test]
fn a_kernel_tier_comes_is_listed_and_goes_without_a_trace() {
    let Some(dir) = Tiers::new() else { return };
    let said = dir.met("tier up mine --read 71234567B/s --write 50MB/s --iops 5000 --size 64MiB");
    let data = dir.data("mine");
    assert!(said.starts_with(&format!("mine: up: {data}\n  ext4 of 67.1 MB on /dev/loop")), "{said}");
    assert!(said.ends_with(", limited by the kernel to 71.2 MB/s read, 50.0 MB/s write, 5,000 requests/s\n"), "{said}");
    assert_eq!(dir.traces().len(), 2, "a mount and a loop device");
    dir.write(".home/tiers/mine/data/file", vec![7; 1 << 20]);
    let listed = dir.met("tier list");
    assert!(listed.contains("mine  kernel  up "), "{listed}");
    assert!(listed.contains("71.2        50.0       5,000\n") && listed.contains(&data), "{listed}");
    assert!(dir.met("tier up mine --size 64MiB").starts_with("mine: already up, unchanged: "));
    let said = dir.refused("tier up mine --size 128MiB");
    assert!(
        said.contains(
            "mine already exists with image size 64 MiB; requested 128 MiB\nhint: run `forebay tier down mine`"
        ),
        "{said}"
    );
    assert!(dir.met("tier up mine --read 71234568B/s").starts_with("mine: limits changed: "));
    assert_eq!(dir.read(".home/tiers/mine/data/file").len(), 1 << 20);
    let said = dir.met("tier down");
    assert!(
        said.starts_with("mine: removed ") && said.contains(" with an image of 67.1 MB, 1.1 MB of data\n"),
        "{said}"
    );
    assert_eq!((dir.traces(), limits(71_234_567), limits(71_234_568)), (vec![], vec![], vec![]));
    assert!(!dir.path(".home/tiers").exists());
}

#[test]
fn the_image_may_be_elsewhere_and_have_another_file_system() {
    let Some(dir) = Tiers::new() else { return };
    fs::create_dir(dir.path("disk")).unwrap();
    let ran = dir.run("tier up ssd --fs xfs --size 300MiB --dir disk");
    if ran.stderr.contains("mkfs.xfs is not installed\nhint: install the package xfsprogs") {
        return not_run(Reason::NoXfs, ran.stderr);
    }
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let mounts = dir.traces().join("\n");
    assert!(mounts.contains("disk/ssd/data xfs "), "{mounts}");
    assert!(dir.path("disk/ssd/disk.img").is_file() && !dir.path(".home/tiers/ssd/disk.img").exists());
    dir.met("tier down ssd");
    assert_eq!((dir.traces(), dir.names("disk")), (vec![], vec![]));
}

#[test]
fn reads_and_writes_keep_to_the_limits() {
    const MB: usize = 1_000_000;
    let Some(dir) = Tiers::new() else { return };
    dir.met("tier up slow --read 16MB/s --write 8MB/s --size 64MiB");
    let path = dir.path(".home/tiers/slow/data/file");
    let bytes = vec![1; 16 * MB];
    let start = Instant::now();
    let mut file = File::create(&path).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync_all().unwrap();
    let wrote_s = start.elapsed().as_secs_f64();
    // SAFETY: plain integers and a descriptor that is open.
    let evicted =
        unsafe { libc::posix_fadvise(std::os::fd::AsRawFd::as_raw_fd(&file), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(evicted, 0);
    let start = Instant::now();
    let mut read = Vec::new();
    OpenOptions::new().read(true).open(&path).unwrap().read_to_end(&mut read).unwrap();
    let read_s = start.elapsed().as_secs_f64();
    assert_eq!(read.len(), bytes.len());
    // 2 s and 1 s; a busy machine may be slower, and nothing may be much faster.
    assert!((1.8..60.0).contains(&wrote_s), "16 MB written in {wrote_s} s at 8 MB/s");
    assert!((0.9..60.0).contains(&read_s), "16 MB read in {read_s} s at 16 MB/s");
}

#[test]
fn killed_at_any_moment_up_leaves_nothing_that_down_does_not_find() {
    let Some(dir) = Tiers::new() else { return };
    let stage = || -> Option<String> {
        let state = fs::read_to_string(dir.path(".home/tiers/hdd/tier.json")).ok()?;
        serde_json::from_str::<serde_json::Value>(&state).ok()?["stage"].as_str().map(str::to_owned)
    };
    let stages = ["folders", "image", "format", "loop", "mount", "throttle", "up"];
    for wanted in 0..stages.len() {
        let up = "tier up hdd --read 72345678B/s --size 256MiB";
        let mut child = dir.command(up).stdout(Stdio::null()).spawn().unwrap();
        let is_there = || stage().is_some_and(|now| stages.iter().position(|known| *known == now) >= Some(wanted));
        while !is_there() && child.try_wait().unwrap().is_none() {}
        child.kill().unwrap();
        child.wait().unwrap();
        let ran = dir.run("tier down hdd");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", stages[wanted]);
        assert_eq!((dir.traces(), limits(72_345_678)), (vec![], vec![]), "{}", stages[wanted]);
        assert!(!dir.path(".home/tiers").exists(), "{}", stages[wanted]);
    }
}

#[test]
fn a_tier_that_somebody_works_on_stays_up_and_they_are_named() {
    let Some(dir) = Tiers::new() else { return };
    dir.met("tier up ssd --size 32MiB");
    let mut worker = Command::new("cat").current_dir(dir.data("ssd")).stdin(Stdio::piped()).spawn().unwrap();
    let ran = dir.run("tier down");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains(&format!("is in use by cat ({})\nhint: end these processes", worker.id())),
        "{}",
        ran.stderr
    );
    assert!(dir.met("tier list").contains("ssd   kernel  up "));
    drop(worker.stdin.take());
    worker.wait().unwrap();
    dir.met("tier down");
    assert_eq!(dir.traces(), Vec::<String>::new());
}

#[test]
fn ingest_says_that_the_kernel_limits_its_data() {
    let Some(dir) = Tiers::new() else { return };
    dir.met("tier up hdd --size 64MiB");
    dir.met("data make caltech101 .home/tiers/hdd/data/set --count 24 --median-size 4KB");
    let flags = ".home/tiers/hdd/data/set --threads 1 --read-only --repeats 1";
    let record = of(&dir, &format!("{flags} --cold"));
    let cell = &record["cells"][0];
    assert_eq!((&cell["medium"]["tier"], &cell["medium"]["kind"]), (&"hdd".into(), &"kernel".into()));
    assert_eq!((&cell["medium"]["cache"], number(cell, "ceiling_mb_per_s")), (&"cold".into(), 163.0));
    assert_eq!(cell["ceiling_of"], "the read limit of the tier hdd (163 MB/s)");
    assert!(record["notes"].to_string().contains("the data is on tier hdd: ext4 of 67.1 MB on /dev/loop"));
    let printed = dir.met(&format!("ingest {flags}"));
    assert!(printed.contains("Emulated devices: hdd is a loop device throttled by the kernel.\n"), "{printed}");
    assert!(!printed.contains("of ceiling"), "what comes from memory is not limited: {printed}");
    let probed = "probe .home/tiers/hdd/data --random --size 4MiB --depth 1 --runs 2 --save of-hdd";
    assert_eq!(dir.run(probed).stderr, "forebay: saved as the ceiling of-hdd\n");
    let both = of(&dir, &format!("{flags} --tier ssd"))["notes"].to_string();
    assert!(both.contains("both limits apply: --tier ssd is shaped in this process, on top of"), "{both}");
    let of = of(&dir, &format!("{flags} --cold"))["cells"][0]["ceiling_of"].clone();
    assert_eq!(of, "the random-read ceiling of of-hdd (direct, depth 1)", "once it is probed");
}

#[test]
fn a_tier_that_is_not_up_is_neither_measured_nor_robbed() {
    let Some(dir) = Tiers::new() else { return };
    dir.met("tier up hdd --size 64MiB");
    let data = dir.data("hdd");
    let listed = dir.met("tier list");
    let probe = format!("hdd: not measured; to measure it, run\n  forebay probe {data} --size 16MiB --save hdd\n");
    assert!(listed.contains(&probe), "{listed}");
    assert!(Command::new("umount").arg(&data).status().unwrap().success());
    dir.write(".home/tiers/hdd/data/photos/a.jpg", "mine");
    let wanted = "tier hdd, which is not up: down (unmounted by hand)\nhint: run `forebay tier up hdd` to bring it up, or \
    `forebay tier down hdd` to remove it\n";
    for line in ["probe .home/tiers/hdd/data", "ingest .home/tiers/hdd/data/photos"] {
        let said = dir.refused(line);
        assert!(said.ends_with(wanted), "{said}");
    }
    let listed = dir.met("tier list");
    assert!(listed.contains("\nhdd: down (unmounted by hand); run `forebay tier up hdd` to bring it up, "), "{listed}");
    assert!(!listed.contains("forebay probe"), "{listed}");
    let said = dir.refused("tier down hdd");
    assert!(said.contains("contains files that do not belong to the tier: photos\nhint: move them out of "), "{said}");
    assert_eq!(dir.read(".home/tiers/hdd/data/photos/a.jpg").len(), 4);
    fs::remove_dir_all(dir.path(".home/tiers/hdd/data/photos")).unwrap();
    dir.met("tier down hdd");
    assert_eq!(dir.traces(), Vec::<String>::new());
}

#[test]
fn of_tiers_in_each_other_the_inner_goes_first() {
    let Some(dir) = Tiers::new() else { return };
    dir.met("tier up hdd --size 128MiB");
    dir.met("tier up ssd --size 32MiB --dir .home/tiers/hdd/data");
    let said = dir.met("tier down");
    let order: Vec<&str> = said.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(order, ["ssd", "hdd"], "{said}");
    assert_eq!(dir.traces(), Vec::<String>::new());
}

#[test]
fn a_tier_made_through_sudo_belongs_to_the_caller() {
    let Some(dir) = Tiers::new() else { return };
    let ids = [("SUDO_UID", "65534"), ("SUDO_GID", "65533")];
    let ran: Ran = dir.command("tier up ssd --size 32MiB").envs(ids).output().unwrap().into();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let found = fs::metadata(dir.data("ssd")).unwrap();
    assert_eq!((found.uid(), found.gid()), (65534, 65533));
    assert_eq!(fs::read_dir(dir.data("ssd")).unwrap().count(), 0);
}

#[test]
fn what_cannot_be_made_says_what_to_do_and_leaves_nothing() {
    let Some(dir) = Tiers::new() else { return };
    let said = dir.refused("tier up hdd --size 4000TiB");
    assert!(
        said.contains(" free; the image needs ") && said.contains("\nhint: use a smaller --size, or a --dir on"),
        "{said}"
    );
    let said = dir.refused("tier up hdd --size 1MiB");
    assert!(said.ends_with("too small for ext4\nhint: use --size 16.8 MB or more\n"), "{said}");
    assert_eq!(dir.traces(), Vec::<String>::new());
    assert!(!dir.path(".home/tiers").exists());
}

/// Brings a tier up after a script in mounts of its own.
fn after(dir: &Dir, script: &str) -> Option<Ran> {
    run_after(dir, script, "tier up hdd --size 32MiB")
}

/// Runs the binary after a script in mounts of its own.
fn run_after(dir: &Dir, script: &str, line: &str) -> Option<Ran> {
    let line = format!("{script} || exit 99\nexec $forebay {line}");
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", &line])
        .current_dir(dir.path(""))
        .env("forebay", env!("CARGO_BIN_EXE_forebay"))
        .env("FOREBAY_HOME", dir.path(".home"))
        .output();
    match output {
        Ok(output) if output.status.code() != Some(99) => Some(output.into()),
        other => {
            not_run(Reason::NoMounts, format!("{script}: {other:?}"));
            None
        }
    }
}

#[test]
fn a_read_only_folder_takes_no_tier_and_keeps_none_from_going() {
    let Some(dir) = Tiers::new() else { return };
    fs::create_dir(dir.path("disk")).unwrap();
    let read_only = "mount -t tmpfs -o ro tmpfs disk";
    let Some(ran) = run_after(&dir, read_only, "tier up hdd --size 32MiB --dir disk") else { return };
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("cannot bring up hdd: writing to ") && ran.stderr.contains("Read-only"), "{ran:?}");
    assert!(!dir.path(".home/tiers").exists());
    // A tier of which nothing is left on a disk that has become read-only.
    dir.met("tier up ssd --shaped --dir disk");
    fs::remove_dir_all(dir.path("disk/ssd")).unwrap();
    let ran = run_after(&dir, read_only, "tier down ssd").unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!dir.path(".home/tiers").exists());
}

#[test]
fn a_container_that_hides_or_locks_the_control_groups_is_told_so() {
    let Some(dir) = Tiers::new() else { return };
    let groups = "/sys/fs/cgroup/blkio";
    if let Some(ran) = after(&dir, &format!("mount --bind {groups} {groups} && mount -o remount,bind,ro {groups}")) {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains("Read-only file system") && ran.stderr.contains("--shaped"), "{}", ran.stderr);
    }
    if let Some(ran) = after(&dir, &format!("umount {groups}")) {
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(
            ran.stderr.contains("found neither the blkio controller") && ran.stderr.contains("--shaped"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(dir.traces(), Vec::<String>::new());
    assert!(!dir.path(".home/tiers").exists());
}

/// A control group of version 1 that goes with the test.
struct Group(PathBuf);

impl Group {
    fn new() -> Option<Self> {
        let path = PathBuf::from(format!("/sys/fs/cgroup/blkio/forebay-test-{}", std::process::id()));
        match fs::create_dir(&path) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                not_run(Reason::NoCgroupV1, error);
                None
            }
        }
    }

    /// Runs the binary in this group.
    fn run(&self, dir: &Dir, line: &str) -> Ran {
        let script =
            format!("echo $$ > {}/cgroup.procs && exec {} {line}", self.0.display(), env!("CARGO_BIN_EXE_forebay"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(dir.path("")).env("FOREBAY_HOME", dir.path(".home"));
        command.output().unwrap().into()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_caller_in_another_control_group_is_told_when_the_limits_do_not_reach_it() {
    let Some(dir) = Tiers::new() else { return };
    let Some(group) = Group::new() else { return };
    dir.met("tier up hdd --size 64MiB");
    dir.met("data make caltech101 .home/tiers/hdd/data/set --count 8 --median-size 4KB");
    let ingest = "ingest .home/tiers/hdd/data/set --threads 1 --read-only --repeats 1 --cold";
    let ran = group.run(&dir, ingest);
    assert!(ran.stdout.contains("the limits of tier hdd do not apply to this process"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("of ceiling"), "{}", ran.stdout);
    assert!(group.run(&dir, "tier list").stdout.contains("do not apply to this shell's control group"));
    dir.met("tier down");
    let ran = group.run(&dir, "tier up hdd --size 64MiB");
    assert!(ran.stderr.contains("cgroup v1 limits are not inherited"), "{}", ran.stderr);
    let limits = || fs::read_to_string(group.0.join("blkio.throttle.write_bps_device")).unwrap();
    assert!(limits().ends_with(" 133000000\n"), "{}", limits());
    dir.met("data make caltech101 .home/tiers/hdd/data/set --count 8 --median-size 4KB");
    assert!(group.run(&dir, ingest).stdout.contains("Emulated devices: hdd is a loop device throttled by the kernel."));
    dir.met("tier down");
    assert_eq!(limits(), "");
}

#[test]
fn root_without_the_right_to_mount_gets_a_shaped_tier() {
    let Some(dir) = Tiers::new() else { return };
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-sys_admin", env!("CARGO_BIN_EXE_forebay"), "tier", "up", "hdd"]);
    let ran: Ran = match command.env("FOREBAY_HOME", dir.path(".home")).output() {
        Ok(output) => output.into(),
        Err(error) => return not_run(Reason::NoProgram, format!("setpriv: {error}")),
    };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("may not mount (no CAP_SYS_ADMIN)"), "{}", ran.stderr);
    assert!(ran.stdout.contains("shaped in process to 163.0 MB/s read"), "{}", ran.stdout);
}
