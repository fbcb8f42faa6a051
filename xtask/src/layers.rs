//! The allowed dependencies between crates, as in the diagram of ARCHITECTURE.md.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output};

/// Each crate with the crates of ours that it may use.
const ALLOWED: &[(&str, &[&str])] = &[
    ("forebay-testing", &[]),
    ("forebay-units", &[]),
    ("forebay-ranks", &[]),
    ("forebay-jpeg", &[]),
    ("forebay-decode", &["jpeg", "format", "pipeline"]),
    ("forebay-storage", &["units"]),
    ("forebay-format", &["units", "jpeg"]),
    ("forebay-record", &["units"]),
    ("forebay-observe", &["units", "record"]),
    ("forebay-train", &["units"]),
    ("forebay-interpose", &[]),
    ("forebay-trace", &["units", "record", "interpose", "workload"]),
    ("forebay-checkpoint", &["units", "storage"]),
    ("forebay-workload", &["units"]),
    ("forebay-pipeline", &["units", "storage", "format"]),
    ("forebay-dataset", &["units", "storage", "format", "record", "workload"]),
    ("forebay-measure", &["units", "storage", "pipeline", "checkpoint", "record", "observe"]),
    ("forebay-plan", &["units", "record"]),
    ("forebay-probe", &["units", "storage", "record", "measure"]),
    (
        "forebay-bench",
        &[
            "units",
            "storage",
            "format",
            "pipeline",
            "decode",
            "train",
            "checkpoint",
            "dataset",
            "record",
            "plan",
            "measure",
            "ranks",
        ],
    ),
    (
        "forebay-emulation",
        &["units", "storage", "format", "pipeline", "checkpoint", "dataset", "record", "workload", "measure", "ranks"],
    ),
    (
        "forebay-study",
        &[
            "units",
            "storage",
            "format",
            "pipeline",
            "train",
            "checkpoint",
            "dataset",
            "record",
            "workload",
            "measure",
            "probe",
            "bench",
            "emulation",
            "ranks",
        ],
    ),
    ("forebay-report", &["units", "record"]),
    (
        "forebay",
        &[
            "units",
            "storage",
            "format",
            "pipeline",
            "train",
            "checkpoint",
            "dataset",
            "record",
            "observe",
            "measure",
            "probe",
            "bench",
            "emulation",
            "ranks",
            "study",
            "report",
            "workload",
            "interpose",
            "trace",
        ],
    ),
    (
        "forebay-examples",
        &[
            "units",
            "storage",
            "format",
            "pipeline",
            "train",
            "checkpoint",
            "dataset",
            "record",
            "observe",
            "measure",
            "emulation",
            "ranks",
            "workload",
        ],
    ),
    ("forebay-python", &["units", "storage", "format", "pipeline", "checkpoint", "measure"]),
    ("forebay-fuzz", &["units", "jpeg", "format", "checkpoint", "workload"]),
    ("xtask", &["testing"]),
];

/// Checks every crate of the workspace against the table.
pub fn run() -> Result<()> {
    let text = output(&mut cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"]))
        .or_else(|_| output(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"])))?;
    let metadata: Value = serde_json::from_str(&text)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package has a name")?;
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{name} is not in the table of layers"));
            continue;
        };
        for used in ours(package) {
            if used != name && !allowed.iter().any(|short| used == format!("forebay-{short}")) {
                wrong.push(format!("{name} must not depend on {used}"));
            }
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    eprintln!("the dependencies of {} crates are in order", packages.len());
    Ok(())
}

/// Our own crates among a package's dependencies, those of its tests left out.
fn ours(package: &Value) -> Vec<String> {
    let dependencies = package["dependencies"].as_array().cloned().unwrap_or_default();
    dependencies
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|name| name.starts_with("forebay"))
        .map(str::to_owned)
        .collect()
}
