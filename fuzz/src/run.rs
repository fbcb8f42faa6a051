//! Runs a target on mutated inputs until its time is up, and saves inputs that fail.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::mutate::Mutator;
use crate::targets::Target;

/// An input that takes longer than this hangs.
const HANG: Duration = Duration::from_secs(5);
/// Seeds grow by inputs with new outcomes up to this number.
const CORPUS_MAX: usize = 4000;

/// The input at work and since when, for the watchdog.
type AtWork = Arc<Mutex<Option<(Instant, Vec<u8>)>>>;

/// Fuzzes one target and returns in how many different ways it panicked; of each, the first input is saved. Ends the process
/// if an input hangs.
pub fn fuzz(target: &'static Target, time: Duration, seed: u64) -> usize {
    let at_work: AtWork = Arc::default();
    let done = Arc::new(AtomicBool::new(false));
    let watchdog = watch(target, Arc::clone(&at_work), Arc::clone(&done));

    let mut mutator = Mutator::new(seed);
    let mut corpus = (target.seeds)();
    let n_seeds = corpus.len() as u64;
    let mut outcomes = HashSet::new();
    let mut panics = HashSet::new();
    let mut n_runs = 0_u64;
    let start = Instant::now();
    while start.elapsed() < time {
        // The seeds themselves go first, unchanged.
        let input = match corpus.get(n_runs as usize) {
            Some(seed) if n_runs < n_seeds => seed.clone(),
            _ => mutator.mutate(&corpus, target.repair),
        };
        n_runs += 1;
        *at_work.lock().expect("no holder panics") = Some((Instant::now(), input.clone()));
        match catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
            Ok(outcome) => {
                if outcomes.len() < CORPUS_MAX && outcomes.insert(outcome) {
                    corpus.push(input);
                }
            }
            Err(payload) => {
                let message = message(&*payload);
                if panics.insert(message.clone()) {
                    report(target, "panic", &message, &input);
                }
            }
        }
    }
    done.store(true, Ordering::Relaxed);
    watchdog.join().expect("the watchdog does not panic");
    let (name, n_panics) = (target.name, panics.len());
    println!("{name}: {n_runs} inputs in {} s, {} outcomes, {n_panics} panics", time.as_secs(), outcomes.len());
    n_panics
}

/// Runs one saved input in the open, so that a panic shows its backtrace.
pub fn replay(target: &Target, path: &str) -> usize {
    let input = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let start = Instant::now();
    let outcome = (target.run)(&input);
    println!("{}: {outcome} after {:?}", target.name, start.elapsed());
    usize::from(start.elapsed() > HANG)
}

fn watch(target: &'static Target, at_work: AtWork, done: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        while !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let at_work = at_work.lock().expect("no holder panics");
            if let Some((since, input)) = at_work.as_ref().filter(|(since, _)| since.elapsed() > HANG) {
                report(target, "hang", &format!("still running after {:?}", since.elapsed()), input);
                std::process::exit(1);
            }
        }
    })
}

fn report(target: &Target, kind: &str, message: &str, input: &[u8]) {
    let path = format!("findings/{}-{kind}-{:08x}", target.name, crc32c::crc32c(input));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let saved =
        std::fs::create_dir_all(path.parent().expect("has a folder")).and_then(|()| std::fs::write(&path, input));
    println!("{}: {kind}: {message}", target.name);
    match saved {
        Ok(()) => println!("  saved as {} ({} bytes)", path.display(), input.len()),
        Err(error) => println!("  could not be saved as {}: {error}", path.display()),
    }
}

fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without a message".to_owned())
}
