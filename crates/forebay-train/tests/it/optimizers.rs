//! Every rule against PyTorch, on one linear layer whose labels are shares of classes.

use forebay_train::optimizer::{Adam, Sgd};
use forebay_train::{Cpu, Engine, Labels, Linear, Model, Network, Node, Optimizer, Settings, Shape};

use crate::golden::{Golden, assert_close};
use crate::networks::load;

fn rules() -> [(&'static str, Optimizer); 8] {
    let adam = Adam { learning_rate: 1e-2, ..Adam::default() };
    let decayed = Adam { beta1: 0.8, beta2: 0.99, epsilon: 1e-4, weight_decay: 0.1, ..adam };
    let adamw = Adam { learning_rate: 1e-2, weight_decay: 0.1, ..Adam::decoupled() };
    let sgd = Sgd { learning_rate: 0.1, momentum: 0.0, weight_decay: 0.0, nesterov: false };
    let momentum = Sgd { momentum: 0.9, ..sgd };
    [
        ("adam", Optimizer::Adam(adam)),
        ("adam_decayed", Optimizer::Adam(decayed)),
        ("adamw", Optimizer::Adam(adamw)),
        ("sgd", Optimizer::Sgd(sgd)),
        ("sgd_decayed", Optimizer::Sgd(Sgd { weight_decay: 0.1, ..sgd })),
        ("momentum", Optimizer::Sgd(momentum)),
        ("momentum_decayed", Optimizer::Sgd(Sgd { weight_decay: 0.1, ..momentum })),
        ("nesterov", Optimizer::Sgd(Sgd { nesterov: true, ..momentum })),
    ]
}

/// Trains the layer on an engine by every rule and compares losses, parameters and moments.
pub(crate) fn check<E: Engine>(make: impl Fn() -> E, tolerance: f64) {
    let golden = Golden::open("optimizers");
    let model =
        Model { name: "one layer".to_owned(), input: Shape::vector(6), layers: vec![Node::new("fc", Linear::new(5))] };
    for (rule, optimizer) in rules() {
        let mut network = Network::new(make(), &model, Settings { optimizer, ..Settings::new(4, 1) }).unwrap();
        load(&mut network, &golden);
        let mut step = || network.step(golden.get("x"), Labels::OneHot(golden.get("shares"))).unwrap();
        let losses: Vec<f32> = (0..6).map(|_| step()).collect();
        assert_close(&format!("{rule} losses"), &losses, golden.get(&format!("{rule}.losses")), tolerance);
        let state = network.state().unwrap();
        let prefix = format!("{rule}.after.");
        assert_eq!(golden.under(&prefix).count(), state.entries.len(), "{rule}: what is kept");
        for entry in &state.entries {
            let want = golden.get(&format!("{prefix}{}", entry.name));
            assert_close(&format!("{rule} {}", entry.name), &entry.values, want, tolerance);
        }
    }
}

#[test]
fn every_rule_agrees_with_pytorch_on_the_cpu() {
    check(|| Cpu::new(2).unwrap(), 1e-4);
}

#[test]
fn rules_have_names_and_a_learning_rate_that_can_be_set() {
    assert_eq!(Optimizer::names().collect::<Vec<_>>(), ["adam", "adamw", "sgd"]);
    assert_eq!(Optimizer::named("rmsprop", None), None);
    for name in Optimizer::names() {
        let optimizer = Optimizer::named(name, Some(0.5)).unwrap();
        assert_eq!(optimizer.learning_rate(), 0.5, "{name}");
    }
}
