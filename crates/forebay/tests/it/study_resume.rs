//! Studies that are killed, stopped or out of room: what is done stays, and `--resume` does the rest.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use forebay_measure::Observer;
use forebay_record::{Environment, StudyRun};
use forebay_study::{Bench, CellPlan, Failed, Folder, Placement, Plan, Remaining, StepResult, run};

use crate::dir::Dir;
use crate::disk::with_mount;
use crate::process::Running;
use crate::study::{IDS, TINY, cells, ids, lines, sorted, with_tiny};

/// The tiny study with cells of about half a second.
fn with_slow_cells() -> Dir {
    let dir = Dir::with_set();
    let study = TINY.replace("make = \"caltech101\"\ncount = { quick = 12, full = 16 }", "path = \"set\"");
    dir.write("tiny.toml", study);
    dir
}

fn n_lines(dir: &Dir) -> usize {
    std::fs::read_to_string(dir.path("out/record.jsonl")).map_or(0, |text| text.matches('\n').count())
}

const RUN: &str = "study run tiny.toml --out out";

#[test]
fn a_killed_study_goes_on_without_a_cell_lost_or_run_twice() {
    let whole = with_slow_cells();
    assert_eq!(whole.run(RUN).code, Some(0));
    let order: Vec<String> = ids(&cells(&whole, "out")).into_iter().map(str::to_owned).collect();
    for n_cells in 0..4 {
        let dir = with_slow_cells();
        let mut running = Running::start(&dir, RUN);
        running.wait_until("the cell", |_| n_lines(&dir) > n_cells);
        running.signal(libc::SIGKILL);
        assert_eq!(running.finish().code, None);
        // A kill may also come in the middle of a line.
        let before = cells(&dir, "out");
        assert!(before.len() >= n_cells);
        dir.edit("out/record.jsonl", |bytes| bytes.extend_from_slice(b"{\"line\":\"cell\",\"id\":\"re"));
        let done = dir.run(&format!("{RUN} --resume"));
        assert_eq!(done.code, Some(0), "{done:?}");
        let after = cells(&dir, "out");
        assert_eq!(ids(&after), order, "after a kill with {} cells done", before.len());
        assert_eq!(after[..before.len()], before, "what was done is as it was");
        let resumed: Vec<_> = lines(&dir, "out").into_iter().filter(|line| line["line"] == "resumed").collect();
        assert_eq!(resumed.len(), 1);
        assert_eq!(resumed[0]["n_done"], before.len());
    }
}

#[test]
fn a_stopped_study_drops_the_cell_at_work_and_says_how_to_go_on() {
    let dir = with_slow_cells();
    let mut running = Running::start(&dir, RUN);
    running.wait_until("the second cell", |_| n_lines(&dir) > 1);
    running.signal(libc::SIGINT);
    let done = running.finish();
    assert_eq!(done.code, Some(1), "{done:?}");
    let n_done = cells(&dir, "out").len();
    assert!((1..4).contains(&n_done), "{n_done} cells");
    assert!(done.stdout.contains(&format!("\ntiny (quick): {n_done} of 4 cells done, 0 failed; ")), "{}", done.stdout);
    let how = "forebay: stopped; resume with: forebay study run tiny.toml --scale quick --out out --resume\n";
    assert!(done.stderr.ends_with(how), "{}", done.stderr);
    let done = dir.run("study run tiny.toml --scale quick --out out --resume");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.stderr.lines().count(), 4 - n_done, "only the rest is run: {}", done.stderr);
    assert_eq!(sorted(ids(&cells(&dir, "out"))), IDS);
    let marks = |name: &str| {
        let text = String::from_utf8(dir.read(name)).unwrap();
        forebay_record::Series::from_csv(&text).unwrap().marks.len()
    };
    let (first, second) = (marks("out/samples.csv"), marks("out/samples-2.csv"));
    assert_eq!(second, 4 - n_done, "the second run has a series of its own");
    assert!((n_done..=n_done + 1).contains(&first), "and a cell that was dropped began in the first: {first}");
    assert!(dir.path("out/report.html").exists());
}

