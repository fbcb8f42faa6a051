//! Tiers as their users see them: brought up, found, stopped at every step, and gone without a trace.

mod kernel;
mod shaped;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::*;

fn go_on(_: Moment) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A folder of one test beside the test program: the system's own temporary folder may be in memory.
pub(super) fn folder() -> tempfile::TempDir {
    let program = std::env::current_exe().unwrap();
    tempfile::tempdir_in(program.parent().unwrap()).unwrap()
}

/// A registry in a folder of one test.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(folder())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn registry(&self) -> Registry {
        Registry::new(self.path("tiers"))
    }

    fn assert_nothing_is_left(&self) {
        assert_eq!(names(self.0.path()), Vec::<String>::new());
        let root = self.path("");
        assert!(!mounts::table().unwrap().iter().any(|mount| mount.point.starts_with(&root)), "a mount is left");
        assert_eq!(loop_device::attached(&self.path("tiers/t/disk.img")).unwrap(), []);
    }
}

impl Drop for Place {
    /// A test that failed leaves no loop device behind either.
    fn drop(&mut self) {
        let registry = self.registry();
        for name in registry.names().unwrap_or_default() {
            let _ = registry.down(&name, &mut go_on);
        }
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs and stops at moment number `n`; `None` if it ended before.
fn stopped_at<T>(n: usize, run: impl FnOnce(Watch<'_>) -> Result<T>) -> Option<Moment> {
    let mut seen = 0;
    let outcome = run(&mut |_| {
        seen += 1;
        if seen > n { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match outcome {
        Err(Error::Stopped { moment }) => Some(moment),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}
