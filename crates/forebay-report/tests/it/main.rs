//! Reports of whole records, as people and programs get them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod chien;
mod fixtures;
mod plain;
