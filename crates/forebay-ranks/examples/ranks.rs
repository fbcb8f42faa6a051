//! Meetings of ranks, for the tests that start them with `mpirun` and `srun`: `ranks WHAT [RANK] [PATIENCE IN
//! SECONDS]`.
//!
//! `together` meets, gathers and broadcasts; `stops` requests a stop on one rank. In the other modes one rank
//! misbehaves: `fails` reports a failure, `leaves` ends silently, `panics`, `dies` by SIGKILL, `sleeps` and never
//! arrives, `freezes` by SIGSTOP.
#![allow(clippy::print_stdout)]

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use forebay_ranks::{Failed, Launch, Ranks, Verdict, Waiting, join_within};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let what = words.first().map_or("together", String::as_str);
    let odd: u64 = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    let patience: f64 = words.get(2).and_then(|word| word.parse().ok()).unwrap_or(60.0);
    let launch = Launch::of(|name| std::env::var(name).ok());
    let observe = Box::new(|waiting: &Waiting| complain(&waiting.to_string()));
    let ranks = match join_within(launch.as_ref(), Duration::from_secs_f64(patience), observe) {
        Ok(ranks) => ranks,
        Err(reason) => {
            complain(&format!("cannot join: {reason}"));
            return ExitCode::from(2);
        }
    };
    match act(what, odd, ranks.as_ref()) {
        Ok(said) => {
            println!("rank {} of {}: {said}", ranks.rank(), ranks.size());
            ExitCode::SUCCESS
        }
        Err(failed) => {
            complain(&format!("rank {} heard: {failed}", ranks.rank()));
            ExitCode::from(2)
        }
    }
}

/// In a single write: ranks that share stderr do not tear each other's lines.
fn complain(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

fn act(what: &str, odd: u64, ranks: &dyn Ranks) -> Result<String, Failed> {
    ranks.meet(Ok(()))?;
    if what == "together" {
        return together(ranks);
    }
    if what == "stops" {
        return stops(ranks, odd);
    }
    if ranks.rank() == odd {
        match what {
            "fails" => ranks.meet(Err(format!("its disk broke\n(disk {odd})")))?,
            "leaves" => return Ok("left".to_owned()),
            "panics" => panic!("on purpose"),
            "dies" => signal_myself("-KILL"),
            "freezes" => signal_myself("-STOP"),
            "sleeps" => std::thread::sleep(Duration::from_secs(600)),
            _ => ranks.meet(Err(format!("unknown mode {what}")))?,
        }
    }
    // A failed rank also meets the others when they gather.
    ranks.gather(vec![1])?;
    ranks.meet(Ok(()))?;
    Ok("ended".to_owned())
}

/// One rank is asked to stop: all learn of it, and can still gather.
fn stops(ranks: &dyn Ranks, odd: u64) -> Result<String, Failed> {
    let mine = if ranks.rank() == odd { Verdict::Stop } else { Verdict::Go };
    assert_eq!(ranks.meet_or_stop(Ok(mine))?, Verdict::Stop);
    assert_eq!(ranks.meet_or_stop(Ok(Verdict::Go))?, Verdict::Go, "a stop is reported once");
    ranks.gather(vec![1])?;
    Ok("stopped together".to_owned())
}

fn signal_myself(signal: &str) {
    let _ = std::process::Command::new("kill").args([signal, &std::process::id().to_string()]).status();
    std::thread::sleep(Duration::from_secs(600));
}

fn together(ranks: &dyn Ranks) -> Result<String, Failed> {
    // Lengths differ between ranks; one is zero.
    let mine = vec![ranks.rank() as u8; usize::try_from(ranks.rank() * 100_000).expect("small")];
    if let Some(all) = ranks.gather(mine)? {
        for (rank, bytes) in all.iter().enumerate() {
            assert!(
                bytes.len() == rank * 100_000 && bytes.iter().all(|byte| *byte == rank as u8),
                "rank {rank}'s bytes"
            );
        }
    }
    let plan = ranks.broadcast(if ranks.rank() == 0 { vec![42; 3_000_000] } else { Vec::new() })?;
    assert!(plan.len() == 3_000_000 && plan.iter().all(|byte| *byte == 42), "the first rank's bytes");
    let n = 300;
    let start = Instant::now();
    for _ in 0..n {
        ranks.meet(Ok(()))?;
    }
    Ok(format!("{:.1} us per meeting", start.elapsed().as_secs_f64() * 1e6 / f64::from(n)))
}
