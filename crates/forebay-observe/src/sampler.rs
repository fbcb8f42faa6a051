//! The thread that takes a row at every tick.
//!
//! Deadlines are absolute, at whole intervals from the start, so the work of a tick does not delay the next one. A tick
//! that could not be taken in time is taken late and marked as late; ticks missed meanwhile are skipped. A row's rates
//! are over the true time since the previous row.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use forebay_record::{Mark, Row, Series};

use crate::gpu::GpuWatch;
use crate::machine::{Machine, Reading, SharedTree};
use crate::series::Growing;
use crate::sheet::Sheet;
use crate::sink::Sink;
use crate::tree::Tree;
use crate::{Error, Options, Processes};

/// Shorter rows get a note that they are coarse.
const COARSE_BELOW: Duration = Duration::from_millis(100);
const COARSE: &str = "rows are shorter than 100 ms, but the kernel counts CPU time and disks' busy time in clock ticks of \
    up to 10 ms: in a single row these are coarse and may exceed 100 %";

/// State shared by the sampler's thread and its owner.
struct Shared {
    start: Instant,
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Order {
    #[default]
    GoOn,
    Stop,
    /// End at once, without a last row: nobody wants the series.
    Abandon,
}

#[derive(Default)]
struct State {
    order: Order,
    marks: Vec<Mark>,
}

/// A thread that observes the machine until it is stopped. Dropping it also ends the thread, without a last row.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Series>>,
}

impl Sampler {
    /// Starts observing. The first reading is taken before this returns: the series covers everything from here on.
    ///
    /// # Errors
    /// If the thread cannot be started or the sink fails.
    pub fn start(options: Options) -> Result<Self, Error> {
        let tree = options.processes.tree();
        Self::start_with(options, tree)
    }

    /// Starts with a tree that the caller also updates.
    pub(crate) fn start_with(options: Options, tree: Option<SharedTree>) -> Result<Self, Error> {
        let (begun, has_begun) = std::sync::mpsc::sync_channel(1);
        let observe = move || match Ticker::begin(options, tree) {
            Ok(mut ticker) => {
                // The caller waits for this message, so sending cannot fail.
                let _ = begun.send(Ok(Arc::clone(&ticker.shared)));
                ticker.run()
            }
            Err(error) => {
                let _ = begun.send(Err(error));
                Series::default()
            }
        };
        let named = std::thread::Builder::new().name("forebay:observe".to_owned());
        let thread = named.spawn(observe).map_err(Error::Thread)?;
        let shared = has_begun.recv().expect("the thread says whether it could begin")?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub fn mark(&self, what: impl Into<String>) {
        let mark = Mark { time_s: self.shared.start.elapsed().as_secs_f64(), what: what.into() };
        self.shared.lock().marks.push(mark);
    }

    /// Takes a last row for the time since the last tick, and ends.
    pub fn stop(mut self) -> Series {
        self.shared.give(Order::Stop);
        let thread = self.thread.take().expect("only stopping and dropping take the thread");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.give(Order::Abandon);
            // A drop wants no series, and may happen during a panic.
            let _ = thread.join();
        }
    }
}

