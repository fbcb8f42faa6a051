//! Reports of whole records, as people and programs get them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod checkpoint;
mod chien;
mod comparison;
mod disturbed;
mod fixtures;
mod large;
mod mini;
mod names;
mod page;
mod plain;
mod prefetch;
mod said;
mod saved;
mod text;
mod train;
mod trained;
mod tuned;
mod workload;
mod zeros;

use forebay_report::NamedRun;

/// The page of some runs, in which every place and every value is a number.
fn page_of(runs: &[NamedRun]) -> String {
    let page = forebay_report::html(runs);
    let script = page.find("<script>").unwrap();
    for wrong in ["NaN", "\"inf", "-inf", ">inf", "∞"] {
        assert!(!page[..script].contains(wrong), "{wrong} on the page");
    }
    page
}

/// Words a space apart, wherever the lines of a terminal end.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
