//! Order, failures, stops, and what a folder keeps.

use super::*;
use std::sync::Mutex;

use crate::{Error, Event as Told};

#[test]
fn every_cell_is_run_once_in_the_order_of_the_seed() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let mut folder = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    let mut bench = Fake::default();
    let ended = go(&plan, &Remaining::whole(&plan), &mut folder, &mut bench);
    assert_eq!(ended, Outcome { n_cells: 9, n_done: 9, n_failed: 0, n_left_out: 0, stopped: false });
    assert_eq!(bench.asked, ids_in_order(&plan));
    assert_ne!(bench.asked, plan.cells.iter().map(|cell| cell.id.clone()).collect::<Vec<_>>(), "not as in the file");
    let run = recorded(dir.path());
    assert_eq!(ids(&run.cells), bench.asked);
    assert!(run.is_complete());
    assert_eq!(run.head, head_of(&plan));
}

#[test]
fn another_seed_gives_another_order_of_the_same_cells() {
    let other = plan_of(&SMALL.replace("seed = 5", "seed = 6"));
    let (a, b) = (ids_in_order(&plan_of(SMALL)), ids_in_order(&other));
    assert_ne!(a, b);
    assert_eq!(a.iter().collect::<HashSet<_>>(), b.iter().collect::<HashSet<_>>());
}

#[test]
fn a_failing_cell_is_kept_with_its_reason_and_the_study_goes_on() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let mut folder = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    let failing = ["all/read_only=true/threads=2".to_owned()];
    let mut bench = Fake { failing: failing.into(), ..Fake::default() };
    let ended = go(&plan, &Remaining::whole(&plan), &mut folder, &mut bench);
    assert_eq!(ended, Outcome { n_cells: 9, n_done: 9, n_failed: 1, n_left_out: 0, stopped: false });
    let failed: Vec<StudyCell> = recorded(dir.path()).cells.into_iter().filter(|cell| cell.error.is_some()).collect();
    assert_eq!(ids(&failed), ["all/read_only=true/threads=2"]);
    assert_eq!(failed[0].error.as_deref(), Some("the device is gone"));
}

#[test]
fn failed_cells_are_done_unless_they_shall_be_tried_again() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let failing = ["one/block=4KiB/depth=1".to_owned(), "all/read_only=true/threads=2".to_owned()];
    let mut folder = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    go(&plan, &Remaining::whole(&plan), &mut folder, &mut Fake { failing: failing.clone().into(), ..Fake::default() });
    drop(folder);
    let (_, run) = Folder::resume(dir.path(), &head_of(&plan)).unwrap();
    let rest = Remaining::after(&plan, &run, false);
    assert_eq!((rest.cells.len(), rest.n_done, rest.n_failed), (0, 9, 2));
    let (mut folder, run) = Folder::resume(dir.path(), &head_of(&plan)).unwrap();
    let mut bench = Fake { failing: [failing[0].clone()].into(), ..Fake::default() };
    let ended = go(&plan, &Remaining::after(&plan, &run, true), &mut folder, &mut bench);
    assert_eq!(bench.asked.iter().collect::<HashSet<_>>(), failing.iter().collect::<HashSet<_>>());
    assert_eq!(ended, Outcome { n_cells: 9, n_done: 9, n_failed: 1, n_left_out: 0, stopped: false });
    let run = recorded(dir.path());
    assert_eq!(run.cells.len(), 9, "the last time of each counts");
    assert_eq!(run.cells.iter().filter(|cell| cell.error.is_some()).count(), 1);
}

#[test]
fn a_stop_drops_the_cell_at_work_and_keeps_those_before() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let mut folder = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    let mut bench = Fake { stop_at: Some(4), ..Fake::default() };
    let ended = go(&plan, &Remaining::whole(&plan), &mut folder, &mut bench);
    assert_eq!(ended, Outcome { n_cells: 9, n_done: 4, n_failed: 0, n_left_out: 0, stopped: true });
    assert_eq!(ids(&recorded(dir.path()).cells), ids_in_order(&plan)[..4]);
    assert_eq!(bench.asked.len(), 5);
}

