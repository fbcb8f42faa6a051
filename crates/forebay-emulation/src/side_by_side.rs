//! Runs the same operation for every accelerator, on several threads.

use std::sync::Mutex;

use super::run::Error;

/// For threads that open, end or save.
const STACK_BYTES: usize = 256 << 10;

/// Returns the results in the order of the items. Threads are named after `what` they do. If a thread cannot be
/// started, the others do its work; the calling thread is the last resort.
pub(super) fn side_by_side<I: Send, O: Send>(
    n_threads: usize,
    items: Vec<I>,
    what: &str,
    act: impl Fn(usize, I) -> Result<O, Error> + Sync,
) -> Vec<Result<O, Error>> {
    let n_threads = n_threads.min(items.len());
    let outcomes: Mutex<Vec<Option<Result<O, Error>>>> = Mutex::new(items.iter().map(|_| None).collect());
    let items = Mutex::new(items.into_iter().enumerate());
    let work = || {
        loop {
            let Some((i, item)) = items.lock().expect("no holder of this lock panics").next() else { break };
            let outcome = act(i, item);
            outcomes.lock().expect("no holder of this lock panics")[i] = Some(outcome);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..n_threads {
            let thread = std::thread::Builder::new().name(format!("forebay:{what}")).stack_size(STACK_BYTES);
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let outcomes = outcomes.into_inner().expect("no holder of this lock panics");
    outcomes.into_iter().map(|outcome| outcome.expect("every item was taken by a thread that ended")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_in_the_order_of_the_items_whoever_did_them() {
        for n_threads in [0, 1, 3, 100] {
            let done = side_by_side(n_threads, (0..50_u64).collect(), "test", |i, item| {
                assert_eq!(i as u64, item);
                Ok(item * item)
            });
            let done: Vec<u64> = done.into_iter().map(|outcome| outcome.unwrap()).collect();
            assert_eq!(done, (0..50).map(|i| i * i).collect::<Vec<_>>());
        }
    }

    #[test]
    fn as_many_work_at_the_same_time_as_there_are_threads() {
        let together = std::sync::Barrier::new(4);
        let done = side_by_side(4, vec![(); 4], "test", |_, ()| {
            together.wait();
            Ok(())
        });
        assert!(done.iter().all(Result::is_ok));
    }
}
