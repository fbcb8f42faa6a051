//! A folder that a command writes to need not be there: it is created, with those above it.

use crate::checkpoint::save;
use crate::dir::Dir;
use crate::workload;

#[test]
fn every_folder_that_is_written_to_is_created_with_those_above_it() {
    let dir = Dir::with_set();
    save(&dir, "fast", "safetensors", &[20]);
    dir.write("tiny.yaml", workload::TINY);
    dir.met("workload make tiny.yaml --data records");
    for (line, made) in [
        ("data make caltech101 NEW --count 2", ".forebay-dataset.json"),
        ("data pack set NEW --to tar", ""),
        ("data decode set --size 8 --to NEW/x.npy", "x.npy"),
        ("checkpoint bench NEW --burst-dir NEW-fast --size 1MB --saves 1 --no-ceiling", ""),
        ("checkpoint drain NEW --burst-dir fast", "step-000000000020"),
        ("checkpoint restore fast --to NEW/m.safetensors", "m.safetensors"),
        ("checkpoint restore fast --to NEW/m", "m.index"),
        ("checkpoint convert fast/step-000000000020/model.safetensors NEW/m --to tensorflow", "m.index"),
        ("man --out NEW", "forebay-checkpoint-bench.1"),
        (
            "train set --accelerator emulated:1ms --steps 1 --batch 4 --checkpoint-every 1 --checkpoint-size 1MB \
          --checkpoint-dir NEW --burst-dir NEW-fast",
            "step-000000000001",
        ),
        ("workload make tiny.yaml --data NEW", "train"),
        ("workload run tiny.yaml --data records --out NEW", "record.json"),
    ] {
        let ran = dir.run(&line.replace("NEW", "a/b/new"));
        assert_eq!(ran.code, Some(0), "{line}\n{}{}", ran.stdout, ran.stderr);
        assert!(dir.path("a/b/new").join(made).exists(), "{line}\n{}", ran.stdout);
        std::fs::remove_dir_all(dir.path("a")).unwrap();
    }
}

#[test]
fn what_is_refused_creates_no_folder() {
    let dir = Dir::new();
    save(&dir, "slow", "safetensors", &[20]);
    for (line, wanted) in [
        ("checkpoint bench new --mode burst", "give its folder with --burst-dir"),
        ("checkpoint bench new --burst-dir new/fast", "must not contain one another"),
        ("checkpoint bench slow/step-000000000020/new/er", "is inside the checkpoint"),
        ("checkpoint drain new --burst-dir missing", "missing: no such folder"),
        // An unmounted disk is not to be measured or filled in its mount point's place.
        ("probe new", "new: no such folder"),
        ("tier up hdd --shaped --dir new", "finding the folder new"),
    ] {
        let said = dir.refused(line);
        assert!(said.contains(wanted), "{line}: {said}");
        assert!(!dir.path("new").exists() && !dir.path("slow/step-000000000020/new").exists(), "{line}");
    }
    dir.write("file", "text");
    let said = dir.refused("checkpoint bench file/new");
    assert!(said.starts_with("forebay: cannot create the folder file/new: "), "{said}");
}
