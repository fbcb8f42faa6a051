//! The emulated accelerator on a clock that moves only when somebody sleeps.

use std::sync::Arc;
use std::time::Duration;

use forebay_train::{EmulatedAccelerator, Emulation, Law, Manner};
use forebay_units::{Clock, ManualClock, SystemClock};

fn parse(text: &str) -> Result<Emulation, String> {
    text.parse::<Emulation>().map_err(|error| error.to_string())
}

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

#[test]
fn drawn_steps_have_the_mean_of_their_law_and_follow_the_seed() {
    let laws = ["uniform(100ms,300ms)", "normal(200ms,30ms)", "exponential(200ms)", "gamma(4,50ms)", "poisson(200ms)"];
    for law in laws {
        let emulation = parse(&format!("emulated:{law}")).unwrap();
        let draw = |seed| {
            let mut accelerator = EmulatedAccelerator::new(emulation, seed, Arc::new(ManualClock::default()));
            (0..4000).map(|_| accelerator.step().taken).collect::<Vec<_>>()
        };
        let steps = draw(1);
        let mean = steps.iter().sum::<Duration>() / 4000;
        assert!((mean.as_secs_f64() / 0.2 - 1.0).abs() < 0.04, "{law}: mean {mean:?}");
        assert_eq!(emulation.law.mean(), ms(200), "{law}");
        assert!(steps.iter().any(|step| *step != steps[0]), "{law} varies");
        assert_eq!(steps, draw(1));
        assert_ne!(steps, draw(2));
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
    assert_eq!(refused("224ms"), "\"224ms\" is not an accelerator: it must begin with \"emulated:\"");
    assert!(
        refused("emulated:224")
            .contains("give a unit: ns, us, ms, s, min or h; it may be a duration, uniform(FROM,TO)")
    );
    assert!(refused("emulated:normal(2ms)").ends_with("normal takes two values, not 1"));
    assert!(refused("emulated:poisson(2ms,1ms)").ends_with("poisson takes one value, not 2"));
    assert!(refused("emulated:uniform(3ms,2ms)").ends_with("3ms is more than 2ms"));
    assert!(refused("emulated:gamma(-1,2ms)").ends_with("\"-1\" is not a positive number"));
    assert!(refused("emulated:normal(2ms,1ms").ends_with("the bracket is not closed"));
    assert!(refused("emulated:cauchy(2ms)").contains("there is no law \"cauchy\"; it may be a duration"));
    assert!(refused("emulated:48h").contains("48h is longer than a day"));
    assert!(refused("emulated:224ms,lazy").contains("give a unit"));
}
