//! The emulated accelerator on a clock that moves only when somebody sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use forebay_train::{EmulatedAccelerator, Emulation, Law, Manner};
use forebay_units::{Clock, ManualClock, SystemClock};

fn parse(text: &str) -> Result<Emulation, String> {
    text.parse::<Emulation>().map_err(|error| error.to_string())
}

const N: usize = 20_000;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn constant_steps_are_exact_on_a_manual_clock() {
    for manner in [Manner::Sleeping, Manner::Busy] {
        let clock = Arc::new(ManualClock::default());
        clock.advance(ms(5));
        let mut accelerator =
            EmulatedAccelerator::new(Emulation { law: Law::Constant(ms(224)), manner }, 1, clock.clone());
        for _ in 0..10 {
            let step = accelerator.step();
            assert_eq!((step.drawn, step.taken), (ms(224), ms(224)));
        }
        assert_eq!(clock.now_ns(), ms(5 + 2240).as_nanos() as u64);
    }
}

/// A clock on which every sleep ends 3 ms late.
struct Sluggish(ManualClock);

impl Clock for Sluggish {
    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.0.sleep_until_ns(deadline_ns + 3_000_000);
    }
}

#[test]
fn what_was_taken_is_measured_not_assumed() {
    let emulation = Emulation { law: Law::Constant(ms(10)), manner: Manner::Sleeping };
    let mut accelerator = EmulatedAccelerator::new(emulation, 1, Arc::new(Sluggish(ManualClock::default())));
    let step = accelerator.step();
    assert_eq!((step.drawn, step.taken), (ms(10), ms(13)));
}

#[test]
fn a_busy_step_lasts_its_time_on_the_system_clock() {
    let emulation = Emulation { law: Law::Constant(ms(2)), manner: Manner::Busy };
    let step = EmulatedAccelerator::new(emulation, 1, Arc::new(SystemClock::default())).step();
    assert!(step.taken >= ms(2));
}

/// A clock that notes how its time is spent.
#[derive(Default)]
struct Spy {
    clock: ManualClock,
    slept: AtomicU64,
    spun: AtomicU64,
}

impl Clock for Spy {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.slept.fetch_add(1, Ordering::SeqCst);
        self.clock.sleep_until_ns(deadline_ns);
    }

    fn spin_until_ns(&self, deadline_ns: u64) {
        self.spun.fetch_add(1, Ordering::SeqCst);
        self.clock.sleep_until_ns(deadline_ns);
    }
}

#[test]
fn a_sleeping_step_sleeps_and_a_busy_one_spins() {
    for (text, slept, spun) in [("emulated:1ms", 3, 0), ("emulated:1ms,busy", 0, 3)] {
        let spy = Arc::new(Spy::default());
        let mut accelerator = EmulatedAccelerator::new(parse(text).unwrap(), 1, spy.clone());
        for _ in 0..3 {
            accelerator.step();
        }
        let counted = (spy.slept.load(Ordering::SeqCst), spy.spun.load(Ordering::SeqCst));
        assert_eq!(counted, (slept, spun), "{text}");
    }
}

#[test]
fn drawn_steps_have_mean_and_deviation_of_their_law_and_follow_the_seed() {
    // With their standard deviations in seconds: (to - from) / √12, the given one, the mean, √shape · scale, √(mean · 1 ms).
    let laws = [
        ("uniform(100ms,300ms)", 0.2 / 12f64.sqrt()),
        ("normal(200ms,30ms)", 0.03),
        ("exponential(200ms)", 0.2),
        ("gamma(4,50ms)", 0.1),
        ("gamma(0.5,400ms)", 0.4 * 0.5f64.sqrt()),
        ("poisson(200ms)", 0.0002f64.sqrt()),
    ];
    for (law, deviation) in laws {
        let emulation = parse(&format!("emulated:{law}")).unwrap();
        let draw = |seed| {
            let mut accelerator = EmulatedAccelerator::new(emulation, seed, Arc::new(ManualClock::default()));
            (0..N).map(|_| accelerator.step().taken).collect::<Vec<_>>()
        };
        let steps = draw(1);
        let mean = steps.iter().map(Duration::as_secs_f64).sum::<f64>() / N as f64;
        let square = steps.iter().map(|step| (step.as_secs_f64() - mean).powi(2)).sum::<f64>() / N as f64;
        assert!((mean / 0.2 - 1.0).abs() < 0.02, "{law}: mean {mean}");
        assert!((square.sqrt() / deviation - 1.0).abs() < 0.03, "{law}: deviation {}, not {deviation}", square.sqrt());
        assert_eq!(emulation.law.mean(), ms(200), "{law}");
        assert_eq!(steps, draw(1));
        assert_ne!(steps, draw(2));
    }
}

