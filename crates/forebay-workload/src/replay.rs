//! A traced job as a workload: its files, calls and pauses, to be played again without its framework.
//!
//! A file with a table `[replay]` is one of these rather than DLIO's kind. Counts are exact sums over all passes of a loader; a run
//! spreads them evenly, so they come out the same. Pauses are what the job did between its calls, in seconds.

use forebay_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::check::{Problem, toml_problem};

/// Longest pause, and most of anything that is counted.
const MAX_SECONDS: f64 = 1e7;
const MAX_COUNT: u64 = 1_000_000_000_000_000;
const MAX_LIST: usize = 1_000_000;
const MAX_WORKERS: u64 = 1_024;

/// A job to play again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Command of the job.
    pub job: String,
    /// Folder of the job's data; `--data` names another one.
    pub root: String,
    /// Loader of each pass over the data, as an index into `loader`.
    pub passes: Vec<usize>,
    /// What the trace measured, to compare with.
    pub traced: Traced,
    pub loader: Vec<ReplayLoader>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoint: Vec<ReplaySave>,
}

/// Times of the traced training loop, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traced {
    pub wait_s: f64,
    pub compute_s: f64,
    /// From the first wait to the last mark, with the checkpoints that follow.
    pub loop_s: f64,
}

/// A loader and its passes over the data.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayLoader {
    /// Steps, that is batches, of each pass.
    pub steps: u64,
    /// Samples of all passes; 0 where the loader did not say.
    pub samples: u64,
    /// Workers; with 0 the loop fetches its batches itself.
    pub workers: u64,
    /// Batches that each worker prepares ahead.
    pub prefetch: u64,
    /// Wait at the start of a pass before the first fetch begins.
    pub start_s: f64,
    /// Wait at the end of a pass.
    pub end_s: f64,
    /// Pause from the end of a pass to the next one.
    pub after_s: f64,
    /// From the end of a fetch until its batch is with the loop.
    pub handover_s: f64,
    /// Computation of the steps, dealt out in turn.
    pub compute_s: Vec<f64>,
    /// Work of the fetches beside their calls, dealt out in turn.
    pub decode_s: Vec<f64>,
    /// Calls for the attributes of a path, in fetches of all passes.
    pub stats: u64,
    /// Other calls on attributes and positions, in fetches of all passes.
    pub fstats: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<ReplayFiles>,
}

/// Files of a kind that a loader reads. Counts are over all passes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayFiles {
    /// Folder below the root; all folders in it count.
    pub folder: String,
    /// End of the names, such as ".jpg".
    pub ending: String,
    /// Files that were read.
    pub files: u64,
    /// Folders they lie in.
    pub folders: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Their sizes: bytes and number, of at most 100 sizes.
    pub sizes: Vec<(u64, u64)>,
    /// Times that a fetch turned to a file.
    pub visits: u64,
    /// Opens, at most one per visit; other visits read a file that is still open.
    pub opens: u64,
    /// Calls that read, with those at the end of a file, which return nothing.
    pub reads: u64,
    pub empty_reads: u64,
    pub bytes_read: u64,
    pub order: FileOrder,
    pub reading: Reading,
}

/// In which order files are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOrder {
    /// By name.
    #[default]
    Sequential,
    /// Shuffled in each pass.
    Random,
}

/// Which part of a file a visit reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reading {
    /// All of it, from its start.
    #[default]
    Whole,
    /// From where the last visit ended.
    Sequential,
    /// From anywhere.
    Random,
}

/// A checkpoint that the job saved or restored.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplaySave {
    /// Steps of the whole run before it.
    pub after_step: u64,
    pub bytes: u64,
    /// Calls that wrote, or read.
    pub calls: u64,
    /// Whether it waited until it was durable.
    #[serde(default)]
    pub is_synced: bool,
    #[serde(default)]
    pub is_restore: bool,
    /// Time of the traced one.
    pub traced_s: f64,
}

#[derive(Serialize, Deserialize)]
struct Sheet {
    replay: Replay,
}

impl Replay {
    /// Reads a file; `None` if it is another kind of workload.
    ///
    /// # Errors
    /// At the first key or value that is wrong.
    pub fn read(text: &str) -> Result<Option<Self>, Problem> {
        let is_replay =
            |line: &str| line == "[replay]" || line.starts_with("[replay.") || line.starts_with("[[replay.");
        if !text.lines().any(|line| is_replay(line.trim())) {
            return Ok(None);
        }
        let Sheet { replay } = toml::from_str(text).map_err(|error| toml_problem(&error, text))?;
        replay.check()?;
        Ok(Some(replay))
    }

