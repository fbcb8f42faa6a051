//! Execution: threads, the ring of batch slots, and the accounting of time.

pub(crate) mod activity;
pub(crate) mod ahead;
pub(crate) mod blocks;
pub(crate) mod dispatch;
mod expanded;
pub(crate) mod fetch;
pub(crate) mod open;
pub(crate) mod pool;
pub(crate) mod recent;
pub(crate) mod ring;
pub(crate) mod roster;
pub(crate) mod tuner;
pub(crate) mod worker;
