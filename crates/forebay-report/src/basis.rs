//! What may be concluded from a cell: nothing where others disturbed its repeats, and little where it was measured once.
//!
//! The numbers of a disturbed cell are shown with a [`MARK`] wherever they are, and no sentence rests on them. How far the runs of a cell
//! lie apart that was measured once is not known: a sentence tells it from another only where the two differ by more than any two repeats
//! of a cell in the same record do, or by more than 10 % where no cell was repeated.

use std::borrow::Cow;
use std::cell::OnceCell;

use forebay_record::{AnyCell, Disturbed, Measured, StudyCell, StudyRun};
use forebay_units::count;

use crate::run::Run;

pub(crate) const MARK: &str = "*";
pub(crate) const LEGEND: &str = "* Disturbed by other processes; not judged.";
/// What runs of a cell are taken to vary by where none was repeated, as a share.
const ASSUMED: f64 = 0.10;

/// A text with the mark, if it is about a disturbed cell.
pub(crate) fn marked(text: String, disturbed: Option<Disturbed>) -> String {
    if disturbed.is_some() { text + MARK } else { text }
}

/// How many of a cell's repeats were disturbed, and by what: "2 of 3 repeats: other processes used 40 % of the processors".
pub(crate) fn said(cell: &dyn AnyCell) -> Option<String> {
    let disturbed = cell.disturbed()?;
    Some(format!("{} of {}: {}", disturbed.repeats, count(cell.n_repeats() as u64, "repeat"), disturbed.cause()))
}

impl<'a> Run<'a> {
    /// The run without what others disturbed: what sentences are made from. `None` where nothing was.
    pub(crate) fn sound(&self) -> Option<Run<'a>> {
        self.study.cells.iter().any(|cell| cell.disturbed().is_some()).then(|| {
            let StudyRun { head, cells, resumed, series } = &*self.study;
            let cells = cells.iter().filter_map(sound).collect();
            let study = StudyRun { head: head.clone(), cells, resumed: resumed.clone(), series: series.clone() };
            let (short, study) = (self.short.clone(), Cow::Owned(study));
            Run { name: self.name, short, record: self.record, study, noise: OnceCell::new() }
        })
    }

    /// The name of a cell that is left as the only one of its kind, since others were disturbed.
    pub(crate) fn if_left(&self, cell: &StudyCell) -> String {
        let is_alone = self.head().n_cells == self.study.cells.len() as u64;
        if is_alone { String::new() } else { format!("{}: ", self.name_of(cell)) }
    }

    /// How far two runs of the same cell may lie apart, as a share: as far as the repeats of any cell do that nothing disturbed.
    pub(crate) fn noise(&self) -> f64 {
        let spreads = || {
            let cells = self.study.cells.iter().filter_map(StudyCell::result).flat_map(Measured::cells);
            let repeated = cells.filter(|cell| cell.n_repeats() > 1 && cell.disturbed().is_none());
            repeated.filter_map(|cell| cell.spread()).filter(|spread| spread.is_finite())
        };
        // A spread is half of a range.
        *self.noise.get_or_init(|| spreads().reduce(f64::max).map_or(ASSUMED, |widest| 2.0 * widest))
    }

    /// Whether cells with this ratio of their values may be told apart: always, unless one of them was measured once.
    pub(crate) fn differ(&self, cells: &[&StudyCell], ratio: f64) -> bool {
        let is_once = cells.iter().any(|cell| cell.n_repeats() < 2);
        !is_once || ratio.max(1.0 / ratio) - 1.0 > self.noise()
    }
}

/// The cell with those of its measurements that nothing disturbed; `None` where none is left.
fn sound(cell: &StudyCell) -> Option<StudyCell> {
    match &cell.measured {
        _ if cell.disturbed().is_none() => Some(cell.clone()),
        Some(Measured::Probe(all)) => {
            let left: Vec<_> = all.iter().filter(|probe| probe.disturbed.is_none()).cloned().collect();
            (!left.is_empty()).then(|| StudyCell { measured: Some(Measured::Probe(left)), ..cell.clone() })
        }
        _ => None,
    }
}
