//! The events of a trace for other tools, one by one: memory is that of one chunk and of the names of open files.
//!
//! [`export`] reads a trace and passes each event that is wanted to a [`Sink`] with the path of its file. Times count from the start of
//! the job. Events come in the order in which they ended, process by process within a chunk.

mod chrome;
mod csv;
mod dftracer;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use forebay_interpose::layout::Class;
use forebay_units::PathText;

pub use chrome::Chrome;
pub use csv::Csv;
pub use dftracer::Dftracer;

use crate::event::{Entry, Event, MarkKind, Op};
use crate::file::{Chunk, Error, ProcessNote, Reader};

/// Which events are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Events that end after this, in nanoseconds since the job began.
    pub from_ns: u64,
    /// Events that begin before this.
    pub to_ns: u64,
    /// Events of this process.
    pub pid: Option<u32>,
    /// Events of at least this duration.
    pub min_duration_ns: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self { from_ns: 0, to_ns: u64::MAX, pid: None, min_duration_ns: 0 }
    }
}

/// An event with the names of what it was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// Number of the process.
    pub pid: u32,
    /// Number of the thread.
    pub thread: u32,
    /// Nanoseconds since the job began.
    pub start_ns: u64,
    /// Nanoseconds.
    pub duration_ns: u64,
    /// The call or the mark.
    pub name: &'a str,
    /// What kind of call: `read`, `write`, `open`, `metadata`, `sync`, `map`; `mark`, `exec`, `io_uring`.
    pub category: &'static str,
    /// The file, program or phase; empty where there is none.
    pub file: &'a str,
    /// Bytes or what else it returned; negative is an error number.
    pub result: i64,
    /// Where in the file a call with an offset began.
    pub offset: Option<u64>,
}

/// Takes events and writes them somewhere.
pub trait Sink {
    /// A process that events may follow of.
    ///
    /// # Errors
    /// If it cannot be written.
    fn process(&mut self, note: &ProcessNote) -> io::Result<()>;

    /// An event.
    ///
    /// # Errors
    /// If it cannot be written.
    fn row(&mut self, row: &Row<'_>) -> io::Result<()>;
}

/// What an export had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exported {
    /// Events passed on.
    pub n_rows: u64,
    /// Events of the trace.
    pub n_events: u64,
    /// Every so many calls are in the trace.
    pub kept_every: u32,
    /// Bytes at the end that could not be read.
    pub n_damaged: u64,
}

/// Why an export ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] Error),
    /// The sink cannot write.
    #[error("cannot write the events")]
    Sink(#[from] io::Error),
}

