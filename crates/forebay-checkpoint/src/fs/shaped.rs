//! A file system slowed down to the speed of another device, for tiers where kernel throttling is not available.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_storage::{Device, Profile};
use forebay_units::Clock;

use super::pass::{pass_on_file, pass_on_names};
use super::{File, Fs, Reading};
use crate::Result;

/// A file system whose reads and writes take as long as on the profile's device.
#[derive(Clone)]
pub struct ShapedFs {
    inner: Arc<dyn Fs>,
    device: Arc<Device>,
}

impl ShapedFs {
    /// Shapes `inner` after the profile, using the system clock.
    pub fn new(inner: Arc<dyn Fs>, profile: Profile) -> Self {
        Self::on(inner, Device::of(profile))
    }

    /// On a device that others may use too.
    pub fn on(inner: Arc<dyn Fs>, device: Arc<Device>) -> Self {
        Self { inner, device }
    }

    pub fn with_clock(inner: Arc<dyn Fs>, profile: Profile, clock: Arc<dyn Clock>) -> Self {
        Self::on(inner, Arc::new(Device::new(profile, clock)))
    }

    fn shape(&self, path: &Path, inner: Box<dyn File>) -> Box<dyn File> {
        Box::new(ShapedFile { path: path.to_owned(), inner, device: Arc::clone(&self.device) })
    }
}

impl Fs for ShapedFs {
    fn description(&self) -> String {
        format!("{} (shaped in process) over {}", self.device.profile().name, self.inner.description())
    }

    /// Two: the next request is ready when the device is, and a stream stays sequential.
    fn in_flight(&self) -> usize {
        2
    }

    fn create(&self, path: &Path) -> Result<Box<dyn File>> {
        Ok(self.shape(path, self.inner.create(path)?))
    }

    fn open(&self, path: &Path, reading: Reading) -> Result<Box<dyn File>> {
        Ok(self.shape(path, self.inner.open(path, reading)?))
    }

    pass_on_names!();
}

struct ShapedFile {
    path: PathBuf,
    inner: Box<dyn File>,
    device: Arc<Device>,
}

impl File for ShapedFile {
    pass_on_file!();

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.device.write(&self.path, offset, bytes.len() as u64, || self.inner.write_at(offset, bytes))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.device.read(&self.path, offset, || self.inner.read_at(offset, into))
    }
}

#[cfg(test)]
mod tests {
    use forebay_units::ManualClock;

    use super::*;
    use crate::ModelFs;

    #[test]
    fn two_on_one_device_take_turns() {
        let clock = Arc::new(ManualClock::default());
        let device = Arc::new(Device::new(Profile::hdd(), Arc::clone(&clock) as Arc<dyn Clock>));
        let fs = |dir: &str| ShapedFs::on(Arc::new(ModelFs::with_dirs(&[dir])), Arc::clone(&device));
        let (one, other) = (fs("a"), fs("b"));
        let [a, b] = [one.create(Path::new("/a/f")).unwrap(), other.create(Path::new("/b/f")).unwrap()];
        for k in 0..4 {
            a.write_at(k << 20, &[1; 1 << 20]).unwrap();
            b.write_at(k << 20, &[1; 1 << 20]).unwrap();
        }
        // Its head moves for every request, since none continues the one before.
        let expected_s = 8.0 * (0.008 + f64::from(1 << 20) / 133e6);
        assert!((clock.now_ns() as f64 / 1e9 / expected_s - 1.0).abs() < 0.01, "{} ns", clock.now_ns());
    }

    #[test]
    fn writing_takes_the_time_of_the_device_it_imitates() {
        let clock = Arc::new(ManualClock::default());
        let model = Arc::new(ModelFs::with_dirs(&["t"]));
        let fs = ShapedFs::with_clock(model, Profile::hdd(), Arc::clone(&clock) as Arc<dyn Clock>);
        let file = fs.create(Path::new("/t/f")).unwrap();
        for k in 0..8 {
            file.write_at(k << 20, &[1; 1 << 20]).unwrap();
        }
        let expected_s = 0.008 + 8.0 * f64::from(1 << 20) / 133e6;
        assert!((clock.now_ns() as f64 / 1e9 - expected_s).abs() < 1e-6, "{} ns", clock.now_ns());
    }
}
