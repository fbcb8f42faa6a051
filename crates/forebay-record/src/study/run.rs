//! The record of a study as JSON lines: a head, then cells in the order in which they finished.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::cell::StudyCell;
use super::spec::{Scale, StudySpec};
use crate::{Environment, Error, SCHEMA, Series, TierKind, upgrade};

/// Plan and machine of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyHead {
    /// Name and version of the record format.
    pub schema: String,
    /// Command that wrote the record.
    pub command: String,
    /// Command line of the run, one word per entry.
    #[serde(default)]
    pub command_line: Vec<String>,
    /// Machine and forebay version.
    #[serde(default)]
    pub environment: Environment,
    /// The study as planned.
    pub spec: StudySpec,
    /// Scale of the run.
    pub scale: Scale,
    /// Number of cells in the plan.
    pub n_cells: u64,
    /// Implementation of each tier.
    #[serde(default)]
    pub tiers: Vec<TierNote>,
    /// Folder of the generated data; `None` where none was generated.
    #[serde(default)]
    pub data: Option<String>,
    /// Remarks that limit what the numbers mean.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Implementation of a tier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TierNote {
    /// Name of the tier.
    pub name: String,
    /// How it is implemented.
    pub kind: TierKind,
    /// Profile or file system.
    pub description: String,
}

/// A resumption after an interruption.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyResumed {
    /// Machine and time of the resumption.
    pub environment: Environment,
    /// Cells finished before the resumption, measured or failed.
    pub n_done: u64,
}

/// A line of `record.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum StudyLine {
    /// First line: the plan and the machine.
    Head(Box<StudyHead>),
    /// A finished cell: measured, failed or left out.
    Cell(Box<StudyCell>),
    /// The run was resumed after an interruption.
    Resumed(Box<StudyResumed>),
}

/// A study's record, complete or not.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyRun {
    /// First line of the record.
    pub head: StudyHead,
    /// In running order; of a cell that was run again, the last result.
    pub cells: Vec<StudyCell>,
    /// One entry per resumption.
    pub resumed: Vec<StudyResumed>,
    /// System activity, if it was recorded.
    pub series: Option<Series>,
}

impl StudyRun {
    /// Reads the lines of a record; also returns how many bytes of the text are intact.
    ///
    /// # Errors
    /// When the first line is no head of a known schema, or a line other than the last is damaged.
    pub fn from_jsonl(text: &str) -> Result<(Self, usize), Error> {
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let (head, schema) = head_of(first)?;
        let mut run = Self { head, cells: Vec::new(), resumed: Vec::new(), series: None };
        let mut sound = first.len();
        for (i, line) in lines.enumerate() {
            let damaged = |reason: String| Error::Line { line: i + 2, offset: sound, reason };
            match upgrade::from_line(&schema, line) {
                // A line without its end may be the beginning of a longer one.
                _ if !line.ends_with('\n') => break,
                Ok(StudyLine::Cell(cell)) => run.cells.push(*cell),
                Ok(StudyLine::Resumed(resumed)) => run.resumed.push(*resumed),
                Ok(StudyLine::Head(_)) => return Err(damaged("a second head".to_owned())),
                Err(error) => return Err(damaged(within_line(&error))),
            }
            sound += line.len();
        }
        keep_the_last(&mut run.cells);
        Ok((run, sound))
    }

    /// Whether every cell of the plan is there.
    pub fn is_complete(&self) -> bool {
        self.cells.len() as u64 >= self.head.n_cells
    }

    /// In running order, without failed and left-out cells.
    pub fn measured<'a>(&'a self, experiment: &'a str) -> impl Iterator<Item = &'a StudyCell> {
        self.cells.iter().filter(move |cell| cell.experiment == experiment && cell.is_measured())
    }
}

impl StudyLine {
    /// Includes the line end.
    pub fn to_jsonl(&self) -> String {
        let json = serde_json::to_string(self).expect("a line has no keys but strings and no number JSON cannot hold");
        json + "\n"
    }
}

/// Later cells replace earlier ones with the same id.
fn keep_the_last(cells: &mut Vec<StudyCell>) {
    let mut seen = HashSet::new();
    let mut is_last: Vec<bool> = cells.iter().rev().map(|cell| seen.insert(cell.id.clone())).collect();
    cells.retain(|_| is_last.pop().expect("a mark a cell"));
}

/// Converted to the current schema; also returns the schema it was written in.
fn head_of(line: &str) -> Result<(StudyHead, String), Error> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
        command: String,
    }
    let Schema { schema, command } = serde_json::from_str(line)?;
    if !upgrade::is_known(&schema) {
        return Err(Error::Schema { found: schema });
    }
    if command != "study" {
        return Err(Error::Command { found: command, expected: "study" });
    }
    match serde_json::from_str(line)? {
        StudyLine::Head(head) if line.ends_with('\n') => Ok((StudyHead { schema: SCHEMA.to_owned(), ..*head }, schema)),
        _ => Err(Error::Line { line: 1, offset: 0, reason: "no whole head".to_owned() }),
    }
}

