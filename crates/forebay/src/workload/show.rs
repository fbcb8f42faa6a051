//! `forebay workload show`: prints the plan of a workload, section by section.

use anyhow::{Result, bail};
use forebay_units::{Bytes, PathText, count, format_seconds, group_digits};
use forebay_workload::{Checked, Dataset, Part, Plan, Shuffle, Time, Workload, model};
use serde_json::{Value, json};

use super::replay;
use super::source::{Source, refused};
use crate::output::{JsonArgs, Outcome, Schema};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: forebay workload show unet3d_h100 --accelerators 8 ++workload.reader.batch_size=4")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// Number of accelerators; by default 1, or the minimum that the model can be distributed over
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    accelerators: Option<u64>,

    #[command(flatten)]
    json: JsonArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome> {
    let target = args.json.target(args.source.file())?;
    if let Some(found) = args.source.replay()? {
        if args.accelerators.is_some() {
            bail!("--accelerators: not for a traced job, which had one loop");
        }
        target.give(Schema::WorkloadShow, &replay::describe(&args.source, &found), &json!({ "replay": found }))?;
        return Ok(Outcome::Met);
    }
    let checked = args.source.read()?;
    let accelerators = args.accelerators.unwrap_or_else(|| fewest(&checked.workload));
    let plan = Plan::new(&checked.workload, accelerators).map_err(|problem| refused(&args.source.name, &problem))?;
    target.give(Schema::WorkloadShow, &describe(&checked, &plan), &as_json(&checked, &plan))?;
    Ok(Outcome::Met)
}

fn fewest(workload: &Workload) -> u64 {
    let spread = &workload.model.parallelism;
    let all = spread.tensor * spread.pipeline * spread.data.unwrap_or(1);
    if workload.workflow.checkpoint && Plan::new(workload, 1).is_err() { all.max(1) } else { 1 }
}

/// The sections of the plan, and notes on keys.
pub(super) fn describe(checked: &Checked, plan: &Plan) -> String {
    let workload = &checked.workload;
    let mut rows = vec![("workload", workload.name.clone())];
    if workload.workflow.train {
        rows.push(("data", data(workload, plan)));
        rows.push(("sample", sample(&workload.dataset)));
        rows.push(("reader", reader(workload)));
        rows.push(("train", train(workload, plan)));
    }
    if !plan.evaluations.is_empty() {
        rows.push(("evaluation", evaluation(workload, plan)));
    }
    rows.extend(saved(workload, plan).map(|saved| ("checkpoint", saved)));
    if workload.workflow.train {
        rows.extend(demand(plan).map(|demand| ("demand", demand)));
        rows.push(("threshold", format!("an AU of {} %", workload.limits.au * 100.0)));
    }
    let mut out: String = rows.iter().map(|(name, text)| format!("{name:<10}  {text}\n")).collect();
    for note in &checked.notes {
        out.push_str(&format!("note: {}: {}\n", note.key, note.text));
    }
    out
}

fn data(workload: &Workload, plan: &Plan) -> String {
    let dataset = &workload.dataset;
    let folder = super::run::data_folder(workload);
    let mut out = files(dataset, Part::Train, plan.bytes_train);
    if plan.samples_eval > 0 && !plan.evaluations.is_empty() {
        out.push_str(&format!("; {} for evaluation", files(dataset, Part::Eval, plan.bytes_eval)));
    }
    format!("{out}; {}", folder.escaped())
}

fn files(dataset: &Dataset, part: Part, bytes: u64) -> String {
    let files = count(dataset.n_files(part), &format!("{} file", dataset.format.name()));
    format!("{files} of {}, {}", count(dataset.n_samples_per_file, "sample"), Bytes(bytes))
}

fn sample(dataset: &Dataset) -> String {
    let bytes = |bytes: f64| Bytes(bytes as u64);
    let mut out = match dataset.record_dims.as_slice() {
        [] => bytes(dataset.record_length_bytes).to_string(),
        dims => {
            let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
            format!("{} values of {}", dims.join(" x "), count(dataset.element.bytes(), "byte"))
        }
    };
    if dataset.record_length_bytes_stdev > 0.0 {
        out.push_str(&format!(" ± {}", bytes(dataset.record_length_bytes_stdev)));
    }
    if dataset.record_length_bytes_resize > 0 {
        out.push_str(&format!(", resized to {}", Bytes(dataset.record_length_bytes_resize)));
    }
    out
}

fn reader(workload: &Workload) -> String {
    let reader = &workload.reader;
    let order = |what: &str, shuffle: Shuffle| match shuffle {
        Shuffle::Off => format!("{what} in order"),
        Shuffle::Seed => format!("{what} shuffled with seed {}", workload.train.seed),
        Shuffle::Random => format!("{what} shuffled at random"),
    };
    let mut words = vec![
        format!("batch {}", group_digits(reader.batch_size)),
        count(reader.read_threads, "read thread"),
        format!("prefetch {}", reader.prefetch_size),
        order("files", reader.file_shuffle),
        order("samples", reader.sample_shuffle),
    ];
    words.extend(reader.transfer_size.map(|size| format!("reads of at most {}", Bytes(size))));
    words.extend(reader.odirect.then(|| "bypassing the page cache".to_owned()));
    words.extend(reader.in_memory.then(|| "kept in memory once read".to_owned()));
    if !reader.preprocess_time.is_zero() {
        words.push(format!("{} on every sample", law(&reader.preprocess_time)));
    }
    words.join(", ")
}

