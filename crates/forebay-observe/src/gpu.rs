//! GPUs are read by their own thread: the library takes tens of milliseconds, too long for a tick.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::nvml::{GpuReading, Nvml};
use crate::sheet::Sheet;

#[derive(Debug, Default)]
struct State {
    asked: bool,
    ended: bool,
    latest: Vec<GpuReading>,
    took: Duration,
}

/// A thread that reads the GPUs on request.
pub(crate) struct GpuWatch {
    shared: Arc<(Mutex<State>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    subjects: Vec<String>,
}

impl GpuWatch {
    /// Loads the library and reads the GPUs once; the error says why there are none.
    pub(crate) fn start() -> Result<Self, String> {
        let nvml = Nvml::load()?;
        let latest = nvml.read();
        let subjects = (0..latest.len()).map(|index| format!("gpu.{index}")).collect();
        let shared = Arc::new((Mutex::new(State { latest, ..State::default() }), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let named = std::thread::Builder::new().name("forebay:gpu".to_owned());
        let thread = named.spawn(move || serve(&nvml, &theirs)).map_err(|error| error.to_string())?;
        Ok(Self { shared, thread: Some(thread), subjects })
    }

    /// How long before a tick a reading must be requested to be ready in time.
    pub(crate) fn lead(&self) -> Duration {
        lock(&self.shared.0).took.mul_f64(1.25)
    }

    /// Requests a reading without waiting for it.
    pub(crate) fn ask(&self) {
        lock(&self.shared.0).asked = true;
        self.shared.1.notify_one();
    }

    pub(crate) fn latest(&self) -> Vec<GpuReading> {
        lock(&self.shared.0).latest.clone()
    }

    pub(crate) fn put(&self, sheet: &mut Sheet, readings: &[GpuReading]) {
        for (subject, gpu) in self.subjects.iter().zip(readings) {
            sheet.put(subject, "util_percent", gpu.util_percent);
            sheet.put(subject, "memory_bytes", gpu.memory_bytes);
            sheet.put(subject, "power_w", gpu.power_w);
            sheet.put(subject, "pcie_rx_bytes_per_s", gpu.pcie_rx_bytes_per_s);
            sheet.put(subject, "pcie_tx_bytes_per_s", gpu.pcie_tx_bytes_per_s);
        }
    }
}

impl Drop for GpuWatch {
    fn drop(&mut self) {
        lock(&self.shared.0).ended = true;
        self.shared.1.notify_one();
        if let Some(thread) = self.thread.take() {
            // Only a panic inside the library's calls is possible, and there is nothing left to lose.
            let _ = thread.join();
        }
    }
}

fn serve(nvml: &Nvml, shared: &(Mutex<State>, Condvar)) {
    loop {
        let waiting = |state: &mut State| !state.asked && !state.ended;
        let mut state = shared.1.wait_while(lock(&shared.0), waiting).unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return;
        }
        state.asked = false;
        drop(state);
        let start = Instant::now();
        let latest = nvml.read();
        let mut state = lock(&shared.0);
        (state.latest, state.took) = (latest, start.elapsed());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // The state is always replaced as a whole, so it is valid even after a panic.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
