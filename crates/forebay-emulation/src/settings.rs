//! What a run of a workload can be told beside the workload itself.

use forebay_measure::Refused;
use forebay_measure::value::{flag, integer, number, some};
use forebay_record::Level;
use forebay_units::group_digits;
use forebay_workload::Workload;

use super::{loader, shrink};

/// The most accelerators of a process.
const MAX_ACCELERATORS: u64 = 65_536;

forebay_measure::settings! {
    /// What a run of a workload can be told beside the workload itself.
    pub struct WorkloadSettings for Workload {
        /// Emulated accelerators of a process, each with read threads and a prefetch of its own
        accelerators: u64 = "1", accelerators, "N";
        /// Processes whose accelerators this one emulates, all of them together
        processes: u64 = "1", accelerators, "N";
        /// Exit with status 1 when accelerators compute for less than this share of whole epochs; the workload's own by default
        threshold: Option<f64>, some(number("a share above 0, up to 1", |share| share > 0.0 && share <= 1.0)), "SHARE";
        /// Do not verify the checksums of containers (npz, TFRecord)
        no_verify: bool, flag;
        /// Evict the files before the run, and prove it
        cold: bool, flag;
        /// How many times smaller records are than the workload says; the same to make data and to run
        shrink_bytes: f64 = "1", times, "N";
        /// How many times shorter computing, evaluating and preparing a sample are than the workload says
        shrink_time: f64 = "1", times, "N";
        /// Imitate DLIO's PyTorch loader: whole batches per worker, files in order and of DLIO's sizes, so many megabytes decoded per
        /// second and process; the same to make data and to run
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
    /// Those that data is made by; the others say how it is read.
    pub const OF_DATA: [&str; 2] = ["shrink_bytes", "dlio_decode_mb_per_s"];

    fn check(&self) -> Result<(), Refused> {
        if self.all_accelerators() > MAX_ACCELERATORS {
            let most = group_digits(MAX_ACCELERATORS);
            return Err(format!("`processes` times `accelerators` are more than {most}: give fewer"));
        }
        Ok(())
    }

    /// Accelerators over all processes.
    pub fn all_accelerators(&self) -> u64 {
        self.processes.saturating_mul(self.accelerators)
    }

    /// Makes a workload as small as it shall be, with the loader that is imitated.
    ///
    /// # Errors
    /// When its records have no length that could be divided.
    pub fn apply(&self, workload: &mut Workload) -> Result<(), Refused> {
        shrink::bytes(workload, self.shrink_bytes)?;
        shrink::times(workload, self.shrink_time);
        if let Some(mb_per_s) = self.dlio_decode_mb_per_s {
            // As many times longer or shorter as all else.
            loader::imitate(workload, mb_per_s * self.shrink_time / self.shrink_bytes);
        }
        Ok(())
    }

    /// What a reader of the record must know of them.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let n = self.processes;
        let processes = (n > 1).then(|| {
            format!(
                "{n} processes are emulated accelerators of one process here, each with threads and batches of its own"
            )
        });
        let loader = self.dlio_decode_mb_per_s.map(|rate| {
            format!(
                "DLIO's PyTorch loader is imitated: every worker makes whole batches of files in order, whatever shuffles say, and \
                 those of a process decode {rate} MB/s together; files have the sizes that DLIO draws, and their time is waited for, \
                 not computed"
            )
        });
        let (bytes, time) = (self.shrink_bytes, self.shrink_time);
        let shrunk = (bytes > 1.0 || time > 1.0).then(|| {
            let rate = group_digits((bytes / time).max(1.0).round() as u64);
            let rates =
                if bytes > time { format!("; a rate is 1/{rate} of what it stands for") } else { String::new() };
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
        assert_eq!(said, "`processes` times `accelerators` are more than 65,536: give fewer");
        let notes: Vec<String> = settings(4, 2).notes().collect();
        assert!(notes[0].starts_with("4 processes are emulated accelerators of one process here"), "{notes:?}");
        assert_eq!(notes[1], "records are 1/400 of what the workload says; a rate is 1/400 of what it stands for");
        assert_eq!(WorkloadSettings::default().notes().count(), 0);
    }
}
