//! Tests that cannot run on a machine are counted, with their reason.
//!
//! The test harness knows only passed and failed, and counts a test that returns early as passed. Call [`not_run`]
//! before such a return: it prints a line, and appends one to the file that [`LEDGER`] names, if any. `cargo xtask ci`
//! reads that file and fails on a test that this machine could have run.
//!
//! ```
//! use forebay_testing::{Reason, not_run};
//!
//! fn test() {
//!     if !std::path::Path::new("/proc/driver/nvidia/version").exists() {
//!         return not_run(Reason::NoGpu, "no driver");
//!     }
//! }
//! ```

mod s3;
mod s3_state;

use std::fmt::{self, Display};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

pub use s3::{S3Fault, S3Server};

/// The environment variable with the path of the ledger: one line per test, written by [`not_run`] and read by
/// [`Entry::from_str`].
pub const LEDGER: &str = "FOREBAY_NOT_RUN";

/// Why a test cannot run on a machine, or not completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Gpu,
    NoDirectIo,
    NoDisk,
    NoGpu,
    NoIoUring,
    NoKernelTier,
    NoMounts,
    NoOtherUser,
    NoPeakMemory,
    NoProgram,
    NoSchedulerCounts,
    NoTorch,
    NoCgroupV1,
    NoXfs,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 14] = [
        Self::Gpu,
        Self::NoDirectIo,
        Self::NoDisk,
        Self::NoGpu,
        Self::NoIoUring,
        Self::NoKernelTier,
        Self::NoMounts,
        Self::NoOtherUser,
        Self::NoPeakMemory,
        Self::NoProgram,
        Self::NoSchedulerCounts,
        Self::NoTorch,
        Self::NoCgroupV1,
        Self::NoXfs,
    ];

    const fn text(self) -> &'static str {
        match self {
            Self::Gpu => "CUDA is installed",
            Self::NoDirectIo => "no direct I/O",
            Self::NoDisk => "the target folder is not on a disk",
            Self::NoGpu => "no GPU",
            Self::NoIoUring => "no io_uring",
            Self::NoKernelTier => "no permission to mount, or no loop devices",
            Self::NoMounts => "no mount namespaces",
            Self::NoOtherUser => "no other user can run the program",
            Self::NoPeakMemory => "the kernel does not report the peak memory",
            Self::NoProgram => "a program is not installed",
            Self::NoSchedulerCounts => "the kernel does not report when threads ran",
            Self::NoCgroupV1 => "no cgroups v1",
            Self::NoTorch => "PyTorch is not installed: run `cargo xtask torch`",
            Self::NoXfs => "no mkfs.xfs",
        }
    }
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Reports that the calling test does not run, or not completely, and adds it to the ledger. The test should return.
///
/// # Panics
/// If the ledger cannot be written.
pub fn not_run(reason: Reason, detail: impl Display) {
    let entry = Entry::of_this_test(reason, &detail.to_string());
    // Bypass the harness, which hides the output of passing tests.
    let _ = writeln!(std::io::stderr(), "not run: {}: {reason} ({})", entry.name(), entry.detail);
    if let Some(path) = std::env::var_os(LEDGER) {
        entry.append(path.as_ref()).expect("the ledger is writable");
    }
}

/// One line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The package of a test; the name of any other program.
    pub package: String,
    /// The path of the test function; `None` in a program that is not a test binary.
    pub test: Option<String>,
    /// From the closed list.
    pub reason: Reason,
    /// The finding on this machine, on one line.
    pub detail: String,
}

impl Entry {
    fn of_this_test(reason: Reason, detail: &str) -> Self {
        // The harness names threads after their tests.
        let test = std::thread::current().name().filter(|name| *name != "main").map(str::to_owned);
        let package = std::env::var("CARGO_PKG_NAME").ok().filter(|_| test.is_some());
        let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { package: package.unwrap_or_else(program), test, reason, detail }
    }

    /// Appends it to the ledger.
    ///
    /// # Errors
    /// If the system cannot open or write the file.
    pub fn append(&self, ledger: &Path) -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(ledger)?;
        // A single write per line, because tests run in parallel.
        file.write_all(format!("{self}\n").as_bytes())
    }

    /// Package and test: `forebay-train: cuda::a_tiny_set_is_learnt_on_cuda`.
    pub fn name(&self) -> String {
        self.test.as_ref().map_or_else(|| self.package.clone(), |test| format!("{}: {test}", self.package))
    }
}

fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

impl Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let test = self.test.as_deref().unwrap_or_default();
        write!(f, "{}\t{test}\t{:?}\t{}", self.package, self.reason, self.detail)
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.splitn(4, '\t').collect();
        let [package, test, reason, detail] = fields[..] else {
            return Err(format!("not a line of the ledger: {line}"));
        };
        let known = Reason::ALL.into_iter().find(|known| format!("{known:?}") == reason);
        let reason = known.ok_or_else(|| format!("{package}: {test}: unknown reason {reason}"))?;
        let test = (!test.is_empty()).then(|| test.to_owned());
        Ok(Self { package: package.to_owned(), test, reason, detail: detail.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_read_back_as_it_was_written() {
        for reason in Reason::ALL {
            let entry = Entry::of_this_test(reason, "two\nlines\tof it");
            assert_eq!(entry.detail, "two lines of it");
            assert_eq!(entry.to_string().parse(), Ok(entry.clone()));
            assert_eq!(entry.name(), "forebay-testing: tests::every_entry_is_read_back_as_it_was_written");
        }
    }

    #[test]
    fn an_unknown_reason_is_refused_with_the_test_that_gave_it() {
        let refused = "forebay\ta::b\tNoWish\tx".parse::<Entry>();
        assert_eq!(refused, Err("forebay: a::b: unknown reason NoWish".to_owned()));
        assert!("forebay a::b".parse::<Entry>().is_err());
    }
}