#[test]
fn an_observer_hears_of_every_cell_and_of_the_time_left() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let mut folder = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    let heard = Mutex::new(Vec::new());
    let hear = |text: String| heard.lock().unwrap().push(text);
    let observe = |event: Told<'_>| match event {
        Told::Started { cell, at } => hear(format!("start {} {}/{}", cell.id, at.n_done, at.n_cells)),
        Told::Within(event) => assert_eq!(event, Event::Moved { images: 1, bytes: 2 }),
        Told::Finished { cell, at } => {
            assert!(at.left_s.unwrap() <= (at.n_cells - at.n_done) as f64, "cells took less than their second");
            hear(format!("end {} {}/{}", cell.id, at.n_done, at.n_cells));
        }
    };
    let never = AtomicBool::new(false);
    run(&plan, &Remaining::whole(&plan), &mut folder, &mut Fake::default(), &|_| Some(1.0), &observe, &never).unwrap();
    let wanted = ids_in_order(&plan).into_iter().enumerate();
    let wanted = wanted.flat_map(|(i, id)| [format!("start {id} {i}/9"), format!("end {id} {}/9", i + 1)]);
    assert_eq!(heard.into_inner().unwrap(), wanted.collect::<Vec<_>>());
}

#[test]
fn a_folder_that_is_not_empty_is_refused_with_what_to_do() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    std::fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    for opened in
        [Folder::begin(dir.path(), &head_of(&plan)).map(drop), Folder::resume(dir.path(), &head_of(&plan)).map(drop)]
    {
        let error = opened.unwrap_err();
        assert!(error.to_string().ends_with("the folder is not empty"), "{error}");
        assert_eq!(error.hint().unwrap(), "give another --out");
    }
    let run = dir.path().join("run");
    drop(Folder::begin(&run, &head_of(&plan)).unwrap());
    let error = Folder::begin(&run, &head_of(&plan)).unwrap_err();
    assert_eq!(error.hint().unwrap(), "resume the run with --resume, or give another --out");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    let _first = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    assert!(matches!(Folder::resume(dir.path(), &head_of(&plan)), Err(Error::Busy { .. })));
}

#[test]
fn the_plan_in_the_folder_is_a_study_that_can_be_run() {
    let (dir, plan) = (tempfile::tempdir().unwrap(), plan_of(SMALL));
    Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    let text = std::fs::read_to_string(dir.path().join("plan.toml")).unwrap();
    assert!(
        text.starts_with("# The study as it was run. To run it again: forebay study run plan.toml --scale quick\n")
    );
    assert_eq!(parse(&text).unwrap(), plan.spec);
    let environment = std::fs::read_to_string(dir.path().join("environment.json")).unwrap();
    assert_eq!(serde_json::from_str::<Environment>(&environment).unwrap(), Environment::default());
}

#[test]
fn built_in_studies_can_be_planned_and_written_again() {
    for name in crate::built_in() {
        let spec = crate::find(name).unwrap().spec;
        assert_eq!(spec.name, name);
        for scale in [Scale::Quick, Scale::Full] {
            let plan = Plan::new(spec.clone(), scale).unwrap();
            assert_eq!(parse(&toml::to_string_pretty(&plan.spec).unwrap()).unwrap(), plan.spec);
            // What the machine has is in the plan by then, so that it is the same plan on any other.
            let elsewhere = Plan::for_cores(plan.spec.clone(), scale, 77).unwrap();
            assert_eq!((elsewhere.spec, elsewhere.cells), (plan.spec, plan.cells));
        }
    }
}

#[test]
fn a_cell_that_is_left_out_is_kept_with_its_reason_and_run_where_it_fits() {
    let dir = tempfile::tempdir().unwrap();
    let mut plan = plan_of(SMALL);
    plan.cells[2].left_out = Some("its batches take 9.0 TB of memory".to_owned());
    let mut folder = Folder::begin(dir.path(), &head_of(&plan)).unwrap();
    let mut bench = Fake::default();
    let ended = go(&plan, &Remaining::whole(&plan), &mut folder, &mut bench);
    assert_eq!(ended, Outcome { n_cells: 9, n_done: 9, n_failed: 0, n_left_out: 1, stopped: false });
    assert!(!bench.asked.contains(&plan.cells[2].id));
    let run = recorded(dir.path());
    let left: Vec<_> = run.cells.iter().filter(|cell| !cell.is_measured()).collect();
    assert_eq!((left.len(), &left[0].id), (1, &plan.cells[2].id));
    assert_eq!(left[0].left_out, plan.cells[2].left_out);
    let again = Remaining::after(&plan, &run, true);
    assert_eq!((again.cells.len(), again.n_done, again.n_failed, again.n_left_out), (0, 9, 0, 1));
    plan.cells[2].left_out = None;
    assert_eq!(Remaining::after(&plan, &run, false).cells, [2], "a larger machine runs it");
}
