//! What a file may say, and what is refused before anything is run.

use forebay_measure::ThreadCount;

use super::*;
use crate::{Error, Task};

/// The small study with something else in place of a piece of it.
fn refuse(from: &str, to: &str) -> (String, Option<String>) {
    assert!(SMALL.contains(from), "{from}");
    let spec = parse(&SMALL.replacen(from, to, 1)).unwrap();
    let error = Plan::new(spec, Scale::Quick).unwrap_err();
    (error.to_string(), error.hint())
}

#[track_caller]
fn is_refused(from: &str, to: &str, said: &str, hint: Option<&str>) {
    let (got, got_hint) = refuse(from, to);
    assert_eq!((got.as_str(), got_hint.as_deref()), (said, hint));
}

#[test]
fn a_factor_that_the_step_does_not_know_is_refused_with_the_nearest() {
    is_refused(
        "threads = [1, 2, 4]",
        "thread = [1, 2, 4]",
        "experiment \"all\", factors.thread: ingest has no setting \"thread\"",
        Some("did you mean `threads`?"),
    );
    let (said, hint) = refuse("depth = [1, 8]", "threads = [1, 8]");
    assert_eq!(said, "experiment \"one\", factors.threads: probe has no setting \"threads\"");
    assert_eq!(hint.unwrap(), "expected one of block, depth, engine, like, mix, mode, size, tier");
}

#[test]
fn a_level_of_another_type_is_refused_with_its_key() {
    let all = "experiment \"all\", factors.";
    for (from, to, said) in [
        ("threads = [1, 2, 4]", "threads = [1, \"many\"]", "threads: \"many\": give a number from 1 to 1,024, or auto"),
        ("threads = [1, 2, 4]", "threads = [0]", "threads: 0: give a number from 1 to 1,024, or auto"),
        ("threads = [1, 2, 4]", "threads = [1.5]", "threads: 1.5: give a number from 1 to 1,024, or auto"),
        ("threads = [1, 2, 4]", "threads = []", "threads: a factor needs at least one level"),
        ("threads = [1, 2, 4]", "threads = { quick = [1], full = [] }", "threads: a factor needs at least one level"),
        ("read_only = [false, true]", "read_only = [0, 1]", "read_only: 0: give true or false"),
    ] {
        is_refused(from, to, &format!("{all}{said}"), None);
    }
    let one = "experiment \"one\", factors.block: ";
    let wanted = "give a size from 1 B to 1.07 GB, such as 1MiB";
    is_refused("block = [\"1MiB\", \"4KiB\"]", "block = [\"9TB\"]", &format!("{one}\"9TB\": {wanted}"), None);
}

#[test]
fn absurd_sizes_are_refused() {
    is_refused(
        "path = \"set\"",
        "make = \"imagenet\"\ncount = 99999999999",
        "dataset \"set\", count: at most 10000000 images are supported",
        None,
    );
    is_refused(
        "threads = [1, 2, 4]",
        "batch = [1000000]\nbatches = [1000001]",
        "cell all/batch=1000000/batches=1000001/read_only=false/threads=1: a repeat has more than 1,000,000,000,000 images: \
         give fewer batches",
        None,
    );
    let many: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let levels = format!("threads = [{0}]\nbatch = [{0}]", many.join(","));
    is_refused("threads = [1, 2, 4]", &levels, "experiment \"all\": a study may have at most 100000 cells", None);
    is_refused(
        "dataset = \"set\"",
        "dataset = \"set\"\nrepeats = 1000000",
        "experiment \"all\", repeats: expected a number from 1 to 10000",
        None,
    );
}

