//! Reads objects ahead, as a training run does, and prints what that took: the side of forebay in `cargo xtask bench objects`.
//!
//! `object_reads LIST INFLIGHT [RANGE]`: the URLs of LIST, one per line, whole or in ranges of RANGE bytes.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use forebay_storage::{Access, Buffer, NextRead, Objects, Reading, Reads, Storage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [list, inflight, rest @ ..] = arguments.as_slice() else { return Err("give LIST and INFLIGHT".into()) };
    let (inflight, range): (usize, Option<u64>) = (inflight.parse()?, rest.first().map(|len| len.parse()).transpose()?);
    let reading = Reading { inflight: Some(inflight), ..Reading::default() };
    let objects = Objects::with_access(Access::of_variables(std::env::vars()), reading)?;
    let listed = std::fs::read_to_string(list)?;
    let paths: Vec<PathBuf> = listed.lines().map(PathBuf::from).collect();
    let mut reads = Vec::new();
    for path in &paths {
        match range {
            None => reads.push(NextRead { path: path.clone(), range: None }),
            Some(len) => {
                let size = objects.size(path)?;
                let parts = (0..size.div_ceil(len)).map(|part| part * len..((part + 1) * len).min(size));
                reads.extend(parts.map(|range| NextRead { path: path.clone(), range: Some(range) }));
            }
        }
    }
    let (cpu, start) = (cpu_s()?, Instant::now());
    let order = || -> Reads { Box::new(reads.clone().into_iter()) };
    let ahead = objects.read_ahead(&order, u64::MAX, 1).ok_or("nothing is read ahead")?;
    let (mut buffer, mut bytes) = (Buffer::default(), 0);
    for read in &reads {
        let object = ahead.storage.open(&read.path)?;
        match &read.range {
            None => object.read_all(&mut buffer)?,
            Some(range) => object.read_at(range.start, (range.end - range.start) as usize, &mut buffer)?,
        }
        bytes += buffer.len();
    }
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_s()? - cpu);
    println!("{{\"n\": {}, \"bytes\": {bytes}, \"wall_s\": {wall:.6}, \"cpu_s\": {cpu:.6}}}", reads.len());
    Ok(())
}

/// Processor time of this process so far, in user and kernel mode.
fn cpu_s() -> Result<f64, std::io::Error> {
    // SAFETY: an all-zero rusage is a valid value of that plain struct.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a valid place for the answer.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000).as_secs_f64();
    Ok(of(usage.ru_utime) + of(usage.ru_stime))
}
