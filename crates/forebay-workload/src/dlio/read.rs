//! Reading a folder of DLIO's results as times of steps; oddities are noted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::found::{Found, Odd};
use super::run::{BlockRun, EpochRun, RankRun, Run, SaveRun, Span, Version};
use super::{Printed, Summary, batch, parse};
use crate::Workload;
use crate::check::read_foreign;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// No figures, no steps and no checkpoints.
    #[error("no summary, no training steps and no checkpoints found{}", lines(odd))]
    Nothing {
        /// What is wrong with the existing files.
        odd: Vec<String>,
    },
}

fn lines(odd: &[String]) -> String {
    odd.iter().map(|odd| format!("\n  {odd}")).collect()
}

/// Hydra's copy of the workload.
const CONFIG: &str = ".hydra/config.yaml";
const OVERRIDES: &str = ".hydra/overrides.yaml";

/// Maximum number of refused keys named one by one.
const MOST_NAMED: usize = 4;

/// Reads a run from the texts of its files, by their names in the folder: `summary.json`, `0_output.json`,
/// `0_per_epoch_stats.json` or `per_epoch_stats.json`, `.hydra/config.yaml`, `.hydra/overrides.yaml`. Others are ignored.
///
/// # Errors
/// When there are no figures, no steps and no checkpoints.
pub fn read_run(files: &BTreeMap<String, String>) -> Result<Run, ReadError> {
    let odd = Odd::default();
    let summary = summary(files, &odd);
    let (workload, refused) = workload(files, &odd);
    let ranks = ranks(files, &odd);
    let mut run = Run {
        summary: summary.clone().unwrap_or_default(),
        name: name(files),
        workload,
        refused,
        batch: None,
        version: Version::default(),
        ranks,
        odd: Vec::new(),
    };
    let has_times =
        run.ranks.iter().flat_map(|rank| &rank.epochs).any(|epoch| epoch.steps() > 0 || !epoch.saves.is_empty());
    if !has_times && run.summary.train.au_mean.is_none() {
        return Err(ReadError::Nothing { odd: odd.into_notes() });
    }
    if summary.is_none() {
        odd.note("no summary.json; DLIO's figures are computed from its steps");
    }
    run.batch = batch_of(&run, &odd);
    run.find_walls();
    note_missing(&run, &odd);
    run.odd = odd.into_notes();
    Ok(run)
}

/// A file's content; a parse error is noted.
fn json(files: &BTreeMap<String, String>, name: &str, odd: &Odd) -> Option<Value> {
    match parse(files.get(name)?) {
        Ok(value) => Some(value),
        Err(error) => {
            odd.note(format!("{name} cannot be read: {error}"));
            None
        }
    }
}

fn summary(files: &BTreeMap<String, String>, odd: &Odd) -> Option<Summary> {
    let file = json(files, "summary.json", odd)?;
    let found = Found::new("summary.json", &file, odd);
    let metric = found.get("metric");
    let train = |key: &str| metric.get(&format!("train_{key}"));
    Some(Summary {
        start: found.get("start").text(),
        num_accelerators: found.get("num_accelerators").count(),
        hostname: found.get("hostname").text(),
        num_files_train: found.get("num_files_train").count(),
        num_samples_per_file: found.get("num_samples_per_file").count(),
        host_cpu_count: found.get("host_cpu_count").first().map(|n| n as u64),
        host_memory_gib: found.get("host_memory_GB").first(),
        may_be_cached: found.get("potential_caching").numbers().into_iter().flatten().any(|is| is != 0.0),
        train: Printed {
            au: train("au_percentage").numbers(),
            au_mean: train("au_mean_percentage").number(),
            samples_per_s_mean: train("throughput_mean_samples_per_second").number(),
            mib_per_s_mean: train("io_mean_MB_per_second").number(),
        },
        checkpoint_size_gib: metric.get("checkpoint_size_GB").number(),
    })
}

/// The workload that was run, and its unknown keys, which get their defaults.
fn workload(files: &BTreeMap<String, String>, odd: &Odd) -> (Option<Workload>, Vec<String>) {
    let Some(text) = files.get(CONFIG) else { return (None, Vec::new()) };
    match read_foreign("dlio", text) {
        Ok((workload, problems)) => {
            for problem in problems.iter().take(MOST_NAMED) {
                odd.note(format!("{CONFIG}: {problem}; its value is unknown"));
            }
            if let Some(more) = problems.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
                odd.note(format!("{CONFIG}: {more} more keys are invalid"));
            }
            (Some(workload), problems.into_iter().map(|problem| problem.key).collect())
        }
        Err(problem) => {
            odd.note(format!("{CONFIG} cannot be read: {problem}"));
            (None, Vec::new())
        }
    }
}