#[test]
fn names_that_name_nothing_are_refused_with_the_nearest() {
    is_refused(
        "dataset = \"set\"",
        "dataset = \"sett\"",
        "cell all/read_only=false/threads=1: unknown dataset \"sett\"",
        Some("did you mean `set`?"),
    );
    is_refused(
        "threads = [1, 2, 4]",
        "tier = [\"hdd\", \"hd\"]",
        "cell all/read_only=false/threads=1/tier=hd: unknown tier \"hd\"",
        Some("did you mean `hdd`?"),
    );
    is_refused("dataset = \"set\"", "", "cell all/read_only=false/threads=1: missing `dataset`", None);
    is_refused(
        "profile = \"hdd\"",
        "profile = \"hhd\"",
        "tier \"hdd\", profile: \"hhd\" is not one of hdd, ssd, optane, lustre, s3",
        Some("did you mean `hdd`?"),
    );
    let (said, hint) = refuse("profile = \"hdd\"", "profile = \"floppy\"");
    assert_eq!(said, "tier \"hdd\", profile: \"floppy\" is not one of hdd, ssd, optane, lustre, s3");
    assert_eq!(hint, None, "all are named already");
    is_refused(
        "path = \"set\"",
        "make = \"imagenett\"",
        "dataset \"set\", make: \"imagenett\" is not one of imagenet, caltech101",
        Some("did you mean `imagenet`?"),
    );
}

#[test]
fn contradictions_are_refused() {
    is_refused(
        "path = \"set\"",
        "path = \"set\"\nmake = \"imagenet\"",
        "dataset \"set\": give `make` or `path`, not both",
        None,
    );
    is_refused(
        "path = \"set\"",
        "path = \"set\"\ncount = 3",
        "dataset \"set\": `count`, `seed` and `sizes` apply only to generated data",
        None,
    );
    let said = "dataset \"set\": give `make` (imagenet, caltech101), `pack` (tfrecord, tar, tensor) or `path`";
    is_refused("path = \"set\"", "", said, None);
    is_refused("profile = \"hdd\"", "", "tier \"hdd\": give `profile` (hdd, ssd, optane, lustre, s3) or `path`", None);
    is_refused(
        "profile = \"hdd\"",
        "profile = \"hdd\"\npath = \"x\"",
        "tier \"hdd\": give `profile` or `path`, not both",
        None,
    );
    is_refused("name = \"one\"", "name = \"all\"", "experiment \"all\": duplicate name", None);
    is_refused(
        "name = \"set\"",
        "name = \"../set\"",
        "dataset \"../set\": a name has at most 64 letters, digits, hyphens, dots and underscores, and starts with no hyphen or dot",
        None,
    );
    is_refused(
        "threads = [1, 2, 4]",
        "threads = [1, 2, 1]",
        "cell all/read_only=false/threads=1: duplicate cell: a level is listed twice",
        None,
    );
    let settings = "read_only = [false, true]\n[experiment.settings]\nthreads = 4";
    is_refused("read_only = [false, true]", settings, "experiment \"all\", settings.threads: already a factor", None);
}

#[test]
fn a_dataset_with_a_place_of_its_own_cannot_lie_on_a_tier_that_is_a_folder() {
    let text = SMALL.replace("profile = \"hdd\"", "path = \"mnt\"").replace("threads = [1, 2, 4]", "tier = [\"hdd\"]");
    let error = Plan::new(parse(&text).unwrap(), Scale::Quick).unwrap_err();
    assert!(error.to_string().ends_with("the dataset is at set and cannot also be on mnt"), "{error}");
    assert!(error.hint().unwrap().contains("make \"dataset\" the factor"));
}

