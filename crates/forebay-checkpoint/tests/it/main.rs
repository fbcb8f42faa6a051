//! Checkpoints as other programs meet them.

mod formats;
