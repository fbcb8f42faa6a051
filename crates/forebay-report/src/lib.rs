//! Records and findings as text for people: terminal tables.
//!
//! A report is made from a record alone, on any machine; it runs nothing and opens nothing. JSON is the record's own
//! form ([`forebay_record::Record::to_json`]). An unknown quantity prints as "–".

mod dataset;
mod ingest;
mod probe;
mod table;

pub use dataset::{inspection, verification};
pub use ingest::ingest;
pub use probe::probe;
pub use table::{Align, Table};