#[test]
fn rules_hold_for_their_cells_and_a_later_one_wins() {
    let rules = "read_only = [false, true]
        [experiment.settings]
        batches = { quick = 9, full = 90 }
        [[experiment.rule]]
        when = { threads = 2 }
        set = { batches = { quick = 5, full = 50 }, cold = true }
        [[experiment.rule]]
        when = { threads = 2, read_only = true }
        set = { batches = 7 }";
    let spec = parse(&SMALL.replacen("read_only = [false, true]", rules, 1)).unwrap();
    let batches = |scale| -> Vec<(ThreadCount, u64, bool)> {
        let plan = Plan::new(spec.clone(), scale).unwrap();
        let of = |cell: &CellPlan| match &cell.work.task {
            Task::Ingest(settings) => Some((settings.threads[0], settings.batches.unwrap(), settings.cold)),
            _ => None,
        };
        plan.cells.iter().filter_map(of).collect()
    };
    let of = |decoding: [u64; 3], reading: [u64; 3]| -> Vec<(ThreadCount, u64, bool)> {
        let with =
            |batches: [u64; 3]| [1, 2, 4].map(ThreadCount::Fixed).into_iter().zip(batches).zip([false, true, false]);
        with(decoding).chain(with(reading)).map(|((threads, n), cold)| (threads, n, cold)).collect()
    };
    assert_eq!(batches(Scale::Quick), of([9, 5, 9], [9, 7, 9]));
    assert_eq!(batches(Scale::Full), of([90, 50, 90], [90, 7, 90]));
}

#[test]
fn rules_that_hold_for_nothing_are_refused() {
    let rule = |text: &str| format!("read_only = [false, true]\n[[experiment.rule]]\n{text}");
    let from = "read_only = [false, true]";
    let said = "experiment \"all\", rule 1, when: threads has no level 3";
    is_refused(from, &rule("when = { threads = 3 }\nset = { cold = true }"), said, Some("expected one of 1, 2, 4"));
    let said = "experiment \"all\", rule 1, when: experiment \"all\" has no factor \"tier\"";
    is_refused(
        from,
        &rule("when = { tier = \"hdd\" }\nset = { cold = true }"),
        said,
        Some("expected one of read_only, threads"),
    );
    let said = "experiment \"all\", rule 1, set.threads: a rule cannot change the levels of a factor";
    is_refused(from, &rule("when = { threads = 2 }\nset = { threads = 3 }"), said, None);
    let said = "experiment \"all\", rule 1, set.cold: 1: give true or false";
    is_refused(from, &rule("when = { threads = 2 }\nset = { cold = { quick = true, full = 1 } }"), said, None);
}

#[test]
fn references_and_figures_speak_of_what_is_there() {
    let with = |text: &str| format!("{text}\n[[dataset]]");
    let reference = |change: (&str, &str)| {
        let text = "[[reference]]\nexperiment = \"all\"\nmetric = \"speed_up\"\nat = { threads = 2 }\nvalue = 1.65\nsource = \"s\"";
        with(&text.replace(change.0, change.1))
    };
    let refuse_reference = |change| refuse("[[dataset]]", &reference(change));
    assert_eq!(refuse_reference(("\"all\"", "\"al\"")).0, "reference 1: unknown experiment \"al\"");
    let (said, hint) = refuse_reference(("speed_up", "speedup"));
    assert_eq!(said, "reference 1: experiment \"all\" does not measure \"speedup\"");
    assert_eq!(hint.unwrap(), "did you mean `speed_up`?");
    assert_eq!(refuse_reference(("threads = 2", "threads = 16")).0, "reference 1: threads has no level 16");
    assert_eq!(refuse_reference(("1.65", "nan")).0, "reference 1: `value` and `within` must be numbers above 0");
    let said = "reference 1: `above` must be a number above 0 and needs `within`";
    assert_eq!(refuse_reference(("1.65", "1.65\nabove = 0.2")).0, said);
    assert_eq!(refuse_reference(("1.65", "1.65\nwithin = 0.1\nabove = -1.0")).0, said);
    let figure = |text: &str| refuse("[[dataset]]", &with(&format!("[[figure]]\nid = \"f\"\ntitle = \"t\"\n{text}"))).0;
    assert_eq!(figure("kind = \"bars\""), "figure \"f\": missing `experiment`");
    let said = figure("kind = \"bars\"\nexperiment = \"all\"\nx = \"tier\"");
    assert_eq!(said, "figure \"f\": experiment \"all\" has no factor \"tier\"");
}

