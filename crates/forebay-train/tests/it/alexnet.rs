//! The whole AlexNet, dropout and all, against PyTorch. Parameters are a formula that `make.py` has too.

use forebay_train::optimizer::Sgd;
use forebay_train::{Cpu, Engine, Entry, Labels, Model, Network, Optimizer, Settings, State};

use crate::golden::{Golden, assert_close, pixels, pixels_at};

const BATCH: usize = 2;

/// Gives a network the formula's parameters.
fn fill<E: Engine>(network: &mut Network<E>) {
    let mut first = 0;
    let mut set = |entry: &Entry<'_>| {
        let n = entry.shape.iter().product::<usize>();
        let outputs = entry.shape[0];
        let scale = match entry.name.rsplit('.').next() {
            Some("weight") => (2.0 * (6.0 * outputs as f64 / n as f64).sqrt()) as f32,
            Some("bias") => 0.1,
            _ => 0.0,
        };
        let values: Vec<f32> = pixels_at(first, n).map(|pixel| (pixel - 0.5) * scale).collect();
        first += n as u32;
        Entry { name: entry.name.clone(), shape: entry.shape.clone(), values: values.into() }
    };
    let state = State { n_steps: 0, entries: network.state().unwrap().entries.iter().map(&mut set).collect() };
    network.load_state(&state).unwrap();
}

/// Makes the golden file's steps on an engine and compares losses, gradients and what is kept between steps.
pub(crate) fn check<E: Engine>(engine: E, tolerance: f64) {
    let golden = Golden::open("alexnet");
    let model = Model::named("alexnet", 10).unwrap();
    let optimizer = Optimizer::Sgd(Sgd { learning_rate: 1e-3, ..Sgd::default() });
    let mut network = Network::new(engine, &model, Settings { optimizer, ..Settings::new(BATCH, 1) }).unwrap();
    fill(&mut network);
    let images = pixels(BATCH * model.input.len());
    for (step, want) in golden.get("losses").iter().enumerate() {
        let loss = network.step(&images, Labels::Index(&[0, 3])).unwrap();
        assert_close(&format!("loss of step {step}"), &[loss], &[*want], tolerance);
        let state = network.state().unwrap();
        let prefix = format!("{}.some.", step + 1);
        assert_eq!(golden.under(&prefix).count(), 16);
        for (name, want) in golden.under(&prefix) {
            let entry = state.entries.iter().find(|entry| entry.name == format!("{name}.momentum_buffer")).unwrap();
            let some: Vec<f32> = entry.values.iter().step_by((entry.values.len() / 300).max(1)).copied().collect();
            assert_close(&format!("step {step} {name}"), &some, want, tolerance);
            if step == 0 {
                // The first velocity is the gradient.
                let norm = entry.values.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt() as f32;
                assert_close(name, &[norm], golden.get(&format!("1.norm.{name}")), tolerance);
            }
        }
    }
}

#[test]
fn steps_of_the_whole_alexnet_agree_with_pytorch_on_the_cpu() {
    check(Cpu::new(2).unwrap(), 1e-4);
}
