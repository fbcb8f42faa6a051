//! A sample of the data in another format, in a scratch folder that is removed at the end.

use std::path::{Path, PathBuf};

use forebay_dataset::{Control, PackOptions, PackPlan, Packing, pack};
use forebay_measure::{Event, FileSystem, Observer, Scratch};
use forebay_units::{Bytes, chain, count};

use crate::train::{Plan, TENSOR, image_spec};

/// At most so much is written.
pub(super) const MOST_BYTES: u64 = 4_000_000_000;
/// Fraction of the free space that may be used.
const OF_FREE: f64 = 0.5;
/// Of the scratch folders' names.
pub(super) const PREFIX: &str = ".forebay-tune-";

pub(super) struct Sample {
    pub(super) format: String,
    /// Flags of `forebay data pack` that make the whole data so.
    pub(super) flags: String,
    scratch: Scratch,
    n_samples: u64,
    n_of: u64,
}

impl Sample {
    /// # Errors
    /// Why this data cannot be packed here, in words.
    pub(super) fn pack(plan: &Plan, format: &str, dir: &Path, observer: Observer<'_>) -> Result<Self, String> {
        let data = plan.data.as_deref().ok_or("there is no data")?;
        let (packing, flags) = packing(plan, format)?;
        let all = PackPlan::new(data, PackOptions::new(packing)).map_err(|error| chain(&error))?;
        let n_of = all.n_files();
        let n_samples = plan.settings.images_per_run(n_of).min(n_of);
        let bytes = (all.expected_bytes().0 / n_of.max(1)).saturating_mul(n_samples);
        let free = FileSystem::of(dir).ok().and_then(|system| system.free_bytes);
        let most = free.map_or(MOST_BYTES, |free| MOST_BYTES.min((free as f64 * OF_FREE) as u64));
        if bytes > most {
            let n = count(n_samples, "sample");
            return Err(format!("the {n} of a run take {} in this format, more than {}", Bytes(bytes), Bytes(most)));
        }
        let most = (n_samples < n_of).then_some(n_samples as usize);
        let chosen = PackPlan::new(data, PackOptions { most, ..PackOptions::new(packing) });
        let chosen = chosen.map_err(|error| chain(&error))?;
        let scratch = Scratch::create(dir, PREFIX).map_err(|error| chain(&error))?;
        observer.tell(Event::phase(format!("packing {} as {format}", count(n_samples, "sample"))));
        let control = Control { cancel: observer.cancel, ..Control::default() };
        pack(&chosen, &scratch.path().join(format), &control).map_err(|error| chain(&error))?;
        Ok(Self { format: format.to_owned(), flags, scratch, n_samples, n_of })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.scratch.path().join(&self.format)
    }

    /// For the reader of the record.
    pub(super) fn note(&self) -> String {
        let (n, format) = (count(self.n_samples, "sample"), &self.format);
        match self.n_samples == self.n_of {
            true => format!("{format} was tried on a packed copy of the data, which was removed"),
            false => format!(
                "{format} was tried on a packed copy of {n} of {}, as many as a run reads, which was removed: its time \
                 holds for the whole data as far as these samples are like the others",
                forebay_units::group_digits(self.n_of)
            ),
        }
    }
}

/// The packing and its flags.
fn packing(plan: &Plan, format: &str) -> Result<(Packing, String), String> {
    let spec = || image_spec(plan).map_err(|error| chain(&error))?.ok_or_else(|| "there is no data".to_owned());
    match format {
        TENSOR => {
            let spec = spec()?;
            let (width, height) = (spec.width, spec.height);
            Ok((Packing::Tensor { width, height }, format!("--to {format} --size {width}x{height}")))
        }
        other => Err(format!("{other} is no format that data is packed in here")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::train::tests::{data, emulated};

    #[test]
    fn a_sample_has_as_many_images_as_a_run_reads_and_goes_with_its_folder() {
        let (dir, cancel) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
        let mut plan = emulated(data(dir.path()), "emulated:1ms", 1);
        let scratch = dir.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let packed = |plan: &Plan, format| Sample::pack(plan, format, &scratch, Observer::deaf(&cancel));
        plan.settings.steps = Some(3);
        let sample = packed(&plan, TENSOR).unwrap();
        let n_samples =
            crate::train::preview(&Plan { data: Some(sample.path()), ..plan.clone() }).unwrap().dataset.n_samples;
        assert_eq!((n_samples, sample.flags.as_str()), (24, "--to tensor --size 224x224"), "three batches of eight");
        assert!(
            sample.note().starts_with("tensor was tried on a packed copy of 24 samples of 60, "),
            "{}",
            sample.note()
        );
        drop(sample);
        assert_eq!(std::fs::read_dir(&scratch).unwrap().count(), 0);
        plan.settings.steps = Some(300);
        assert_eq!(
            packed(&plan, TENSOR).unwrap().note(),
            "tensor was tried on a packed copy of the data, which was removed"
        );
        assert_eq!(packed(&plan, "zip").err().unwrap(), "zip is no format that data is packed in here");
    }
}
