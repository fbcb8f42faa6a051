//! Records and findings for people and programs: terminal tables, one self-contained HTML page, JSON, CSV.
//!
//! A report is made from records alone, on any machine, also from an older version's; it runs nothing and opens nothing.
//! [`html`], [`json`] and [`text`](text()) write the same report, so they cannot differ in a number. An unknown quantity
//! is shown as "–". On a terminal, control characters in a record's text are shown as escapes ([`visible`]).
//!
//! ```
//! use forebay_record::AnyRecord;
//! use forebay_report::{NamedRun, html};
//!
//! let text = r#"{"schema": "forebay-record/1", "command": "ingest", "cells": []}"#;
//! let run = NamedRun { name: "today".to_owned(), record: AnyRecord::from_text(text)? };
//! assert!(html(&[run]).contains("Nothing was measured."));
//! # Ok::<(), forebay_record::Error>(())
//! ```

mod advised;
mod answer;
mod axis;
mod basis;
mod cells;
mod compare;
mod contention;
mod data;
mod dataset;
mod environment;
mod export;
mod failures;
mod fig;
mod followed;
mod frontier;
mod grid;
mod interval;
mod legend;
mod level;
mod limit;
mod markup;
mod metric;
mod number;
mod order;
mod page;
mod palette;
mod prefetch;
mod processes;
mod published;
mod rated;
mod report;
mod run;
mod saves;
mod stall;
mod svg;
mod table;
mod text;
mod traced;
mod tuned;
mod verdict;
mod visible;

pub use cells::in_brief;
pub use dataset::{inspection, verification};
pub use export::{csv, json};
pub use number::quantity;
pub use page::html;
pub use run::NamedRun;
pub use table::{Align, Table, WIDTH, columns, fold};
pub use text::{headline, record, record_within, summary, summary_within, text, text_within};
pub use visible::{visible, visible_lines};