/// The workload's name: `- workload=unet3d`.
fn name(files: &BTreeMap<String, String>) -> Option<String> {
    let mut words =
        files.get(OVERRIDES)?.lines().map(|line| line.trim_start_matches(['-', ' ']).trim_matches(['"', '\'']));
    words.find_map(|word| word.strip_prefix("workload=")).map(str::to_owned)
}

/// The batch size: from the workload, or inferred from rates or files.
fn batch_of(run: &Run, odd: &Odd) -> Option<u64> {
    let known = run.workload.as_ref().filter(|_| run.is_known("reader.batch_size"));
    if let Some(workload) = known {
        return Some(workload.reader.batch_size);
    }
    let inferred = batch::infer(run);
    let why = if run.workload.is_none() { "no workload" } else { "the workload's batch size is invalid" };
    let batch = inferred.map_or("unknown".to_owned(), |batch| format!("{batch}, inferred from rates, files and steps"));
    odd.note(format!("batch size {batch}: {why} in {CONFIG}"));
    inferred
}

fn note_missing(run: &Run, odd: &Odd) {
    let has_steps = |rank: &&RankRun| rank.trained().next().is_some();
    let (n_found, n_trained) = (run.ranks.len() as u64, run.ranks.iter().filter(has_steps).count() as u64);
    if n_trained == 0 && run.summary.train.au_mean.is_some() {
        odd.note("no <rank>_output.json with steps; only the summary's figures are known");
    }
    let n_there = if n_trained > 0 { n_trained } else { n_found };
    if let Some(n) = run.summary.num_accelerators.filter(|n| *n > n_there && n_there > 0) {
        odd.note(format!("the files of {} of {n} ranks are missing", n - n_there));
    }
    let trained = || run.ranks.iter().flat_map(RankRun::trained);
    let n_unclocked = trained().filter(|epoch| epoch.span.is_none()).count();
    if n_unclocked > 0 {
        let of = trained().count();
        odd.note(format!(
            "{n_unclocked} of {of} epochs have no start and end in per_epoch_stats.json; their time is the sum of their blocks, \
             or of their steps if that is unknown"
        ));
    }
}

fn rank_of(name: &str, ending: &str) -> Option<u64> {
    name.strip_suffix(ending)?.parse().ok()
}

/// All ranks with their own file. Without any, rank 0 with the file it wrote for all.
fn ranks(files: &BTreeMap<String, String>, odd: &Odd) -> Vec<RankRun> {
    let of = |ending: &'static str| files.keys().filter_map(move |name| rank_of(name, ending));
    let numbers: BTreeSet<u64> = of("_output.json").chain(of("_per_epoch_stats.json")).collect();
    let ranks: Vec<RankRun> = numbers.into_iter().filter_map(|rank| rank_run(files, rank, odd)).collect();
    if ranks.is_empty() { shared_stats(files, odd).into_iter().collect() } else { ranks }
}

fn rank_run(files: &BTreeMap<String, String>, rank: u64, odd: &Odd) -> Option<RankRun> {
    let own = format!("{rank}_per_epoch_stats.json");
    let name = format!("{rank}_output.json");
    let file = json(files, &name, odd);
    if file.is_none() && !files.contains_key(&own) {
        return None;
    }
    let file = file.unwrap_or_default();
    let (stats_name, stats) = stats_of(files, rank, odd).unwrap_or_default();
    Some(merged(rank, &Found::new(&name, &file, odd), &Found::new(&stats_name, &stats, odd)))
}

/// A run without any rank's own file.
fn shared_stats(files: &BTreeMap<String, String>, odd: &Odd) -> Option<RankRun> {
    let (name, file) = stats_of(files, 0, odd)?;
    Some(merged(0, &Found::new("0_output.json", &Value::Null, odd), &Found::new(&name, &file, odd)))
}

