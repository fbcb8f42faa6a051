//! `forebay study run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};
use forebay_record::{Environment, Scale, StudyHead, StudySpec};
use forebay_study::{
    Backing, DATA, DatasetSource, Error, Estimator, Folder, Making, Outcome as Ended, Places, Plan, Remaining, Steps,
    data_of, data_to_keep, environment_of, make, spaces,
};
use forebay_units::{PathText, count, escaped_words, shell_word};

use super::display::show;
use super::samples::Samples;
use super::{Replacement, dry_run, explained, find_placement, found, parse_elsewhere, put_elsewhere};
use crate::live::Display;
use crate::output::{Outcome, Outputs, print, remark, replace};
use crate::terminal::Stream;
use crate::{progress, stop};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of a built-in study, or a study file
    #[arg(value_name = "NAME|FILE")]
    study: OsString,

    /// Scale: quick (little data, minutes), standard (every figure with repeats, within an hour) or full (as published, hours)
    #[arg(long, default_value = "quick", value_parser = PossibleValuesParser::new(Scale::ALL.map(Scale::name)).map(scale))]
    scale: Scale,

    /// Folder of the run, new or empty; runs/NAME-TIME by default
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Resume the run in --out; finished cells are not run again
    #[arg(long, requires = "out")]
    resume: bool,

    /// Run failed cells again
    #[arg(long, requires = "resume")]
    retry_failed: bool,

    /// Folder for generated data, which runs can share; by default data in --out
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Use this folder for a tier of the study; may be repeated
    #[arg(long, value_name = "NAME=DIR", value_parser = OsStringValueParser::new().try_map(parse_elsewhere))]
    tier: Vec<Replacement>,

    /// Use this data for a dataset of the study; may be repeated
    #[arg(long, value_name = "NAME=PATH", value_parser = OsStringValueParser::new().try_map(parse_elsewhere))]
    dataset: Vec<Replacement>,

    /// Show the plan with estimated bytes and times, without running anything
    #[arg(long)]
    dry_run: bool,
}

struct Run<'a> {
    args: &'a Args,
    plan: &'a Plan,
    out: PathBuf,
    data: PathBuf,
    folder: Folder,
    rest: Remaining,
}

pub(crate) fn run(args: &Args) -> Result<Outcome> {
    let mut spec = found(&args.study)?.spec;
    put_elsewhere(&mut spec, &args.tier, &args.dataset)?;
    let in_file = |error: Error| explained(Some(&args.study), error);
    let mut plan = plan_of(spec, args).map_err(in_file)?;
    plan.check_folders().map_err(in_file)?;
    check_tiers(&plan)?;
    if let Some(out) = &args.out {
        Outputs::for_inputs(read_by(&plan), false).folder("--out", out)?;
    }
    let data = args.data.clone().unwrap_or_else(|| out_of(args, &plan, "TIME").join(DATA));
    plan.leave_out_too_large(&data);
    if args.dry_run {
        let (rest, data) = dry(args, &plan, data).map_err(|error| explained(None, error))?;
        return dry_run::show(&plan, &data, &rest, args.resume);
    }
    let mut run = Run::open(args, &plan).map_err(|error| explained(None, error))?;
    let ended = Samples::begin(&run.out).map(|samples| run.go(samples))?;
    // The report is written even after an error.
    let page = write_page(&run.out);
    let ended = ended.map_err(|error| explained(None, error))?;
    let (page, summary) = page?;
    run.conclude(ended, &page, &summary)
}

/// Writes the run's page from its record; returns its path and the outcome of the run.
fn write_page(out: &Path) -> Result<(PathBuf, String)> {
    let (page, run) = (out.join("report.html"), crate::report::read(out)?);
    let summary = forebay_report::summary_within(&run, Stream::Stdout.width());
    replace(&page, forebay_report::html(&[run]).as_bytes())?;
    Ok((page, summary))
}

pub(super) fn scale(name: String) -> Scale {
    Scale::ALL.into_iter().find(|scale| scale.name() == name).unwrap_or(Scale::Quick)
}

/// The existing data of a study, which it only reads.
fn read_by(plan: &Plan) -> impl Iterator<Item = &Path> {
    plan.datasets.iter().filter_map(|dataset| match &dataset.source {
        DatasetSource::Path(path) => Some(path.as_path()),
        DatasetSource::Make(_) | DatasetSource::Pack { .. } => None,
    })
}

/// The cells that a run would measure, without the finished ones of a resumed run, and the folder of its data.
fn dry(args: &Args, plan: &Plan, data: PathBuf) -> forebay_study::Result<(Remaining, PathBuf)> {
    let Some(out) = args.out.as_ref().filter(|_| args.resume) else { return Ok((Remaining::whole(plan), data)) };
    let environment = forebay_measure::describe_environment(there(&data), env!("CARGO_PKG_VERSION"));
    let run = Folder::read(out, &head_of(plan, environment, &data))?;
    let data = args.data.clone().unwrap_or_else(|| data_of(out, &run.head).0);
    Ok((Remaining::after(plan, &run, args.retry_failed), data))
}

/// The plan for this machine; for a resumed run, the plan for the machine on which it started.
fn plan_of(spec: StudySpec, args: &Args) -> forebay_study::Result<Plan> {
    let started_on = args.out.as_ref().filter(|_| args.resume).and_then(|out| environment_of(out));
    match started_on.filter(|machine| machine.n_cores > 0) {
        Some(machine) => Plan::for_cores(spec, args.scale, machine.n_cores),
        None => Plan::new(spec, args.scale),
    }
}

/// Refuses folders on tiers that are not up, since the disk below would be measured.
fn check_tiers(plan: &Plan) -> Result<()> {
    plan.tiers.iter().try_for_each(|tier| match &tier.backing {
        Backing::Folder(path) => crate::tier::placement(path).map(drop),
        Backing::Shaped(_) => Ok(()),
    })
}

