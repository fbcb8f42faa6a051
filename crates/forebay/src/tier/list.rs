//! `forebay tier list`.

use std::path::PathBuf;

use anyhow::Result;
use forebay_report::{Align, Table};
use forebay_storage::tier::{Condition, Kind, Registry, Status, Tier};
use forebay_units::{Bytes, PathText, group_digits, shell_word};
use serde::Serialize;

use super::measured::{self, Measured, Probe};
use super::registry;
use crate::output::{JsonArgs, Outcome, Schema};
use crate::terminal::Stream;

/// Columns that are omitted on a narrow terminal; JSON has all.
const SPARE: [&str; 2] = ["used", "requests/s"];
/// The default --size of `forebay probe`.
const DEFAULT_PROBE: u64 = 5 << 30;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    json: JsonArgs,
}

#[derive(Debug, Serialize)]
struct List {
    tiers: Vec<Row>,
}

/// A row of the list. If a tier's state file cannot be read, only its name and state are known.
#[derive(Debug, Default, Serialize)]
struct Row {
    name: String,
    state: String,
    kind: Option<Kind>,
    #[serde(with = "forebay_units::serde_path::option")]
    data: Option<PathBuf>,
    #[serde(with = "forebay_units::serde_path::option")]
    device: Option<PathBuf>,
    file_system: Option<String>,
    size_bytes: Option<u64>,
    used_bytes: Option<u64>,
    read_bytes_per_s: Option<u64>,
    write_bytes_per_s: Option<u64>,
    iops: Option<u64>,
    measured: Option<Measured>,
    /// The hint for a tier that is not measured or not up.
    #[serde(skip)]
    advice: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let json = args.json.target([])?;
    let registry = registry()?;
    let probes = measured::probes()?;
    let names = registry.names()?;
    let list = List { tiers: names.iter().map(|name| row(&registry, name, &probes)).collect() };
    json.give(Schema::TierList, &render(&list, Stream::Stdout.width()), &list)?;
    Ok(Outcome::Met)
}

fn row(registry: &Registry, name: &str, probes: &[Probe]) -> Row {
    let found = registry.tier(name).and_then(|tier| {
        let status = tier.as_ref().map(Tier::status).transpose()?;
        Ok(tier.zip(status))
    });
    match found {
        Ok(Some((tier, status))) => known(&tier, status, probes),
        Ok(None) => {
            let advice = Some(format!("run `forebay tier down {name}` to remove it"));
            Row { name: name.to_owned(), state: "left by a crash".to_owned(), advice, ..Row::default() }
        }
        Err(error) => Row { name: name.to_owned(), state: format!("unknown: {error}"), ..Row::default() },
    }
}

fn known(tier: &Tier, status: Status, probes: &[Probe]) -> Row {
    let is_reached = status.reaches_caller != Some(false);
    let suffix = if is_reached { "" } else { "; the limits do not apply to this shell's control group" };
    let measured = measured::on(tier, status.device.as_ref(), probes);
    let probe = || format!("not measured; to measure it, run\n  {}", probe_command(tier, status.free_bytes));
    let advice = match status.condition {
        Condition::Up => measured.is_none().then(probe),
        condition => condition.remedy(&tier.name).map(|remedy| format!("{condition}; {remedy}")),
    };
    Row {
        name: tier.name.clone(),
        state: format!("{}{suffix}", status.condition),
        advice,
        kind: Some(tier.kind),
        data: Some(tier.data()),
        measured,
        device: status.device.map(|device| device.path),
        file_system: tier.fs.map(|fs| fs.to_string()),
        size_bytes: status.size_bytes.or(tier.size),
        used_bytes: status.used_bytes,
        read_bytes_per_s: Some(tier.profile.read_bytes_per_s),
        write_bytes_per_s: Some(tier.profile.write_bytes_per_s),
        iops: tier.iops,
    }
}

/// The command that probes a tier, with a size that fits.
fn probe_command(tier: &Tier, free: Option<u64>) -> String {
    let size = match free.map(|free| free / 2) {
        Some(half) if half < DEFAULT_PROBE => format!(" --size {}", power_of_two_below(half)),
        _ => String::new(),
    };
    format!("forebay probe {}{size} --save {}", shell_word(tier.data()), tier.name)
}

/// The greatest power of two up to this number, in the largest unit that gives a whole number.
fn power_of_two_below(bytes: u64) -> String {
    let log = bytes.max(1).ilog2();
    let unit = ["B", "KiB", "MiB", "GiB"][(log / 10).min(3) as usize];
    format!("{}{unit}", 1_u64 << (log - log / 10 * 10))
}

fn render(list: &List, width: usize) -> String {
    use Align::{Left, Right};
    if list.tiers.is_empty() {
        return "no tiers; `forebay tier up hdd` creates one\n".to_owned();
    }
    let mut table = Table::new(&[
        ("name", Left),
        ("kind", Left),
        ("state", Left),
        ("size", Right),
        ("used", Right),
        ("read MB/s", Right),
        ("write MB/s", Right),
        ("requests/s", Right),
    ]);
    for row in &list.tiers {
        table.row(cells(row));
    }
    let mut out = table.fitted(width, &SPARE);
    out.push_str("Rates are limits; MB is 10^6 bytes.\n");
    for row in &list.tiers {
        let lines = [
            row.data.as_ref().map(|data| format!("data in {}", data.escaped())),
            more_of(&row.state).map(str::to_owned),
            row.measured.as_ref().map(|measured| format!("measured {}", measured.describe())),
            row.advice.clone(),
        ];
        lines.iter().flatten().for_each(|line| out.push_str(&format!("{}: {line}\n", row.name)));
    }
    out
}

/// Details of a state beyond the word in the table.
fn more_of(state: &str) -> Option<&str> {
    state.split_once([':', ';']).map(|(_, more)| more.trim_start())
}

fn cells(row: &Row) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let bytes = |n: Option<u64>| or_dash(n.map(|n| Bytes(n).to_string()));
    let megabytes = |n: Option<u64>| or_dash(n.map(|n| format!("{:.1}", Bytes(n).megabytes())));
    vec![
        row.name.clone(),
        or_dash(row.kind.map(|kind| kind.to_string())),
        row.state.split([':', ';']).next().unwrap_or_default().to_owned(),
        bytes(row.size_bytes),
        bytes(row.used_bytes),
        megabytes(row.read_bytes_per_s),
        megabytes(row.write_bytes_per_s),
        or_dash(row.iops.map(group_digits)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_powers_of_two_that_can_be_given_as_they_are_printed() {
        for (bytes, wanted) in
            [(1, "1B"), (1023, "512B"), (1024, "1KiB"), (70 << 20, "64MiB"), ((2 << 30) + 5, "2GiB"), (4 << 30, "4GiB")]
        {
            let printed = power_of_two_below(bytes);
            assert_eq!(printed, wanted);
            let Bytes(read) = printed.parse().unwrap();
            assert!(read <= bytes && read > bytes / 2, "{printed}");
        }
    }
}
