//! Ctrl-C: the first one asks the work to stop and keep what it has, the second one ends the program.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// The flag that is set when the user wants to stop. Installs the handler the first time.
pub(crate) fn flag() -> &'static AtomicBool {
    // A second installation is refused by the library, which is what we want.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    &STOP
}
