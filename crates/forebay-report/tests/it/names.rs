//! Metrics are named where they are declared, and nowhere else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_record::{Cell, ProbeCell, Step};

/// Where cells are made and read; `forebay-record` declares the metrics.
const CRATES: [&str; 5] = ["forebay", "forebay-bench", "forebay-emulation", "forebay-report", "forebay-study"];
/// Columns of other tables that are called as a metric is.
const OTHERS: [(&str, &str); 5] = [
    ("traffic.rs", "read_mb_per_s"),
    ("trace/mod.rs", "mb_per_s"),
    ("sizes.rs", "n_samples"),
    ("traced.rs", "p50_us"),
    ("traced.rs", "p99_us"),
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.extension() {
            _ if entry.ends_with("tests") => {}
            _ if entry.is_dir() => sources(&entry, found),
            Some(extension) if extension == "rs" && !entry.ends_with("tests.rs") => found.push(entry),
            _ => {}
        }
    }
}

#[test]
fn no_metric_is_a_string_outside_its_declaration() {
    let probes = ProbeCell::METRICS.iter().map(|metric| metric.info.name);
    let names: BTreeSet<&str> =
        Step::ALL.into_iter().flat_map(Step::metrics).map(|info| info.name).chain(probes).collect();
    let mut files = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    CRATES.iter().for_each(|name| sources(&crates.join(name).join("src"), &mut files));
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        // A plain word may mean something else, and what a colon follows is a key of some JSON.
        for name in names.iter().filter(|name| name.contains('_')) {
            let literal = format!("\"{name}\"");
            let is_other = OTHERS.iter().any(|(end, other)| file.ends_with(end) && other == name);
            if code.split(&literal).skip(1).any(|after| !after.starts_with(':')) && !is_other {
                found.push(format!("{}: {literal}", file.display()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