#[test]
fn a_dry_run_of_a_run_to_be_gone_on_with_says_what_is_done_and_what_would_run() {
    let dir = with_tiny();
    assert_eq!(dir.run(RUN).code, Some(0));
    // As if it had been killed behind its second cell.
    let kept: Vec<String> = ids(&cells(&dir, "out")).into_iter().take(2).map(str::to_owned).collect();
    dir.edit("out/record.jsonl", |bytes| {
        let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
        bytes.truncate(ends[2] + 1);
    });
    let before = dir.tree("out");
    let said = dir.met(&format!("{RUN} --resume --dry-run"));
    assert!(said.starts_with("tiny at the quick scale: 4 cells, 2 done, 2 to run\n"), "{said}");
    for id in IDS {
        let word = if kept.iter().any(|kept| kept == id) { "done" } else { "to run" };
        assert!(said.contains(&format!("\n{word}: {id}\n")), "{id}: {said}");
    }
    assert_eq!(dir.tree("out"), before, "nothing was written");
    assert!(dir.met(&format!("{RUN} --dry-run")).starts_with("tiny at the quick scale: 4 cells\n"));
    let said = dir.refused(&format!("{RUN} --resume --dry-run --scale full"));
    assert!(said.contains("the run in this folder has a different plan"), "{said}");
    assert!(dir.refused("study run tiny.toml --out gone --resume --dry-run").contains("gone"), "there is no run");
}

#[test]
fn a_study_stopped_while_its_data_is_made_goes_on_with_that() {
    let dir = with_tiny();
    dir.write("tiny.toml", TINY.replace("quick = 12", "quick = 600").replace("batch = 4", "batch = 4\nbatches = 2"));
    let mut running = Running::start(&dir, RUN);
    let first = "out/data/caltech101-600-seed0/class_001/class_001_000000.jpg";
    running.wait_until("the first image", |_| dir.path(first).exists());
    running.signal(libc::SIGINT);
    let done = running.finish();
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains("\ntiny (quick): 0 of 4 cells done, 0 failed; "), "{}", done.stdout);
    assert!(!dir.path("out/data/caltech101-600-seed0/list.txt").exists(), "it was not finished");
    assert_eq!(dir.run(&format!("{RUN} --resume")).code, Some(0));
    assert_eq!(cells(&dir, "out").len(), 4);
    assert_eq!(dir.images("out/data/caltech101-600-seed0").len(), 600);
}

#[test]
fn a_resumed_study_finds_its_data_where_it_was_made() {
    let dir = with_tiny();
    dir.write("tiny.toml", TINY.replace("threads = [1, 2]", "threads = [1, 2, 3]"));
    let mut running = Running::start(&dir, &format!("{RUN} --data shared"));
    running.wait_until("the first cell", |_| n_lines(&dir) > 1);
    running.signal(libc::SIGKILL);
    running.finish();
    assert_eq!(dir.run(&format!("{RUN} --resume")).code, Some(0));
    assert_eq!(cells(&dir, "out").len(), 6);
    assert!(!dir.path("out/data").exists(), "no second set was made");
}

#[test]
fn a_folder_that_holds_something_is_refused_with_what_to_do() {
    let dir = with_tiny();
    assert_eq!(dir.run(RUN).code, Some(0));
    let before = dir.tree("out");
    let hint = "hint: resume the run with --resume, or give another --out";
    assert_eq!(dir.refused(RUN), format!("forebay: out: the folder is not empty\n{hint}\n"));
    let said = dir.refused(&format!("{RUN} --resume --scale full"));
    let what = "out: the run in this folder has a different plan: scale was \"quick\" and is now \"full\"";
    assert_eq!(said, format!("forebay: {what}\nhint: give another --out, or the study and flags of the first run\n"));
    dir.write("tiny.toml", TINY.replace("seed = 3", "seed = 4"));
    assert!(dir.refused(&format!("{RUN} --resume")).contains("seed was 3 and is now 4"));
    dir.write("mine/thesis.tex", "x");
    let said = dir.refused("study run tiny.toml --out mine");
    assert_eq!(said, "forebay: mine: the folder is not empty\nhint: give another --out\n");
    assert_eq!(dir.refused("study run tiny.toml --out mine --resume"), said);
    assert_eq!(dir.names("mine"), ["thesis.tex"]);
    assert!(dir.refused("study run tiny.toml --resume").contains("--out"), "a run to resume must be named");
    assert_eq!(dir.tree("out"), before, "nothing was touched");
}

