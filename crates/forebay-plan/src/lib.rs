//! What a pipeline would do under other settings.
//!
//! A [`Case`] holds what a run showed: the storage's rate by requests in flight, time on a core per sample, the consumer's steps. A
//! discrete-event model predicts the run's time under other [`Flags`]. [`advise`] compares the model with the run it is made from; where
//! the two agree, it names the limit and the change that helps most, and where they do not, it says that the cause cannot be told.
//!
//! This crate measures nothing and knows no command.
//!
//! ```
//! use forebay_plan::{Case, Flags};
//!
//! // 10 steps of 4 samples, each 10 ms on a core; the accelerator takes 10 ms per step.
//! let case = Case { batch: 4, steps: 10, cores: 2.0, cpu_s: 0.010, step_s: vec![0.010], ..Case::default() };
//! let one = case.predict(Flags { threads: 1, prefetch: 1 });
//! let two = case.predict(Flags { threads: 2, prefetch: 1 });
//! assert!((one.wall_s - 0.41).abs() < 1e-9);
//! assert!((two.wall_s - 0.21).abs() < 1e-9);
//! ```

mod advise;
mod case;
mod curve;
mod simulate;

pub use advise::{Advice, Alternative, Effort, Run, Spelling, advise, best_flags};
pub use case::{Case, Crowding, Flags, Server};
pub use curve::{Curve, Point};
pub use simulate::Outcome;
