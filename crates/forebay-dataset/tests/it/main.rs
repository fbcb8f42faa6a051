//! The four verbs as a caller sees them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod dir;
mod inspect;
mod make;
mod pack;
mod verify;

/// How large a sample may be, where that is not what a test is about.
const LIMIT: forebay_units::Bytes = forebay_units::Bytes(forebay_format::MAX_SAMPLE_SIZE);
