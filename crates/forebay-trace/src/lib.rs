//! What any job did: its calls on files and its marks, from shared rings into a trace file, and what they say.
//!
//! [`Collector`] empties the rings that the library of `forebay-interpose` fills in every process of a job, writes the trace file and
//! keeps sums. [`cell`](cell()) turns the sums into the cell of a record, with the verdict and the rules that it rests on. [`Reader`]
//! reads a trace file, also one whose tracer was killed. [`export()`] passes its events on to other tools, [`import`] makes a workload
//! of it, to be played again.
//!
//! It is *not* what starts a job or shows a record: `forebay trace` and `forebay report` do.
//!
//! Limits: what a mapping of a file reads is not known, nor is what the hook of Python does not mark. Sums of files beyond 500,000
//! are kept per class.
//!
//! ```
//! use forebay_trace::{Chunk, Entry, Event, Head, Op, ProcessNote, Reader, Writer};
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::new(&mut file, &Head::default())?;
//! let process = writer.process(&ProcessNote::default())?;
//! writer.push(process, &Entry::Event(Event { op: Op::PREAD, result: 4096, ..Event::default() }))?;
//! writer.flush()?;
//! drop(writer);
//! let chunks: Vec<Chunk> = Reader::new(&file)?.collect();
//! assert_eq!(chunks.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod classes;
mod collect;
mod columns;
mod event;
mod evidence;
mod export;
mod fetches;
mod file;
mod inside;
mod phases;
mod replay;
mod ring;
mod rules;
mod saves;
mod tally;
mod timeline;
mod totals;
mod unseen;

pub use cell::{Facts, cell};
pub use classes::LOADED;
pub use collect::{Collected, Collector, Options, map_trace, ring_folder, write_new};
pub use event::{Entry, Event, FileType, MarkKind, Op};
pub use export::{Chrome, Csv, Dftracer, ExportError, Exported, Row, Sink, Window, export};
pub use file::{Chunk, Error, Head, ProcessNote, Reader, Writer};
pub use replay::{Imported, NotPlayable, import};
pub use ring::{Counts, Memory, Origin, Ring};
pub use tally::{Second, Started, Tally};
pub use timeline::add_job;
pub use unseen::{Blind, blind, find_program, why_not_seen};

/// The Python hook: file names and texts, to be written into one folder that `PYTHONPATH` names.
pub const PYTHON_HOOK: [(&str, &str); 2] = [
    ("sitecustomize.py", include_str!("../python/sitecustomize.py")),
    ("_forebay_trace.py", include_str!("../python/_forebay_trace.py")),
];