#[test]
fn a_run_that_was_never_begun_cannot_be_gone_on_with() {
    let dir = with_tiny();
    std::fs::create_dir(dir.path("empty")).unwrap();
    for out in ["gone", "empty"] {
        let said = dir.refused(&format!("study run tiny.toml --out {out} --resume"));
        let hint = "hint: omit --resume to start a new run there";
        assert_eq!(said, format!("forebay: no run to resume in {out}\n{hint}\n"));
    }
    assert_eq!(dir.names("empty"), [] as [&str; 0]);
    // Killed before its record began, a run is begun anew: nothing of it was interrupted.
    dir.write("killed/plan.toml", "");
    assert_eq!(dir.run("study run tiny.toml --out killed --resume").code, Some(0));
    assert!(lines(&dir, "killed").iter().all(|line| line["line"] != "resumed"));
}

#[test]
fn a_study_that_is_complete_has_nothing_left_to_run() {
    let dir = with_tiny();
    assert_eq!(dir.run(RUN).code, Some(0));
    let before = dir.read("out/record.jsonl");
    let done = dir.run(&format!("{RUN} --resume"));
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    assert!(done.stdout.contains("\ntiny (quick): 4 of 4 cells done, 0 failed; "), "{}", done.stdout);
    assert_eq!(dir.read("out/record.jsonl"), before);
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let dir = with_slow_cells();
    let mut running = Running::start(&dir, RUN);
    running.wait_until("the record", |_| n_lines(&dir) > 0);
    let said = dir.refused(&format!("{RUN} --resume"));
    assert_eq!(said, "forebay: out: another process is running a study in this folder\n");
    running.signal(libc::SIGKILL);
    running.finish();
}

#[test]
fn a_disk_that_fills_up_stops_the_study_and_room_lets_it_go_on() {
    let dir = Dir::with_set();
    let study = TINY
        .replace("make = \"caltech101\"\ncount = { quick = 12, full = 16 }", "path = \"set\"")
        .replace("repeats = 2", "repeats = 40")
        .replace("batch = 4", "batch = 1\nbatches = 1");
    dir.write("tiny.toml", study);
    // A cell's line takes about 25 KB: one or two of them fit.
    let script = "head -c 960K /dev/zero > small/filler
        $forebay study run tiny.toml --out small/run; echo status $?
        test -s small/run/report.html || test ! -e small/run/report.html; echo page $?
        rm small/filler
        $forebay study run tiny.toml --out small/run --resume; echo status $?
        cp small/run/record.jsonl record.jsonl";
    let Some(done) = with_mount(&dir, "mount -t tmpfs -o size=1m none small", script) else { return };
    assert!(done.stdout.starts_with("status 2\npage 0\n"), "a whole page or none: {done:?}");
    assert!(done.stdout.contains("\ntiny (quick): 4 of 4 cells done, 0 failed; "), "{done:?}");
    assert!(done.stdout.ends_with("status 0\n"), "{done:?}");
    let said = "forebay: cannot append to small/run/record.jsonl: No space left on device (os error 28)\n\
                hint: free space and continue with --resume\n";
    assert!(done.stderr.contains(said), "{}", done.stderr);
    std::fs::create_dir(dir.path("kept")).unwrap();
    std::fs::rename(dir.path("record.jsonl"), dir.path("kept/record.jsonl")).unwrap();
    let all = cells(&dir, "kept");
    assert_eq!(sorted(ids(&all)), IDS);
    assert_eq!(ids(&all).into_iter().collect::<BTreeSet<_>>().len(), 4, "none twice");
}

/// Copies a run with one cell of its record, and with data that must be made again.
fn copied_half(dir: &Dir, from: &str, to: &str) {
    assert!(
        std::process::Command::new("cp").arg("-r").arg(dir.path(from)).arg(dir.path(to)).status().unwrap().success()
    );
    for run in [from, to] {
        std::fs::remove_dir_all(dir.path(format!("{run}/data/caltech101-12-seed0"))).unwrap();
    }
    dir.edit(&format!("{to}/record.jsonl"), |bytes| {
        let end = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(1).unwrap().0;
        bytes.truncate(end + 1);
    });
}

#[test]
fn a_copied_run_goes_on_with_its_own_data_and_leaves_the_old_place_alone() {
    let dir = with_tiny();
    assert_eq!(dir.run(RUN).code, Some(0));
    assert_eq!(lines(&dir, "out")[0]["data"], "data", "it goes where the folder goes");
    copied_half(&dir, "out", "copy");
    let before = dir.tree("out");
    let done = dir.run("study run tiny.toml --out copy --resume");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.stderr.contains("another folder"), "{}", done.stderr);
    assert_eq!(sorted(ids(&cells(&dir, "copy"))), IDS);
    assert_eq!(dir.images("copy/data/caltech101-12-seed0").len(), 12);
    assert_eq!(dir.tree("out"), before);
}

