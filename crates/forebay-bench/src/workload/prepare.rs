//! Before the first step: all ranks agree on the plan, the data is made where the workload says so, and caches are emptied.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use forebay_dataset::{Control, MadeRecords, RECORDS_MARKER, make_records};
use forebay_format::indexed::write::{OFFSETS, SIZES};
use forebay_units::{Bytes, count};
use forebay_workload::{Part, Shuffle, Workload};

use super::plan::Plan;
use super::ranks::Ranks;
use super::run::{Error, Event};
use super::stock::Stock;
use crate::cold::{self, Before};
use crate::ingest::Cache;
use crate::supply;

/// Files whose pages are counted where nothing is evicted.
const LOOKED_AT: u64 = 1024;

/// Ends all ranks where one has failed: the one with its own error, the others with its reason.
pub(super) fn together<T>(ranks: &dyn Ranks, outcome: Result<T, Error>) -> Result<T, Error> {
    match outcome {
        Ok(value) => ranks.meet(Ok(())).map(|()| value).map_err(Error::Rank),
        Err(error) => {
            // All have heard it; this one can say more of it.
            let _ = ranks.meet(Err(supply::chain(&error)));
            Err(error)
        }
    }
}

/// Makes sure that all ranks do the same, and says the seed of the orders: the workload's, or one of the moment.
pub(super) fn agree(plan: &Plan, ranks: &dyn Ranks) -> Result<u64, Error> {
    let mine = format!("{}\n{}", seed(&plan.workload), text(plan));
    let first = ranks.broadcast(mine.into_bytes())?;
    let first = String::from_utf8_lossy(&first);
    let (seed, theirs) = first.split_once('\n').unwrap_or((&first, ""));
    let differs = difference(theirs, &text(plan)).map(|what| Error::OtherPlan { rank: ranks.rank(), what });
    together(ranks, differs.map_or(Ok(()), Err))?;
    seed.parse().map_err(|_| Error::OtherPlan { rank: ranks.rank(), what: format!("no seed but \"{seed}\"") })
}

fn seed(workload: &Workload) -> u64 {
    let reader = &workload.reader;
    if [reader.file_shuffle, reader.sample_shuffle].contains(&Shuffle::Random) {
        return SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    }
    workload.train.seed
}

/// All that ranks must have in common, line by line.
fn text(plan: &Plan) -> String {
    let Plan { workload, accelerators, verify, cache, tier, out, .. } = plan;
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "version: {version}\naccelerators: {accelerators}\nverify: {verify}\ncache: {cache:?}\ntier: {tier:?}\nout: {out:?}\n\
         {workload:#?}"
    )
}

/// The first line that differs.
fn difference(theirs: &str, ours: &str) -> Option<String> {
    if theirs == ours {
        return None;
    }
    let mut lines = theirs.lines().zip(ours.lines());
    let differs = lines.find(|(theirs, ours)| theirs != ours);
    let line = |text: &str| text.trim().trim_end_matches(',').to_owned();
    Some(match differs {
        Some((theirs, ours)) => format!("the first has \"{}\", this one \"{}\"", line(theirs), line(ours)),
        None => "one of them says more than the other".to_owned(),
    })
}

/// The orders, in words.
pub(super) fn order(workload: &Workload, seed: u64) -> String {
    let name = |shuffle| match shuffle {
        Shuffle::Off => "off".to_owned(),
        Shuffle::Seed => format!("seed {seed}"),
        Shuffle::Random => format!("random, seed {seed} of the moment"),
    };
    format!("files: {}, samples: {}", name(workload.reader.file_shuffle), name(workload.reader.sample_shuffle))
}

/// Makes this rank's share of the data.
pub(super) fn generate(
    plan: &Plan,
    ranks: &dyn Ranks,
    observe: &(dyn Fn(Event) + Sync),
    stop: &AtomicBool,
) -> Result<MadeRecords, Error> {
    let told = Mutex::new(0);
    let progress = |progress: forebay_dataset::Progress| {
        let percent = 100 * progress.done / progress.total.max(1);
        let mut last = told.lock().expect("no holder of this lock panics");
        if percent != *last {
            *last = percent;
            observe(Event::Preparing { what: format!("making the data, {percent} %") });
        }
    };
    observe(Event::Preparing { what: "making the data".to_owned() });
    let control = Control { threads: 0, cancel: stop, progress: &progress };
    Ok(make_records(&plan.workload, &plan.data, ranks.rank(), ranks.size(), &control)?)
}

