//! The account of a training run: where the time went, what I/O cost, why, and what would help.

use std::fmt::Write;

use forebay_record::{CacheState, Cause, DatasetNote, Epoch, Feed, Lever, Record, TierKind, TrainCell, TrainTotals};
use forebay_units::{count, format_seconds, group_digits};

use crate::basis;
use crate::ingest::{emulated, failed, rate};
use crate::number::{UNKNOWN, quantity, seconds};
use crate::saves;
use crate::table::{Align, Table};

/// A wait that is shown as 0.001 s at least.
const SHORTEST_WAIT_S: f64 = 0.001;

/// The record as text: a heading, tables, sentences, notes.
pub fn train(record: &Record<TrainCell>) -> String {
    let mut out = head(record);
    if record.cells.is_empty() {
        out.push_str("nothing was measured\n");
    }
    let accounts: Vec<String> = record.cells.iter().map(account).collect();
    out.push_str(&accounts.join("\n"));
    out.push_str(&basis::lines(&record.cells));
    for note in &record.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// What was read, how, and where.
fn head(record: &Record<TrainCell>) -> String {
    let (data, environment) = (&record.dataset, &record.environment);
    let mut words = Vec::new();
    if *data != DatasetNote::default() && !data.path.is_empty() {
        let packed = match data.packing.as_str() {
            "files" => String::new(),
            packing => format!(" in {}", count(data.n_files, &format!("{packing} shard"))),
        };
        words.push(format!("{}: {}{packed}", data.path, count(data.n_samples, "sample")));
    }
    if let Some(cell) = record.cells.first().filter(|cell| !cell.synthetic) {
        let read =
            [cell.output.as_deref(), Some(cell.medium.storage.as_str()), cell.medium.cache.map(CacheState::name)];
        words.extend(read.into_iter().flatten().filter(|word| !word.is_empty()).map(str::to_owned));
    }
    if let Some(cpu) = &environment.cpu {
        words.push(format!("{} cores of {cpu}", environment.n_cores));
    }
    words.extend(environment.data_file_system.clone());
    if words.is_empty() { String::new() } else { words.join("; ") + "\n" }
}

fn account(cell: &TrainCell) -> String {
    let totals = &cell.totals;
    let mut out = format!("{}\n\n{}\n{}\n", heading(cell), time(totals), utilisation(totals));
    let _ = writeln!(out, "{}", rates(cell));
    let _ = writeln!(out, "{}", io_cost(cell));
    if let Some(overlap) = totals.overlap {
        let share = percent(overlap);
        let _ = writeln!(out, "Overlap: {share} of the pipeline's work was done while the accelerator did not wait.");
    }
    for said in saves::paragraph(cell) {
        let _ = writeln!(out, "{said}");
    }
    if cell.disturbed.is_none() {
        let _ = writeln!(out, "{}", lever(&cell.lever));
    }
    if let Some(feed) = &cell.feed {
        let _ = writeln!(out, "{}", fed(feed, cell.threads));
    }
    if !cell.tried.is_empty() {
        let tried = cell.tried.iter().map(|t| format!("{} at {}/s", t.threads, rate(t.images_per_s)));
        let tried = tried.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "Auto chose {}; it tried {tried}.", count(cell.threads, "thread"));
    }
    if let Some(tier) = &cell.medium.tier {
        let _ = writeln!(out, "{}", emulated(tier, cell.medium.kind));
    }
    for table in [stall(cell), epochs(&cell.epochs)].into_iter().flatten() {
        let _ = write!(out, "\n{}", table.render());
    }
    out.push_str(&failed(totals.failed, &cell.failures));
    out
}