#[test]
fn a_moved_run_of_an_earlier_version_goes_on_in_its_folder_and_says_so() {
    let dir = with_tiny();
    assert_eq!(dir.run(RUN).code, Some(0));
    copied_half(&dir, "out", "moved");
    std::fs::remove_dir_all(dir.path("out")).unwrap();
    let (old, new) = (dir.path("out/data"), dir.path("moved/data"));
    let whole = format!("\"data\":\"{}\"", old.display());
    dir.edit("moved/record.jsonl", |bytes| {
        let text = String::from_utf8(std::mem::take(bytes)).unwrap();
        assert!(text.contains("\"data\":\"data\""), "{text}");
        *bytes = text.replacen("\"data\":\"data\"", &whole, 1).into_bytes();
    });
    let done = dir.run("study run tiny.toml --out moved --resume");
    assert_eq!(done.code, Some(0), "{done:?}");
    let (old, new) = (old.display(), new.display());
    let said = format!("forebay: the run folder was moved; its data is in {new}, not in {old}\n");
    assert!(done.stderr.starts_with(&said), "{}", done.stderr);
    assert_eq!(dir.images("moved/data/caltech101-12-seed0").len(), 12);
    assert!(!dir.path("out").exists(), "nothing is made in the old place");
}

/// Gives every cell what it has in a whole run.
struct Known<'a>(&'a StudyRun);

impl Bench for Known<'_> {
    fn measure(&mut self, cell: &CellPlan, _: Observer<'_>) -> Result<StepResult, Failed> {
        let known = self.0.cells.iter().find(|known| known.id == cell.id).ok_or("no such cell")?;
        Ok(StepResult { measured: known.measured.clone(), notes: known.notes.clone() })
    }
}

#[test]
fn a_run_begun_by_a_version_with_another_schema_goes_on_and_is_reported_as_if_it_had_not() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../forebay-report/tests/fixtures/chien/record.jsonl");
    let text = std::fs::read_to_string(fixture).unwrap();
    assert!(text.contains("\"forebay-record/1\""));
    let (whole, _) = StudyRun::from_jsonl(&text).unwrap();
    let plan = Plan::new(whole.head.spec.clone(), whole.head.scale).unwrap();
    let head = plan.head(Vec::new(), Environment::default(), Path::new("data"), &|_| Placement::default());
    let dir = Dir::new();
    dir.write("whole/record.jsonl", &text);
    for n_done in [0, 5, 35] {
        let begun: String = text.split_inclusive('\n').take(1 + n_done).collect();
        let name = format!("resumed-{n_done}");
        dir.write(format!("{name}/record.jsonl"), begun);
        let (mut folder, found) = Folder::resume(&dir.path(&name), &head).unwrap();
        let rest = Remaining::after(&plan, &found, false);
        assert_eq!((rest.n_done, rest.cells.len()), (n_done, 36 - n_done));
        folder.append(&rest.resumed(Environment::default())).unwrap();
        let never = AtomicBool::new(false);
        run(&plan, &rest, &mut folder, &mut Known(&whole), &|_| None, &|_| (), &never).unwrap();
        drop(folder);
        let record = String::from_utf8(dir.read(&format!("{name}/record.jsonl"))).unwrap();
        let (resumed, sound) = StudyRun::from_jsonl(&record).unwrap();
        assert_eq!((sound, resumed.resumed.len(), resumed.is_complete()), (record.len(), 1, true));
        for cell in &whole.cells {
            let again = resumed.cells.iter().find(|again| again.id == cell.id).unwrap();
            assert_eq!((&again.measured, &again.error), (&cell.measured, &cell.error), "{}", cell.id);
        }
        let table = |name: &str| -> BTreeSet<String> {
            dir.met(&format!("report {name} --csv -"))
                .replace(&format!("{name},"), "")
                .lines()
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(table(&name), table("whole"));
        // The table of all cells has their times, which differ.
        let findings =
            |name: &str| dir.met(&format!("report {name}")).split("\nexperiment ").next().unwrap().to_owned();
        assert!(findings(&name).contains("11 of 12 published values agree"));
        assert_eq!(findings(&name), findings("whole"));
    }
}
