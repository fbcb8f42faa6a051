//! Settings of a run apart from the workload itself, shared by the command and studies.

use forebay_measure::Refused;
use forebay_measure::value::{flag, integer, number, some};
use forebay_record::Level;
use forebay_units::group_digits;
use forebay_workload::Workload;

use super::{loader, shrink};

/// Per process.
const MAX_ACCELERATORS: u64 = 65_536;

forebay_measure::settings! {
    pub struct WorkloadSettings for Workload {
        /// Emulated accelerators per process, each with its own read threads and prefetch
        accelerators: u64 = "1", accelerators, "N";
        /// Number of DLIO processes whose accelerators this process emulates together
        processes: u64 = "1", accelerators, "N";
        /// Exit with status 1 if the accelerators compute for less than this fraction of whole epochs [default: the workload's]
        threshold: Option<f64>, some(number("a fraction above 0, up to 1", |share| share > 0.0 && share <= 1.0)), "SHARE";
        /// Skip the checksums of containers (npz, TFRecord)
        no_verify: bool, flag;
        /// Evict the files from the page cache before the run, and verify it
        cold: bool, flag;
        /// Divide record sizes by N; use the same value to generate data and to run
        shrink_bytes: f64 = "1", times, "N";
        /// Divide the times of computation, evaluation and preprocessing by N
        shrink_time: f64 = "1", times, "N";
        /// Emulate DLIO's PyTorch loader, decoding this many megabytes per second and process
        ///
        /// Workers make whole batches of files in order, with DLIO's file sizes. Use the same value to generate data and to run.
        dlio_decode_mb_per_s: Option<f64>, some(number("a number above 0", |rate| rate > 0.0)), "RATE";
    }
}

fn accelerators(level: &Level) -> Result<u64, Refused> {
    integer(1..=MAX_ACCELERATORS as i64)(level)
}

fn times(level: &Level) -> Result<f64, Refused> {
    number("a number from 1", |times| times >= 1.0)(level)
}

impl WorkloadSettings {
    /// Settings that generated data depends on; the others affect only how it is read.
    pub const OF_DATA: [&str; 2] = ["shrink_bytes", "dlio_decode_mb_per_s"];

    fn check(&self) -> Result<(), Refused> {
        if self.all_accelerators() > MAX_ACCELERATORS {
            let most = group_digits(MAX_ACCELERATORS);
            return Err(format!("`processes` × `accelerators` must be at most {most}"));
        }
        Ok(())
    }

    /// Over all processes.
    pub fn all_accelerators(&self) -> u64 {
        self.processes.saturating_mul(self.accelerators)
    }

    /// Divides sizes and times, and applies the emulated loader.
    ///
    /// # Errors
    /// If records have no length that could be divided.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), Refused> {
        shrink::bytes(workload, self.shrink_bytes)?;
        shrink::times(workload, self.shrink_time);
        if let Some(mb_per_s) = self.dlio_decode_mb_per_s {
            // Scaled like all other sizes and times.
            loader::imitate(workload, mb_per_s * self.shrink_time / self.shrink_bytes);
        }
        Ok(())
    }

    /// For the record.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let n = self.processes;
        let processes = (n > 1).then(|| {
            format!("{n} processes are emulated as accelerators of one process, each with its own threads and batches")
        });
        let loader = self.dlio_decode_mb_per_s.map(|rate| {
            format!(
                "DLIO's PyTorch loader is emulated: every worker makes whole batches of files in order, without shuffling, and the workers \
                 of a process decode {rate} MB/s together; files have the sizes that DLIO draws, and decoding is emulated by \
                 waiting"
            )
        });
        let (bytes, time) = (self.shrink_bytes, self.shrink_time);
        let shrunk = (bytes > 1.0 || time > 1.0).then(|| {
            let rate = group_digits((bytes / time).max(1.0).round() as u64);
            let rates = if bytes > time {
                format!("; a measured rate corresponds to {rate} times that rate")
            } else {
                String::new()
            };
            let what = match (bytes > 1.0, time > 1.0) {
                (true, true) => format!("records are 1/{bytes} and times 1/{time}"),
                (true, false) => format!("records are 1/{bytes}"),
                _ => format!("times are 1/{time}"),
            };
            format!("{what} of what the workload says{rates}")
        });
        processes.into_iter().chain(loader).chain(shrunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_accelerators_are_refused_and_what_is_not_the_workloads_own_is_noted() {
        let settings = |processes, accelerators| WorkloadSettings {
            processes,
            accelerators,
            shrink_bytes: 400.0,
            ..WorkloadSettings::default()
        };
        assert_eq!((settings(4, 2).check(), settings(4, 2).all_accelerators()), (Ok(()), 8));
        let said = settings(65_536, 2).check().unwrap_err();
        assert_eq!(said, "`processes` × `accelerators` must be at most 65,536");
        let notes: Vec<String> = settings(4, 2).notes().collect();
        assert!(notes[0].starts_with("4 processes are emulated as accelerators of one process"), "{notes:?}");
        assert_eq!(
            notes[1],
            "records are 1/400 of what the workload says; a measured rate corresponds to 400 times that rate"
        );
        assert_eq!(WorkloadSettings::default().notes().count(), 0);
    }
}
