//! Chrome's Trace Event JSON, which Perfetto opens too.

use std::io::{self, Write};

use super::{Row, Sink, microseconds};
use crate::file::ProcessNote;

/// Writes one JSON object, event by event.
pub struct Chrome<W> {
    out: W,
    is_first: bool,
}

impl<W: Write> Chrome<W> {
    /// # Errors
    /// If the beginning cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        Ok(Self { out, is_first: true })
    }

    /// Writes the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }

    fn next(&mut self) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" };
        self.out.write_all(comma.as_bytes())
    }
}

/// As JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl<W: Write> Sink for Chrome<W> {
    fn process(&mut self, note: &ProcessNote) -> io::Result<()> {
        self.next()?;
        let (pid, name) = (note.pid, quoted(&note.command));
        write!(self.out, r#"{{"name":"process_name","ph":"M","pid":{pid},"args":{{"name":{name}}}}}"#)
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.next()?;
        let Row { pid, thread, category, result, .. } = row;
        let name = quoted(row.name);
        write!(
            self.out,
            r#"{{"name":{name},"cat":"{category}","pid":{pid},"tid":{thread},"ts":{}"#,
            microseconds(row.start_ns)
        )?;
        if *category == "mark" && row.duration_ns == 0 {
            // A moment, shown across its process.
            write!(self.out, r#","ph":"i","s":"p""#)?;
        } else {
            write!(self.out, r#","ph":"X","dur":{}"#, microseconds(row.duration_ns))?;
        }
        let what = if matches!(*category, "read" | "write" | "map") && *result >= 0 { "bytes" } else { "result" };
        write!(self.out, r#","args":{{"{what}":{result}"#)?;
        if !row.file.is_empty() {
            write!(self.out, r#","file":{}"#, quoted(row.file))?;
        }
        if let Some(offset) = row.offset {
            write!(self.out, r#","offset":{offset}"#)?;
        }
        self.out.write_all(b"}}")
    }
}
