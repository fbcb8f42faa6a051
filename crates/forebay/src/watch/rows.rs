//! Where the rows go: a table for people, CSV for programs.

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::Result;
use console::Term;
use forebay_observe::{CsvSink, Sink};
use forebay_record::Row;
use forebay_units::PathText;

use super::table::Table;
use crate::output::{Output, remark};

/// Why a watch without a command ends.
pub(super) enum Ended {
    /// It has shown as many rows as were asked for, or its reader has seen enough.
    Enough,
    /// Somebody stopped it.
    Stopped,
    /// Rows could not be written.
    Failed(anyhow::Error),
}

type Writer = Box<dyn Write + Send>;

/// Takes the rows.
pub(super) struct Rows {
    table: Option<(Table, Writer)>,
    csv: Option<CsvSink<Writer>>,
    /// Who is told that it is over; with a command nobody is.
    tell: Option<Sender<Ended>>,
    left: Option<u64>,
}

impl Rows {
    /// Only CSV, to stdout.
    pub(super) fn csv_on_stdout(tell: Sender<Ended>, count: Option<u64>) -> Self {
        let told = tell.clone();
        let csv = CsvSink::new(Box::new(io::stdout()) as Writer, move |error| {
            let _ = told.send(failed(error, "cannot write to stdout"));
        });
        Self { table: None, csv: Some(csv), tell: Some(tell), left: count }
    }

    /// A table to stdout, and CSV to a file if there is one.
    pub(super) fn table_on_stdout(
        csv: Option<&Output>,
        interval: Duration,
        tell: Sender<Ended>,
        count: Option<u64>,
    ) -> Result<Self> {
        let told = tell.clone();
        let csv = csv.map(|output| {
            let what = cannot_write(output.path());
            csv_file(output, move |error| drop(told.send(Ended::Failed(anyhow::Error::new(error).context(what)))))
        });
        let table = Table::new(height(&Term::stdout()), false, interval);
        Ok(Self { table: Some((table, Box::new(io::stdout()))), csv: csv.transpose()?, tell: Some(tell), left: count })
    }

    /// A table to stderr beside a command, and CSV to a file if there is one. Whatever fails, the command goes on.
    pub(super) fn table_on_stderr(csv: Option<&Output>, interval: Duration) -> Result<Self> {
        let csv = csv.map(|output| {
            let what = cannot_write(output.path());
            csv_file(output, move |error| {
                remark(&format!("forebay: {what}: {error}; the rows from here on are not kept"))
            })
        });
        let table = Table::new(height(&Term::stderr()), true, interval);
        Ok(Self { table: Some((table, Box::new(io::stderr()))), csv: csv.transpose()?, tell: None, left: None })
    }

    fn tell(&self, ended: Ended) {
        if let Some(tell) = &self.tell {
            // Only the first word counts; whoever listened is gone by the second.
            let _ = tell.send(ended);
        }
    }
}

impl Sink for Rows {
    fn begin(&mut self, started: Duration, names: &[String]) -> io::Result<()> {
        match &mut self.csv {
            Some(csv) => csv.begin(started, names),
            None => Ok(()),
        }
    }

    fn row(&mut self, row: &Row<'_>) {
        if self.left == Some(0) {
            return;
        }
        if let Some(csv) = &mut self.csv {
            csv.row(row);
        }
        if let Some((table, out)) = &mut self.table {
            let text = table.row(row);
            if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                self.table = None;
                self.tell(failed(error, "cannot write to stdout"));
            }
        }
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                self.tell(Ended::Enough);
            }
        }
    }
}

/// What is wrong with a file, in words.
pub(super) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.escaped())
}

fn csv_file(output: &Output, on_error: impl FnOnce(io::Error) + Send + 'static) -> Result<CsvSink<Writer>> {
    Ok(CsvSink::new(output.open()?, on_error))
}

fn failed(error: io::Error, what: &'static str) -> Ended {
    match error.kind() {
        // The reader, such as `head`, has seen enough.
        ErrorKind::BrokenPipe => Ended::Enough,
        _ => Ended::Failed(anyhow::Error::new(error).context(what)),
    }
}

/// The lines of a terminal; `None` when it is not one.
fn height(term: &Term) -> Option<usize> {
    term.is_term().then(|| usize::from(term.size().0))
}