fn merged(rank: u64, output: &Found<'_>, stats: &Found<'_>) -> RankRun {
    let epochs = |found: &Found<'_>| found.entries().into_iter().filter_map(|(key, _)| key.parse().ok()).collect();
    let (trained, clocked): (BTreeSet<u64>, BTreeSet<u64>) = (epochs(output), epochs(stats));
    // A checkpoint-only run has no steps, and its epochs are only in the other file.
    let numbers = trained.union(&clocked);
    let epoch = |number: &u64| epoch_of(*number, &output.get(&number.to_string()), &stats.get(&number.to_string()));
    RankRun { rank, hostname: output.get("hostname").text(), epochs: numbers.map(epoch).collect() }
}

/// The timestamps of a rank: from its own file, or from the one that rank 0 wrote for all.
fn stats_of(files: &BTreeMap<String, String>, rank: u64, odd: &Odd) -> Option<(String, Value)> {
    let own = format!("{rank}_per_epoch_stats.json");
    let names = [own.as_str(), "per_epoch_stats.json", "0_per_epoch_stats.json"];
    names.into_iter().find_map(|name| Some((name.to_owned(), json(files, name, odd)?)))
}

fn epoch_of(epoch: u64, times: &Found<'_>, stats: &Found<'_>) -> EpochRun {
    let names: BTreeSet<&str> = ["proc", "compute", "load"]
        .iter()
        .flat_map(|key| times.get(key).entries().into_iter().map(|(name, _)| name).collect::<Vec<_>>())
        .collect();
    // Blocks are sorted by number: "block10" comes after "block9".
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.strip_prefix("block")?.parse().ok()).collect();
    numbers.sort_unstable();
    let mut saves: Vec<SaveRun> = stats.entries().iter().filter_map(|(name, stats)| save(name, stats)).collect();
    saves.sort_by(|a, b| a.span.start_s.total_cmp(&b.span.start_s));
    EpochRun {
        epoch,
        span: span(stats),
        blocks: numbers.iter().map(|number| block(&format!("block{number}"), times, stats)).collect(),
        eval: names.contains("eval").then(|| block("eval", times, stats)),
        saves,
    }
}

fn block(name: &str, times: &Found<'_>, stats: &Found<'_>) -> BlockRun {
    let mut lists = ["compute", "proc", "load"].map(|key| times.get(key).get(name).numbers());
    // A step with an invalid time is left out of all lists.
    let n_steps = lists[0].len();
    let is_whole: Vec<bool> = (0..n_steps)
        .map(|step| lists.iter().filter(|list| list.len() == n_steps).all(|list| list[step].is_some()))
        .collect();
    for list in lists.iter_mut().filter(|list| list.len() == n_steps) {
        let mut steps = is_whole.iter();
        list.retain(|_| steps.next() == Some(&true));
    }
    let [compute_s, whole_s, load_s] = lists.map(|list| list.into_iter().flatten().collect::<Vec<f64>>());
    let whole_s = match whole_s.is_empty() && load_s.len() == compute_s.len() {
        true => load_s.iter().zip(&compute_s).map(|(load, compute)| load + compute).collect(),
        false => whole_s,
    };
    BlockRun {
        name: name.to_owned(),
        load_s,
        compute_s,
        whole_s,
        au: times.get("au").get(name).number(),
        samples_per_s: times.get("throughput").get(name).number(),
        span: span(&stats.get(name)),
        wall_s: None,
    }
}

/// A checkpoint's span: `save_ckpt1`, `load_ckpt1`, or `ckpt1` in older versions.
fn save(name: &str, stats: &Found<'_>) -> Option<SaveRun> {
    let (is_restore, of) = match name.strip_prefix("load_") {
        Some(of) => (true, of),
        None => (false, name.strip_prefix("save_").unwrap_or(name)),
    };
    let number = of.strip_prefix("ckpt")?.parse().ok()?;
    Some(SaveRun { number, is_restore, span: span(stats)? })
}

/// Start and end of an event. A missing end is computed from its duration.
fn span(stats: &Found<'_>) -> Option<Span> {
    let at = |key: &str| seconds_of(&stats.get(key).text()?);
    let start_s = at("start")?;
    let end_s = at("end").or_else(|| Some(start_s + stats.get("duration").number()?))?;
    (end_s >= start_s).then_some(Span { start_s, end_s })
}

/// Seconds since 1970 of a timestamp; a time zone is ignored.
fn seconds_of(text: &str) -> Option<f64> {
    let (date, time) = text.split_once(['T', ' '])?;
    let time = time.split(['Z', '+', '-']).next()?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let whole = forebay_units::parse_utc(&format!("{date}T{whole}Z"))?;
    Some(whole.as_secs_f64() + format!("0.{fraction}").parse::<f64>().ok()?)
}
