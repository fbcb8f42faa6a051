//! Waiting without the interpreter's lock, in slices short enough for Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use forebay_pipeline::Batches;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often Python's signals are looked at during a wait.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// How long the threads of a pipeline may take to end before nobody waits for them.
const FAREWELL: Duration = Duration::from_secs(1);

/// Ends a pipeline. A thread that is stuck in a read of a dead device ends on its own, some time: joining it must not keep
/// Python from handling Ctrl-C.
pub(crate) fn part_with(batches: Batches) {
    let (sender, receiver) = channel();
    let end = move || {
        drop(batches);
        // The receiver may be gone.
        let _ = sender.send(());
    };
    if let Ok(thread) = std::thread::Builder::new().name("forebay:end".to_owned()).spawn(end)
        && receiver.recv_timeout(FAREWELL).is_ok()
    {
        // It has nothing left to do.
        let _ = thread.join();
    }
}

/// Runs `work` on a thread of its own until it ends. A signal handler that raises sets the flag that `work` is given; the
/// exception follows when the work has ended.
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let (stop, receiver) = (&stop, &std::sync::Mutex::new(receiver));
    std::thread::scope(|scope| {
        scope.spawn(move || sender.send(work(stop)));
        let mut raised = None;
        loop {
            let slice = || receiver.lock().expect("one thread receives").recv_timeout(SLICE);
            match py.detach(slice) {
                Ok(result) => return raised.map_or(Ok(result), Err),
                Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the work panicked")),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = py.check_signals() {
                        stop.store(true, Ordering::Relaxed);
                        raised.get_or_insert(error);
                    }
                }
            }
        }
    })
}

/// Runs `work` on a thread of its own until it ends. If a signal handler raises, the work goes on without its caller.
pub(crate) fn abandonable<T: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
    let (sender, receiver) = channel();
    let spawned = std::thread::Builder::new().name("forebay:python".to_owned()).spawn(move || sender.send(work()));
    spawned.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
    let receiver = std::sync::Mutex::new(receiver);
    loop {
        let slice = || receiver.lock().expect("one thread receives").recv_timeout(SLICE);
        match py.detach(slice) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Disconnected) => return Err(PyRuntimeError::new_err("the work panicked")),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
        }
    }
}
