//! Every flag of `forebay train` changes what is run.

use serde_json::Value;

use forebay_testing::{Reason, not_run};

use crate::dir::Dir;
use crate::process::{Running, more_threads_than_cores, once_in_ten};
use crate::record::number;
use crate::train::{SMALL, cell_of, losses, record_of};

const EMULATED: &str = "set --accelerator emulated:1ms --baseline 0";

#[test]
fn batch_steps_and_epochs_decide_how_much_is_trained() {
    let dir = Dir::with_set();
    let run = |flags: &str| {
        let cell = cell_of(&dir, &format!("{EMULATED} --threads 2 {flags}"));
        let epochs: Vec<u64> =
            cell["epochs"].as_array().unwrap().iter().map(|epoch| epoch["n_steps"].as_u64().unwrap()).collect();
        (cell["steps_per_epoch"].as_u64().unwrap(), cell["images"].as_u64().unwrap(), epochs)
    };
    assert_eq!(run("--batch 5"), (4, 20, vec![4]), "an epoch has whole batches only");
    assert_eq!(run("--batch 5 --epochs 2"), (4, 40, vec![4, 4]));
    assert_eq!(run("--batch 8 --steps 2"), (3, 16, vec![2]));
    assert_eq!(run("--batch 8 --steps 5"), (3, 40, vec![3, 2]), "over the data again");
}

#[test]
fn repeats_are_kept_and_warm_ups_are_not() {
    let dir = Dir::with_set();
    let flags = format!("{EMULATED} --threads 2 --batch 8 --steps 2");
    let cell = cell_of(&dir, &format!("{flags} --repeats 3 --warmups 1"));
    assert_eq!(cell["samples"].as_array().unwrap().len(), 3, "{cell}");
    assert_eq!(cell_of(&dir, &flags)["samples"].as_array().unwrap().len(), 1);
    let planned = dir.met(&format!("train {flags} --repeats 3 --warmups 1 --dry-run"));
    assert!(planned.ends_with("; 4 runs, warm-ups included\n"), "{planned}");
    let refused = dir.refused(&format!("train {flags} --repeats 3 --checkpoint-dir saved --checkpoint-every 1"));
    assert!(refused.contains("--repeats <N>") && refused.contains("--checkpoint-dir"), "{refused}");
}

#[test]
fn runs_go_on_until_they_took_long_enough_if_that_is_asked() {
    let dir = Dir::with_set();
    let n = |flags: &str| {
        let cell = cell_of(&dir, &format!("{EMULATED} --threads 2 --batch 8 --steps 2 --repeats 2 {flags}"));
        let runs = cell["samples"].as_array().unwrap();
        (runs.len(), runs.iter().map(|run| number(run, "wall_s")).sum::<f64>())
    };
    assert_eq!(n("").0, 2);
    let (runs, s) = n("--least-time 60s");
    assert_eq!(runs, 42, "{s} s");
    let (runs, s) = n("--least-time 2s --interval 0.001%");
    assert!(runs > 2 && (runs == 42 || s >= 10.0), "{runs} runs in {s} s");
}

#[test]
fn the_order_of_samples_is_as_asked_and_shards_are_read_in_large_pieces() {
    let dir = Dir::with_set();
    dir.met("data pack set shards --to tfrecord --shard-size 64KiB");
    let n_shards = dir.names("shards").iter().filter(|name| name.contains("tfrecord")).count() as u64;
    let run = |flags: &str| cell_of(&dir, &format!("shards --accelerator emulated:1ms --threads 2 --batch 4 {flags}"));
    let (singly, streamed) = (run(""), run("--shuffle window:8 --interleave 2:2"));
    assert!(singly["requests"].as_u64().unwrap() >= 20, "{singly}");
    assert_eq!(streamed["requests"].as_u64(), Some(n_shards));
    assert_eq!((&streamed["shuffle"], &streamed["interleave"]), (&"window:8".into(), &"2:2".into()));
    let said = dir.refused("train --synthetic --accelerator emulated:1ms --shuffle none");
    assert!(said.contains("--shuffle would have no effect"), "{said}");
}

#[test]
fn so_many_threads_make_samples() {
    let dir = Dir::with_set();
    let n = more_threads_than_cores();
    let mut running = Running::start(&dir, &format!("train {EMULATED} --batch 8 --steps 1000000 --threads {n}"));
    running.wait_until("the threads", |running| running.threads("forebay:map").len() == n);
    running.signal(libc::SIGKILL);
    running.finish();
    let cell = cell_of(&dir, &format!("{EMULATED} --batch 8 --threads auto"));
    assert_eq!(cell["threads_auto"], true);
    assert!(cell["threads"].as_u64().unwrap() >= 1 && !cell["tried"].as_array().unwrap().is_empty(), "{cell}");
}

