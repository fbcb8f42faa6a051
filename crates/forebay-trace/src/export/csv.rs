//! Comma-separated values with a head line.

use std::io::{self, Write};

use super::{Row, Sink};
use crate::file::ProcessNote;

/// Writes a line per event.
pub struct Csv<W> {
    out: W,
}

impl<W: Write> Csv<W> {
    /// # Errors
    /// If the head cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"pid,thread,start_ns,duration_ns,name,category,result,offset,file\n")?;
        Ok(Self { out })
    }
}

impl<W: Write> Sink for Csv<W> {
    fn process(&mut self, _: &ProcessNote) -> io::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let Row { pid, thread, start_ns, duration_ns, name, category, result, .. } = row;
        let offset = row.offset.map(|offset| offset.to_string()).unwrap_or_default();
        write!(self.out, "{pid},{thread},{start_ns},{duration_ns},{name},{category},{result},{offset},")?;
        if row.file.contains(['"', ',', '\n', '\r']) {
            writeln!(self.out, "\"{}\"", row.file.replace('"', "\"\""))
        } else {
            writeln!(self.out, "{}", row.file)
        }
    }
}
