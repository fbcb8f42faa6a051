//! Tests of the trace file, of the interposer in real processes, and of the Python hook.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod file;
mod interposer;
mod job;
mod python;
