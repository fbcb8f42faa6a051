//! `forebay data make`: every flag changes what is made, and the same flags make the same bytes.

use crate::dir::Dir;

/// What `inspect` says of a folder.
fn inspected(dir: &Dir, name: &str) -> serde_json::Value {
    serde_json::from_str(&dir.met(&format!("data inspect {name} --json -"))).unwrap()
}

#[test]
fn count_says_how_many_images_are_made() {
    let dir = Dir::new();
    let said = dir.met("data make caltech101 set --count 7 --median-size 4KB");
    let images = dir.images("set");
    let bytes: usize = images.values().map(Vec::len).sum();
    assert_eq!(images.len(), 7);
    assert_eq!(said, format!("set: 7 images, {:.1} KB\n", bytes as f64 / 1e3));
}

#[test]
fn the_list_names_every_image_with_its_label() {
    let dir = Dir::with_set();
    let list = String::from_utf8(dir.read("set/list.txt")).unwrap();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 24);
    assert_eq!(
        &lines[..3],
        ["class_001/class_001_000000.jpg 1", "class_002/class_002_000001.jpg 2", "background/background_000002.jpg 0"]
    );
    let mut listed: Vec<&str> = lines.iter().map(|line| line.split_once(' ').unwrap().0).collect();
    listed.sort_unstable();
    assert_eq!(listed, dir.images("set").into_keys().collect::<Vec<_>>());
}

#[test]
fn the_same_seed_makes_the_same_bytes_and_another_seed_others() {
    let dir = Dir::new();
    dir.met("data make caltech101 a --count 6 --median-size 4KB --seed 5");
    dir.met("data make caltech101 b --count 6 --median-size 4KB --seed 5");
    dir.met("data make caltech101 c --count 6 --median-size 4KB --seed 6");
    assert_eq!(dir.images("a"), dir.images("b"));
    let (ours, theirs) = (dir.images("a"), dir.images("c"));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    assert!(ours.iter().all(|(name, bytes)| theirs[name] != *bytes), "every image differs");
}

#[test]
fn the_median_of_the_file_sizes_is_the_one_asked_for() {
    let dir = Dir::new();
    for (name, asked) in [("small", 4_000.0), ("large", 20_000.0)] {
        dir.met(&format!("data make caltech101 {name} --count 24 --median-size {asked}"));
        let median = inspected(&dir, name)["sizes"]["median"].as_f64().unwrap();
        assert!((median / asked - 1.0).abs() < 0.1, "asked for {asked}, made {median}");
    }
}

