//! DFTracer's compressed JSON lines (`.pfw.gz`), for its analysers.
//!
//! Each file is named once, with a hash that its events refer to. Times are whole microseconds, as DFTracer writes them.

use std::collections::HashSet;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use forebay_units::Fnv;

use super::chrome::quoted;
use super::{Row, Sink};
use crate::file::ProcessNote;

/// Beyond this many names, files are named again rather than remembered.
const MAX_NAMES: usize = 500_000;

/// Writes a line per event.
pub struct Dftracer<W: Write> {
    out: GzEncoder<W>,
    named: HashSet<u64>,
    n: u64,
}

impl<W: Write> Dftracer<W> {
    /// # Errors
    /// If the beginning cannot be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut out = GzEncoder::new(out, Compression::new(4));
        out.write_all(b"[\n")?;
        Ok(Self { out, named: HashSet::new(), n: 0 })
    }

    /// Writes the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn end(self) -> io::Result<()> {
        self.out.finish()?.flush()
    }

    fn number(&mut self) -> u64 {
        self.n += 1;
        self.n - 1
    }
}

impl<W: Write> Sink for Dftracer<W> {
    fn process(&mut self, note: &ProcessNote) -> io::Result<()> {
        let (id, pid, name) = (self.number(), note.pid, quoted(&note.command));
        let value = Fnv::of(note.command.as_bytes());
        write!(self.out, r#"{{"id":{id},"name":"PR","cat":"dftracer","pid":{pid},"tid":{pid},"ph":"M","args":{{"#)?;
        writeln!(self.out, r#""name":{name},"value":"{value:016x}"}}}}"#)
    }

    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let Row { pid, thread, name, result, .. } = row;
        let file = (!row.file.is_empty()).then(|| Fnv::of(row.file.as_bytes()));
        if let Some(file) = file {
            if self.named.len() >= MAX_NAMES {
                self.named.clear();
            }
            if self.named.insert(file) {
                let (id, path) = (self.number(), quoted(row.file));
                write!(
                    self.out,
                    r#"{{"id":{id},"name":"FH","cat":"dftracer","pid":{pid},"tid":{thread},"ph":"M","args":{{"#
                )?;
                writeln!(self.out, r#""name":{path},"value":"{file:016x}"}}}}"#)?;
            }
        }
        let id = self.number();
        let category = match row.category {
            "mark" => "PIPELINE",
            _ if name.starts_with('f') && ["fopen", "fread", "fwrite", "fclose", "fseek", "fflush"].contains(name) => {
                "STDIO"
            }
            _ => "POSIX",
        };
        // Rounded at both ends, so that nested events stay nested.
        let (start, end) = (row.start_ns / 1_000, (row.start_ns + row.duration_ns) / 1_000);
        let (name, duration) = (quoted(name), end - start);
        write!(self.out, r#"{{"id":{id},"name":{name},"cat":"{category}","pid":{pid},"tid":{thread},"#)?;
        write!(self.out, r#""ts":{start},"dur":{duration},"ph":"X","args":{{"ret":{result}"#)?;
        if let Some(file) = file {
            write!(self.out, r#","fhash":"{file:016x}""#)?;
        }
        if let Some(offset) = row.offset {
            write!(self.out, r#","offset":{offset}"#)?;
        }
        self.out.write_all(b"}}\n")
    }
}
