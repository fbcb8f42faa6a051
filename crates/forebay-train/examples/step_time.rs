//! Times training steps: `step_time MODEL cpu:THREADS BATCH STEPS` prints one line of JSON with milliseconds a step.
//!
//! The batch is made once and handed in anew every step, as a pipeline would; the first two steps are not kept.

use std::time::Instant;

use forebay_train::{Adam, Cpu, Labels, Model, Network, Optimizer, Settings};

const WARM_UP: usize = 2;
const N_CLASSES: usize = 102;

#[expect(clippy::print_stdout, reason = "the result")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, device, batch, steps] = arguments.as_slice() else {
        return Err("usage: step_time MODEL cpu:THREADS BATCH STEPS".into());
    };
    let (batch, steps): (usize, usize) = (batch.parse()?, steps.parse()?);
    let threads: usize = device.strip_prefix("cpu:").ok_or("the device is cpu:THREADS")?.parse()?;
    let model = Model::named(model, N_CLASSES)?;
    let optimizer = Optimizer::Adam(Adam { learning_rate: 1e-4, ..Adam::default() });
    let mut network = Network::new(Cpu::new(threads)?, &model, Settings { optimizer, ..Settings::new(batch, 1) })?;
    let images: Vec<f32> = (0..batch * model.input.len()).map(|i| (i * 37 % 256) as f32 / 255.0 - 0.5).collect();
    let labels: Vec<i64> = (0..batch).map(|i| (i * 7 % N_CLASSES) as i64).collect();
    let mut times = Vec::new();
    let mut losses = Vec::new();
    for _ in 0..WARM_UP + steps {
        let begin = Instant::now();
        losses.push(network.step(&images, Labels::Index(&labels))?);
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "{{\"device\": \"{}\", \"batch\": {batch}, \"ms\": {:?}, \"losses\": {losses:?}}}",
        network.describe_device(),
        &times[WARM_UP..]
    );
    Ok(())
}
