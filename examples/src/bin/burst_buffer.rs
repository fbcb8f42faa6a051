//! Saves a state to two tiers: durable on the fast one, then drained to the slow one. Reads one tensor back alone.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use forebay_checkpoint::{
    Checkpoint, Dtype, Header, Level, LocalFs, Mode, Options, ShapedFs, Snapshot, Store, Tensor, Tier, format, restore,
};
use forebay_storage::Profile;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let dir = folder.path();
    let header = |name: &str, n: u64| Header { name: name.to_owned(), dtype: Dtype::F32, shape: vec![n] };
    let (weights, bias) = (header("layer.weight", 4_000_000), header("layer.bias", 1_000));
    let (weight_bytes, bias_bytes) = (vec![1_u8; 16_000_000], vec![2_u8; 4_000]);
    let mut snapshot = Snapshot {
        tensors: vec![Tensor::new(&weights, &weight_bytes), Tensor::new(&bias, &bias_bytes)],
        ..Snapshot::default()
    };
    snapshot.notes.insert("step".to_owned(), "120".to_owned());
    let layout = format::named("safetensors").context("safetensors is a known format")?.plan("model", &snapshot)?;

    // A folder with the speed of a hard disk, and a burst buffer with the speed of an Optane drive.
    let slow = ShapedFs::new(Arc::new(LocalFs), Profile::hdd());
    let fast = ShapedFs::new(Arc::new(LocalFs), Profile::optane());
    let tiers = vec![Tier::new(Arc::new(fast), dir.join("fast")), Tier::new(Arc::new(slow), dir.join("slow"))];
    let store = Store::open(tiers.clone(), Options { mode: Mode::Burst, ..Options::default() })?;

    let start = Instant::now();
    let handle = store.save(120, None, &snapshot, &layout)?;
    println!("training continues after      {:6.1} ms: the state survives a power cut", ms(start));
    handle.wait(Level::DurableSlow)?;
    println!("on the slow tier after        {:6.1} ms, read back and verified", ms(start));
    let closed = store.close();
    assert!(closed.errors.is_empty() && closed.n_undrained == 0);

    // Reads one tensor without the rest; every byte is verified.
    let checkpoint = Checkpoint::find(&tiers, None)?;
    let bias = checkpoint.catalog()?.read(&checkpoint, "layer.bias")?;
    assert_eq!(bias, bias_bytes);

    // Flips a bit on the fast tier: restore reports it and uses the slow tier's copy.
    let file = tiers[0].path_of(handle.name()).join("model.safetensors");
    let mut bytes = std::fs::read(&file)?;
    bytes[5_000_000] ^= 1;
    std::fs::write(&file, bytes)?;
    let restored = restore(&tiers)?;
    for passed in &restored.passed_over {
        println!("skipped: {passed}");
    }
    println!("restored step {} from tier {}", restored.name.step, restored.tier);
    assert_eq!(restored.tier, 1);
    Ok(())
}

fn ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}