/// Passes the events of a window to a sink. `stop` ends it early, with an error.
///
/// # Errors
/// If this is no trace, or the sink fails.
pub fn export(
    bytes: &[u8],
    window: &Window,
    sink: &mut dyn Sink,
    stop: &dyn Fn() -> bool,
) -> Result<Exported, ExportError> {
    let mut reader = Reader::new(bytes)?;
    let mut exported = Exported { kept_every: 1, ..Exported::default() };
    let mut processes: HashMap<u32, Process> = HashMap::new();
    let mut started_ns = 0;
    for chunk in reader.by_ref() {
        if stop() {
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        match chunk {
            Chunk::Head(head) => started_ns = head.started_ns,
            Chunk::Process(index, note) => {
                let is_wanted = window.pid.is_none_or(|pid| pid == note.pid);
                if is_wanted {
                    sink.process(&note)?;
                }
                processes.insert(index, Process { pid: note.pid, is_wanted, ..Process::default() });
            }
            Chunk::Events { process, every, entries } => {
                exported.kept_every = exported.kept_every.max(every);
                let of = processes.entry(process).or_default();
                for entry in entries {
                    match entry {
                        Entry::Text { file, text } => of.named(file, &text),
                        Entry::Event(event) => {
                            exported.n_events += 1;
                            exported.n_rows += u64::from(of.event(&event, started_ns, window, sink)?);
                        }
                    }
                }
            }
        }
    }
    exported.n_damaged = (bytes.len() - reader.at()) as u64;
    Ok(exported)
}

/// A process with the names of its open files.
#[derive(Default)]
struct Process {
    pid: u32,
    is_wanted: bool,
    names: HashMap<u32, Arc<str>>,
}

impl Process {
    fn named(&mut self, file: u32, text: &[u8]) {
        let path: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(text);
        self.names.insert(file, Arc::from(path.escaped().as_ref()));
    }

    fn event(&mut self, event: &Event, started_ns: u64, window: &Window, sink: &mut dyn Sink) -> io::Result<bool> {
        let name = self.names.get(&event.file).cloned();
        // Numbers of files are not used again.
        if matches!(event.op, Op::CLOSE | Op::FCLOSE | Op::EXEC)
            || (event.op.class() == Some(Class::Open) && event.result < 0)
        {
            self.names.remove(&event.file);
        }
        let Some((name_of, category)) = words(event) else { return Ok(false) };
        let start_ns = event.start_ns.saturating_sub(started_ns);
        let is_within = start_ns < window.to_ns
            && start_ns.saturating_add(event.duration_ns) >= window.from_ns
            && event.duration_ns >= window.min_duration_ns;
        if !self.is_wanted || !is_within {
            return Ok(false);
        }
        sink.row(&Row {
            pid: self.pid,
            thread: event.thread,
            start_ns,
            duration_ns: event.duration_ns,
            name: name_of,
            category,
            file: name.as_deref().unwrap_or(""),
            result: event.result,
            offset: event.op.has_offset().then_some(event.arg),
        })?;
        Ok(true)
    }
}

/// Name and category; `None` for what is no event of the job.
fn words(event: &Event) -> Option<(&'static str, &'static str)> {
    let category = match event.op {
        // The beginning of a fetch; its end has all.
        Op::MARK if event.mark == MarkKind::FETCH && event.result < 0 => return None,
        Op::MARK => return Some((event.mark.name(), "mark")),
        Op::EXEC => "exec",
        Op::URING => "io_uring",
        op => match op.class()? {
            Class::Read => "read",
            Class::Write => "write",
            Class::Open => "open",
            Class::Meta => "metadata",
            Class::Sync => "sync",
            Class::Map => "map",
            Class::Event => return None,
        },
    };
    Some((event.op.name(), category))
}

/// Microseconds with nanoseconds behind the point.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Head, Writer};

    /// Two processes; the first reads a file with a quote in its name, fails to open another, and trains.
    fn trace() -> Vec<u8> {
        let mut file = Vec::new();
        let head = Head { started_ns: 1_000_000, ..Head::default() };
        let mut writer = Writer::new(&mut file, &head).unwrap();
        let note = |pid| ProcessNote { pid, command: format!("python {pid}"), ..ProcessNote::default() };
        let (one, two) = (writer.process(&note(7)).unwrap(), writer.process(&note(8)).unwrap());
        let event = |op, at_us: u64, file, result| {
            let (start_ns, duration_ns) = (1_000_000 + at_us * 1_000, 2_500);
            Entry::Event(Event { op, start_ns, duration_ns, thread: 70, file, result, arg: 64, ..Event::default() })
        };
        let text = |file, text: &[u8]| Entry::Text { file, text: text.to_vec() };
        for entry in [
            text(1, b"/data/a\"b,c.bin"),
            event(Op::OPEN, 10, 1, 3),
            event(Op::PREAD, 20, 1, 4_096),
            event(Op::CLOSE, 30, 1, 0),
            text(2, b"/no"),
            event(Op::OPEN, 40, 2, -2),
            Entry::Event(Event { mark: MarkKind::STEP, start_ns: 1_050_000, thread: 70, ..Event::default() }),
        ] {
            writer.push(one, &entry).unwrap();
        }
        writer.push(two, &event(Op::STAT, 60, 0, 0)).unwrap();
        writer.flush().unwrap();
        drop(writer);
        file
    }

    #[derive(Default)]
    struct Kept(Vec<String>);

    impl Sink for Kept {
        fn process(&mut self, note: &ProcessNote) -> io::Result<()> {
            self.0.push(format!("process {}", note.pid));
            Ok(())
        }

        fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
            self.0.push(format!("{} {} {} {}", row.start_ns, row.name, row.file, row.result));
            Ok(())
        }
    }

    fn kept(window: Window) -> (Vec<String>, Exported) {
        let mut kept = Kept::default();
        let exported = export(&trace(), &window, &mut kept, &|| false).unwrap();
        (kept.0, exported)
    }

    #[test]
    fn every_event_has_its_time_and_file_and_the_window_leaves_some_out() {
        let (all, exported) = kept(Window::default());
        assert_eq!(
            all,
            [
                "process 7",
                "process 8",
                "10000 open /data/a\"b,c.bin 3",
                "20000 pread /data/a\"b,c.bin 4096",
                "30000 close /data/a\"b,c.bin 0",
                "40000 open /no -2",
                "50000 step  0",
                "60000 stat  0",
            ]
        );
        assert_eq!((exported.n_rows, exported.n_events, exported.n_damaged), (6, 6, 0));
        let n = |window: Window| kept(window).1.n_rows;
        assert_eq!(n(Window { from_ns: 31_000, ..Window::default() }), 4);
        assert_eq!(n(Window { to_ns: 30_000, ..Window::default() }), 2);
        assert_eq!(n(Window { pid: Some(8), ..Window::default() }), 1);
        assert_eq!(n(Window { min_duration_ns: 2_501, ..Window::default() }), 0);
    }

    #[test]
    fn a_damaged_end_is_counted_and_a_stop_is_an_error() {
        let whole = trace();
        let mut kept = Kept::default();
        let cut = &whole[..whole.len() - 3];
        assert!(export(cut, &Window::default(), &mut kept, &|| false).unwrap().n_damaged > 0);
        assert!(matches!(export(&whole, &Window::default(), &mut kept, &|| true), Err(ExportError::Sink(_))));
        assert!(matches!(export(b"x", &Window::default(), &mut kept, &|| false), Err(ExportError::Trace(_))));
    }

    #[test]
    fn chrome_csv_and_dftracer_have_the_same_events() {
        let window = Window::default();
        let mut out = Vec::new();
        let mut chrome = Chrome::new(&mut out).unwrap();
        export(&trace(), &window, &mut chrome, &|| false).unwrap();
        chrome.end().unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        let pread = events.iter().find(|event| event["name"] == "pread").unwrap();
        assert_eq!((&pread["ts"], &pread["dur"], &pread["ph"]), (&20.0.into(), &2.5.into(), &"X".into()));
        assert_eq!((&pread["args"]["offset"], &pread["args"]["bytes"]), (&64.into(), &4_096.into()));
        assert_eq!((&pread["args"]["file"], events.len()), (&"/data/a\"b,c.bin".into(), 8));

        let mut out = Vec::new();
        export(&trace(), &window, &mut Csv::new(&mut out).unwrap(), &|| false).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 7);
        assert_eq!(text.lines().nth(2), Some("7,70,20000,2500,pread,read,4096,64,\"/data/a\"\"b,c.bin\""));

        let mut out = Vec::new();
        let mut dftracer = Dftracer::new(&mut out).unwrap();
        export(&trace(), &window, &mut dftracer, &|| false).unwrap();
        dftracer.end().unwrap();
        let mut text = String::new();
        io::Read::read_to_string(&mut flate2::read::GzDecoder::new(out.as_slice()), &mut text).unwrap();
        assert!(text.starts_with("[\n"), "{text}");
        let lines: Vec<serde_json::Value> =
            text.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
        let name = lines.iter().find(|line| line["name"] == "FH").unwrap();
        let pread = lines.iter().find(|line| line["name"] == "pread").unwrap();
        assert_eq!(
            (&pread["args"]["fhash"], &name["args"]["name"]),
            (&name["args"]["value"], &"/data/a\"b,c.bin".into())
        );
        assert_eq!((&pread["cat"], &pread["ts"], &pread["args"]["ret"]), (&"POSIX".into(), &20.into(), &4_096.into()));
    }
}