/// What was trained with which settings, in a line.
fn heading(cell: &TrainCell) -> String {
    let mut words = Vec::new();
    match &cell.model {
        Some(model) => {
            let parameters = cell.n_parameters.map_or("–".to_owned(), group_digits);
            words.push(format!("{model}, {parameters} parameters"));
        }
        None => words.push("no network".to_owned()),
    }
    let precision = cell.precision.as_ref().filter(|name| !cell.device.contains(name.as_str()));
    words
        .push([Some(&cell.device), precision].into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(", "));
    if let Some(optimizer) = &cell.optimizer {
        let rate = cell.learning_rate.map_or("–".to_owned(), short);
        let classes = match cell.classes {
            Some(1) => "1 class".to_owned(),
            n => format!("{} classes", n.map_or("–".to_owned(), group_digits)),
        };
        words.push(format!("{optimizer} at {rate}, {classes}"));
    }
    words.push(format!("batch {}, {}", group_digits(cell.batch), count(cell.totals.n_steps, "step")));
    words.push(if cell.synthetic { "one batch in memory".to_owned() } else { feeding(cell) });
    if cell.samples.len() > 1 {
        let spread = cell.spread.map_or("–".to_owned(), percent);
        words.push(format!("the run nearest to the median of {} (± {spread})", cell.samples.len()));
    }
    words.join("; ")
}

/// A rate in as few signs as it takes: "0.0001", "1e-38".
fn short(rate: f64) -> String {
    if (1e-5..1e6).contains(&rate) { rate.to_string() } else { format!("{rate:e}") }
}

fn feeding(cell: &TrainCell) -> String {
    let auto = if cell.threads_auto { " (auto)" } else { "" };
    let mut out = format!("{}{auto}, prefetch {}", count(cell.threads, "thread"), cell.prefetch);
    if cell.device_prefetch > 0 {
        let _ = write!(out, " and {} on the device", cell.device_prefetch);
    }
    out
}

/// Where the time went; the parts below the first line sum to it.
fn time(totals: &TrainTotals) -> String {
    let mut table = Table::new(&[("time", Align::Left), ("seconds", Align::Right), ("share", Align::Right)]);
    let parts = [
        ("total", totals.wall_s),
        ("  compute", totals.compute_s),
        ("  wait for data", totals.wait_s),
        ("  copy", totals.copy_s),
        ("  checkpoint", totals.checkpoint_s),
        ("  validate", totals.validate_s),
        ("  other", totals.other_s),
    ];
    for (name, value) in parts {
        table.row(vec![name.to_owned(), format!("{value:.3}"), percent(value / totals.wall_s)]);
    }
    table.render()
}

fn utilisation(totals: &TrainTotals) -> String {
    let mut table = Table::new(&[("AU", Align::Left), ("share", Align::Right), ("computing over", Align::Left)]);
    let or_unknown = |share: Option<f64>| share.map_or("–".to_owned(), percent);
    let as_dlio = match totals.checkpoint_s > 0.0 {
        true => "all steps but the first of every epoch, checkpoints left out: for comparison",
        false => "all steps but the first of every epoch: for comparison",
    };
    for (name, share, over) in [
        ("whole run", Some(totals.au_epoch), "all of the time but validation"),
        ("steady", totals.au_steady, "the same without the wait for the first batch"),
        ("as DLIO", totals.au_dlio, as_dlio),
    ] {
        table.row(vec![name.to_owned(), or_unknown(share), over.to_owned()]);
    }
    table.render()
}

fn rates(cell: &TrainCell) -> String {
    let images = basis::marked(rate(cell.images_per_s), cell.disturbed);
    if cell.synthetic {
        return format!("{images} images/s");
    }
    // What a tier gives that is emulated in this process comes at its pace, wherever the bytes lie.
    let is_shaped = cell.medium.tier.is_some() && cell.medium.kind != Some(TierKind::Kernel);
    let read = match cell.medium.cache {
        Some(CacheState::Warm) if !is_shaped => "10^6 bytes read from memory: the cache was warm",
        _ => "10^6 bytes moved from storage",
    };
    format!("{images} images/s; {} MB/s ({read})", quantity(cell.totals.mb_per_s()))
}

