//! Saving and restoring a state over tiers: what it costs the caller, when it is durable, and what the storage would give.

mod places;
mod plan;
mod run;

pub use places::{Place, Places};
pub use plan::{Plan, State};
pub use run::{Error, Event, run};
