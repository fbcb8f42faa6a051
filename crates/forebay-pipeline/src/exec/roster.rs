//! The threads of an iterator from the view of the kernel's scheduler.
//!
//! A ledger holds the wall-clock time of a thread's activities. If there are more threads than cores, part of that time
//! is spent waiting for a core; the scheduler counts how much.

use std::path::PathBuf;
use std::sync::Mutex;

/// The scheduler's counts for all threads of an iterator, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scheduled {
    pub running_ns: u64,
    /// Runnable, but waiting for a core.
    pub waiting_ns: u64,
}

/// The running threads, and the sums of those that have ended.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<Register>);

#[derive(Debug, Default)]
struct Register {
    threads: Vec<libc::pid_t>,
    left: Scheduled,
    /// The kernel did not report a thread's times.
    incomplete: bool,
}

/// The entry of a thread; dropping it adds the thread's times to the sums.
pub(crate) struct Entry<'a> {
    roster: &'a Roster,
    thread: libc::pid_t,
}

impl Roster {
    fn lock(&self) -> std::sync::MutexGuard<'_, Register> {
        self.0.lock().expect("no holder of this lock panics")
    }

    /// Registers the calling thread and keeps it from preempting the consumer when it wakes up.
    pub(crate) fn enter(&self) -> Entry<'_> {
        yield_when_woken();
        // SAFETY: the call has no arguments and cannot fail.
        let thread = unsafe { libc::gettid() };
        self.lock().threads.push(thread);
        Entry { roster: self, thread }
    }

    /// The sums of all threads so far; `None` if the kernel does not report them.
    pub(crate) fn scheduled(&self) -> Option<Scheduled> {
        let register = self.lock();
        let mut sum = register.left;
        for thread in &register.threads {
            add(&mut sum, of_thread(*thread)?);
        }
        (!register.incomplete).then_some(sum)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        // The kernel counts a running thread only at its next tick; giving up the core brings the count up to date.
        std::thread::yield_now();
        let own = of_thread(self.thread);
        let mut register = self.roster.lock();
        register.threads.retain(|thread| *thread != self.thread);
        match own {
            Some(own) => add(&mut register.left, own),
            None => register.incomplete = true,
        }
    }
}

fn add(sum: &mut Scheduled, other: Scheduled) {
    sum.running_ns += other.running_ns;
    sum.waiting_ns += other.waiting_ns;
}

fn of_thread(thread: libc::pid_t) -> Option<Scheduled> {
    let path = PathBuf::from(format!("/proc/self/task/{thread}/schedstat"));
    parse(&std::fs::read_to_string(path).ok()?)
}

fn parse(text: &str) -> Option<Scheduled> {
    let mut words = text.split_whitespace().map(str::parse);
    let (running_ns, waiting_ns) = (words.next()?.ok()?, words.next()?.ok()?);
    Some(Scheduled { running_ns, waiting_ns })
}

/// Sets the batch policy: a batch thread does not preempt the thread that wakes it, here the consumer, which feeds the
/// accelerator.
fn yield_when_woken() {
    // SAFETY: the call takes only a number and writes nothing.
    if unsafe { libc::sched_getscheduler(0) } != libc::SCHED_OTHER {
        // The user chose another policy for the whole program.
        return;
    }
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are valid. If the call is refused, scheduling stays as it was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_scheduler_is_read() {
        assert_eq!(parse("120 34 5\n"), Some(Scheduled { running_ns: 120, waiting_ns: 34 }));
        assert_eq!(parse("120\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn threads_that_have_left_still_count() {
        let roster = Roster::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _entry = roster.enter();
                let mut x = 1_u64;
                (0..20_000_000).for_each(|_| x = std::hint::black_box(x.wrapping_mul(3)));
            });
        });
        let Some(scheduled) = roster.scheduled() else {
            return forebay_testing::not_run(forebay_testing::Reason::NoSchedulerCounts, "of a thread");
        };
        assert!(scheduled.running_ns > 1_000_000, "{scheduled:?}");
        assert!(roster.lock().threads.is_empty());
    }
}
