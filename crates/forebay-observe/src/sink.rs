//! Sinks: where rows go as they are taken.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use forebay_record::{CsvLines, Row};

/// Receives the rows of a series as they are taken, in the sampler's thread: blocking here delays ticks.
pub trait Sink: Send {
    /// Called before the first tick, with the start time since 1970 and the columns known by then.
    ///
    /// # Errors
    /// If the sink cannot be used; then nothing is observed.
    fn begin(&mut self, started: Duration, names: &[String]) -> io::Result<()> {
        let _ = (started, names);
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>);
}

impl<F: FnMut(&Row<'_>) + Send> Sink for F {
    fn row(&mut self, row: &Row<'_>) {
        self(row);
    }
}

/// Writes rows as CSV, one write per row: a reader sees only whole lines, and a killed writer leaves only whole lines.
///
/// The columns are those known at the start. A column that appears later, such as that of a device used for the first
/// time, is only in the [`Series`](forebay_record::Series).
pub struct CsvSink<W> {
    out: W,
    lines: Option<CsvLines>,
    on_error: Option<Box<dyn FnOnce(io::Error) + Send>>,
}

impl CsvSink<File> {
    /// Creates or truncates the file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path, on_error: impl FnOnce(io::Error) + Send + 'static) -> io::Result<Self> {
        Ok(Self::new(File::create(path)?, on_error))
    }
}

impl<W: Write + Send> CsvSink<W> {
    /// Writes to `out`. The first error goes to `on_error`, and nothing is written after it.
    pub fn new(out: W, on_error: impl FnOnce(io::Error) + Send + 'static) -> Self {
        Self { out, lines: None, on_error: Some(Box::new(on_error)) }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush())
    }
}

impl<W: Write + Send> Sink for CsvSink<W> {
    fn begin(&mut self, started: Duration, names: &[String]) -> io::Result<()> {
        let (lines, head) = CsvLines::begin(started, names);
        self.lines = Some(lines);
        self.write(&head)
    }

    fn row(&mut self, row: &Row<'_>) {
        let Some(lines) = self.lines.as_ref().filter(|_| self.on_error.is_some()) else { return };
        let line = lines.line(row);
        if let Err(error) = self.write(&line)
            && let Some(on_error) = self.on_error.take()
        {
            on_error(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Accepts a limited number of bytes.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failure_is_told_once_and_nothing_is_written_after_it() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&told);
        let mut sink = CsvSink::new(Small(60), move |error| theirs.lock().unwrap().push(error.kind()));
        let names = ["a.b".to_owned()];
        sink.begin(Duration::ZERO, &names).unwrap();
        let row = Row { time_s: 1.0, late_s: 0.0, marks: &[], names: &names, values: &[Some(1.0)] };
        for _ in 0..5 {
            sink.row(&row);
        }
        assert_eq!(*told.lock().unwrap(), [io::ErrorKind::StorageFull]);
        assert_eq!(sink.out.0, 60 - 31 - 16, "one header and one line");
    }

    #[test]
    fn a_sink_that_has_no_room_for_the_header_refuses() {
        let mut sink = CsvSink::new(Small(3), |_| {});
        let error = sink.begin(Duration::ZERO, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