/// A time, or the mean of a random one.
fn law(time: &Time) -> String {
    let mean = format_seconds(time.mean());
    match time {
        Time::Normal { stdev, .. } if *stdev == 0.0 => mean,
        Time::Normal { stdev, .. } => format!("{mean} ± {}", format_seconds(*stdev)),
        _ => format!("{mean} on average"),
    }
}

fn train(workload: &Workload, plan: &Plan) -> String {
    let epochs = workload.train.epochs;
    let steps = count(plan.steps_per_epoch, "step");
    let each = if plan.accelerators > 1 { "each of " } else { "" };
    format!(
        "{} of {steps} for {each}{}, {} of compute per step; {} at least; {} read",
        count(epochs, "epoch"),
        count(plan.accelerators, "accelerator"),
        law(&workload.train.computation_time),
        about(plan.compute_s),
        Bytes(bytes_read(workload, plan) as u64)
    )
}

/// Bytes of the samples of all steps; of columnar data, only the columns that are read.
fn bytes_read(workload: &Workload, plan: &Plan) -> f64 {
    let dataset = &workload.dataset;
    let each = match dataset.parquet.columns.is_empty() {
        true => plan.bytes_train as f64 / plan.samples_train.max(1) as f64,
        false => dataset.mean_read_bytes(),
    };
    let steps = workload.train.epochs as f64 * plan.steps_per_epoch as f64;
    steps * workload.reader.batch_size as f64 * plan.accelerators as f64 * each
}

fn about(seconds: f64) -> String {
    match seconds {
        s if s >= 7_200.0 => format!("{:.1} h", s / 3_600.0),
        s => format_seconds(s),
    }
}

fn evaluation(workload: &Workload, plan: &Plan) -> String {
    let after: Vec<String> = plan.evaluations.iter().take(8).map(ToString::to_string).collect();
    let more = if plan.evaluations.len() > after.len() { " …" } else { "" };
    let steps = count(plan.steps_eval, "step");
    let epochs = if plan.evaluations.len() == 1 { "epoch" } else { "epochs" };
    let after = after.join(", ");
    format!("after {epochs} {after}{more}: {steps}, {} of compute each", law(&workload.evaluation.eval_time))
}

fn saved(workload: &Workload, plan: &Plan) -> Option<String> {
    if plan.checkpoints == 0 {
        return None;
    }
    let each = per_rank(workload, plan);
    let most = each.iter().copied().max().unwrap_or(0);
    let n_saving = each.iter().filter(|bytes| **bytes > 0).count() as u64;
    let mut words = vec![format!("{} of {}", count(plan.checkpoints, "checkpoint"), Bytes(plan.checkpoint_bytes))];
    words.push(match n_saving {
        1 => "all of it by one rank".to_owned(),
        n => format!("by {}, {} each at most", count(n, "rank"), Bytes(most)),
    });
    if workload.checkpoint.n_read > 0 && !workload.workflow.train {
        words.push(format!("{} read back", group_digits(workload.checkpoint.n_read)));
    }
    words.extend(model::n_parameters(workload).map(|n| format!("{} parameters", group_digits(n))));
    Some(words.join(", "))
}

fn per_rank(workload: &Workload, plan: &Plan) -> Vec<u64> {
    let bytes = |rank| {
        let files = model::shard_of(workload, rank, plan.accelerators).unwrap_or_default();
        files.iter().map(model::ShardFile::bytes).sum()
    };
    (0..plan.accelerators).map(bytes).collect()
}

fn demand(plan: &Plan) -> Option<String> {
    let each = plan.demand_bytes_per_s?;
    let rate = |bytes: f64| format!("{}/s", Bytes(bytes as u64));
    let of_all = match plan.accelerators {
        1 => String::new(),
        n => format!(", {} of all {}", rate(each * n as f64), group_digits(n)),
    };
    Some(format!("{} per accelerator that never waits{of_all}", rate(each)))
}

fn as_json(checked: &Checked, plan: &Plan) -> Value {
    let Checked { workload, notes } = checked;
    let (dataset, reader) = (&workload.dataset, &workload.reader);
    let mut planned = json!(plan);
    planned["checkpoint_bytes_per_rank"] =
        json!(if plan.checkpoints > 0 { per_rank(workload, plan) } else { Vec::new() });
    json!({
        "workload": workload.name,
        "format": dataset.format,
        "n_files_train": dataset.n_files_train,
        "n_files_eval": dataset.n_files_eval,
        "samples_per_file": dataset.n_samples_per_file,
        "record_length_bytes": dataset.record_length_bytes,
        "batch": reader.batch_size,
        "read_threads": reader.read_threads,
        "prefetch": reader.prefetch_size,
        "epochs": workload.train.epochs,
        "computation_s": workload.train.computation_time.mean(),
        "au": workload.limits.au,
        "plan": planned,
        "notes": notes,
    })
}
