//! A run that is killed at any point goes on to the same cells: none lost, none twice.

use std::fs;

use super::*;
use crate::{Error, data_of, data_to_keep};
use forebay_record::StudyLine;

/// A whole record of the small study, one cell failed.
fn whole(plan: &Plan) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = Folder::begin(dir.path(), &head_of(plan)).unwrap();
    let failing = [plan.cells[3].id.clone()].into();
    go(plan, &Remaining::whole(plan), &mut folder, &mut Fake { failing, ..Fake::default() });
    fs::read_to_string(dir.path().join(RECORD)).unwrap()
}

/// Puts a record cut off there into a folder, goes on with it, and gives what it was asked for and what is recorded.
fn go_on(plan: &Plan, record: &str) -> (Vec<String>, StudyRun) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(RECORD), record).unwrap();
    let (mut folder, run) = Folder::resume(dir.path(), &head_of(plan)).unwrap();
    let rest = Remaining::after(plan, &run, false);
    folder.append(&rest.resumed(Environment::default())).unwrap();
    let mut bench = Fake::default();
    let ended = go(plan, &rest, &mut folder, &mut bench);
    assert_eq!((ended.n_done, ended.n_cells), (9, 9));
    (bench.asked, recorded(dir.path()))
}

#[test]
fn a_record_cut_off_anywhere_is_completed_without_a_cell_lost_or_run_twice() {
    let plan = plan_of(SMALL);
    let (text, order) = (whole(&plan), ids_in_order(&plan));
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 10, "a head and nine cells");
    for (n_kept, end) in ends.iter().enumerate() {
        let next = ends.get(n_kept + 1).copied().unwrap_or(text.len());
        // At the end of a line, after its first byte, in its middle, and before its last byte.
        let mut cuts = vec![*end, end + 1, (end + next) / 2, next - 1];
        cuts.retain(|cut| *cut >= *end && (*cut < next || next == text.len()) && *cut <= text.len());
        for cut in cuts {
            let (asked, run) = go_on(&plan, &text[..cut]);
            assert_eq!(asked, order[n_kept..], "cut at {cut}");
            assert_eq!(ids(&run.cells), order, "cut at {cut}");
            assert_eq!(run.resumed.len(), 1);
            assert_eq!(run.resumed[0].n_done, n_kept as u64);
        }
    }
}

#[test]
fn a_run_that_is_stopped_again_and_again_comes_to_its_end() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    drop(Folder::begin(dir.path(), &head_of(&plan)).unwrap());
    let mut asked = Vec::new();
    for n_done in 0..9 {
        let (mut folder, run) = Folder::resume(dir.path(), &head_of(&plan)).unwrap();
        assert_eq!(run.cells.len(), n_done);
        // Each time one cell is finished and the next one is dropped.
        let mut bench = Fake { stop_at: Some(1), ..Fake::default() };
        let ended = go(&plan, &Remaining::after(&plan, &run, false), &mut folder, &mut bench);
        assert_eq!((ended.n_done, ended.stopped), (n_done + 1, n_done < 8));
        asked.push(bench.asked[0].clone());
    }
    assert_eq!(asked, ids_in_order(&plan));
    assert_eq!(ids(&recorded(dir.path()).cells), asked);
}

#[test]
fn a_run_killed_before_its_record_began_begins_anew() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    for name in ["plan.toml", "environment.json", ".lock"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    fs::create_dir(dir.path().join("data")).unwrap();
    let (folder, run) = Folder::resume(dir.path(), &head_of(&plan)).unwrap();
    assert!(folder.is_new());
    assert_eq!(run.cells, []);
    assert_eq!(recorded(dir.path()).head, head_of(&plan));
}

#[test]
fn where_there_is_no_run_there_is_none_to_go_on_with() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    fs::create_dir_all(dir.path().join("made/data")).unwrap();
    for name in ["", "made", "gone"] {
        let path = if name.is_empty() { dir.path().join("made/data") } else { dir.path().join(name) };
        let error = Folder::resume(&path, &head_of(&plan)).unwrap_err();
        assert_eq!(error.to_string(), format!("no run to resume in {}", path.display()));
        assert_eq!(error.hint().unwrap(), "omit --resume to start a new run there");
    }
    assert!(!dir.path().join("gone").exists() && fs::read_dir(dir.path().join("made")).unwrap().count() == 1);
}

#[test]
fn another_plan_is_refused_with_what_differs() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    drop(Folder::begin(dir.path(), &head_of(&plan)).unwrap());
    let before = fs::read(dir.path().join(RECORD)).unwrap();
    let refuse = |plan: &Plan| match Folder::resume(dir.path(), &head_of(plan)).unwrap_err() {
        Error::Different { what, .. } => what,
        other => panic!("{other}"),
    };
    let other = |from: &str, to: &str| refuse(&plan_of(&SMALL.replace(from, to)));
    assert_eq!(other("seed = 5", "seed = 6"), "seed was 5 and is now 6");
    let what = other("threads = [1, 2, 4]", "threads = [1, 2, 8]");
    assert_eq!(what, "experiment all.factors.threads was [1,2,4] and is now [1,2,8]");
    let what = other("threads = [1, 2, 4]", "threads = [1, 2]");
    assert_eq!(what, "cells was 9 and is now 7; experiment all.factors.threads was [1,2,4] and is now [1,2]");
    assert_eq!(other("path = \"set\"", "path = \"b\""), "dataset set.path was \"set\" and is now \"b\"");
    let full = Plan::new(parse(SMALL).unwrap(), Scale::Full).unwrap();
    assert_eq!(refuse(&full), "scale was \"quick\" and is now \"full\"");
    assert_eq!(fs::read(dir.path().join(RECORD)).unwrap(), before, "nothing was touched");
}

