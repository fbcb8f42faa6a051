//! The sampler beside the kernel's own counters and beside iostat and dstat.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "what cannot run on this machine says so")]

mod disk;
mod kernel;
mod load;
mod sampler;
mod tools;
