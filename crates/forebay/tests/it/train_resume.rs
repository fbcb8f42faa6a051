//! `forebay train --resume`: the same losses as without a break, however the run before it ended.

use crate::dir::Dir;
use crate::process::Running;
use crate::train::{SMALL, cell_of, losses};
use crate::train_checkpoint::{names, step};

/// Steps through the end of an epoch, judged after each, with batches made far ahead.
fn line(model: &str) -> String {
    format!("set --model {model} --batch 4 --threads 2 --baseline 0 --prefetch 3 --validate=0.25")
}

#[test]
fn a_run_that_goes_on_has_the_losses_of_one_that_never_stopped() {
    let dir = Dir::with_set();
    for model in ["alexnet-small", "resnet-small"] {
        let line = line(model);
        let whole = cell_of(&dir, &format!("{line} --steps 9"));
        assert_eq!(whole["steps_per_epoch"], 4);
        for (n, flags) in [
            "",
            "--checkpoint-format tensorflow",
            "--burst-dir FAST",
            "--checkpoint-mode async --checkpoint-format tensorflow",
            "--burst-dir FAST --checkpoint-mode async",
        ]
        .into_iter()
        .enumerate()
        {
            let flags = flags.replace("FAST", &format!("{model}-fast-{n}"));
            let flags = format!("--checkpoint-every 3 --checkpoint-dir {model}-{n} {flags}");
            let first = cell_of(&dir, &format!("{line} --steps 7 {flags}"));
            let rest = cell_of(&dir, &format!("{line} --steps 9 {flags} --resume"));
            assert_eq!((&first["resumed_from"], &rest["resumed_from"]), (&serde_json::Value::Null, &6.into()));
            assert_eq!(losses(&first), losses(&whole)[..7], "{flags}");
            assert_eq!(losses(&rest), losses(&whole)[6..], "{flags}");
            let judged = |cell: &serde_json::Value, epoch: usize| cell["epochs"][epoch]["validation"]["loss"].clone();
            assert_eq!(judged(&rest, 0), judged(&whole, 1), "the epoch that was begun is judged at its end");
            assert!(judged(&rest, 0).is_number());
        }
    }
}

#[test]
fn a_run_that_was_killed_goes_on_from_its_newest_checkpoint() {
    let dir = Dir::with_set();
    let saves = "--checkpoint-every 1 --checkpoint-dir slow --burst-dir fast --checkpoint-tier hdd";
    let mut running = Running::start(&dir, &format!("train {} --steps 1000000 {saves}", line("resnet-small")));
    running.wait_until("some checkpoints", |_| names(&dir, "fast").iter().any(|name| *name >= step(4)));
    running.signal(libc::SIGKILL);
    running.finish();
    let newest = names(&dir, "fast").pop().unwrap();
    let at: usize = newest.strip_prefix("step-").unwrap().parse().unwrap();
    let n_steps = at + 10;
    let whole = losses(&cell_of(&dir, &format!("{} --steps {n_steps}", line("resnet-small"))));
    let ran = dir.run(&format!("train {} --steps {n_steps} {saves} --resume --json record.json", line("resnet-small")));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("resumed after step {at} from fast/{newest}\n")), "{}", ran.stderr);
    assert_eq!(losses(&dir.json("record.json")["cells"][0]), whole[at..]);
    assert_eq!(names(&dir, "slow").last(), Some(&step(n_steps as u64)), "all is drained at the end");
}

#[test]
fn a_signal_saves_the_step_it_comes_in_and_leaves_the_drain_to_the_next_start() {
    let dir = Dir::with_set();
    for (n, mode) in ["direct", "burst", "async"].into_iter().enumerate() {
        let burst = if mode == "direct" { String::new() } else { format!("--burst-dir fast-{n} --drain-rate 1KB") };
        let flags =
            format!("{SMALL} --checkpoint-every 1000000 --checkpoint-dir slow-{n} {burst} --checkpoint-mode {mode}");
        let mut running = Running::start(&dir, &format!("train {flags} --steps 1000000 --json record.json"));
        let bytes: usize = dir.images("set").values().map(Vec::len).sum();
        running.wait_until("several epochs", |running| running.bytes_read() > 4 * bytes as u64);
        running.signal(libc::SIGTERM);
        let ran = running.finish();
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let made = dir.json("record.json")["cells"][0]["n_steps"].as_u64().unwrap();
        assert!(made > 0 && ran.stderr.contains(&format!("the state after step {made} is saved")), "{}", ran.stderr);
        let fast = if mode == "direct" { format!("slow-{n}") } else { format!("fast-{n}") };
        assert_eq!(names(&dir, &fast), [step(made)]);
        if mode != "direct" {
            assert!(ran.stderr.contains("1 checkpoint still to be drained to slow-"), "{}", ran.stderr);
            assert!(names(&dir, &format!("slow-{n}")).is_empty(), "{}", ran.stderr);
        }
        let flags = flags.replace("--drain-rate 1KB", "").replace("every 1000000", "every 1");
        let rest = cell_of(&dir, &format!("{flags} --resume --steps {}", made + 1));
        assert_eq!((&rest["resumed_from"], &rest["n_steps"]), (&made.into(), &1.into()));
        assert_eq!(names(&dir, &format!("slow-{n}")), [made, made + 1].map(step));
    }
}