#[test]
fn sizes_are_the_histogram_of_the_files() {
    let dir = Dir::new();
    dir.met("data make caltech101 set --count 40 --sizes 2K/25:8K/50:32K/25");
    let n_in = |from: usize| dir.images("set").values().filter(|image| (from..2 * from).contains(&image.len())).count();
    // A file may miss its size by a few per cent, and then its bin.
    for (from, wanted) in [(2 << 10, 10), (8 << 10, 20), (32 << 10, 10)] {
        assert!(n_in(from).abs_diff(wanted) <= 2, "{} files from {from}", n_in(from));
    }
    assert!(n_in(4 << 10) + n_in(16 << 10) <= 3);
    let said = dir.refused("data make caltech101 other --count 4 --sizes 2K/25:8K/50");
    assert!(said.contains("the percentages make 75, not 100"), "{said}");
    let said = dir.refused("data make caltech101 other --sizes 2K/100 --sigma 0.2");
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn sigma_spreads_the_file_sizes() {
    let dir = Dir::new();
    let ratio = |sigma: &str| {
        dir.met(&format!("data make caltech101 set-{sigma} --count 16 --median-size 8KB --sigma {sigma}"));
        let sizes = &inspected(&dir, &format!("set-{sigma}"))["sizes"];
        sizes["max"].as_f64().unwrap() / sizes["min"].as_f64().unwrap()
    };
    let (none, some) = (ratio("0"), ratio("0.8"));
    assert!(none < 1.3 && some > 4.0, "largest over smallest: {none} without spread, {some} with");
}

#[test]
fn dimensions_are_those_of_every_image() {
    let dir = Dir::new();
    dir.met("data make caltech101 set --count 5 --median-size 4KB --dimensions 96x64");
    let found = inspected(&dir, "set");
    let range = |side: &str| (found[side]["min"].as_f64().unwrap(), found[side]["max"].as_f64().unwrap());
    assert_eq!((range("widths"), range("heights")), ((96.0, 96.0), (64.0, 64.0)));
}

#[test]
fn classes_are_so_many_folders() {
    let dir = Dir::new();
    dir.met("data make imagenet set --count 6 --median-size 4KB --classes 3");
    let names = dir.names("set");
    let expected = [
        "list.txt",
        "n0000/n0000_000000.jpg",
        "n0000/n0000_000003.jpg",
        "n0001/n0001_000001.jpg",
        "n0001/n0001_000004.jpg",
        "n0002/n0002_000002.jpg",
        "n0002/n0002_000005.jpg",
    ];
    assert_eq!(names, expected);
}

#[test]
fn any_number_of_threads_makes_the_same_bytes() {
    let dir = Dir::new();
    dir.met("data make caltech101 one --count 12 --median-size 4KB --threads 1");
    dir.met("data make caltech101 many --count 12 --median-size 4KB --threads 5");
    assert_eq!(dir.tree("one"), dir.tree("many"));
}

#[test]
fn a_dry_run_says_what_would_be_made_and_makes_nothing() {
    let dir = Dir::new();
    let said = dir.met("data make imagenet set --count 2000 --classes 10 --dry-run");
    assert!(said.starts_with("set: 2,000 images in 10 classes, about 25"), "{said}");
    assert!(!dir.path("set").exists());
}

#[test]
fn a_second_run_keeps_what_is_there_and_mends_what_is_torn() {
    let dir = Dir::with_set();
    let before = dir.tree("set");
    let line = "data make caltech101 set --count 24 --median-size 4KB";
    assert_eq!(dir.met(line), "set: 24 images, 107.9 KB, 24 of them already there\n");
    dir.edit("set/class_003/class_003_000003.jpg", |bytes| bytes.truncate(1000));
    std::fs::remove_file(dir.path("set/list.txt")).unwrap();
    assert_eq!(dir.met(line), "set: 24 images, 107.9 KB, 23 of them already there\n");
    assert_eq!(dir.tree("set"), before);
}

#[test]
fn a_folder_with_other_parameters_is_refused_and_left_alone() {
    let dir = Dir::with_set();
    let before = dir.tree("set");
    let said = dir.refused("data make caltech101 set --count 30 --median-size 4KB --seed 4");
    let wanted = "forebay: set: the folder was made with count 24, seed 0; requested count 30, seed 4\n\
                  hint: use an empty or new folder, or remove this one\n";
    assert_eq!(said, wanted);
    assert_eq!(dir.tree("set"), before);
}

#[test]
fn a_folder_with_foreign_data_is_refused_and_left_alone() {
    let dir = Dir::new();
    dir.write("mine/thesis.tex", "\\begin{document}");
    let said = dir.refused("data make caltech101 mine --count 3");
    assert_eq!(said, "forebay: mine: the folder is not empty and was not made by this command\n");
    assert_eq!(dir.names("mine"), ["thesis.tex"]);
}

#[test]
fn impossible_values_are_refused_by_name() {
    let dir = Dir::new();
    let said = |flags: &str| dir.refused(&format!("data make caltech101 set {flags}"));
    assert_eq!(said("--count 0"), "forebay: count 0: must be at least 1\n");
    assert_eq!(said("--sigma 5"), "forebay: sigma 5: must be 0 to 1.5\n");
    assert_eq!(said("--median-size 5"), "forebay: median size 5 B: must be 2 KB to 16 MB\n");
    assert_eq!(said("--dimensions 4x9"), "forebay: dimensions 4x9: must be 8 to 16,384 each\n");
    assert_eq!(said("--classes 0"), "forebay: classes 0: must be 1 to 100,000\n");
    assert!(!dir.path("set").exists());
}