#[test]
fn without_prefetch_the_wait_is_charged_to_that() {
    let dir = Dir::with_set();
    let run = |prefetch: u32| {
        let flags = "set --accelerator emulated:30ms --tier lustre --threads 1 --batch 4";
        let cell = cell_of(&dir, &format!("{flags} --prefetch {prefetch}"));
        assert_eq!(cell["prefetch"], prefetch);
        cell
    };
    let (without, with) = (run(0), run(1));
    // A request takes 4 ms, four are a batch, and there are six.
    assert!(number(&without, "wait_s") >= 6.0 * 0.016, "{without}");
    assert!(number(&without["stall_by_cause"], "prefetch") > 0.0, "{without}");
    // On a busy machine, the run takes longer than the model explains: the lever is then unknown, never another one.
    let names_prefetch = |_| match run(0)["lever"]["name"].as_str() {
        Some("unknown") => false,
        name => {
            assert_eq!(name, Some("prefetch"));
            true
        }
    };
    assert!(once_in_ten(names_prefetch), "the missing prefetch is never named");
    assert_eq!(with["stall_by_cause"]["prefetch"].as_f64().unwrap_or(0.0), 0.0, "{}", with["stall_by_cause"]);
}

#[test]
fn the_model_is_the_one_that_was_named() {
    let dir = Dir::new();
    let parameters = |model: &str| {
        let cell = cell_of(&dir, &format!("--synthetic --model {model} --batch 2 --steps 1 --classes 9"));
        assert_eq!((&cell["model"], &cell["classes"]), (&model.into(), &9.into()));
        cell["n_parameters"].as_u64().unwrap()
    };
    assert_ne!(parameters("alexnet-small"), parameters("resnet-small"));
}

#[test]
fn optimiser_and_learning_rate_change_the_steps_after_the_first() {
    let dir = Dir::with_set();
    let run = |flags: &str| {
        let cell = cell_of(&dir, &format!("{SMALL} --steps 3 {flags}"));
        (losses(&cell), cell["optimizer"].as_str().unwrap().to_owned(), number(&cell, "learning_rate"))
    };
    let (adam, named, rate) = run("");
    assert_eq!((named.as_str(), rate), ("adam", 0.0001));
    let (sgd, named, rate) = run("--optimizer sgd");
    assert_eq!((named.as_str(), rate), ("sgd", 0.01));
    let (faster, _, rate) = run("--lr 0.1");
    assert_eq!(rate, 0.1);
    assert!(adam[0] == sgd[0] && adam[0] == faster[0], "the first loss comes before the first change");
    assert!(adam[1..] != sgd[1..] && adam[1..] != faster[1..], "{adam:?} {sgd:?} {faster:?}");
    for rate in ["1e39", "1e300", "1e-46"] {
        let said = dir.refused(&format!("train {SMALL} --lr {rate}"));
        assert!(said.contains("give a number above 0 that an f32 can hold, such as 0.0001"), "{said}");
    }
}

#[test]
fn crops_and_mirrored_images_are_trained_on_and_belong_to_the_run() {
    let dir = Dir::with_set();
    let run = |flags: &str| {
        let cell = cell_of(&dir, &format!("{SMALL} --steps 1 {flags}"));
        (losses(&cell)[0].to_bits(), cell["output"].as_str().unwrap().to_owned())
    };
    let runs = ["", "--crop center", "--crop random", "--flip", "--antialias"].map(run);
    let outputs = runs.each_ref().map(|(_, output)| output.split_once("nhwc").unwrap().1.to_owned());
    assert_eq!(outputs, ["", ", center crop", ", random crop", ", half mirrored", ", antialiased"]);
    assert!((0..5).all(|a| (a + 1..5).all(|b| runs[a].0 != runs[b].0)), "the first losses: {runs:?}");
    assert_eq!(run("--crop random"), runs[2]);
    let saving = format!("train {SMALL} --checkpoint-dir saved --checkpoint-every 1");
    dir.met(&format!("{saving} --steps 1 --crop random"));
    let said = dir.refused(&format!("{saving} --steps 2 --resume"));
    assert!(said.contains("augmentation was random crop, now none"), "{said}");
}

#[test]
fn classes_may_be_more_than_the_data_has_and_not_fewer() {
    let dir = Dir::with_set();
    assert_eq!(cell_of(&dir, &format!("{SMALL} --steps 1"))["classes"], 22, "the largest label is 21");
    assert_eq!(cell_of(&dir, &format!("{SMALL} --steps 1 --classes 40"))["classes"], 40);
    let said = dir.refused(&format!("train {SMALL} --steps 9 --classes 3"));
    let wanted = " is out of range 0..=2
\
                  hint: pass --classes N, one more than the largest label, or omit it
";
    assert!(said.ends_with(wanted), "{said}");
}

