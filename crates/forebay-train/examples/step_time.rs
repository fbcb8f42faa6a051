//! Times training steps: `step_time MODEL cpu:THREADS|cuda:f32|cuda:tf32|cuda:bf16 BATCH STEPS [FOLDER]…` prints one line of JSON.
//! CUDA's libraries are taken from the folders where the system does not find them.
//!
//! `ms` is the time of each step, from the batch in host memory to the loss on the host: copy, compute and update, one after the
//! other. `overlapped_ms` is the mean of as many steps more, in which each batch travels while the one before it is computed.
//! `cpu_ms` is what all threads together spent on a core: it tells more than `ms` where others use the machine too.
//! The batch is made once; pixels lie where the device fetches them, as PyTorch's do in `bench/train/torch_step.py`.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use forebay_train::optimizer::Adam;
use forebay_train::{Cpu, Cuda, Engine, Labels, Model, Network, Optimizer, Settings};

const N_CLASSES: usize = 102;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, device, batch, steps, folders @ ..] = arguments.as_slice() else {
        return Err("usage: step_time MODEL cpu:THREADS|cuda:f32|cuda:tf32|cuda:bf16 BATCH STEPS [FOLDER]…".into());
    };
    let model = Model::named(model, N_CLASSES)?;
    let (batch, steps) = (batch.parse()?, steps.parse()?);
    match device.split_once(':') {
        Some(("cpu", threads)) => run(Cpu::new(threads.parse()?)?, &model, batch, steps, 2),
        Some(("cuda", precision)) => {
            let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
            run(Cuda::with_folders(0, precision.parse()?, &folders)?, &model, batch, steps, 20)
        }
        _ => Err(format!("\"{device}\" is neither cpu:THREADS nor cuda:PRECISION").into()),
    }
}

#[expect(clippy::print_stdout, reason = "the result")]
fn run<E: Engine>(engine: E, model: &Model, batch: usize, steps: usize, warm_up: usize) -> Result<(), Box<dyn Error>> {
    let optimizer = Optimizer::Adam(Adam { learning_rate: 1e-4, ..Adam::default() });
    let mut network = Network::new(engine, model, Settings { optimizer, places: 2, ..Settings::new(batch, 1) })?;
    let labels: Vec<i64> = (0..batch).map(|i| (i * 7 % N_CLASSES) as i64).collect();
    let labels = Labels::Index(&labels);
    for _ in 0..2 {
        let pixels = network.pixels()?;
        pixels.iter_mut().enumerate().for_each(|(i, pixel)| *pixel = noise(i as u32));
        network.stage_filled(labels)?;
    }
    let mut losses = vec![step(&mut network)?, step(&mut network)?];
    let (mut times, mut cpu_times) = (Vec::new(), Vec::new());
    for _ in 0..warm_up + steps {
        let (begin, cpu) = (Instant::now(), cpu_ms());
        network.stage_filled(labels)?;
        losses.push(step(&mut network)?);
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        cpu_times.push(cpu_ms() - cpu);
    }
    network.stage_filled(labels)?;
    let begin = Instant::now();
    for _ in 0..steps {
        network.start()?;
        network.stage_filled(labels)?;
        losses.push(network.finish()?);
    }
    let overlapped = begin.elapsed().as_secs_f64() * 1e3 / steps as f64;
    let device = network.describe_device();
    let (ms, cpu) = (&times[warm_up..], &cpu_times[warm_up..]);
    let measured = format!("\"ms\": {ms:?}, \"cpu_ms\": {cpu:?}, \"overlapped_ms\": {overlapped}");
    println!("{{\"device\": \"{device}\", \"batch\": {batch}, {measured}, \"losses\": {losses:?}}}");
    Ok(())
}

/// A value between -0.5 and 0.5 that looks drawn by lot: what a device computes with has a share in how fast it is.
fn noise(i: u32) -> f32 {
    let h = i.wrapping_mul(2_654_435_761);
    let h = (h ^ (h >> 15)).wrapping_mul(0x85EB_CA6B);
    ((h ^ (h >> 13)) >> 8) as f32 / (1 << 24) as f32 - 0.5
}

/// Time that all threads of this process have spent on a core.
fn cpu_ms() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is there to be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn step<E: Engine>(network: &mut Network<E>) -> forebay_train::Result<f32> {
    network.start()?;
    network.finish()
}
