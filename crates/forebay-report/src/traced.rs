//! The tables of a traced job: rules, fetches, calls, classes of files, processes, files, folders, request sizes, checkpoints.

mod terminal;

use forebay_record::{TraceCell, TraceFile};
use forebay_units::format_seconds;

use crate::data::{Data, Value};
use crate::number::{bytes, microseconds, percent};
use crate::run::Run;
use crate::table::Align::{Left, Right};

pub(crate) use terminal::text;

/// Every table that has a row.
pub(crate) fn tables(run: &Run<'_>) -> Vec<(&'static str, Data)> {
    let Some((_, cell)) = run.cells_of::<TraceCell>().next() else { return Vec::new() };
    let all = [
        ("Rules", rules(cell)),
        ("Where the workers\u{2019} time went", fetch(cell)),
        ("Checkpoints", saves(cell)),
        ("Calls", operations(cell)),
        ("Classes of files", files("class", &cell.classes)),
        ("Sizes of reads of data files", sizes(cell)),
        ("Processes", processes(cell)),
        ("Folders", files("folder", &cell.folders)),
        ("Files", files("file", &cell.files)),
    ];
    all.into_iter().filter(|(_, data)| !data.is_empty()).collect()
}

fn rules(cell: &TraceCell) -> Data {
    let mut data = Data::new(&[
        ("id", "rule", Left),
        ("name", "looks for", Left),
        ("applies", "found", Left),
        ("evidence", "evidence", Left),
        ("advice", "what helps", Left),
        ("gain_s", "saves at most", Right),
    ]);
    for rule in &cell.rules {
        let applies = rule.applies.map_or(Value::Unknown, |applies| Value::text(if applies { "yes" } else { "no" }));
        let [id, name, evidence, advice] =
            [&rule.id, &rule.name, &rule.evidence, &rule.advice].map(|text| Value::text(text.clone()));
        data.row(vec![id, name, applies, evidence, advice, Value::maybe(rule.gain_s, format_seconds)]);
    }
    data
}

fn fetch(cell: &TraceCell) -> Data {
    let mut data = Data::new(&[("part", "", Left), ("seconds", "time", Right), ("share", "share", Right)]);
    let Some(fetch) = cell.fetch.as_ref().filter(|fetch| fetch.seconds > 0.0) else { return data };
    let parts = [
        ("opening", fetch.open_s),
        ("reading", fetch.read_s),
        ("metadata", fetch.meta_s),
        ("decoding and other work", fetch.compute_s),
        ("all fetches", fetch.seconds),
    ];
    for (part, seconds) in parts {
        data.row(vec![
            Value::text(part),
            Value::number(seconds, format_seconds),
            Value::number(seconds / fetch.seconds, percent),
        ]);
    }
    data
}

fn saves(cell: &TraceCell) -> Data {
    let heads = [("at_s", "at", Right), ("what", "", Left), ("seconds", "time", Right), ("bytes", "bytes", Right)];
    let mut data = Data::new(&heads);
    for save in &cell.saves {
        data.row(vec![
            Value::number(save.at_s, format_seconds),
            Value::text(if save.is_restore { "restore" } else { "save" }),
            Value::number(save.seconds, format_seconds),
            size(save.bytes),
        ]);
    }
    data
}

fn size(n: u64) -> Value {
    Value::number(n as f64, |n| bytes(n as u64))
}

fn operations(cell: &TraceCell) -> Data {
    let mut data = Data::new(&[
        ("name", "call", Left),
        ("calls", "calls", Right),
        ("errors", "failed", Right),
        ("bytes", "bytes", Right),
        ("seconds", "time in all threads", Right),
        ("p50_us", "p50", Right),
        ("p95_us", "p95", Right),
        ("p99_us", "p99", Right),
    ]);
    for of in &cell.operations {
        let us = |value| Value::number(value, microseconds);
        data.row(vec![
            Value::text(of.name.clone()),
            Value::count(of.calls),
            Value::count(of.errors),
            size(of.bytes),
            Value::number(of.seconds, format_seconds),
            us(of.p50_us),
            us(of.p95_us),
            us(of.p99_us),
        ]);
    }
    data
}

fn files(what: &str, all: &[TraceFile]) -> Data {
    let mut data = Data::new(&[
        ("name", what, Left),
        ("class", "class", Left),
        ("files", "files", Right),
        ("opens", "opens", Right),
        ("reads", "reads", Right),
        ("bytes_read", "read", Right),
        ("sequential", "sequential", Right),
        ("writes", "writes", Right),
        ("bytes_written", "written", Right),
        ("seconds", "time in calls", Right),
    ]);
    for of in all {
        let sequential = (of.reads > 0).then(|| of.sequential_reads as f64 / of.reads as f64);
        data.row(vec![
            Value::text(of.name.clone()),
            if of.class.is_empty() { Value::Unknown } else { Value::text(of.class.clone()) },
            Value::count(of.files),
            Value::count(of.opens),
            Value::count(of.reads),
            size(of.bytes_read),
            Value::maybe(sequential, percent),
            Value::count(of.writes),
            size(of.bytes_written),
            Value::number(of.seconds, format_seconds),
        ]);
    }
    if what == "class" {
        data.hide("class");
    }
    if what == "file" {
        data.hide("files");
    }
    data
}

fn sizes(cell: &TraceCell) -> Data {
    let heads = [("at_most", "bytes, at most", Right), ("reads", "reads", Right), ("bytes", "bytes", Right)];
    let mut data = Data::new(&heads);
    for of in &cell.sizes {
        data.row(vec![size(of.at_most), Value::count(of.reads), size(of.bytes)]);
    }
    data
}

fn processes(cell: &TraceCell) -> Data {
    let mut data = Data::new(&[
        ("pid", "process", Right),
        ("parent", "parent", Right),
        ("role", "role", Left),
        ("reads", "reads", Right),
        ("bytes_read", "read", Right),
        ("writes", "writes", Right),
        ("bytes_written", "written", Right),
        ("io_s", "time in calls", Right),
        ("fetches", "fetches", Right),
        ("fetch_s", "time of fetches", Right),
        ("command", "command", Left),
    ]);
    for of in &cell.processes {
        data.row(vec![
            Value::text(of.pid.to_string()),
            Value::text(of.parent.to_string()),
            if of.role.is_empty() { Value::Unknown } else { Value::text(of.role.clone()) },
            Value::count(of.reads),
            size(of.bytes_read),
            Value::count(of.writes),
            size(of.bytes_written),
            Value::number(of.io_s, format_seconds),
            Value::count(of.fetches),
            Value::number(of.fetch_s, format_seconds),
            Value::text(of.command.clone()),
        ]);
    }
    data
}
