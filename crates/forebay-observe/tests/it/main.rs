//! Compares the sampler with the kernel's own counters, iostat and dstat.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod disk;
mod kernel;
mod load;
mod sampler;
mod tools;