#[test]
fn a_probe_that_cannot_be_is_refused() {
    let warmups = "run = \"probe\"\nwarmups = 0";
    let said = "experiment \"one\", warmups: a probe has exactly one warm-up, its first run; set this to 1";
    is_refused("run = \"probe\"", warmups, said, None);
    let settings = "depth = [1, 8]\nengine = [\"direct\", \"uring\"]\ntier = [\"hdd\"]";
    let said = "cell one/block=1MiB/depth=1/engine=uring/tier=hdd: io_uring bypasses an emulated tier; use engine sync or direct";
    is_refused("depth = [1, 8]", settings, said, None);
    let said =
        "cell one/block=1MB/depth=1: block: 1000000 is not a multiple of 512 bytes; use a binary unit, such as 128KiB";
    is_refused("block = [\"1MiB\", \"4KiB\"]", "block = [\"1MB\"]", said, None);
}

#[test]
fn a_train_cell_that_cannot_be_is_refused() {
    let train = |settings: &str| {
        let text = "\n[[experiment]]\nname = \"train\"\nrun = \"train\"\n[experiment.settings]\n";
        let error = Plan::new(parse(&format!("{SMALL}{text}{settings}")).unwrap(), Scale::Quick).unwrap_err();
        error.to_string()
    };
    assert_eq!(train("steps = 3"), "cell train: missing `dataset`");
    assert_eq!(train("dataset = \"set\"\nsteps = 3\nepochs = 1"), "cell train: give steps or epochs, not both");
    assert_eq!(
        train("device = \"tpu\""),
        "experiment \"train\", settings.device: \"tpu\": give auto, cpu, cuda, or cuda:N with N from 0 to 1,023"
    );
    assert_eq!(train("synthetic = true\nepochs = 2"), "cell train: a synthetic batch has no epochs: give steps");
    assert_eq!(
        train("read_only = true"),
        "experiment \"train\", settings.read_only: train has no setting \"read_only\""
    );
}

#[test]
fn a_synthetic_cell_needs_no_dataset_and_one_of_data_does() {
    let text = "[[experiment]]
        name = \"train\"
        run = \"train\"
        [experiment.factors]
        dataset = [\"none\", \"set\"]
        [experiment.settings]
        steps = 3
        [[experiment.rule]]
        when = { dataset = \"none\" }
        set = { synthetic = true }";
    let plan = plan_of(&format!("{SMALL}{text}"));
    let of: Vec<(&str, Option<&str>)> =
        plan.cells.iter().skip(9).map(|cell| (cell.id.as_str(), cell.work.dataset())).collect();
    assert_eq!(of, [("train/dataset=none", None), ("train/dataset=set", Some("set"))]);
}

#[test]
fn a_dataset_is_inspected_once() {
    let inspect = |rounds: &str| {
        let text = "[[experiment]]\nname = \"look\"\nrun = \"inspect\"\ndataset = \"set\"\n";
        Plan::new(parse(&format!("{SMALL}{text}{rounds}")).unwrap(), Scale::Quick)
    };
    let wanted = "a dataset is inspected once; set repeats = 1 and warmups = 0";
    for rounds in ["repeats = 5", "warmups = 1", "repeats = 5\nwarmups = 1"] {
        let said = inspect(rounds).unwrap_err().to_string();
        assert_eq!(said, format!("experiment \"look\", repeats: {wanted}"), "{rounds}");
    }
    for rounds in ["", "repeats = 1\nwarmups = 0"] {
        let plan = inspect(rounds).unwrap();
        let cell = plan.cells.last().unwrap();
        assert_eq!((cell.id.as_str(), cell.work.dataset()), ("look", Some("set")));
        assert_eq!((cell.repeats, cell.warmups), (1, 0), "{rounds}");
        assert_eq!((plan.cells[0].repeats, plan.cells[0].warmups), (5, 1), "other steps measure more");
    }
}

#[test]
fn a_study_without_cells_is_refused() {
    let error = Plan::new(parse("name = \"s\"\ntitle = \"t\"").unwrap(), Scale::Quick).unwrap_err();
    assert!(matches!(error, Error::Plan { .. }));
    assert_eq!(error.to_string(), "the study: no experiments");
}

#[test]
fn data_and_folders_that_are_not_made_must_be_there() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, set) = (dir.path().join("mnt"), dir.path().join("set"));
    let text = SMALL.replace("profile = \"hdd\"", &format!("path = \"{}\"", folder.display()));
    let plan = plan_of(&text.replace("path = \"set\"", &format!("path = \"{}\"", set.display())));
    let error = plan.check_folders().unwrap_err();
    assert_eq!(error.to_string(), format!("tier \"hdd\": {} is not an existing folder", folder.display()));
    std::fs::create_dir(&folder).unwrap();
    let error = plan.check_folders().unwrap_err();
    assert_eq!(error.to_string(), format!("dataset \"set\": {} does not exist", set.display()));
    assert_eq!(error.hint().unwrap(), "--dataset set=PATH uses data elsewhere");
    std::fs::create_dir(&set).unwrap();
    let error = plan.check_folders().unwrap_err();
    assert!(error.to_string().starts_with("dataset \"set\": "), "a folder with nothing in it: {error}");
    assert_eq!(error.hint().unwrap(), "--dataset set=PATH uses data elsewhere");
    std::fs::write(set.join("1.jpg"), "x").unwrap();
    plan.check_folders().unwrap();
}