/// Without serde's line number, which is always 1.
fn within_line(error: &serde_json::Error) -> String {
    let said = error.to_string().replace(" at line 1 column ", " at column ");
    if error.is_data() { said + "; it may come from another version" } else { said }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Design, ExperimentSpec, Level, Scaled, Step};

    fn head() -> StudyHead {
        let spec = StudySpec {
            name: "s".to_owned(),
            title: "a study".to_owned(),
            source: None,
            about: String::new(),
            seed: 7,
            datasets: Vec::new(),
            workloads: Vec::new(),
            tiers: Vec::new(),
            experiments: vec![ExperimentSpec {
                name: "e".to_owned(),
                run: Step::Ingest,
                dataset: None,
                design: Design::Factorial,
                repeats: Scaled::Both(5),
                warmups: Scaled::Each { quick: 0, standard: None, full: 1 },
                factors: [("threads".to_owned(), Scaled::Both(vec![Level::Integer(1), Level::Integer(2)]))].into(),
                settings: [("cold".to_owned(), Scaled::Both(Level::Flag(true)))].into(),
                rules: Vec::new(),
            }],
            references: Vec::new(),
            figures: Vec::new(),
            limits: Vec::new(),
        };
        StudyHead {
            schema: SCHEMA.to_owned(),
            command: "study".to_owned(),
            command_line: Vec::new(),
            environment: Environment::default(),
            spec,
            scale: Scale::Quick,
            n_cells: 2,
            tiers: Vec::new(),
            data: None,
            notes: Vec::new(),
        }
    }

    fn cell(threads: i64) -> StudyCell {
        StudyCell {
            id: format!("e/threads={threads}"),
            experiment: "e".to_owned(),
            step: Step::Ingest,
            factors: [("threads".to_owned(), Level::Integer(threads))].into(),
            started_at: String::new(),
            elapsed_s: 1.0,
            error: Some("no space".to_owned()),
            left_out: None,
            measured: None,
            notes: Vec::new(),
        }
    }

    fn text() -> String {
        let lines = [StudyLine::Head(Box::new(head())), StudyLine::Cell(Box::new(cell(1)))];
        let mut text: String = lines.iter().map(StudyLine::to_jsonl).collect();
        text.push_str(&StudyLine::Cell(Box::new(cell(2))).to_jsonl());
        text
    }

    #[test]
    fn a_record_torn_at_any_byte_gives_the_cells_before_the_tear() {
        let text = text();
        let ends: Vec<usize> = text.match_indices('\n').map(|(i, _)| i + 1).collect();
        for cut in ends[0]..=text.len() {
            let (run, sound) = StudyRun::from_jsonl(&text[..cut]).unwrap();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(run.cells.len() + 1, whole, "cut at {cut}");
            assert_eq!(sound, ends[whole - 1]);
            assert_eq!(run.is_complete(), whole == 3);
        }
        assert!(StudyRun::from_jsonl(&text[..ends[0] - 1]).is_err(), "a torn head is no record");
    }

    #[test]
    fn damage_before_the_end_is_an_error_with_its_place() {
        let text = text().replacen("\"cell\"", "\"ce", 1);
        let offset = text.find('\n').unwrap() + 1;
        let error = StudyRun::from_jsonl(&text).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with(&format!("line 2 of the record, at byte {offset}, is damaged: ")), "{said}");
        let text = self::text().replacen("\"elapsed_s\":1.0,", "", 1);
        let said = StudyRun::from_jsonl(&text).unwrap_err().to_string();
        let wanted = format!("line 2 of the record, at byte {offset}, is damaged: missing field `elapsed_s`");
        assert!(said.starts_with(&wanted) && !said.contains("line 1"), "{said}");
        assert!(said.ends_with("; it may come from another version"), "{said}");
    }

    #[test]
    fn of_a_cell_that_was_run_again_the_last_time_counts() {
        let again = StudyCell { elapsed_s: 7.0, error: None, ..cell(1) };
        let text = text() + &StudyLine::Cell(Box::new(again)).to_jsonl();
        let (run, _) = StudyRun::from_jsonl(&text).unwrap();
        let kept: Vec<(&str, f64)> = run.cells.iter().map(|cell| (cell.id.as_str(), cell.elapsed_s)).collect();
        assert_eq!(kept, [("e/threads=2", 1.0), ("e/threads=1", 7.0)]);
        assert!(run.is_complete());
    }
}
