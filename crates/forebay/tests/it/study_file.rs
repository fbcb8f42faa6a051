//! Studies that cannot be run are refused before anything is made, with the place and what was probably meant.

use crate::dir::Dir;
use crate::disk::with_mount;
use crate::study::{TINY, with_tiny};

/// What is said of the tiny study with something else in place of a piece of it.
fn refused(dir: &Dir, from: &str, to: &str) -> String {
    assert!(TINY.contains(from), "{from}");
    dir.write("tiny.toml", TINY.replacen(from, to, 1));
    let said = dir.refused("study run tiny.toml --out out");
    assert_eq!(dir.refused("study run tiny.toml --out out --dry-run"), said);
    assert_eq!(dir.refused("study show tiny.toml"), said);
    assert!(!dir.path("out").exists(), "nothing was begun");
    said
}

#[test]
fn an_unknown_key_is_refused_with_its_place_and_the_nearest() {
    let dir = with_tiny();
    assert_eq!(
        refused(&dir, "repeats = 2", "repeat = 2"),
        "forebay: tiny.toml: line 19, column 1: unknown key \"repeat\"\nhint: did you mean `repeats`?\n"
    );
    assert_eq!(
        refused(&dir, "threads = [1, 2]", "thread = [1, 2]"),
        "forebay: tiny.toml: experiment \"read\", factors.thread: ingest has no setting \"thread\"\n\
         hint: did you mean `threads`?\n"
    );
}

#[test]
fn a_value_of_another_type_is_refused_with_its_key() {
    let dir = with_tiny();
    assert_eq!(
        refused(&dir, "seed = 3", "seed = -3"),
        "forebay: tiny.toml: line 4, column 8: seed must be a whole number of at least 0\n"
    );
    assert_eq!(
        refused(&dir, "batch = 4", "batch = \"four\""),
        "forebay: tiny.toml: experiment \"read\", settings.batch: \"four\": give a whole number from 1 to 1,000,000\n"
    );
    assert_eq!(
        refused(&dir, "repeats = 2", "repeats = { quick = 2 }"),
        "forebay: tiny.toml: line 19, column 11: repeats must be a whole number, or { quick = …, full = … } of whole numbers\n"
    );
}

#[test]
fn names_that_name_nothing_are_refused() {
    let dir = with_tiny();
    assert_eq!(
        refused(&dir, "dataset = \"set\"", "dataset = \"sett\""),
        "forebay: tiny.toml: cell read/read_only=false/threads=1: unknown dataset \"sett\"\n\
         hint: did you mean `set`?\n"
    );
    assert_eq!(
        refused(&dir, "tier = \"disk\"", "tier = \"disc\""),
        "forebay: tiny.toml: cell read/read_only=false/threads=1: unknown tier \"disc\"\n\
         hint: did you mean `disk`?\n"
    );
    assert_eq!(
        refused(&dir, "at = { threads = 2", "at = { threads = 16"),
        "forebay: tiny.toml: reference 1: threads has no level 16\nhint: expected one of 1, 2\n"
    );
}

#[test]
fn absurd_sizes_are_refused() {
    let dir = with_tiny();
    assert_eq!(
        refused(&dir, "quick = 12", "quick = 99999999999"),
        "forebay: tiny.toml: dataset \"set\", count: at most 10000000 images are supported\n"
    );
    let many: Vec<String> = (1..=1000).map(|n| n.to_string()).collect();
    let said = refused(&dir, "threads = [1, 2]", &format!("threads = [{0}]\nprefetch = [{0}]", many.join(",")));
    assert_eq!(said, "forebay: tiny.toml: experiment \"read\": a study may have at most 100000 cells\n");
}

#[test]
fn more_data_than_there_is_room_for_is_refused_before_anything_is_made() {
    let dir = with_tiny();
    let script = "study='study run tiny.toml --out out --data small'
        $forebay $study --dry-run; $forebay $study; echo status $?";
    let Some(ran) = with_mount(&dir, "mount -t tmpfs -o size=64k none small", script) else { return };
    assert!(ran.stdout.contains(": it does not fit\n") && ran.stdout.ends_with("status 2\n"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains(" needed, ")
            && ran.stderr.ends_with(" free\nhint: free space there, or put the data elsewhere with --data DIR\n"),
        "{}",
        ran.stderr
    );
    assert!(!dir.path("out").exists());
}

#[test]
fn a_study_that_is_not_there_is_named() {
    let dir = Dir::new();
    assert_eq!(
        dir.refused("study run chien2018"),
        "forebay: no built-in study or file named \"chien2018\"\n\
         hint: did you mean `chien-2018`? `forebay study list` shows the built-in studies\n"
    );
    let said = dir.refused("study show gone.toml");
    assert_eq!(said, "forebay: cannot read gone.toml: No such file or directory (os error 2)\n");
    dir.write("not.toml", b"\xff\xfe");
    assert!(dir.refused("study run not.toml").starts_with("forebay: cannot read not.toml: "));
    dir.write("empty.toml", "");
    assert_eq!(dir.refused("study run empty.toml"), "forebay: empty.toml: line 1, column 1: missing field \"name\"\n");
}
