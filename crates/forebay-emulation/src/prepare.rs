//! Before the first step: all ranks agree on the plan, make the data if the workload requests it, and evict caches.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use forebay_dataset::{Control, MadeRecords, RECORDS_MARKER, made_otherwise, make_records, records_beside};
use forebay_measure::cold::{self, Before};
use forebay_measure::{Event, Observer};
use forebay_units::chain;
use forebay_units::{Bytes, count};
use forebay_workload::{Format, Part, Shuffle, Workload};

use super::batch_source::BatchSource;
use super::plan::Plan;
use super::read::Seeds;
use super::run::Error;
use forebay_ranks::{Ranks, everybody};

/// Maximum number of files whose residency is sampled if nothing is evicted.
const LOOKED_AT: u64 = 1024;

/// Ends all ranks if one has failed: that one with its own error, the others with its reason.
pub(super) fn together<T>(ranks: &dyn Ranks, outcome: Result<T, Error>) -> Result<T, Error> {
    forebay_ranks::together(ranks, outcome, |error| chain(error))
}

/// Checks that all ranks have the same plan, and returns the seeds of the orders: the workload's, or some from the
/// clock.
pub(super) fn agree(plan: &Plan, ranks: &dyn Ranks) -> Result<Seeds, Error> {
    let seeds = seeds(&plan.workload);
    let mine = format!("{} {}\n{}", seeds.files, seeds.samples, text(plan));
    let first = ranks.broadcast(mine.into_bytes())?;
    let first = String::from_utf8_lossy(&first);
    let (seeds, theirs) = first.split_once('\n').unwrap_or((&first, ""));
    let differs =
        forebay_ranks::difference(theirs, &text(plan)).map(|what| Error::OtherPlan { rank: ranks.rank(), what });
    together(ranks, differs.map_or(Ok(()), Err))?;
    let known = seeds
        .split_once(' ')
        .and_then(|(files, samples)| Some(Seeds { files: files.parse().ok()?, samples: samples.parse().ok()? }));
    known.ok_or_else(|| Error::OtherPlan { rank: ranks.rank(), what: format!("invalid seeds \"{seeds}\"") })
}

fn seeds(workload: &Workload) -> Seeds {
    let of_moment = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let seed = |shuffle| if shuffle == Shuffle::Random { of_moment() } else { workload.train.seed };
    Seeds { files: seed(workload.reader.file_shuffle), samples: seed(workload.reader.sample_shuffle) }
}

/// The settings that ranks must have in common, line by line.
fn text(plan: &Plan) -> String {
    let Plan { settings, workload, tier, out, .. } = plan;
    let version = env!("CARGO_PKG_VERSION");
    format!("version: {version}\ntier: {tier:?}\nout: {out:?}\n{settings:#?}\n{workload:#?}")
}

/// For the record.
pub(super) fn order(workload: &Workload, seeds: Seeds) -> String {
    let name = |shuffle, seed| match shuffle {
        Shuffle::Off => "off".to_owned(),
        Shuffle::Seed => format!("seed {seed}"),
        Shuffle::Random => format!("random, seed {seed} from the clock"),
    };
    let (files, samples) = (workload.reader.file_shuffle, workload.reader.sample_shuffle);
    format!("files: {}, samples: {}", name(files, seeds.files), name(samples, seeds.samples))
}

pub(super) fn generate(plan: &Plan, ranks: &dyn Ranks, observer: Observer<'_>) -> Result<MadeRecords, Error> {
    let told = Mutex::new(0);
    let progress = |progress: forebay_dataset::Progress| {
        let percent = 100 * progress.done / progress.total.max(1);
        let mut last = told.lock().expect("no holder of this lock panics");
        if percent != *last {
            *last = percent;
            observer.tell(Event::Phase { what: "making the data".to_owned(), percent: Some(percent) });
        }
    };
    observer.tell(Event::phase("making the data"));
    let control = Control { threads: 0, cancel: observer.cancel, progress: &progress };
    Ok(make_records(&plan.workload, &plan.data, ranks.rank(), ranks.size(), &control)?)
}

pub(super) fn made_note(made: &MadeRecords) -> String {
    let kept = if made.n_kept > 0 { format!("; {} already existed", made.n_kept) } else { String::new() };
    format!("this process made {} of data, {}{kept}", count(made.n_written, "file"), Bytes(made.bytes))
}

/// Removes the data that this run made: this rank's files, then, by the first rank, the marker and empty folders. If
/// any rank found some of its files before the run, all files stay, on all ranks.
pub(super) fn remove_made(plan: &Plan, ranks: &dyn Ranks, made: Option<&MadeRecords>) -> Result<Option<String>, Error> {
    let dataset = &plan.workload.dataset;
    let Some(made) = made else {
        return Ok(Some(
            "dataset.keep_files is false, but this run did not generate the data, so the data stays".to_owned(),
        ));
    };
    let was_there = everybody(ranks, &made.n_kept.to_string())?.iter().any(|n_kept| n_kept != "0");
    let note = was_there.then(|| "some of the data existed before this run, so all of it stays".to_owned());
    let removed = if was_there { Ok(()) } else { remove_share(plan, ranks) };
    together(ranks, removed)?;
    if ranks.rank() == 0 {
        let folders = |top: &str| {
            let top = plan.data.join(top);
            let below = std::fs::read_dir(&top).into_iter().flatten().flatten().map(|entry| entry.path());
            below.chain([top]).collect::<Vec<PathBuf>>()
        };
        for folder in [Part::Train.folder(), Part::Eval.folder(), "index"].into_iter().flat_map(folders) {
            // A folder that is not empty stays.
            let _ = std::fs::remove_dir(folder);
        }
        let is_left = |part: Part| dataset.n_files(part) > 0 && plan.data.join(part.folder()).exists();
        if ![Part::Train, Part::Eval].into_iter().any(is_left) {
            remove(plan.data.join(RECORDS_MARKER))?;
            let _ = std::fs::remove_dir(&plan.data);
        }
    }
    Ok(note)
}

