//! How many samples a core finds and verifies in a second of its own time, for shards of 112 KB samples in memory.
//!
//! The bound beside them is copying the same bytes.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may panic")]

use std::hint::black_box;

use forebay_format::example::{ImageExample, KeyNames, Keys};
use forebay_format::tensor::{Shape, Shard, ShardWriter};
use forebay_format::{tar, tfrecord};

const ROUNDS: usize = 15;
const SAMPLES: usize = 256;

fn main() {
    let image: Vec<u8> = (0..112_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let payload = ImageExample { encoded: &image, label: Some(3), ..Default::default() }.to_bytes();
    let (mut records, mut archive) = (Vec::new(), Vec::new());
    for n in 0..SAMPLES {
        tfrecord::append(&mut records, &payload);
        tar::append_file(&mut archive, format!("{n:06}.jpg"), &image).unwrap();
        tar::append_file(&mut archive, format!("{n:06}.cls"), b"3").unwrap();
    }
    tar::finish(&mut archive);

    let keys = Keys::decide(&payload, &KeyNames::default()).unwrap();
    let mut copy = vec![0; records.len()];
    measure("copy", || copy.copy_from_slice(black_box(&records)));
    measure("tfrecord, checksums verified", || {
        assert_eq!(tfrecord::Records::new(&records).filter(Result::is_ok).count(), SAMPLES);
    });
    measure("tfrecord, image and label found", || {
        for record in tfrecord::Records::new(&records) {
            black_box(keys.read(record.unwrap().payload).unwrap());
        }
    });
    measure("tar, image and label found", || {
        for sample in tar::Samples::new(&archive) {
            let sample = sample.unwrap();
            black_box((sample.image(), sample.label().unwrap()));
        }
    });

    let mut writer = ShardWriter::new(Shape { height: 224, width: 224, channels: 3 }).unwrap();
    let pixels = image.repeat(2)[..224 * 224 * 3].to_vec();
    (0..SAMPLES).for_each(|n| writer.append(&pixels, 3, n as u64).unwrap());
    let shard = writer.finish().unwrap();
    measure("tensor 224x224, verified", || {
        let shard = Shard::parse(&shard).unwrap();
        (0..SAMPLES as u64).for_each(|n| shard.verify(n).unwrap());
    });
}

/// Prints the best rate of samples per second of this thread's CPU time.
fn measure(name: &str, mut work: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = cpu_ns();
            work();
            (cpu_ns() - start) / SAMPLES as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:40} {:9.0} /CPU-s {:9.2} us", 1e9 / best, best / 1e3);
}

fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is there to be written.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