#[test]
fn laws_at_their_edges_give_steps_and_do_not_panic() {
    let turned = Law::Uniform(ms(300), ms(100));
    let edges = [
        Law::Constant(ms(0)),
        Law::Normal(ms(0), ms(0)),
        Law::Normal(ms(0), ms(5)),
        Law::Exponential(ms(0)),
        Law::Poisson(ms(0)),
        Law::Gamma(1e-3, ms(10)),
        Law::Uniform(ms(7), ms(7)),
        turned,
    ];
    for law in edges {
        let emulation = Emulation { law, manner: Manner::Sleeping };
        let mut accelerator = EmulatedAccelerator::new(emulation, 3, Arc::new(ManualClock::default()));
        for _ in 0..100 {
            let step = accelerator.step();
            assert_eq!(step.drawn, step.taken, "{law}");
            assert!(law != turned || (ms(100)..=ms(300)).contains(&step.drawn), "{law}: {step:?}");
        }
    }
}

#[test]
fn descriptions_are_read_and_written_back() {
    let constant = Emulation { law: Law::Constant(ms(224)), manner: Manner::Sleeping };
    assert_eq!(parse("emulated:224ms"), Ok(constant));
    assert_eq!(parse("emulated:0.224 s,busy"), Ok(Emulation { manner: Manner::Busy, ..constant }));
    assert_eq!(parse("emulated:normal(224ms, 20 ms),busy").unwrap().law, Law::Normal(ms(224), ms(20)));
    for text in ["emulated:224ms,busy", "emulated:gamma(2.5,90ms)", "emulated:uniform(1ms,2s)", "emulated:poisson(7ms)"]
    {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn descriptions_that_make_no_sense_are_refused_with_the_reason() {
    let refused = |text: &str| parse(text).unwrap_err();
    assert_eq!(refused("224ms"), "invalid accelerator \"224ms\": expected \"emulated:\" at the beginning");
    assert!(
        refused("emulated:224")
            .contains("missing unit; use ns, us, ms, s, min or h; expected a duration, uniform(FROM,TO)")
    );
    assert!(refused("emulated:normal(2ms)").ends_with("normal takes two values, not 1"));
    assert!(refused("emulated:poisson(2ms,1ms)").ends_with("poisson takes one value, not 2"));
    assert!(refused("emulated:uniform(3ms,2ms)").ends_with("3ms is greater than 2ms"));
    assert!(refused("emulated:gamma(-1,2ms)").ends_with("\"-1\" is not a positive number"));
    assert!(refused("emulated:normal(2ms,1ms").ends_with("missing \")\""));
    assert!(refused("emulated:cauchy(2ms)").contains("unknown distribution \"cauchy\"; expected a duration"));
    assert!(refused("emulated:48h").contains("48h is longer than one day"));
    assert!(refused("emulated:gamma(1000000,1h)").ends_with("the mean, 1000000 times 1h, is longer than one day"));
    assert!(refused("emulated:normal(-2ms,1ms)").contains("invalid accelerator"));
    assert!(refused("emulated:gamma(nan,1ms)").ends_with("\"nan\" is not a positive number"));
    assert!(refused("emulated:224ms,lazy").contains("unknown unit \"ms,lazy\"; use ns, us, ms, s, min or h"));
}

#[test]
fn steps_that_are_skipped_are_drawn_all_the_same() {
    let emulation = parse("emulated:uniform(1ms,60ms)").unwrap();
    let made = || EmulatedAccelerator::new(emulation, 3, Arc::new(ManualClock::default()));
    let (mut whole, mut later) = (made(), made());
    let drawn: Vec<Duration> = (0..9).map(|_| whole.step().drawn).collect();
    later.skip(4);
    assert_eq!((4..9).map(|_| later.step().drawn).collect::<Vec<_>>(), drawn[4..]);
}