    /// The file. Comments come first, a line each.
    pub fn to_toml(&self, comments: &[String]) -> String {
        let mut text: String = comments.iter().map(|line| format!("# {line}\n")).collect();
        text.push('\n');
        let sheet = Sheet { replay: self.clone() };
        text.push_str(&toml::to_string(&sheet).expect("numbers, words, texts and lists of them are TOML"));
        text
    }

    /// Steps of all passes.
    pub fn n_steps(&self) -> u64 {
        self.passes.iter().map(|loader| self.loader[*loader].steps).sum()
    }

    /// Passes of a loader.
    pub fn n_passes(&self, loader: usize) -> u64 {
        self.passes.iter().filter(|pass| **pass == loader).count() as u64
    }

    fn check(&self) -> Result<(), Problem> {
        let wrong = |key: &str, text: String| Err(Problem { key: format!("replay.{key}"), text });
        if self.passes.is_empty() || self.passes.len() > MAX_LIST {
            return wrong("passes", format!("give 1 to {MAX_LIST} passes"));
        }
        if let Some(unknown) = self.passes.iter().find(|pass| **pass >= self.loader.len()) {
            return wrong("passes", format!("there is no loader {unknown}; they count from 0"));
        }
        let Traced { wait_s, compute_s, loop_s } = self.traced;
        seconds("traced", &[wait_s, compute_s, loop_s])?;
        for (n, loader) in self.loader.iter().enumerate() {
            loader
                .check()
                .map_err(|Problem { key, text }| Problem { key: format!("replay.loader {n}.{key}"), text })?;
        }
        let steps = self.passes.iter().map(|loader| u128::from(self.loader[*loader].steps)).sum::<u128>();
        if steps > u128::from(MAX_COUNT) {
            return wrong("passes", format!("at most {MAX_COUNT} steps are supported"));
        }
        for save in &self.checkpoint {
            seconds("checkpoint", &[save.traced_s])?;
            if save.bytes > MAX_COUNT || save.calls > MAX_COUNT || (save.bytes > 0 && save.calls == 0) {
                return wrong("checkpoint", "give bytes up to 10^15, in at least one call".to_owned());
            }
        }
        Ok(())
    }
}

impl ReplayLoader {
    fn check(&self) -> Result<(), Problem> {
        let wrong = |key: &str, text: String| Err(Problem { key: key.to_owned(), text });
        if self.steps == 0 || self.steps > MAX_COUNT {
            return wrong("steps", "give at least one step".to_owned());
        }
        if self.workers > MAX_WORKERS {
            return wrong("workers", format!("at most {MAX_WORKERS} are supported"));
        }
        if self.workers > 0 && !(1..=MAX_LIST as u64).contains(&self.prefetch) {
            return wrong("prefetch", format!("workers prepare 1 to {MAX_LIST} batches ahead"));
        }
        seconds("start_s, end_s, after_s, handover_s", &[self.start_s, self.end_s, self.after_s, self.handover_s])?;
        for (key, list) in [("compute_s", &self.compute_s), ("decode_s", &self.decode_s)] {
            if list.is_empty() || list.len() > MAX_LIST {
                return wrong(key, format!("give 1 to {MAX_LIST} times"));
            }
            seconds(key, list)?;
        }
        if self.stats > MAX_COUNT || self.fstats > MAX_COUNT || self.samples > MAX_COUNT {
            return wrong("stats, fstats, samples", format!("at most {MAX_COUNT} are supported"));
        }
        self.files
            .iter()
            .enumerate()
            .try_for_each(|(n, files)| files.check().map_err(|text| Problem { key: format!("files {n}"), text }))
    }
}

impl ReplayFiles {
    fn check(&self) -> Result<(), String> {
        let counts = [self.files, self.folders, self.bytes, self.visits, self.opens, self.reads, self.bytes_read];
        if counts.iter().any(|n| *n > MAX_COUNT) || self.sizes.iter().any(|(bytes, n)| (*bytes).max(*n) > MAX_COUNT) {
            return Err(format!("at most {MAX_COUNT} of anything are supported"));
        }
        if self.folder.split('/').any(|part| part == "..") || self.folder.starts_with('/') {
            return Err(format!("folder {} must be below the root", self.folder));
        }
        if self.ending.contains('/') {
            return Err(format!("ending {} must be the end of a name", self.ending));
        }
        if self.files == 0 || self.folders == 0 || self.folders > self.files {
            return Err("files must be at least 1, and folders 1 to files".to_owned());
        }
        let listed: u128 = self.sizes.iter().map(|(_, n)| u128::from(*n)).sum();
        if listed != u128::from(self.files) {
            return Err(format!("sizes lists {listed} files, but files is {}", self.files));
        }
        let bytes: u128 = self.sizes.iter().map(|(bytes, n)| u128::from(*bytes) * u128::from(*n)).sum();
        if bytes != u128::from(self.bytes) {
            return Err(format!("sizes sum to {bytes} bytes, but bytes is {}", self.bytes));
        }
        if self.visits == 0 || self.opens > self.visits {
            return Err("visits must be at least 1, and opens at most visits".to_owned());
        }
        if self.empty_reads > self.reads || (self.bytes_read > 0 && self.reads == self.empty_reads) {
            return Err(format!("{} are read by no call", Bytes(self.bytes_read)));
        }
        Ok(())
    }
}

