//! Reads, checkpoints and drain on one device: the accelerator's time, and what the sharing costs.

use crate::contention;

use super::{Context, Drawn, time};

pub(super) fn make(context: &Context<'_>) -> Drawn {
    let drawn = time::make(context);
    let judged = contention::said(context.run, context.spec);
    Drawn { judged, caption: String::new(), ..drawn }
}
