//! `forebay --version`: the version, the features of this build, and what this machine has.

use anyhow::Result;
use forebay_storage::Capabilities;

use crate::doctor;
use crate::output::{Outcome, print};

/// Prints what can be found out in milliseconds; `forebay doctor` checks more.
pub(crate) fn print_long() -> Result<Outcome> {
    let features =
        [("mpi", cfg!(feature = "mpi")), ("hdf5", cfg!(feature = "hdf5")), ("object", cfg!(feature = "object"))];
    let features = features.map(|(name, is_on)| format!("{}{name}", if is_on { '+' } else { '-' }));
    let found = [
        ("CUDA driver", doctor::has_cuda_driver()),
        ("MPI", doctor::mpi_launcher().is_some()),
        ("io_uring", Capabilities::io_uring().is_yes()),
        ("root", doctor::is_root()),
    ];
    let found = found.map(|(name, is_there)| format!("{name} {}", if is_there { "yes" } else { "no" }));
    print(&format!(
        "forebay {}\nfeatures: {}\nthis machine: {}\n",
        env!("CARGO_PKG_VERSION"),
        features.join(" "),
        found.join(", ")
    ))?;
    Ok(Outcome::Met)
}