/// A study that trains on a dataset in batches of four.
fn training(dataset: &str) -> Plan {
    let text = format!(
        "name = \"t\"\ntitle = \"t\"\n{dataset}\n[[experiment]]\nname = \"train\"\nrun = \"train\"\n\
         dataset = \"set\"\n[experiment.settings]\nbatch = 4\naccelerator = \"emulated:1ms\"\n"
    );
    Plan::new(parse(&text).unwrap(), Scale::Quick).unwrap()
}

#[test]
fn data_that_is_there_and_has_no_whole_batch_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let set = format!("path = \"{}\"", dir.path().display());
    let plans = [
        training(&format!("[[dataset]]\nname = \"set\"\n{set}")),
        training(&format!(
            "[[dataset]]\nname = \"files\"\n{set}\n[[dataset]]\nname = \"set\"\npack = \"tar\"\nof = \"files\""
        )),
    ];
    (0..3).for_each(|i| std::fs::write(dir.path().join(format!("{i}.jpg")), "x").unwrap());
    for plan in &plans {
        let said = plan.check_folders().unwrap_err().to_string();
        assert_eq!(said, "cell train: dataset \"set\" has 3 samples, less than one batch of 4");
    }
    std::fs::write(dir.path().join("3.jpg"), "x").unwrap();
    plans.iter().for_each(|plan| plan.check_folders().unwrap());
}

#[test]
fn made_data_that_has_no_whole_batch_is_refused_with_the_plan() {
    let plan = |made: &str, setting: &str| {
        let text = format!(
            "name = \"t\"\ntitle = \"t\"\n[[dataset]]\nname = \"files\"\nmake = \"caltech101\"\ncount = 24\n\
             [[dataset]]\nname = \"shards\"\npack = \"tfrecord\"\nof = \"files\"\n[[experiment]]\nname = \"train\"\n\
             run = \"train\"\ndataset = \"{made}\"\n[experiment.settings]\naccelerator = \"emulated:1ms\"\n{setting}\n"
        );
        Plan::new(parse(&text).unwrap(), Scale::Quick)
    };
    for made in ["files", "shards"] {
        let said = plan(made, "batch = 25").unwrap_err().to_string();
        assert_eq!(said, format!("cell train: dataset \"{made}\" has 24 samples, less than one batch of 25"));
        assert_eq!(plan(made, "batch = 24").unwrap().cells.len(), 1);
    }
    assert_eq!(plan("files", "batch = 25\nsynthetic = true\nsteps = 1").unwrap().cells.len(), 1, "it reads nothing");
}