fn io_cost(cell: &TrainCell) -> String {
    let (Some(baseline), Some(cost)) = (&cell.baseline, cell.io_cost_s) else {
        return "The cost of I/O: –".to_owned();
    };
    let without = baseline.step_s * cell.totals.n_steps as f64;
    let each = format_seconds(baseline.step_s);
    let of_what = match baseline.is_mean {
        true => format!("the same steps without a wait ({each} a step on average)"),
        false => format!("as many steps on a batch in memory ({each} a step, median of {})", baseline.n_steps),
    };
    let (cost, share, without) = (seconds(cost), percent(cost / without), seconds(without));
    format!("The cost of I/O: {cost}, {share} over the {without} of {of_what}")
}

pub(crate) fn lever(lever: &Lever) -> String {
    if lever.name == "none" {
        return format!("What would help most: nothing here; {}", lever.advice);
    }
    if lever.name.is_empty() {
        return "What would help most: –".to_owned();
    }
    let now = lever.wall_s + lever.saves_s;
    let (saves, becomes) = if lever.is_bound { ("saves at most", "not below") } else { ("saves", "to") };
    format!(
        "What would help most: {}; that {saves} {} ({}), from {} {becomes} {}",
        lever.advice,
        seconds(lever.saves_s),
        percent(lever.saves_s / now),
        seconds(now),
        seconds(lever.wall_s)
    )
}

fn fed(feed: &Feed, threads: u64) -> String {
    let verb = if threads == 1 { "gives" } else { "give" };
    format!(
        "The accelerator takes {} images/s; {} {verb} {}; {}",
        rate(feed.takes_images_per_s),
        count(threads, "thread"),
        rate(feed.gives_images_per_s),
        needed(feed)
    )
}

/// How many threads would give what is taken.
pub(crate) fn needed(feed: &Feed) -> String {
    match feed.threads_needed {
        Some(threads) => format!("{} would do", count(threads, "thread")),
        None => "the storage is the limit, whatever the number of threads".to_owned(),
    }
}

/// What the wait is charged to, longest first; `None` without a wait worth the name, which a batch in memory has not.
fn stall(cell: &TrainCell) -> Option<Table> {
    let totals = &cell.totals;
    if cell.synthetic || totals.wait_s < SHORTEST_WAIT_S {
        return None;
    }
    let mut causes: Vec<(Cause, f64)> = totals.stall_by_cause.iter().map(|(cause, value)| (*cause, *value)).collect();
    causes.retain(|(_, value)| *value > 0.0);
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut table =
        Table::new(&[("waited for", Align::Left), ("seconds", Align::Right), ("of the wait", Align::Right)]);
    for (cause, value) in &causes {
        table.row(vec![cause.describe().to_owned(), format!("{value:.3}"), percent(value / totals.wait_s)]);
    }
    (!causes.is_empty()).then_some(table)
}

/// The passes over the data; `None` when none has a loss to show.
fn epochs(epochs: &[Epoch]) -> Option<Table> {
    use Align::Right;
    let mut table = Table::new(&[
        ("epoch", Right),
        ("steps", Right),
        ("mean loss", Right),
        ("validation loss", Right),
        ("accuracy", Right),
        ("samples", Right),
    ]);
    let loss = |loss: Option<f32>| loss.map_or("–".to_owned(), |loss| format!("{loss:.4}"));
    for (i, epoch) in epochs.iter().enumerate() {
        let judged = epoch.validation;
        table.row(vec![
            (i + 1).to_string(),
            group_digits(epoch.n_steps),
            loss(epoch.loss),
            loss(judged.and_then(|judged| judged.loss)),
            judged.map_or("–".to_owned(), |judged| percent(judged.accuracy)),
            judged.map_or("–".to_owned(), |judged| group_digits(judged.n_samples)),
        ]);
    }
    epochs.iter().any(|epoch| epoch.loss.is_some() || epoch.validation.is_some()).then_some(table)
}

/// A share with one decimal, so that the parts of a whole line up: "3.1 %".
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return UNKNOWN.to_owned();
    }
    let sign = if share < 0.0 { "−" } else { "" };
    format!("{sign}{:.1} %", share.abs() * 100.0)
}

#[cfg(test)]
mod tests;
