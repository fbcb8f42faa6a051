//! The scale between quick and full: how long it takes, and that it repeats what it shows.

use crate::dir::{Dir, flat};

/// Minutes that a dry run estimates for all of a study: "… together … about 29 min 51 s".
fn minutes(preview: &str) -> u64 {
    let text = flat(preview);
    let together = text.split(" together ").nth(1).and_then(|rest| rest.split("about ").nth(1));
    let words: Vec<&str> = together.unwrap_or_else(|| panic!("{text}")).split_whitespace().collect();
    match words[1].trim_end_matches(',') {
        "min" => words[0].parse().unwrap(),
        "h" => 60 * words[0].parse::<u64>().unwrap(),
        _ => 0,
    }
}

#[test]
fn the_standard_scale_takes_minutes_and_not_hours_and_repeats_every_figure() {
    let dir = Dir::new();
    for name in ["chien-2018", "hugen-2025", "nelson-2022"] {
        let preview = dir.met(&format!("study run {name} --dry-run --scale standard"));
        assert!(preview.starts_with(&format!("{name} at the standard scale: ")), "{preview}");
        // On two cores that nobody else uses, 20 to 50; a busy machine decodes more slowly.
        assert!((10..120).contains(&minutes(&preview)), "{preview}");
        let once: Vec<&str> = preview.lines().filter(|line| line.contains("× 0+1 ")).collect();
        let may_run_once = |line: &&str| line.starts_with("reads (train)") || line.starts_with("images (inspect)");
        assert!(once.iter().all(may_run_once), "one repeat: {once:?}");
    }
    let shown = dir.met("study show hugen-2025");
    assert!(shown.contains("1 repeat after 0 warm-ups quick, 3 repeats after 0 warm-ups standard, 1 "), "{shown}");
    let list = dir.met("study list");
    assert!(list.contains("\n  standard  100 cells, 9,792 images of "), "{list}");
}

#[test]
fn a_value_of_the_standard_scale_is_that_of_the_quick_one_unless_it_is_given() {
    let dir = Dir::new();
    let study = |batches: &str| {
        format!(
            "name = \"s\"\ntitle = \"t\"\n[[dataset]]\nname = \"d\"\nmake = \"caltech101\"\ncount = 64\n[[experiment]]\n\
             name = \"e\"\nrun = \"ingest\"\ndataset = \"d\"\nrepeats = 2\n[experiment.settings]\nbatch = 4\nbatches = {batches}\n"
        )
    };
    let images = |batches: &str, scale: &str| {
        dir.write("s.toml", study(batches));
        let preview = dir.met(&format!("study run s.toml --dry-run --scale {scale}"));
        let images =
            preview.split(" images, ").next().and_then(|head| head.split_whitespace().last()).map(str::to_owned);
        images.unwrap_or_else(|| panic!("{preview}"))
    };
    let each = "{ quick = 1, full = 3 }";
    assert_eq!(["quick", "standard", "full"].map(|scale| images(each, scale)), ["48", "48", "144"]);
    assert_eq!(images("{ quick = 1, standard = 2, full = 3 }", "standard"), "96");
    dir.write("s.toml", study("{ quick = 1, middle = 2, full = 3 }"));
    let said = dir.refused("study run s.toml --dry-run");
    assert!(said.contains("or { quick = …, full = … } of these"), "{said}");
    let said = dir.refused("study run s.toml --dry-run --scale medium");
    assert!(said.contains("quick, standard, full"), "{said}");
}
