//! The CUDA engine against the same golden files, where there is a device; and what is said where there is none.

use forebay_testing::{Reason, not_run};
use forebay_train::optimizer::Sgd;
use forebay_train::{
    BatchNorm, Block, Conv, Cpu, Cuda, Dropout, Engine, Error, Labels, Linear, MaxPool, Model, Network, Node,
    Optimizer, Precision, Relu, Residual, Settings, Shape,
};

use crate::golden::{assert_close, pixels};
use crate::{layers, learning, lent, networks, state};

/// A device, or a word that the test did not run.
fn open(precision: Precision) -> Option<Cuda> {
    match Cuda::new(0, precision) {
        Ok(cuda) => Some(cuda),
        Err(error) => {
            not_run(Reason::NoGpu, error);
            None
        }
    }
}

fn again(precision: Precision) -> impl Fn() -> Cuda {
    move || Cuda::new(0, precision).unwrap()
}

#[test]
fn a_missing_library_is_named_with_the_files_looked_for_and_a_remedy() {
    let error = match Cuda::new(0, Precision::F32) {
        Ok(_) => return not_run(Reason::Gpu, "nothing is missing"),
        Err(error) => error,
    };
    match &error {
        Error::MissingLibrary { looked_for, remedy, .. } => {
            assert!(looked_for.starts_with("lib") && looked_for.contains(".so"), "{error}");
            assert!(remedy.contains("nvidia-smi") || remedy.contains("pip install"), "{error}");
            assert!(error.to_string().ends_with(&format!("(looked for {looked_for}): {remedy}")), "{error}");
        }
        Error::Device { what, .. } => assert_eq!(what, "opening CUDA device 0"),
        other => panic!("{other}"),
    }
}

#[test]
fn a_folder_that_was_given_is_named_when_a_library_is_missing() {
    let folders = [std::path::PathBuf::from("/no/such/folder")];
    match Cuda::with_folders(0, Precision::F32, &folders) {
        Err(Error::MissingLibrary { looked_for, .. }) => {
            assert!(looked_for.ends_with("in the system's library paths and /no/such/folder"), "{looked_for}");
        }
        Err(error) => not_run(Reason::Gpu, error),
        Ok(_) => not_run(Reason::Gpu, "nothing is missing"),
    }
}

#[test]
fn a_device_that_is_not_there_and_a_batch_too_large_say_so() {
    if open(Precision::Bf16).is_none() {
        return;
    }
    let error = Cuda::new(99, Precision::Bf16).err().unwrap().to_string();
    assert!(error.starts_with("opening CUDA device 99 failed: the driver reports "), "{error}");
    let model = Model::named("alexnet", 5).unwrap();
    let refusal = |batch| {
        let network = Network::new(again(Precision::Bf16)(), &model, Settings::new(batch, 1));
        network.err().unwrap().to_string()
    };
    let error = refusal(100_000);
    assert!(
        error.starts_with("a convolution of 100000 × 224×224×3 to 55×55×64 failed: cuDNN takes at most "),
        "{error}"
    );
    assert!(error.ends_with("; a smaller batch has fewer"), "{error}");
    let layers = [Node::new("drop", Dropout::new(0.5))];
    let block = Block::new(again(Precision::Bf16)(), &layers, Shape::vector(500_000_000), 1_000, 1);
    let error = block.err().unwrap().to_string();
    assert!(error.starts_with("allocating 1.00 TB on the device failed: "), "{error}");
    assert!(error.ends_with(" are free; use a smaller batch"), "{error}");
}

#[test]
fn an_unknown_precision_is_refused_with_the_known_ones() {
    assert_eq!("bf16".parse::<Precision>().unwrap(), Precision::Bf16);
    let error = "fp8".parse::<Precision>().unwrap_err().to_string();
    assert_eq!(error, "unknown precision \"fp8\"; expected f32, tf32 or bf16");
}

#[test]
fn every_layer_agrees_with_pytorch_on_cuda() {
    if open(Precision::F32).is_some() {
        layers::check(again(Precision::F32), 1e-4);
        layers::check(again(Precision::Tf32), 1e-2);
    }
}

#[test]
fn every_layer_agrees_with_the_cpu_in_bf16() {
    if open(Precision::Bf16).is_some() {
        layers::compare(again(Precision::Bf16), round_to_bf16, 2e-2);
    }
}

#[test]
fn steps_of_small_networks_agree_with_pytorch_on_cuda() {
    if open(Precision::F32).is_some() {
        networks::check(again(Precision::F32), 1e-4);
    }
}

#[test]
fn a_tiny_set_is_learnt_on_cuda() {
    for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
        let Some(cuda) = open(precision) else { return };
        let share = learning::learn(cuda, "resnet-small", 20);
        assert!(share > 0.95, "{precision}: {share}");
    }
}

#[test]
fn dropout_drops_the_same_values_on_cuda_and_on_the_cpu() {
    let Some(cuda) = open(Precision::F32) else { return };
    let layers = [Node::new("drop", Dropout::new(0.5))];
    let (shape, ones) = (Shape::vector(1000), vec![1.0; 1000]);
    let on_cuda = Block::new(cuda, &layers, shape, 1, 5).unwrap().forward(&ones, true).unwrap();
    let on_cpu = Block::new(Cpu::new(1).unwrap(), &layers, shape, 1, 5).unwrap().forward(&ones, true).unwrap();
    assert_eq!(on_cuda, on_cpu);
}

