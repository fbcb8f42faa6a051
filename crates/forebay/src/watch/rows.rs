//! The outputs of a watch: a table for people, CSV for programs.

use std::io::{self, ErrorKind, Write};
use std::sync::mpsc::Sender;
use std::time::Duration;

use anyhow::Result;
use forebay_observe::{CsvSink, Sink};
use forebay_record::Row;

use super::table::Table;
use crate::output::{Output, cannot_write, remark};
use crate::terminal::Stream;

/// Why a watch without a command ends.
pub(super) enum Ended {
    /// All rows were shown, or the reader closed the pipe.
    Enough,
    Stopped,
    Failed(anyhow::Error),
}

type Writer = Box<dyn Write + Send>;

pub(super) struct Rows {
    table: Option<(Table, Writer)>,
    csv: Option<CsvSink<Writer>>,
    /// Receives the end of the watch; `None` with a command.
    tell: Option<Sender<Ended>>,
    left: Option<u64>,
}

impl Rows {
    pub(super) fn csv_on_stdout(tell: Sender<Ended>, count: Option<u64>) -> Self {
        let told = tell.clone();
        let csv = CsvSink::new(Box::new(io::stdout()) as Writer, move |error| {
            let _ = told.send(failed(error, "cannot write to stdout"));
        });
        Self { table: None, csv: Some(csv), tell: Some(tell), left: count }
    }

    /// A table, and CSV if a file is given. With a command, the table goes to stderr, and the command continues even if an
    /// output fails.
    pub(super) fn table(
        csv: Option<&Output>,
        interval: Duration,
        tell: Option<Sender<Ended>>,
        count: Option<u64>,
    ) -> Result<Self> {
        let sink = |output: &Output| -> Result<CsvSink<Writer>> {
            let (what, told) = (cannot_write(output.path()), tell.clone());
            Ok(CsvSink::new(output.open()?, move |error| match told {
                Some(told) => drop(told.send(Ended::Failed(anyhow::Error::new(error).context(what)))),
                None => remark(&format!("forebay: {what}: {error}; later rows are lost")),
            }))
        };
        let csv = csv.map(sink).transpose()?;
        let (stream, out): (Stream, Writer) = match tell {
            Some(_) => (Stream::Stdout, Box::new(io::stdout())),
            None => (Stream::Stderr, Box::new(io::stderr())),
        };
        let term = stream.term();
        let height = term.is_term().then(|| usize::from(term.size().0));
        let table = Table::new(height, stream.width(), tell.is_none(), interval);
        Ok(Self { table: Some((table, out)), csv, tell, left: count })
    }

    fn tell(&self, ended: Ended) {
        if let Some(tell) = &self.tell {
            // Only the first message counts; the receiver is gone by the second.
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

fn failed(error: io::Error, what: &'static str) -> Ended {
    match error.kind() {
        // The reader, for example `head`, has closed the pipe.
        ErrorKind::BrokenPipe => Ended::Enough,
        _ => Ended::Failed(anyhow::Error::new(error).context(what)),
    }
}