#[test]
fn titles_and_figures_may_change_and_finished_cells_stay() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let record = whole(&plan);
    let torn = &record[..record.len() - 3];
    fs::write(dir.path().join(RECORD), torn).unwrap();
    let figure = "\n[[figure]]\nid = \"f\"\ntitle = \"F\"\nkind = \"bars\"\nexperiment = \"all\"\nx = \"threads\"\n";
    let anew = plan_of(&format!("{SMALL}{figure}"));
    let (mut folder, run) = Folder::resume(dir.path(), &head_of(&anew)).unwrap();
    assert_eq!((run.cells.len(), run.head.spec.figures.len()), (8, 1), "the torn line is gone");
    go(&anew, &Remaining::after(&anew, &run, false), &mut folder, &mut Fake::default());
    let run = recorded(dir.path());
    assert_eq!(ids(&run.cells), ids_in_order(&plan));
    assert_eq!(run.head.spec.figures[0].id, "f");
    assert!(fs::read_to_string(dir.path().join("plan.toml")).unwrap().contains("[[figure]]"));
}

#[test]
fn a_record_damaged_before_its_end_is_refused_and_left_alone() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let damaged = whole(&plan).replacen("\"line\":\"cell\"", "\"line\":\"ce\"", 1);
    fs::write(dir.path().join(RECORD), &damaged).unwrap();
    let error = Folder::resume(dir.path(), &head_of(&plan)).unwrap_err();
    assert!(matches!(error, Error::Record { .. }), "{error}");
    let hint = "delete line 2 and all lines after it, then use --resume; their cells run again";
    assert_eq!(error.hint().unwrap(), hint);
    assert_eq!(fs::read_to_string(dir.path().join(RECORD)).unwrap(), damaged);
}

#[test]
fn a_line_that_cannot_be_kept_stops_the_run_with_a_hint() {
    let plan = plan_of(SMALL);
    let dir = tempfile::tempdir().unwrap();
    drop(Folder::begin(dir.path(), &head_of(&plan)).unwrap());
    let record = dir.path().join(RECORD);
    let (mut folder, run) = Folder::resume(dir.path(), &head_of(&plan)).unwrap();
    // A record on a full device.
    folder.file = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error = folder.append(&StudyLine::Head(Box::new(run.head))).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot append to {}", record.display()));
    assert_eq!(error.hint().unwrap(), "free space and continue with --resume");
}

#[test]
fn data_in_the_folder_of_a_run_goes_where_the_folder_goes() {
    let run = Path::new("/runs/a");
    for (data, kept) in [
        ("/runs/a/data", "data"),
        ("/runs/a/deep/er", "deep/er"),
        ("/runs/a", "."),
        ("/runs/shared", "/runs/shared"),
        ("/runs/a/../elsewhere", "/runs/a/../elsewhere"),
    ] {
        assert_eq!(data_to_keep(run, Path::new(data)), Path::new(kept), "{data}");
        let head = StudyHead { data: Some(kept.to_owned()), ..head_of(&plan_of(SMALL)) };
        let given = StudyHead { command_line: vec!["--data=x".to_owned()], ..head };
        let there = if kept.starts_with('/') { Path::new(data).to_owned() } else { Path::new("/b").join(kept) };
        assert_eq!(data_of(Path::new("/b"), &given).0, there, "{data}");
    }
}

#[test]
fn an_older_record_with_a_whole_path_means_the_folder_it_lies_in() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (dir.path().join("old"), dir.path().join("new"));
    fs::create_dir_all(old.join("data")).unwrap();
    fs::create_dir(&new).unwrap();
    let kept = |data: &Path, words: &[&str]| StudyHead {
        data: Some(data.display().to_string()),
        command_line: words.iter().map(|word| (*word).to_owned()).collect(),
        ..head_of(&plan_of(SMALL))
    };
    let own = kept(&old.join("data"), &["forebay", "study", "run", "s"]);
    assert_eq!(data_of(&old, &own), (old.join("data"), None), "where it was begun");
    assert_eq!(data_of(&new, &own), (new.join("data"), Some(old.join("data"))), "a copy");
    // What was asked for elsewhere stays there, as long as it cannot be the run's own.
    let given = kept(&old.join("data"), &["forebay", "--data", "old/data"]);
    assert_eq!(data_of(&new, &given), (old.join("data"), None));
    fs::create_dir(new.join("data")).unwrap();
    assert_eq!(data_of(&new, &given), (new.join("data"), Some(old.join("data"))));
    let shared = kept(&old, &["forebay", "--data", "old"]);
    assert_eq!(data_of(&new, &shared), (old.clone(), None));
}
