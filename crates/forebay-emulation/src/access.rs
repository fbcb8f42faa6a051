//! Log of sample reads: one line per sample, in one file per process.
//!
//! `time_s` is when the sample was in memory, in seconds since the start of the run. `part` is `train` or `eval`, each
//! with its own file numbers. `epoch` is the training epoch, or the one before the evaluation. `bytes` were moved for
//! the sample, and `asked` of them were requested: fewer if O_DIRECT moves whole pages.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use forebay_units::Clock;
use forebay_workload::Part;

use super::read::{Log, Traffic};
use super::run::Error;

struct Sink {
    file: BufWriter<File>,
    /// The first error; nothing is written after it.
    failure: Option<std::io::Error>,
}

pub(super) struct AccessLog {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    origin_ns: u64,
    sink: Mutex<Sink>,
}

impl AccessLog {
    /// Creates `access-<rank>.csv`.
    pub(super) fn create(dir: &Path, rank: u64, clock: Arc<dyn Clock>, origin_ns: u64) -> Result<Arc<Self>, Error> {
        let path = dir.join(format!("access-{rank}.csv"));
        let made = std::fs::create_dir_all(dir).and_then(|()| File::create(&path)).and_then(|file| {
            let mut file = BufWriter::new(file);
            writeln!(file, "time_s,part,accelerator,epoch,file,sample,bytes,asked")?;
            Ok(file)
        });
        match made {
            Ok(file) => {
                let sink = Mutex::new(Sink { file, failure: None });
                Ok(Arc::new(Self { path, clock, origin_ns, sink }))
            }
            Err(source) => Err(Error::Shared(forebay_measure::Error::Io { what: "writing", path, source })),
        }
    }

    pub(super) fn of(self: &Arc<Self>, part: Part, accelerator: u64, epoch: u64) -> Arc<Log> {
        let log = Arc::clone(self);
        let part = match part {
            Part::Train => "train",
            Part::Eval => "eval",
        };
        let who = format!("{part},{accelerator},{epoch}");
        Arc::new(move |file, sample, traffic| log.note(&who, file, sample, traffic))
    }

    fn note(&self, who: &str, file: u32, sample: u32, Traffic { asked, moved }: Traffic) {
        let time_s = (self.clock.now_ns() - self.origin_ns) as f64 / 1e9;
        let mut sink = self.sink.lock().expect("no holder of this lock panics");
        if sink.failure.is_none() {
            let written = writeln!(sink.file, "{time_s:.6},{who},{file},{sample},{moved},{asked}");
            sink.failure = written.err();
        }
    }

    pub(super) fn finish(&self) -> Result<(), Error> {
        let mut sink = self.sink.lock().expect("no holder of this lock panics");
        let outcome = sink.failure.take().map_or(Ok(()), Err).and_then(|()| sink.file.flush());
        outcome.map_err(|source| {
            Error::Shared(forebay_measure::Error::Io { what: "writing", path: self.path.clone(), source })
        })
    }
}

#[cfg(test)]
mod tests {
    use forebay_units::ManualClock;

    use super::*;

    #[test]
    fn every_sample_has_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let log = AccessLog::create(&dir.path().join("out"), 3, clock.clone(), 0).unwrap();
        clock.advance(std::time::Duration::from_micros(1_500_000));
        log.of(Part::Train, 7, 1)(5, 0, Traffic { asked: 100, moved: 4096 });
        log.of(Part::Eval, 7, 2)(6, 1, Traffic { asked: 10, moved: 10 });
        log.finish().unwrap();
        let text = std::fs::read_to_string(dir.path().join("out/access-3.csv")).unwrap();
        let head = "time_s,part,accelerator,epoch,file,sample,bytes,asked\n";
        assert_eq!(text, format!("{head}1.500000,train,7,1,5,0,4096,100\n1.500000,eval,7,2,6,1,10,10\n"));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let clock = Arc::new(ManualClock::default());
        let error = AccessLog::create(&dir.path().join("file/out"), 0, clock, 0).err().unwrap();
        assert!(error.to_string().contains("file/out/access-0.csv"), "{error}");
    }
}
