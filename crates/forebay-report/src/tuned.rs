//! What `forebay tune` found: the path of its runs, and the settings of the fastest as a command line, in Python and as a study file.

mod python;

use std::fmt::Write;

use forebay_record::{AnyRecord, Change, Level, Rates, StudyCell, TrainCell, Tuning, TuningEnd, TuningOutcome};
use forebay_units::{group_digits, shell_word, unescape};

use crate::number::{brief_seconds, listed, percent, quantity};
use crate::run::Run;

/// Names of the tiers of checkpoints in a study file, with the flags of their folder and of their device.
const PLACES: [(&str, [&str; 2]); 2] =
    [("checkpoints", ["checkpoint_dir", "checkpoint_tier"]), ("burst-buffer", ["burst_dir", "burst_tier"])];
/// Predictions at most so far from the measurement are counted as good.
const NEAR: f64 = 0.10;

/// A run of the path, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried<'a> {
    pub(crate) cell: &'a StudyCell,
    pub(crate) train: &'a TrainCell,
    pub(crate) tuning: &'a Tuning,
    /// Median over the repeats.
    pub(crate) wall_s: f64,
}

impl Tried<'_> {
    /// Run time over that of the fastest run before, minus 1.
    pub(crate) fn gain(&self) -> Option<f64> {
        self.tuning.before_s.map(|before_s| self.wall_s / before_s - 1.0)
    }

    /// Half the width of the interval of the run time over that of another run, from the ranges of both runs' repeats.
    fn ratio_error(&self, other: &Self) -> Option<f64> {
        let (own, others) = (self.train.spread?, other.train.spread?);
        Some(self.wall_s / other.wall_s * own.hypot(others))
    }

    /// Predicted over measured run time, minus 1.
    pub(crate) fn error(&self) -> Option<f64> {
        self.tuning.predicted_s.map(|predicted_s| predicted_s / self.wall_s - 1.0)
    }
}

/// The runs of a tuning; none of other records.
pub(crate) fn path<'a>(run: &'a Run<'_>) -> Vec<Tried<'a>> {
    let tried = |(cell, train): (&'a StudyCell, &'a TrainCell)| {
        let wall_s = cell.value(&TrainCell::WALL_S)?;
        Some(Tried { cell, train, tuning: train.tuning.as_ref()?, wall_s })
    };
    run.cells_of::<TrainCell>().filter_map(tried).collect()
}

/// The last run that was kept: the fastest.
pub(crate) fn best<'a>(path: &[Tried<'a>]) -> Option<Tried<'a>> {
    path.iter().rev().find(|tried| tried.tuning.outcome != TuningOutcome::Dropped).copied()
}

/// A change as the command spells it.
pub(crate) fn flag(change: &Change) -> String {
    match (change.setting.as_str(), &change.value) {
        (Change::DATASET, format) => format!("the data packed as {format}"),
        (setting, level) => flag_of(setting, level).unwrap_or_default(),
    }
}

/// `None` for a switch that is off.
fn flag_of(setting: &str, level: &Level) -> Option<String> {
    let name = format!("--{}", setting.replace('_', "-"));
    match level {
        Level::Flag(true) => Some(name),
        Level::Flag(false) => None,
        Level::Text(escaped) if setting.ends_with("_dir") => Some(format!("{name} {}", path_word(escaped))),
        value => Some(format!("{name} {}", shell_word(value.to_string()))),
    }
}

pub(crate) fn headline(run: &Run<'_>) -> Option<String> {
    let path = path(run);
    let (first, best) = (path.first()?, best(&path)?);
    let disturbed = [first, &best].iter().any(|tried| tried.train.disturbed.is_some());
    let doubt = if disturbed { " Other processes used the machine meanwhile: repeat it when it is quiet." } else { "" };
    let changes: Vec<String> = best.tuning.changes.iter().map(flag).collect();
    Some(if changes.is_empty() {
        format!("No change made the run faster than {}.{doubt}", brief_seconds(best.wall_s))
    } else {
        format!(
            "With {} the run takes {} instead of {} ({}{}).{doubt}",
            listed(&changes),
            brief_seconds(best.wall_s),
            brief_seconds(first.wall_s),
            signed(best.wall_s / first.wall_s - 1.0),
            best.ratio_error(first).map(|error| format!(" ± {}", percent(error))).unwrap_or_default()
        )
    })
}

