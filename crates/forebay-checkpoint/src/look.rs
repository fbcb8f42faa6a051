//! Inspects a tier without reading all of it and without changing it: takes no lock, removes nothing.

use crate::tier::Tier;
use crate::verify::{check_length, read_manifest};
use crate::{Damage, Manifest, Name, Result};

/// Reads a checkpoint's manifest and checks that its files exist with the recorded lengths. Their content is not read;
/// [`verify`](crate::verify()) does that.
///
/// # Errors
/// The damage found.
pub fn look(tier: &Tier, name: Name) -> std::result::Result<Manifest, Damage> {
    let manifest = read_manifest(tier, name)?;
    for sum in &manifest.files {
        check_length(tier, name, sum)?;
    }
    Ok(manifest)
}

/// Names left on a tier by an interrupted save or removal; they are removed when a store is next opened.
///
/// # Errors
/// When the folder cannot be read.
pub fn left_over(tier: &Tier) -> Result<Vec<String>> {
    tier.unfinished()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::format::{Format, Safetensors};
    use crate::{Dtype, Header, LocalFs, Options, Snapshot, Store, Tensor};

    fn saved(dir: &std::path::Path, steps: &[u64]) -> Tier {
        let header = Header { name: "w".to_owned(), dtype: Dtype::U8, shape: vec![9000] };
        let tier = Tier::new(Arc::new(LocalFs), dir);
        let store = Store::open(vec![tier.clone()], Options::default()).unwrap();
        for step in steps {
            let bytes = vec![*step as u8; 9000];
            let snapshot = Snapshot { tensors: vec![Tensor::new(&header, &bytes[..])], ..Snapshot::default() };
            let layout = Safetensors.plan("model", &snapshot).unwrap();
            store.save(*step, None, &snapshot, &layout).unwrap();
        }
        tier
    }

    #[test]
    fn a_look_sees_lengths_and_not_content() {
        let dir = tempfile::tempdir().unwrap();
        let tier = saved(dir.path(), &[7]);
        let name = Name { step: 7, take: 0 };
        assert_eq!(look(&tier, name).unwrap().step, 7);
        let path = tier.path_of(name).join("model.safetensors");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(look(&tier, name).is_ok(), "what it holds is not read");
        std::fs::write(&path, &bytes[1..]).unwrap();
        assert!(matches!(look(&tier, name), Err(Damage::Length { .. })));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(look(&tier, name), Err(Damage::Missing { .. })));
        assert!(matches!(look(&tier, Name { step: 8, take: 0 }), Err(Damage::NoManifest)));
    }

    #[test]
    fn left_overs_are_named_and_left() {
        let dir = tempfile::tempdir().unwrap();
        let tier = saved(dir.path(), &[7]);
        std::fs::create_dir(dir.path().join(".staging-step-000000000009-0")).unwrap();
        assert_eq!(left_over(&tier).unwrap(), [".staging-step-000000000009-0"]);
        assert!(dir.path().join(".staging-step-000000000009-0").exists());
    }
}