#[test]
fn a_damaged_checkpoint_is_passed_over_and_named() {
    let dir = Dir::with_set();
    let saves = format!("{SMALL} --checkpoint-every 2 --checkpoint-dir ck");
    let whole = losses(&cell_of(&dir, &format!("{SMALL} --steps 6")));
    cell_of(&dir, &format!("{saves} --steps 4"));
    dir.edit(&format!("ck/{}/model.safetensors", step(4)), |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
    });
    let ran = dir.run(&format!("train {saves} --steps 6 --resume --json record.json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let passed = format!("passed over ck/{}: model.safetensors: checksum mismatch at offset ", step(4));
    assert!(lines[0].starts_with(&passed), "{lines:?}");
    assert_eq!(lines[1], format!("resumed after step 2 from ck/{}", step(2)));
    assert_eq!(losses(&dir.json("record.json")["cells"][0]), whole[2..]);
}

#[test]
fn a_checkpoint_of_another_run_is_refused_with_what_differs() {
    let dir = Dir::with_set();
    dir.met("data make caltech101 other --count 24 --median-size 4KB --seed 5");
    let saves = "--threads 1 --baseline 0 --checkpoint-every 2 --checkpoint-dir ck";
    cell_of(&dir, &format!("set --model resnet-small --batch 4 --steps 2 {saves}"));
    let before = dir.tree("ck");
    for (flags, wanted) in [
        ("set --model resnet-small --batch 4 --seed 9", "seed was 0, now 9"),
        ("set --model resnet-small --batch 2", "batch was 4, now 2"),
        ("set --model alexnet-small --batch 4", "model was resnet-small, now alexnet-small"),
        ("set --model resnet-small --batch 4 --classes 30", "it had 22 classes, now 30"),
        ("set --model resnet-small --batch 4 --optimizer sgd", "optimizer was adam, now sgd"),
        ("set --model resnet-small --batch 4 --validate", "0 samples were held out, now 2"),
        ("other --model resnet-small --batch 4 --classes 22", "the file sizes of the samples changed"),
    ] {
        let said = dir.refused(&format!("train {flags} --epochs 2 {saves} --resume"));
        let told = format!("forebay: ck/{} belongs to another run: {wanted}\nhint: ", step(2));
        assert!(said.starts_with(&told), "{flags}\n{said}");
    }
    assert_eq!(dir.tree("ck"), before);
    let ran = dir.run(&format!("train set --model resnet-small --batch 4 --steps 3 --lr 0.5 {saves} --resume"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the learning rate changes from 0.0001 to 0.5"), "{}", ran.stderr);
}

#[test]
fn data_that_was_moved_is_the_same_and_with_an_image_of_another_size_it_is_not() {
    let dir = Dir::with_set();
    let rest =
        "--model resnet-small --batch 4 --threads 1 --baseline 0 --checkpoint-every 1 --checkpoint-dir ck --resume";
    cell_of(&dir, &format!("set {rest} --steps 1"));
    let absolute = dir.path("set").canonicalize().unwrap();
    let by_path = cell_of(&dir, &format!("{} {rest} --steps 2", absolute.display()));
    assert_eq!(by_path["resumed_from"], 1);
    std::fs::rename(dir.path("set"), dir.path("moved")).unwrap();
    assert_eq!(cell_of(&dir, &format!("./moved/ {rest} --steps 3"))["resumed_from"], 2);
    let image = dir.images("moved").into_keys().next().unwrap();
    dir.edit(&format!("moved/{image}"), |bytes| bytes.push(0));
    let said = dir.refused(&format!("train moved {rest} --steps 4"));
    assert!(said.contains("belongs to another run: the file sizes of the samples changed\n"), "{said}");
}

#[test]
fn without_a_checkpoint_a_run_begins_anew_and_with_the_last_one_nothing_is_left() {
    let dir = Dir::with_set();
    let line = format!("train {SMALL} --steps 4 --checkpoint-every 2 --checkpoint-dir ck --resume");
    let ran = dir.run(&line);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "no checkpoint in ck: training starts from scratch\n"));
    let ran = dir.run(&line);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("nothing left to do: the checkpoint is of step 4, and 4 were requested\n"));
    assert_eq!(names(&dir, "ck"), [2, 4].map(step));
}