#[test]
fn validation_is_on_held_out_samples_or_on_other_data_after_every_epoch() {
    let dir = Dir::with_set();
    dir.met("data make caltech101 other --count 7 --median-size 4KB");
    let run = |flags: &str| {
        let ran = dir.run(&format!("train {SMALL} --epochs 2 {flags} --json record.json"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{}", ran.stderr);
        assert!(lines[1].starts_with("epoch 2: validation loss ") && lines[1].contains(", accuracy "), "{lines:?}");
        let cell = dir.json("record.json")["cells"][0].take();
        let judged = &cell["epochs"][1]["validation"];
        assert!((0.0..=1.0).contains(&number(judged, "accuracy")) && number(judged, "loss") > 0.0, "{judged}");
        assert!(number(&cell, "validate_s") > 0.0);
        (judged["n_samples"].as_u64().unwrap(), cell["steps_per_epoch"].as_u64().unwrap())
    };
    assert_eq!(run("--validate=0.5"), (12, 3));
    assert_eq!(run("--validate=other"), (7, 6));
    let (held_out, steps) = run("--validate");
    assert_eq!((held_out, steps), (2, 5), "a tenth of 24");
    let wanted = "forebay: --validate: 4 steps end before the first epoch, which has 5\n";
    assert_eq!(dir.refused(&format!("train {SMALL} --steps 4 --validate")), wanted);
    assert_eq!(dir.refused(&format!("train {SMALL} --steps 4 --validate --dry-run")), wanted);
}

#[test]
fn the_baseline_is_so_many_steps_and_the_cost_of_io_is_beside_it() {
    let dir = Dir::with_set();
    let run =
        |n: u32| cell_of(&dir, &format!("set --model resnet-small --batch 8 --threads 1 --steps 2 --baseline {n}"));
    let cell = run(7);
    assert_eq!((&cell["baseline"]["n_steps"], &cell["n_steps"]), (&7.into(), &2.into()));
    let without = number(&cell["baseline"], "step_s") * number(&cell, "n_steps");
    assert!((number(&cell, "io_cost_s") - (number(&cell, "wall_s") - without)).abs() < 1e-6, "{cell}");
    let cell = run(0);
    assert_eq!((&cell["baseline"], &cell["io_cost_s"]), (&Value::Null, &Value::Null));
    let emulated = "set --accelerator emulated:2ms --batch 8 --threads 1";
    assert_eq!(cell_of(&dir, emulated)["baseline"]["n_steps"], 3, "its own three steps");
    let said = dir.refused(&format!("train {emulated} --baseline 3"));
    let wanted = "an emulated accelerator uses the run's own steps as the baseline: give 0 as --baseline, or omit it";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn what_a_dry_run_would_ignore_is_refused() {
    let dir = Dir::with_set();
    for flags in ["--json record.json", "--min-au 0.5"] {
        let said = dir.refused(&format!("train {EMULATED} --batch 8 --dry-run {flags}"));
        assert!(said.contains("cannot be used with"), "{said}");
    }
}

#[test]
fn a_run_that_fails_half_way_keeps_its_steps() {
    let dir = Dir::with_set();
    let names: Vec<String> = dir.images("set").keys().cloned().collect();
    // Two good labels for one that is no class: with batches of one, it is met after some steps or at once, by the seed.
    let list: String =
        names.iter().enumerate().map(|(i, name)| format!("set/{name} {}\n", if i == 23 { 5 } else { 0 })).collect();
    dir.write("list", list);
    let line =
        "train list --model resnet-small --batch 1 --threads 1 --baseline 0 --classes 2 --seed 3 --json record.json";
    let ran = dir.missed(line);
    assert!(ran.stderr.contains("label 5 is out of range 0..=1"), "{}", ran.stderr);
    let record = dir.json("record.json");
    let n_steps = record["cells"][0]["n_steps"].as_u64().unwrap();
    assert!((1..24).contains(&n_steps), "{n_steps}");
    let note =
        record["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().starts_with("ended after "));
    assert!(note, "{}", record["notes"]);
}

#[test]
fn the_data_may_be_read_cold_directly_or_from_an_emulated_device() {
    let dir = Dir::with_set();
    let record = record_of(&dir, &format!("{EMULATED} --batch 8 --threads 1 --cold"));
    let in_memory = record["environment"]["data_file_system"].as_str().unwrap().starts_with("tmpfs");
    if in_memory {
        return not_run(Reason::NoDisk, "nothing in memory is cold");
    }
    let resident = |cell: &Value| cell["medium"]["evidence"][0]["resident_before"].as_f64();
    assert_eq!(resident(&record["cells"][0]), Some(0.0));
    let warm = cell_of(&dir, &format!("{EMULATED} --batch 8 --threads 1"));
    assert_eq!(
        (&warm["medium"]["cache"], resident(&warm)),
        (&"warm".into(), Some(1.0)),
        "the cold run has just read it"
    );
    let direct = cell_of(&dir, &format!("{EMULATED} --batch 8 --threads 1 --io direct"));
    assert_eq!(
        (&warm["medium"]["storage"], &direct["medium"]["storage"]),
        (&"local, buffered".into(), &"local, direct".into())
    );
    let slow = cell_of(&dir, &format!("{EMULATED} --batch 8 --threads 1 --tier hdd"));
    assert_eq!(slow["medium"]["tier"], "hdd");
    assert!(number(&slow, "wall_s") >= 24.0 * 0.008, "a request takes 8 ms: {slow}");
}

#[test]
fn what_a_device_cannot_do_is_refused() {
    let dir = Dir::with_set();
    for (flags, wanted) in [
        ("--precision bf16", "the CPU computes only in f32: --precision is for a GPU"),
        ("--device-prefetch 1", "--device-prefetch needs a GPU"),
    ] {
        let said = dir.refused(&format!("train {SMALL} {flags}"));
        assert!(said.contains(wanted), "{said}");
    }
    let cell = cell_of(&dir, &format!("{SMALL} --steps 1 --device cpu --precision f32 --device-prefetch 0"));
    assert_eq!((&cell["precision"], &cell["device_prefetch"]), (&"f32".into(), &0.into()));
    let said = dir.refused("train set --synthetic");
    assert!(said.contains("cannot be used with"), "{said}");
    let said = dir.refused("train --synthetic --tier hdd");
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn without_a_gpu_auto_takes_the_emulated_accelerator_and_says_so() {
    let dir = Dir::with_set();
    let record = record_of(&dir, "set --device auto --accelerator emulated:1ms --batch 8 --steps 1 --threads 1");
    let note = record["notes"][0].as_str().unwrap_or_default();
    if record["cells"][0]["accelerator"].is_null() {
        return not_run(Reason::Gpu, "the network is trained on it");
    }
    let wanted = "): emulating an accelerator with 1ms per step";
    assert!(note.starts_with("no CUDA device here (") && note.ends_with(wanted), "{note}");
}

#[test]
fn a_dry_run_opens_the_gpu_that_the_run_would_use() {
    let dir = Dir::new();
    let flags = "train --synthetic --model resnet-small --batch 2 --steps 1 --device cuda:1023";
    let said = dir.refused(flags);
    assert!(said.starts_with("forebay: "), "{said}");
    assert_eq!(dir.refused(&format!("{flags} --dry-run")), said);
}

#[test]
fn without_data_the_batch_in_memory_is_named_as_the_other_choice() {
    let said = Dir::new().refused("train");
    assert!(said.contains("required arguments were not provided:\n  <DATA|--synthetic>\n"), "{said}");
}

#[test]
fn ranks_of_one_process_divide_every_step() {
    let dir = Dir::with_set();
    let cell =
        cell_of(&dir, "set --accelerator emulated:2ms --batch 4 --steps 3 --threads 1 --ranks 2 --rank-timeout 9m");
    assert_eq!((&cell["batch"], &cell["images"], &cell["n_steps"]), (&4.into(), &24.into(), &3.into()));
    let ranks = cell["ranks"].as_array().expect("a list");
    assert_eq!(ranks.iter().map(|rank| rank["images"].as_u64()).collect::<Vec<_>>(), [Some(12); 2]);
    assert!(ranks.iter().all(|rank| number(rank, "exchange_s") > 0.0), "{cell}");
    let said = dir.met("train set --accelerator emulated:2ms --batch 4 --steps 3 --ranks 2 --dry-run");
    assert!(said.contains("3 steps of 4 per rank, 2 ranks"), "{said}");
    for (flags, wanted) in [
        ("--rank-timeout 0s", "give a time above 0"),
        ("--ranks 2 --interval 5% --repeats 2", "--interval is for one process: omit it, or --ranks"),
        (
            "--ranks 5 --batch 9",
            "24 samples are less than one batch of 45\nhint: pass --batch 4 or less, or use fewer ranks",
        ),
    ] {
        let said = dir.refused(&format!("train set --accelerator emulated:2ms {flags}"));
        assert!(said.contains(wanted), "{said}");
    }
    let said = dir.refused("tune set --accelerator emulated:2ms --ranks 2");
    assert!(said.contains("--ranks: tune tries settings of one process"), "{said}");
}