pub(crate) fn findings(run: &Run<'_>) -> Vec<String> {
    let path = path(run);
    let Some(best) = best(&path) else { return Vec::new() };
    let end = end(&path);
    // After a search that was cut short, a flag may still change it.
    let needs = needs(best.train).filter(|_| !is_cut_short(&path));
    let ended = end.map(|end| ended(end, run)).into_iter();
    ended.chain(needs).chain(predictions(&path)).collect()
}

fn end(path: &[Tried<'_>]) -> Option<TuningEnd> {
    path.iter().rev().find_map(|tried| tried.tuning.end)
}

/// Whether changes were left untried.
pub(crate) fn is_cut_short(path: &[Tried<'_>]) -> bool {
    matches!(end(path), Some(TuningEnd::Budget | TuningEnd::Stopped | TuningEnd::Failed))
}

/// How good the predictions were.
fn predictions(path: &[Tried<'_>]) -> Option<String> {
    let errors: Vec<f64> = path.iter().filter_map(Tried::error).collect();
    match errors.as_slice() {
        [] => None,
        [one] => Some(format!(
            "The predicted run time was {} {} than the measured one.",
            percent(one.abs()),
            if *one < 0.0 { "shorter" } else { "longer" }
        )),
        all => {
            let near = all.iter().filter(|error| error.abs() <= NEAR).count();
            Some(format!("{near} of {} predicted run times were within 10 % of the measured ones.", all.len()))
        }
    }
}

fn ended(end: TuningEnd, run: &Run<'_>) -> String {
    let took_s = match run.record {
        AnyRecord::Train(record) => record.series.as_ref().and_then(|series| series.time_s.last().copied()),
        _ => None,
    };
    let after = took_s.map(|took_s| format!(" after {}", brief_seconds(took_s))).unwrap_or_default();
    let said = match end {
        TuningEnd::Accelerator => "The accelerator is the limit now: no other setting makes the run faster.",
        TuningEnd::Exhausted => "The advice names no other change of settings.",
        TuningEnd::Budget => {
            return format!(
                "The search ended{after}, because another run would have exceeded the budget. Give a longer --budget to go on."
            );
        }
        TuningEnd::Stopped => "The search was stopped: more may be possible.",
        TuningEnd::Failed => "The first run failed after some of its steps.",
    };
    said.to_owned()
}

/// What no flag can change, and what it would take; `None` where the accelerator is the limit.
fn needs(train: &TrainCell) -> Option<String> {
    let limit = train.limit.as_ref().filter(|limit| limit.name != "accelerator")?;
    let rates = limit.rates?;
    let consumes = rates.consumes_per_s?;
    let lacks: Vec<String> =
        [storage(&rates, consumes, train), cores(&rates, consumes)].into_iter().flatten().collect();
    (!lacks.is_empty()).then(|| {
        format!(
            "No flag changes the rest: for an accelerator that consumes {} images/s and never waits, {}.",
            quantity(consumes),
            lacks.join("; ")
        )
    })
}

fn storage(rates: &Rates, consumes: f64, train: &TrainCell) -> Option<String> {
    let most = rates.storage_most_per_s.filter(|most| *most < consumes)?;
    let whole = |rate: f64| group_digits(rate.round() as u64);
    let mb = |rate: f64| train.bytes_per_image().map(|bytes| format!(" and {} MB/s", quantity(rate * bytes / 1e6)));
    Some(format!(
        "the storage must deliver {} IOPS{}, one request per image; it delivers {}{}",
        whole(consumes),
        mb(consumes).unwrap_or_default(),
        whole(most),
        mb(most).unwrap_or_default()
    ))
}

fn cores(rates: &Rates, consumes: f64) -> Option<String> {
    let process = rates.cores_per_s.filter(|process| *process < consumes)?;
    let (needed, has) = ((rates.cores * consumes / process).ceil(), rates.cores);
    Some(format!("decoding needs {needed:.0} cores like these; there are {has:.0}"))
}

/// "−77.3 %"
pub(crate) fn signed(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "−" } else { "+" }, percent(share.abs()))
}

/// The settings of a run as lines for other programs, each with what it is.
pub(crate) fn code(run: &Run<'_>, tried: &Tried<'_>) -> Vec<(String, String)> {
    let AnyRecord::Train(record) = run.record else { return Vec::new() };
    let own = record.dataset.path.as_str();
    let data = match tried.tuning.dataset() {
        Some(format) => format!("{own}-{format}"),
        None => own.to_owned(),
    };
    vec![
        ("The settings as a command line".to_owned(), command(tried.tuning, own, &data)),
        ("The same in Python".to_owned(), python::loader(tried, &data)),
        ("The same as a study file, for forebay study run".to_owned(), study(tried, &data)),
    ]
}

/// An escaped path as the shell takes it.
fn path_word(escaped: &str) -> String {
    unescape(escaped).map_or_else(|_| shell_word(escaped), shell_word)
}

fn command(tuning: &Tuning, own: &str, data: &str) -> String {
    let (from, to) = (path_word(own), path_word(data));
    let pack = tuning.pack.as_ref().map(|flags| format!("forebay data pack {from} {to} {flags}\n"));
    let flags = tuning.settings.iter().chain(&tuning.data_flags).filter_map(|(name, level)| flag_of(name, level));
    let flags: Vec<String> = flags.collect();
    format!("{}forebay train {to} {}", pack.unwrap_or_default(), flags.join(" "))
}

/// Keys of TFRecord features have no place in a study file, which finds them by content.
fn study(tried: &Tried<'_>, data: &str) -> String {
    let Tried { train, tuning, .. } = tried;
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut text = format!(
        "name = \"tuned\"\ntitle = \"Training with the settings that forebay tune found\"\n\n[[dataset]]\nname = \"data\"\npath = {}\n",
        quoted(data)
    );
    let tier = tuning.data_flags.get("tier").map(ToString::to_string);
    if let Some(tier) = &tier {
        let _ = write!(text, "\n[[tier]]\nname = {0}\nprofile = {0}\n", quoted(tier));
    }
    for (place, [dir, tier]) in PLACES {
        let Some(Level::Text(path)) = tuning.data_flags.get(dir) else { continue };
        let key = if tuning.data_flags.contains_key(tier) { "profile" } else { "path" };
        let value = tuning.data_flags.get(tier).map_or_else(|| path.clone(), ToString::to_string);
        let _ = write!(text, "\n[[tier]]\nname = {}\n{key} = {}\n", quoted(place), quoted(&value));
    }
    text.push_str(
        "\n[[experiment]]\nname = \"training\"\nrun = \"train\"\ndataset = \"data\"\nrepeats = 3\n\n[experiment.settings]\n",
    );
    if let Some(tier) = &tier {
        let _ = writeln!(text, "tier = {}", quoted(tier));
    }
    for (place, [dir, _]) in PLACES {
        if tuning.data_flags.contains_key(dir) {
            let _ = writeln!(text, "{0} = {1}", if dir == "burst_dir" { "burst" } else { "checkpoint" }, quoted(place));
        }
    }
    let mut settings = tuning.settings.clone();
    if !settings.contains_key("steps") && !settings.contains_key("epochs") {
        settings.insert("steps".to_owned(), Level::Integer(train.totals.n_steps as i64));
    }
    for (name, level) in &settings {
        let value = match level {
            Level::Text(value) => quoted(value),
            value => value.to_string(),
        };
        let _ = writeln!(text, "{name} = {value}");
    }
    text
}
