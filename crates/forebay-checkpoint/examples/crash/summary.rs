//! The result of a campaign as a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use forebay_checkpoint::SyncPoint;

use crate::campaign::{Done, Found, Tried};
use crate::history::Way;

/// The numbers of a campaign.
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

    /// Protocol points whose syncs could be removed without a loss on any file system.
    pub(crate) fn needless(&self) -> Vec<SyncPoint> {
        let is_found = |point: &SyncPoint| self.tried.iter().any(|t| t.point == *point && t.search.loss.is_some());
        SyncPoint::ALL.into_iter().filter(|point| !is_found(point)).collect()
    }

    /// Cases by fault, file system and way of saving.
    pub(crate) fn table(&self) -> String {
        let ways: Vec<String> = Way::all().into_iter().map(Way::name).collect();
        let mut rows: BTreeMap<(&str, &str), (Vec<usize>, usize)> = BTreeMap::new();
        for done in &self.done {
            let row = rows.entry((done.kind, done.place)).or_insert_with(|| (vec![0; ways.len()], 0));
            let column = ways.iter().position(|way| *way == done.way.name()).expect("one of all ways");
            row.0[column] += done.n_cases;
            row.1 += done.losses.len();
        }
        let mut text = format!("| fault | file system | {} | cases | losses |\n", ways.join(" | "));
        text.push_str(&format!("|---|---|{}\n", "---:|".repeat(ways.len() + 2)));
        for ((kind, place), (cases, n_losses)) in rows {
            let cells: Vec<String> =
                cases.iter().map(|n| if *n == 0 { "–".to_owned() } else { n.to_string() }).collect();
            let n_cases: usize = cases.iter().sum();
            writeln!(text, "| {kind} | {place} | {} | {n_cases} | {n_losses} |", cells.join(" | ")).expect(TAKES);
        }
        text
    }

    /// The result of removing the syncs of each protocol point.
    pub(crate) fn left_out(&self) -> String {
        let mut text = "| removed syncs | where | cases | first loss |\n|---|---|---:|---|\n".to_owned();
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
             {:.0} s.\n\n**{} cases, {} losses.** Each case saves twice, drains and prunes, starting \
             from two drained checkpoints, and injects a fault at one file-system operation; every operation is tried in \
             turn. After the fault: every checkpoint that was reported durable on a tier exists and verifies; every folder \
             with the name of a checkpoint verifies and holds the state of its step; restore returns the newest of them; \
             the next save, drain and restore work. *ext4* and *xfs* are real file systems on loop devices, shut down by \
             `FS_IOC_SHUTDOWN` without a flush; *folder* is an ordinary folder.\n\n{}\n## With one sync removed\n\nThe same \
             cases with the syncs at one point of the protocol removed, until a checkpoint was lost: {n_searched} cases. A \
             file system with a single journal preserves the order of writes, so it survives without some of these syncs. \
             POSIX does not guarantee that order; the model shows the loss.\n\n{}",
            self.seconds,
            self.n_cases(),
            self.losses().len(),
            self.table(),
            self.left_out(),
        )
    }
}

const TAKES: &str = "a string takes all text";