impl<'a> Run<'a> {
    fn open(args: &'a Args, plan: &'a Plan) -> forebay_study::Result<Self> {
        let environment = |data: &Path| forebay_measure::describe_environment(there(data), env!("CARGO_PKG_VERSION"));
        let started = environment(Path::new(".")).started_at;
        let out = out_of(args, plan, &started.replace(['-', ':'], ""));
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let (home, given) = (absolute(&out), args.data.as_ref().map(absolute));
        let data = given.clone().unwrap_or_else(|| home.join(DATA));
        let head = head_of(plan, environment(&data), &data_to_keep(&home, &data));
        if !args.resume {
            let rest = Remaining::whole(plan);
            spaces(&Places::new(plan, &data), rest.cells_of(plan).collect::<Vec<_>>())
                .iter()
                .try_for_each(|space| space.check())?;
            let folder = Folder::begin(&out, &head)?;
            return Ok(Self { args, plan, out, data, folder, rest });
        }
        let (mut folder, run) = Folder::resume(&out, &head)?;
        let (data, lay) = given.map_or_else(|| data_of(&home, &run.head), |given| (given, None));
        let rest = Remaining::after(plan, &run, args.retry_failed);
        if !rest.cells.is_empty() && !folder.is_new() {
            if let Some(lay) = lay {
                let (lay, data) = (lay.escaped(), data.escaped());
                remark(&format!("forebay: the run folder was moved; its data is in {data}, not in {lay}"));
            }
            folder.append(&rest.resumed(environment(&data)))?;
        }
        Ok(Self { args, plan, out, data, folder, rest })
    }

    fn go(&mut self, samples: Samples) -> forebay_study::Result<Ended> {
        stop::finishing("the cell");
        let plan = self.plan;
        let places = Places::new(plan, &self.data);
        for wanted in places.to_make(self.rest.cells_of(plan)) {
            let doing = match wanted.making {
                _ if wanted.is_there() => "checking",
                Making::Make(_) | Making::Records(_) => "making",
                Making::Pack { .. } => "packing",
            };
            let bar = progress::unknown(doing);
            let show = |now: forebay_dataset::Progress| progress::show(&bar, now);
            let made = make(&wanted, &show, stop::flag());
            bar.finish_and_clear();
            match made {
                Err(Error::Data { source: forebay_dataset::Error::Cancelled, .. }) => break,
                made => made?.iter().for_each(|fault| remark(&format!("forebay: {}: left out {fault}", wanted.name))),
            }
        }
        let estimator = Estimator::new(plan, &places);
        let seconds = |cell: &_| estimator.cell(cell).seconds;
        let steps = Steps::new(plan, &self.data, &find_placement, crate::cuda::folders());
        let mut steps = if crate::live::is_watched() { steps.watched() } else { steps };
        let display = Display::of_cells();
        let observe = |event: forebay_study::Event<'_>| {
            samples.mark(&event);
            show(display.as_ref(), event);
        };
        let (rest, folder) = (&self.rest, &mut self.folder);
        let ended = forebay_study::run(plan, rest, folder, &mut steps, &seconds, &observe, stop::flag());
        samples.end();
        ended
    }

    fn conclude(&self, ended: Ended, page: &Path, summary: &str) -> Result<Outcome> {
        let (name, scale) = (&self.plan.spec.name, self.plan.scale.name());
        let cells = count(ended.n_cells as u64, "cell");
        let left_out = match ended.n_left_out {
            0 => String::new(),
            n => format!(", {n} left out"),
        };
        print(&format!(
            "{summary}\n{name} ({scale}): {} of {cells} done, {} failed{left_out}; {}\n",
            ended.n_done - ended.n_left_out,
            ended.n_failed,
            page.escaped()
        ))?;
        for made in Places::new(self.plan, &self.data).to_make(&self.plan.cells) {
            // Data in the run's folder or in --data is easy to find; data on a tier's device is not, so its folder is printed.
            if !made.dir.starts_with(&self.data) && made.is_there() {
                let (dir, bytes) = (made.dir.escaped(), made.expected_bytes());
                remark(&format!("forebay: data for the next run is kept in {dir}, about {bytes}"));
            }
        }
        if ended.stopped {
            remark(&format!("forebay: stopped; resume with: {}", self.resuming()));
        } else if ended.n_failed > 0 {
            remark(&format!("forebay: rerun failed cells with: {} --retry-failed", self.resuming()));
        }
        // A study whose cells were all left out has no result.
        let has_result = ended.n_left_out < ended.n_cells;
        let met = ended.n_done == ended.n_cells && ended.n_failed == 0 && has_result;
        Ok(Outcome::of(met))
    }

    fn resuming(&self) -> String {
        let mut line = format!("forebay study run {} --scale {}", shell_word(&self.args.study), self.plan.scale.name());
        for (flag, put) in [("--tier", &self.args.tier), ("--dataset", &self.args.dataset)] {
            for put in put {
                let mut word = OsString::from(format!("{}=", put.name));
                word.push(&put.path);
                line.push_str(&format!(" {flag} {}", shell_word(word)));
            }
        }
        format!("{line} --out {} --resume", shell_word(&self.out))
    }
}

fn out_of(args: &Args, plan: &Plan, time: &str) -> PathBuf {
    args.out.clone().unwrap_or_else(|| PathBuf::from(format!("runs/{}-{time}", plan.spec.name)))
}

fn head_of(plan: &Plan, environment: Environment, data: &Path) -> StudyHead {
    plan.head(escaped_words(std::env::args_os()), environment, data, &find_placement)
}

/// The path, or its nearest existing ancestor.
fn there(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."))
}