#[test]
fn staging_ahead_changes_no_loss_on_cuda() {
    if open(Precision::F32).is_none() {
        return;
    }
    let model = Model::named("alexnet-small", 5).unwrap();
    let new =
        |places| Network::new(again(Precision::F32)(), &model, Settings { places, ..Settings::new(2, 1) }).unwrap();
    let images = pixels(8 * 2 * model.input.len());
    let batches: Vec<&[f32]> = images.chunks_exact(2 * model.input.len()).collect();
    let labels = Labels::Index(&[1, 2]);
    let mut plain = new(1);
    let want: Vec<f32> = batches.iter().map(|batch| plain.step(batch, labels).unwrap()).collect();
    let mut ahead = new(2);
    ahead.stage(batches[0], labels).unwrap();
    let mut got = Vec::new();
    for next in 1..=batches.len() {
        ahead.start().unwrap();
        if let Some(batch) = batches.get(next) {
            ahead.pixels().unwrap().copy_from_slice(batch);
            ahead.stage_filled(labels).unwrap();
        }
        got.push(ahead.finish().unwrap());
    }
    assert_close("losses", &got, &want, 1e-4);
}

#[test]
fn steps_played_back_from_a_recording_agree_with_the_cpu() {
    if open(Precision::F32).is_some() {
        let want = losses_of_ten_steps(Cpu::new(2).unwrap());
        assert_close("losses", &losses_of_ten_steps(again(Precision::F32)()), &want, 1e-3);
    }
}

/// Losses of a network that draws no lots, on batches of their own in two places, with a look at others between the steps.
fn losses_of_ten_steps<E: Engine>(engine: E) -> Vec<f32> {
    let model = Model::named("resnet-small", 5).unwrap();
    let optimizer = Optimizer::Sgd(Sgd { learning_rate: 1e-2, ..Sgd::default() });
    let mut network = Network::new(engine, &model, Settings { optimizer, places: 2, ..Settings::new(4, 1) }).unwrap();
    let (len, labels) = (4 * model.input.len(), Labels::Index(&[1, 2, 3, 4]));
    let images = pixels(10 * len);
    let step = |batch| {
        let loss = network.step(batch, labels).unwrap();
        [loss, network.evaluate(&images[..len], labels).unwrap().loss]
    };
    images.chunks_exact(len).flat_map(step).collect()
}

#[test]
fn lent_batches_give_the_losses_of_copied_ones_on_cuda_and_come_back() {
    if open(Precision::F32).is_some() {
        lent::check(again(Precision::F32), 1e-4);
    }
}

#[test]
fn a_network_on_cuda_seen_where_it_lies_is_the_network_copied_out() {
    for precision in [Precision::F32, Precision::Bf16] {
        let Some(cuda) = open(precision) else { return };
        state::a_view_is_the_state(cuda);
    }
}

#[test]
fn every_layer_hands_nan_on_and_the_loss_shows_it_on_cuda() {
    let relu = || Node::new("relu", Relu);
    let layers: [(&str, Vec<Node>); 6] = [
        ("conv", vec![Node::new("layer", Conv::new(8, 3).padding(1)), relu()]),
        ("linear", vec![Node::new("layer", Linear::new(8)), relu()]),
        ("relu", vec![Node::new("layer", MaxPool::new(1, 1)), relu()]),
        ("max pool", vec![Node::new("layer", MaxPool::new(3, 2))]),
        ("batch norm", vec![Node::new("layer", BatchNorm::new()), relu()]),
        ("sum", vec![Node::new("layer", Residual::new(vec![Node::new("in", BatchNorm::new())], Vec::new())), relu()]),
    ];
    for precision in [Precision::F32, Precision::Bf16] {
        let Some(cuda) = open(precision) else { return };
        // Eight channels are one whole vector, three are none.
        for (name, layers) in layers.iter() {
            for channels in [3, 8] {
                let shape = Shape::new(5, 5, channels);
                let mut images = pixels(2 * shape.len());
                images[12 * channels + 1] = f32::NAN;
                let mut block = Block::new(again(precision)(), layers, shape, 2, 1).unwrap();
                let y = block.forward(&images, true).unwrap();
                assert!(y.iter().any(|v| v.is_nan()), "{name} of {channels} channels, {precision}");
            }
        }
        let model = Model::named("resnet-small", 5).unwrap();
        let mut images = pixels(2 * model.input.len());
        images[0] = f32::NAN;
        let mut network = Network::new(cuda, &model, Settings::new(2, 1)).unwrap();
        assert!(network.step(&images, Labels::Index(&[1, 2])).unwrap().is_nan(), "{precision}");
        assert_eq!(network.evaluate(&images, Labels::Index(&[0, 0])).unwrap().n_right, 0, "{precision}");
    }
}

/// The nearest value that bf16 holds.
fn round_to_bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF_0000)
}
