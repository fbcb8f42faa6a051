//! The library that `forebay trace` preloads into a job to see its I/O.
//!
//! It is C, compiled by `build.rs` and embedded here as bytes: a preloaded library must define functions with variable arguments
//! (`open`), choose where its thread-local variables live, and carry no runtime of its own, which stable Rust cannot do. It wraps the
//! calls of glibc on files and writes one slot of 48 bytes per call into a ring in shared memory ([`layout`]); `forebay-trace` reads it.
//!
//! It is *not* a Rust library to link: nothing here runs in this process.
//!
//! Limits: calls that do not pass through the C library's symbols are not seen (static programs, Go, inlined system calls, a
//! `dlopen` with `RTLD_DEEPBIND`), nor is what happens after a program cleared its environment.

pub mod layout;

/// The shared library for this target; `None` where there is none (another C library than glibc, another processor).
#[cfg(not(no_interposer))]
pub const LIBRARY: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/libforebay_io.so")));
/// The shared library for this target; `None` where there is none (another C library than glibc, another processor).
#[cfg(no_interposer)]
pub const LIBRARY: Option<&[u8]> = None;

/// The C header for jobs that mark their steps themselves.
pub const HEADER: &str = include_str!("../c/forebay.h");

/// Name of the library's file; jobs see it in `LD_PRELOAD`.
pub const FILE_NAME: &str = "libforebay_io.so";

/// Environment variable with the folder for rings.
pub const RINGS: &str = "FOREBAY_TRACE_RINGS";
/// Environment variable with the largest number of segments of a ring.
pub const SEGMENTS: &str = "FOREBAY_TRACE_SEGMENTS";
