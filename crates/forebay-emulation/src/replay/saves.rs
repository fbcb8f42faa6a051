//! Checkpoints of a replayed job: files of the traced sizes, written and read back by as many calls.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use forebay_measure::{Context, Event, Observer};
use forebay_record::WorkloadSave;
use forebay_units::random::Random;
use forebay_workload::replay::{ReplaySave, part_of};

use super::super::run::Error;

/// The newest two stay, as jobs keep them.
const KEPT: u64 = 2;
const NAME: &str = "checkpoint-";

pub(super) struct Saves<'a> {
    dir: &'a Path,
    /// In the order of their steps.
    left: &'a [ReplaySave],
    room: Vec<u8>,
    n_saved: u64,
    /// The newest, with its bytes.
    newest: Option<(PathBuf, u64)>,
    done: Vec<WorkloadSave>,
}

impl<'a> Saves<'a> {
    pub(super) fn new(dir: &'a Path, all: &'a [ReplaySave]) -> Self {
        Self { dir, left: all, room: Vec::new(), n_saved: 0, newest: None, done: Vec::new() }
    }

    pub(super) fn take(&mut self) -> Vec<WorkloadSave> {
        std::mem::take(&mut self.done)
    }

    /// Saves and restores what is due after a step of the run; returns whether anything was.
    pub(super) fn run(&mut self, steps: u64, (epoch, step): (u64, u64), observer: Observer<'_>) -> Result<bool, Error> {
        let mut is_due = false;
        while let Some((save, rest)) = self.left.split_first().filter(|(save, _)| save.after_step <= steps) {
            self.left = rest;
            is_due = true;
            let start = Instant::now();
            let bytes = if save.is_restore { self.restore(save)? } else { self.save(save)? };
            let seconds = start.elapsed().as_secs_f64();
            observer.tell(Event::Saved { step: steps, bytes, seconds });
            self.done.push(WorkloadSave {
                epoch,
                step,
                is_restore: save.is_restore,
                bytes,
                seconds,
                seconds_rank_0: seconds,
                is_durable: save.is_synced,
            });
        }
        Ok(is_due)
    }

    fn save(&mut self, save: &ReplaySave) -> Result<u64, Error> {
        std::fs::create_dir_all(self.dir).context("creating the folder", self.dir)?;
        let path = self.dir.join(format!("{NAME}{}", self.n_saved % KEPT));
        let most = save.bytes.div_ceil(save.calls.max(1)) as usize;
        if self.room.len() < most {
            // Random, as some devices compress.
            self.room = vec![0; most];
            Random::new(save.bytes).fill(&mut self.room);
        }
        let mut file = File::create(&path).context("creating", &path)?;
        for call in 0..save.calls {
            let n = part_of(save.bytes, call, save.calls) as usize;
            file.write_all(&self.room[..n]).context("writing", &path)?;
        }
        if save.is_synced {
            file.sync_all().context("syncing", &path)?;
        }
        self.n_saved += 1;
        self.newest = Some((path, save.bytes));
        Ok(save.bytes)
    }

    /// Reads the newest checkpoint, again from its start if the traced one was larger.
    fn restore(&mut self, save: &ReplaySave) -> Result<u64, Error> {
        let Some((path, _)) = self.newest.as_ref().filter(|(_, size)| *size > 0) else { return Ok(0) };
        let mut file = File::open(path).context("opening", path)?;
        let mut sum = 0;
        for call in 0..save.calls {
            let n = part_of(save.bytes, call, save.calls) as usize;
            if self.room.len() < n {
                self.room.resize(n, 0);
            }
            let got = file.read(&mut self.room[..n]).context("reading", path)?;
            sum += got as u64;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn checkpoints_are_written_and_read_where_the_job_did_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("new");
        let save = |after_step, is_restore| ReplaySave {
            after_step,
            bytes: 1_001,
            calls: 3,
            is_restore,
            ..ReplaySave::default()
        };
        let all = [save(2, false), save(4, false), save(4, true), save(5, false)];
        let (stop, mut saves) = (AtomicBool::new(false), Saves::new(&dir, &all));
        let due: Vec<bool> = (1..=4).map(|step| saves.run(step, (1, step), Observer::deaf(&stop)).unwrap()).collect();
        assert_eq!(due, [false, true, false, true]);
        let done = saves.take();
        let seen: Vec<_> = done.iter().map(|save| (save.step, save.bytes, save.is_restore)).collect();
        assert_eq!(seen, [(2, 1_001, false), (4, 1_001, false), (4, 1_001, true)]);
        saves.run(5, (1, 5), Observer::deaf(&stop)).unwrap();
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2, "the oldest is written over");
    }
}
