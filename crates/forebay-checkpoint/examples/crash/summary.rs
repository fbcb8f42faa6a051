//! What a campaign found, as a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use forebay_checkpoint::SyncPoint;

use crate::campaign::{Done, Found, Tried};
use crate::history::Way;

/// The numbers that a campaign is judged by.
pub(crate) struct Summary {
    done: Vec<Done>,
    tried: Vec<Tried>,
    pub(crate) seconds: f64,
}

impl Summary {
    pub(crate) fn of(found: Found, seconds: f64) -> Self {
        const WHOLE: &str = "no holder of this lock panics";
        let (done, tried) = (found.done.into_inner().expect(WHOLE), found.tried.into_inner().expect(WHOLE));
        Self { done, tried, seconds }
    }

    pub(crate) fn n_cases(&self) -> usize {
        self.done.iter().map(|done| done.n_cases).sum()
    }

    pub(crate) fn losses(&self) -> Vec<&String> {
        self.done.iter().flat_map(|done| &done.losses).collect()
    }

    /// Places whose syncs could be left out without a loss anywhere.
    pub(crate) fn needless(&self) -> Vec<SyncPoint> {
        let is_found = |point: &SyncPoint| self.tried.iter().any(|t| t.point == *point && t.search.loss.is_some());
        SyncPoint::ALL.into_iter().filter(|point| !is_found(point)).collect()
    }

    /// Cases by kind and place, and by way of saving.
    pub(crate) fn table(&self) -> String {
        let ways: Vec<String> = Way::all().into_iter().map(Way::name).collect();
        let mut rows: BTreeMap<(&str, &str), (Vec<usize>, usize)> = BTreeMap::new();
        for done in &self.done {
            let row = rows.entry((done.kind, done.place)).or_insert_with(|| (vec![0; ways.len()], 0));
            let column = ways.iter().position(|way| *way == done.way.name()).expect("one of all ways");
            row.0[column] += done.n_cases;
            row.1 += done.losses.len();
        }
        let mut text = format!("| what happens | where | {} | cases | losses |\n", ways.join(" | "));
        text.push_str(&format!("|---|---|{}\n", "---:|".repeat(ways.len() + 2)));
        for ((kind, place), (cases, n_losses)) in rows {
            let cells: Vec<String> =
                cases.iter().map(|n| if *n == 0 { "–".to_owned() } else { n.to_string() }).collect();
            let n_cases: usize = cases.iter().sum();
            writeln!(text, "| {kind} | {place} | {} | {n_cases} | {n_losses} |", cells.join(" | ")).expect(TAKES);
        }
        text
    }

    /// What leaving out each place's syncs led to.
    pub(crate) fn left_out(&self) -> String {
        let mut text = "| syncs left out | where | cases | first loss |\n|---|---|---:|---|\n".to_owned();
        for point in SyncPoint::ALL {
            for tried in self.tried.iter().filter(|tried| tried.point == point) {
                let loss = tried.search.loss.as_deref().unwrap_or("none");
                let name = format!("{point:?}").to_lowercase();
                writeln!(text, "| {name} | {} | {} | {loss} |", tried.place, tried.search.n_cases).expect(TAKES);
            }
        }
        text
    }

    pub(crate) fn page(&self, date: &str, kernel: &str, n_cores: usize) -> String {
        let n_searched: usize = self.tried.iter().map(|tried| tried.search.n_cases).sum();
        format!(
            "# Crash campaign\n\nWritten by `cargo xtask crash --summary FILE`. {date}, Linux {kernel}, {n_cores} cores, \
             {:.0} s.\n\n**{} cases, {} losses.** Each case is a history of two saves, a drain and a prune after two \
             drained checkpoints, with something that goes wrong at one of its file-system operations (each of them in \
             turn). After it: what was reported durable on a tier is there and verifies; whatever has a checkpoint's name \
             verifies and holds the state of its step; restore returns the newest of them; the next save, drain and \
             restore work. *ext4* and *xfs* are real ones on loop devices, cut off by `FS_IOC_SHUTDOWN` without a flush; \
             *folder* is a plain folder.\n\n{}\n## One sync left out\n\nThe same cases with the syncs of one place left out, until \
             something was lost: {n_searched} cases. A file system with one journal keeps the order of what it writes, so \
             that some of these syncs are needed only where nothing promises that: there the model shows the loss.\n\n{}",
            self.seconds,
            self.n_cases(),
            self.losses().len(),
            self.table(),
            self.left_out(),
        )
    }
}

const TAKES: &str = "a string takes all text";