/// Observes the machine while `work` runs.
///
/// # Errors
/// If the sampler could not start; `work` runs in any case.
pub fn observe<T>(options: Options, work: impl FnOnce(Option<&Sampler>) -> T) -> (T, Result<Series, Error>) {
    match Sampler::start(options) {
        Ok(sampler) => {
            let done = work(Some(&sampler));
            (done, Ok(sampler.stop()))
        }
        Err(error) => (work(None), Err(error)),
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A list and a flag are valid even after a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, order: Order) {
        self.lock().order = order;
        self.ended.notify_all();
    }

    /// Waits for a time since the start, or for the order to end.
    fn wait_until(&self, deadline: Duration) -> Order {
        let mut state = self.lock();
        loop {
            let left = deadline.saturating_sub(self.start.elapsed());
            if state.order != Order::GoOn || left.is_zero() {
                return state.order;
            }
            // The library turns this into an absolute deadline of the monotonic clock; an early wake-up loops again.
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Processes {
    fn tree(self) -> Option<SharedTree> {
        let here = Path::new("/proc");
        let root = std::process::id();
        let tree = match self {
            Self::None => return None,
            Self::This => Tree::new(here, root, true),
            Self::Children => Tree::new(here, root, false),
        };
        Some(Arc::new(Mutex::new(tree)))
    }
}

struct Ticker {
    shared: Arc<Shared>,
    machine: Machine,
    sheet: Sheet,
    series: Growing,
    sink: Option<Box<dyn Sink>>,
    interval: Duration,
    last: (Duration, Reading),
}

impl Ticker {
    fn begin(options: Options, tree: Option<SharedTree>) -> Result<Self, Error> {
        if let Some(tree) = &tree {
            tree.lock().unwrap_or_else(PoisonError::into_inner).leave_out_this_thread();
        }
        let gpu = if options.gpu { GpuWatch::start().ok() } else { None };
        let mut machine = Machine::open(Path::new("/proc"), Path::new("/sys"), tree, gpu);
        let mut notes = machine.troubles();
        if options.interval < COARSE_BELOW {
            notes.push(COARSE.to_owned());
        }
        let mut series = Growing::new(options.interval, options.max_rows, notes);
        let mut sheet = Sheet::default();
        let shared = Arc::new(Shared { start: Instant::now(), state: Mutex::default(), ended: Condvar::new() });
        series.begin(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let reading = machine.read();
        // One reading defines the columns; there are no values yet.
        machine.put(&mut sheet, &reading, &reading, 0.0);
        let mut sink = options.sink;
        if let Some(sink) = &mut sink {
            sink.begin(series.started(), sheet.names()).map_err(Error::Sink)?;
        }
        Ok(Self { shared, machine, sheet, series, sink, interval: options.interval, last: (Duration::ZERO, reading) })
    }

    fn run(&mut self) -> Series {
        let mut deadline = next_deadline(self.last.0, self.interval);
        loop {
            let order = self.wait(deadline);
            if order == Order::Abandon {
                return Series::default();
            }
            let now = self.shared.start.elapsed();
            // The last row comes before its deadline.
            self.tick(now, now.saturating_sub(deadline));
            if order == Order::Stop {
                return self.series.end();
            }
            deadline = next_deadline(now, self.interval);
        }
    }

    /// Waits for a tick; requests the GPUs early enough to have their readings at the tick.
    fn wait(&self, deadline: Duration) -> Order {
        if let Some(gpu) = self.machine.gpu() {
            let order = self.shared.wait_until(deadline.saturating_sub(gpu.lead().min(self.interval / 2)));
            if order != Order::GoOn {
                return order;
            }
            gpu.ask();
        }
        self.shared.wait_until(deadline)
    }

    fn tick(&mut self, now: Duration, late: Duration) {
        let reading = self.machine.read();
        let span_s = now.saturating_sub(self.last.0).as_secs_f64();
        if span_s == 0.0 {
            return;
        }
        self.machine.put(&mut self.sheet, &self.last.1, &reading, span_s);
        let marks = std::mem::take(&mut self.shared.lock().marks);
        let row = Row {
            time_s: now.as_secs_f64(),
            late_s: late.as_secs_f64(),
            marks: &marks,
            names: self.sheet.names(),
            values: self.sheet.values(),
        };
        self.series.push(&row);
        if let Some(sink) = &mut self.sink {
            sink.row(&row);
        }
        self.last = (now, reading);
    }
}

/// The first multiple of the interval after `now`.
fn next_deadline(now: Duration, interval: Duration) -> Duration {
    let interval_ns = interval.as_nanos().max(1);
    let next_ns = (now.as_nanos() / interval_ns + 1) * interval_ns;
    Duration::from_nanos(u64::try_from(next_ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_that_were_missed_are_left_out_and_the_next_is_on_the_grid() {
        let ms = Duration::from_millis;
        assert_eq!(next_deadline(ms(0), ms(100)), ms(100));
        assert_eq!(next_deadline(ms(100), ms(100)), ms(200));
        assert_eq!(next_deadline(ms(101), ms(100)), ms(200), "a late tick does not move the grid");
        assert_eq!(next_deadline(ms(570), ms(100)), ms(600), "missed ticks are skipped");
    }
}