/// Removes this rank's files, including the index files of some formats.
fn remove_share(plan: &Plan, ranks: &dyn Ranks) -> Result<(), Error> {
    let dataset = &plan.workload.dataset;
    for part in [Part::Train, Part::Eval] {
        for file in (ranks.rank()..dataset.n_files(part)).step_by(ranks.size() as usize) {
            for beside in records_beside(dataset, part, file) {
                remove(plan.data.join(beside))?;
            }
            remove(plan.data.join(dataset.path_of(part, file)))?;
        }
    }
    Ok(())
}

fn remove(path: PathBuf) -> Result<(), Error> {
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Shared(forebay_measure::Error::Io { what: "removing", path, source }))
        }
        _ => Ok(()),
    }
}

/// Evicts the data if requested; the ranks of a host share the files between them.
pub(super) fn caches(plan: &Plan, (index, n): (u64, u64), source: &BatchSource) -> Result<Before, Error> {
    let dataset = &plan.workload.dataset;
    let n_files = dataset.n_files_train;
    if !plan.settings.cold {
        return Ok(cold::prepare(&source.files(0, n_files.div_ceil(LOOKED_AT)), false)?);
    }
    let train = source.files(index, n);
    let share = |part| (index..dataset.n_files(part)).step_by(n.max(1) as usize).map(move |file| (part, file));
    let besides = share(Part::Train).chain(share(Part::Eval));
    let besides = besides.flat_map(|(part, file)| records_beside(dataset, part, file)).map(|path| plan.data.join(path));
    // Files that are not trained on do not count as evidence.
    let others = besides.filter(|path| path.exists()).chain(source.eval_files(index, n));
    let others: Vec<PathBuf> = others.collect();
    cold::prepare(&others, true)?;
    Ok(cold::prepare(&train, true)?)
}

/// The differences between existing data and the workload.
pub(super) fn otherwise(plan: &Plan) -> Vec<String> {
    let is_read = plan.workload.dataset.format != Format::Synthetic;
    if is_read { made_otherwise(&plan.workload.dataset, &plan.data) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::settings::WorkloadSettings;
    use super::*;
    use forebay_measure::Place;
    use forebay_ranks::{Failed, Solo, Verdict};

    /// The second of two ranks; the first sent this text.
    struct Second(String);

    impl Ranks for Second {
        fn rank(&self) -> u64 {
            1
        }

        fn size(&self) -> u64 {
            2
        }

        fn host(&self) -> String {
            "b".to_owned()
        }

        fn meet_or_stop(&self, mine: Result<Verdict, String>) -> Result<Verdict, Failed> {
            mine.map_err(|reason| Failed { rank: 1, host: self.host(), reason, is_lost: false })
        }

        fn gather(&self, _: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, Failed> {
            Ok(None)
        }

        fn broadcast(&self, _: Vec<u8>) -> Result<Vec<u8>, Failed> {
            Ok(self.0.clone().into_bytes())
        }

        fn sum(&self, _: &mut [f32]) -> Result<(), Failed> {
            unreachable!("a workload sums nothing")
        }
    }

    fn plan() -> Plan {
        Plan {
            settings: WorkloadSettings { accelerators: 2, ..WorkloadSettings::default() },
            workload: Workload::default(),
            data: "data".into(),
            checkpoints: Place::new("checkpoints"),
            keeps_checkpoints: true,
            access_log: None,
            tier: None,
            out: None,
        }
    }

    #[test]
    fn ranks_with_other_settings_are_told_which() {
        let mut other = plan();
        other.workload.dataset.n_files_train = 9;
        let second = Second(format!("5 6\n{}", text(&other)));
        let error = agree(&plan(), &second).unwrap_err().to_string();
        assert!(error.contains("n_files_train: 9") && error.contains("n_files_train: 8"), "{error}");
        let same = Second(format!("5 6\n{}", text(&plan())));
        let first = Seeds { files: 5, samples: 6 };
        assert_eq!(agree(&plan(), &same).unwrap(), first, "the seeds are those of the first rank");
        assert_eq!(agree(&plan(), &Solo).unwrap(), Seeds::from(123));
    }

    #[test]
    fn a_seed_of_the_moment_is_named() {
        let mut workload = Workload::default();
        workload.reader.sample_shuffle = Shuffle::Random;
        workload.reader.file_shuffle = Shuffle::Seed;
        let seeds = Seeds { samples: 77, ..seeds(&workload) };
        assert_eq!(order(&workload, seeds), "files: seed 123, samples: random, seed 77 from the clock");
        assert_ne!(super::seeds(&workload).samples, workload.train.seed);
        workload.reader.sample_shuffle = Shuffle::Seed;
        assert_eq!(order(&workload, super::seeds(&workload)), "files: seed 123, samples: seed 123");
    }
}
