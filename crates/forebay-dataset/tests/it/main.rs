//! The four verbs as a caller sees them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod dir;
mod inspect;
mod make;
mod pack;
mod verify;
