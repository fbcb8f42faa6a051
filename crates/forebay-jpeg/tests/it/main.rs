//! Integration tests: pixels against libjpeg-turbo's, and behaviour on data that are not what they should be.

#![allow(clippy::unwrap_used, reason = "the functions that tests share fail the test too")]

mod corruption;
mod fixtures;
mod generated;
