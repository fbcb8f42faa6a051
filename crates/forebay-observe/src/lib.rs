//! Observes the machine during a run: CPU, memory, paging, disks, pressure, network, processes and GPUs, tick by tick.
//!
//! A [`Sampler`] is a thread that reads the kernel's counters at every tick and yields a
//! [`Series`](forebay_record::Series): one row per tick, one column per quantity, each named after its subject with its
//! unit last. [`follow`] runs a command and observes it with all its descendants. The parsers in [`source`] are pure
//! functions of the text.
//!
//! It needs no privileges and installs nothing in the kernel. It does not trace: events between two ticks are known
//! only as sums. A quantity that cannot be read has no column, and [`capabilities`] says why. It prints nothing.
//!
//! ```
//! use forebay_observe::{Options, observe};
//!
//! let (sum, series) = observe(Options::default(), |_sampler| (1..=1_000_u64).sum::<u64>());
//! assert_eq!(sum, 500_500);
//! assert_eq!(series?.time_s.len(), 1, "even a short run has a row");
//! # Ok::<(), forebay_observe::Error>(())
//! ```

mod capability;
mod delay;
mod devices;
mod error;
mod files;
mod follow;
mod gpu;
mod handed;
mod ledger;
mod machine;
mod member;
mod merge;
mod nvml;
mod options;
mod sampler;
mod series;
mod sheet;
mod signals;
mod sink;
pub mod source;
mod tree;

pub use capability::{Capability, capabilities};
pub use delay::DELAY_HINT;
pub use error::Error;
pub use follow::{Followed, Totals, follow};
pub use options::{Options, Processes};
pub use sampler::{Sampler, observe};
pub use sink::{CsvSink, Sink};