fn seconds(key: &str, all: &[f64]) -> Result<(), Problem> {
    match all.iter().all(|time| (0.0..=MAX_SECONDS).contains(time)) {
        true => Ok(()),
        false => Err(Problem { key: key.to_owned(), text: format!("times are 0 to {MAX_SECONDS} seconds") }),
    }
}

/// Part `i` of `n` of a total, so that all parts sum to it.
pub fn part_of(total: u64, i: u64, n: u64) -> u64 {
    let until = |i: u64| (u128::from(total) * u128::from(i) / u128::from(n.max(1))) as u64;
    until(i + 1) - until(i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay() -> Replay {
        let files = ReplayFiles {
            folder: "train".to_owned(),
            ending: ".bin".to_owned(),
            files: 3,
            folders: 1,
            bytes: 210,
            sizes: vec![(100, 1), (55, 2)],
            visits: 6,
            opens: 6,
            reads: 12,
            empty_reads: 6,
            bytes_read: 420,
            order: FileOrder::Random,
            reading: Reading::Whole,
        };
        let loader = ReplayLoader {
            steps: 3,
            compute_s: vec![0.25],
            decode_s: vec![0.5, 0.125],
            files: vec![files],
            ..ReplayLoader::default()
        };
        let save = ReplaySave { after_step: 3, bytes: 10, calls: 2, ..ReplaySave::default() };
        Replay {
            job: "python x.py".to_owned(),
            passes: vec![0, 0],
            loader: vec![loader],
            checkpoint: vec![save],
            ..Replay::default()
        }
    }

    #[test]
    fn a_file_comes_back_as_it_was_and_another_kind_is_left_to_others() {
        let text = replay().to_toml(&["from a trace".to_owned()]);
        assert!(text.starts_with("# from a trace\n\n[replay]\n"), "{text}");
        assert_eq!(Replay::read(&text), Ok(Some(replay())));
        assert_eq!(Replay::read("[dataset]\nformat = \"npz\"\n"), Ok(None));
        assert_eq!((replay().n_steps(), replay().n_passes(0)), (6, 2));
    }

    #[test]
    fn what_cannot_be_played_is_refused_by_name() {
        type Edit = fn(&mut Replay);
        let edits: [(&str, Edit); 11] = [
            ("replay.passes: there is no loader 1", |replay| replay.passes = vec![0, 1]),
            ("replay.passes: give 1 to", |replay| replay.passes.clear()),
            ("replay.loader 0.steps", |replay| replay.loader[0].steps = 0),
            ("replay.loader 0.compute_s: give", |replay| replay.loader[0].compute_s.clear()),
            ("replay.loader 0.decode_s: times", |replay| replay.loader[0].decode_s[0] = -1.0),
            ("replay.loader 0.prefetch", |replay| replay.loader[0].workers = 2),
            ("replay.loader 0.files 0: sizes lists 2", |replay| replay.loader[0].files[0].sizes[0].1 = 0),
            ("replay.loader 0.files 0: sizes sum", |replay| replay.loader[0].files[0].bytes = 5),
            ("replay.loader 0.files 0: folder ../x", |replay| replay.loader[0].files[0].folder = "../x".to_owned()),
            ("replay.loader 0.files 0: visits", |replay| replay.loader[0].files[0].opens = 7),
            ("replay.loader 0.files 0: 420 B are read by no call", |replay| replay.loader[0].files[0].reads = 6),
        ];
        for (said, edit) in edits {
            let mut edited = replay();
            edit(&mut edited);
            let problem = Replay::read(&edited.to_toml(&[])).unwrap_err().to_string();
            assert!(problem.starts_with(said), "{problem}");
        }
        let text = replay().to_toml(&[]).replace("steps = 3", "steps = 3\nstpes = 3");
        let problem = Replay::read(&text).unwrap_err().to_string();
        assert!(problem.contains("unknown field `stpes`"), "{problem}");
    }

    #[test]
    fn parts_sum_to_their_total() {
        let parts: Vec<u64> = (0..4).map(|i| part_of(10, i, 4)).collect();
        assert_eq!((parts.iter().sum::<u64>(), parts.iter().max(), parts.iter().min()), (10, Some(&3), Some(&2)));
        assert_eq!(part_of(u64::MAX, 0, 1), u64::MAX);
    }
}