/// What was made, in words.
pub(super) fn made_note(made: &MadeRecords) -> String {
    let kept = if made.n_kept > 0 { format!("; {} were there already", made.n_kept) } else { String::new() };
    format!("this process made {} of data, {}{kept}", count(made.n_written, "file"), Bytes(made.bytes))
}

/// Removes what this run made: this rank's files, and then, by the first rank, the folders and the mark where nothing is left in them.
/// Files that were there before stay.
pub(super) fn remove_made(plan: &Plan, ranks: &dyn Ranks, made: &MadeRecords) -> Result<Option<String>, Error> {
    let dataset = &plan.workload.dataset;
    let note = (made.n_kept > 0).then(|| "some of the data was there before this run, so that it stays".to_owned());
    let removed = if made.n_kept > 0 { Ok(()) } else { remove_share(plan, ranks) };
    together(ranks, removed)?;
    if ranks.rank() == 0 {
        let folders = |top: &str| {
            let top = plan.data.join(top);
            let below = std::fs::read_dir(&top).into_iter().flatten().flatten().map(|entry| entry.path());
            below.chain([top]).collect::<Vec<PathBuf>>()
        };
        for folder in [Part::Train.folder(), Part::Eval.folder(), "index"].into_iter().flat_map(folders) {
            // One that holds anything is not removed.
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

/// Removes this rank's files, and the index files that some formats have beside them.
fn remove_share(plan: &Plan, ranks: &dyn Ranks) -> Result<(), Error> {
    let dataset = &plan.workload.dataset;
    for part in [Part::Train, Part::Eval] {
        for file in (ranks.rank()..dataset.n_files(part)).step_by(ranks.size() as usize) {
            let path = dataset.path_of(part, file);
            let name = path.rsplit('/').next().unwrap_or(&path);
            let index = format!("index/{}/{name}.idx", part.folder());
            for made in [path.clone(), format!("{path}{OFFSETS}"), format!("{path}{SIZES}"), index] {
                remove(plan.data.join(made))?;
            }
        }
    }
    Ok(())
}

fn remove(path: PathBuf) -> Result<(), Error> {
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Io { what: "removing", path, source })
        }
        _ => Ok(()),
    }
}

/// Brings the page cache into the state that was asked for: every rank empties it of its share of the files.
pub(super) fn caches(plan: &Plan, ranks: &dyn Ranks, stock: &Stock) -> Result<Before, Error> {
    let n_files = plan.workload.dataset.n_files_train;
    let files = match plan.cache {
        Cache::Cold => stock.files(ranks.rank(), ranks.size()),
        Cache::Warm => stock.files(0, n_files.div_ceil(LOOKED_AT)),
    };
    Ok(cold::prepare(&files, plan.cache == Cache::Cold)?)
}

#[cfg(test)]
mod tests {
    use super::super::ranks::{Failed, Solo, Verdict};
    use super::*;

    /// The second of two ranks, whose first said this.
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
    }

    fn plan() -> Plan {
        Plan {
            workload: Workload::default(),
            data: "data".into(),
            checkpoints: "checkpoints".into(),
            accelerators: 2,
            threshold: None,
            access_log: None,
            verify: true,
            cache: Cache::Warm,
            tier: None,
            out: None,
        }
    }

    #[test]
    fn ranks_with_other_settings_are_told_which() {
        let mut other = plan();
        other.workload.dataset.n_files_train = 9;
        let second = Second(format!("5\n{}", text(&other)));
        let error = agree(&plan(), &second).unwrap_err().to_string();
        assert!(error.contains("n_files_train: 9") && error.contains("n_files_train: 8"), "{error}");
        let same = Second(format!("5\n{}", text(&plan())));
        assert_eq!(agree(&plan(), &same).unwrap(), 5, "the seed is the first rank's");
        assert_eq!(agree(&plan(), &Solo).unwrap(), 123);
    }

    #[test]
    fn a_seed_of_the_moment_is_named() {
        let mut workload = Workload::default();
        workload.reader.sample_shuffle = Shuffle::Random;
        assert_eq!(order(&workload, 77), "files: off, samples: random, seed 77 of the moment");
        assert_ne!(seed(&workload), workload.train.seed);
        workload.reader.sample_shuffle = Shuffle::Seed;
        assert_eq!(order(&workload, seed(&workload)), "files: off, samples: seed 123");
    }
}
