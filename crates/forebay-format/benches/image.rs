//! How many images a core decodes, resizes and converts in a second of its own time.
//!
//! Each figure is the best of several rounds, and stands beside what bounds it: filling the same slots with a constant.
//! Slots are taken in turn from a batch of 64, which does not fit a cache, unless the name says "one slot".

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may panic")]

use forebay_format::image::{Dtype, ImageDecoder, ImageSpec, Layout, u8_to_f32, u8_to_f32_nchw};

const ROUNDS: usize = 15;
const BATCH: usize = 64;

fn main() {
    let photo = photo(480, 415);
    let png = png(480, 415, &photo);
    let jpeg = jpeg(480, 415, &photo);
    println!("jpeg: {} bytes", jpeg.len());
    // Aligned to pages, as the pipeline's batches are.
    let mut memory = vec![0.0_f32; BATCH * 224 * 224 * 3 + 1024];
    let start = memory.as_ptr().align_offset(4096);
    let batch = &mut memory[start..][..BATCH * 224 * 224 * 3];

    fill("fill a slot", batch);
    for (name, dtype, layout) in [
        ("resize 480x415 to 224x224, f32 nhwc", Dtype::F32, Layout::Nhwc),
        ("resize 480x415 to 224x224, f32 nchw", Dtype::F32, Layout::Nchw),
        ("resize 480x415 to 224x224, u8 nhwc", Dtype::U8, Layout::Nhwc),
        ("resize 480x415 to 224x224, u8 nchw", Dtype::U8, Layout::Nchw),
    ] {
        let mut decoder = ImageDecoder::new(ImageSpec { dtype, layout, ..ImageSpec::default() });
        decoder.decode(&png).unwrap();
        let len = decoder.spec().sample_bytes();
        measure(name, BATCH, batch, |slot| decoder.resize_into(&mut slot[..len]).unwrap());
        if (dtype, layout) == (Dtype::F32, Layout::Nhwc) {
            measure("  one slot", BATCH, &mut batch[..224 * 224 * 3], |slot| decoder.resize_into(slot).unwrap());
        }
    }

    let bytes = photo[..224 * 224 * 3].to_vec();
    measure("u8 to f32 224x224, nhwc", BATCH, batch, |slot| u8_to_f32(&bytes, floats(slot)));
    measure("u8 to f32 224x224, nchw", BATCH, batch, |slot| u8_to_f32_nchw(&bytes, floats(slot)));

    let mut decoder = ImageDecoder::new(ImageSpec::default());
    if decoder.decode(&jpeg).is_ok() {
        measure("jpeg 480x415, decode", BATCH, batch, |_| assert!(decoder.decode(&jpeg).is_ok()));
        measure("jpeg 480x415, decode_into", BATCH, batch, |slot| decoder.decode_into(&jpeg, slot).unwrap());
    }
    measure("png 480x415, decode_into", BATCH / 8, batch, |slot| decoder.decode_into(&png, slot).unwrap());
}

fn fill(name: &str, batch: &mut [f32]) {
    let mut byte = 0;
    measure(name, BATCH, batch, |slot| {
        byte ^= 1;
        std::hint::black_box(slot).fill(byte);
    });
}

/// Runs `work` on `n` slots in turn, a few rounds, and prints the best rate per second of this thread's CPU time.
fn measure(name: &str, n: usize, batch: &mut [f32], mut work: impl FnMut(&mut [u8])) {
    let slot_len = 224 * 224 * 3;
    let best = (0..ROUNDS)
        .map(|_| {
            let start = cpu_ns();
            for at in 0..n {
                let n_slots = batch.len() / slot_len;
                work(bytes(&mut batch[at % n_slots * slot_len..][..slot_len]));
            }
            (cpu_ns() - start) / n as f64
        })
        .fold(f64::INFINITY, f64::min);
    println!("{name:40} {:9.0} /CPU-s {:9.1} us", 1e9 / best, best / 1e3);
}

fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is there to be written.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) }, 0);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn bytes(floats: &mut [f32]) -> &mut [u8] {
    // SAFETY: floats are bytes.
    unsafe { std::slice::from_raw_parts_mut(floats.as_mut_ptr().cast(), floats.len() * 4) }
}

fn floats(bytes: &mut [u8]) -> &mut [f32] {
    // SAFETY: bytes are floats, and these were floats before.
    unsafe { bytes.align_to_mut().1 }
}

/// Waves with some grain: a picture whose neighbouring pixels are alike, as a photograph's are.
fn photo(width: usize, height: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut grain = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as f32 / 256.0 - 0.5
    };
    let value = |y: usize, x: usize, c: usize| {
        let (y, x, c) = (y as f32, x as f32, c as f32);
        128.0 + 60.0 * (x / 37.0 + c).sin() + 50.0 * (y / 23.0 - x / 91.0).cos()
    };
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (y, x)));
    pixels
        .flat_map(|(y, x)| [0, 1, 2].map(|c| (y, x, c)))
        .map(|(y, x, c)| (value(y, x, c) + 45.0 * grain()) as u8)
        .collect()
}

fn png(width: u32, height: u32, rgb: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(rgb).unwrap();
    out
}

fn jpeg(width: u16, height: u16, rgb: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    jpeg_encoder::Encoder::new(&mut out, 90).encode(rgb, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
    out
}
