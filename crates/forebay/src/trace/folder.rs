//! The folder of a trace, and what a job needs in it while it runs: the library, the Python hook, the rings.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use forebay_interpose::{FILE_NAME, RINGS};
use forebay_trace::{LOADED, PYTHON_HOOK, ring_folder, write_new};
use forebay_units::PathText;

use crate::output::remark;

/// Name of the trace file.
pub(crate) const TRACE: &str = "trace.fbt";

#[derive(Debug)]
pub(super) struct Folder {
    out: PathBuf,
    /// Whether this run made it.
    is_new: bool,
    rings: PathBuf,
    /// For the library and the hook; removed at the end.
    scratch: PathBuf,
    has_python: bool,
}

impl Folder {
    /// Makes the folder and everything that the job loads.
    pub(super) fn begin(out: &Path, library: &[u8], has_python: bool) -> Result<Self> {
        let is_new = !out.exists();
        let cannot = || format!("cannot trace into {}", out.escaped());
        fs::create_dir_all(out).with_context(cannot)?;
        if fs::read_dir(out).with_context(cannot)?.next().is_some() {
            bail!(
                "--out {}: the folder is not empty\nhint: give a new one; a trace never replaces another",
                out.escaped()
            );
        }
        // The job may change its folder, so it gets absolute paths.
        let out = out.canonicalize().with_context(cannot)?;
        let scratch = out.join(LOADED);
        let mut folder = Self { out, is_new, rings: PathBuf::new(), scratch, has_python };
        match folder.fill(library) {
            Ok(()) => Ok(folder),
            Err(error) => {
                folder.remove();
                Err(error)
            }
        }
    }

    fn fill(&mut self, library: &[u8]) -> Result<()> {
        let cannot = || format!("cannot trace into {}", self.out.escaped());
        if self.out.as_os_str().as_encoded_bytes().iter().any(|byte| b": \t".contains(byte)) {
            bail!(
                "{}: LD_PRELOAD takes no path with a space or a colon\nhint: give another folder with --out",
                cannot()
            );
        }
        let python = self.python();
        fs::create_dir_all(&python).with_context(cannot)?;
        write_new(&self.scratch.join(FILE_NAME), library).with_context(cannot)?;
        for (name, text) in PYTHON_HOOK {
            write_new(&python.join(name), text.as_bytes()).with_context(cannot)?;
        }
        let (rings, is_shared) = ring_folder(&self.out).with_context(cannot)?;
        self.rings = rings;
        if !is_shared {
            remark(
                "forebay: /dev/shm has no room for events; they pass through the folder of the trace, and use its disk",
            );
        }
        Ok(())
    }

    fn python(&self) -> PathBuf {
        self.scratch.join("python")
    }

    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    pub(super) fn rings(&self) -> &Path {
        &self.rings
    }

    pub(super) fn trace_file(&self) -> Result<File> {
        let path = self.out.join(TRACE);
        File::create_new(&path).with_context(|| format!("cannot write {}", path.escaped()))
    }

    /// Adds the library and the hook to what the job loads anyway.
    pub(super) fn prepare(&self, command: &mut Command) {
        command.env("LD_PRELOAD", behind(std::env::var_os("LD_PRELOAD"), &self.scratch.join(FILE_NAME)));
        command.env(RINGS, &self.rings);
        if self.has_python {
            let mut path = self.python().into_os_string();
            if let Some(given) = std::env::var_os("PYTHONPATH").filter(|given| !given.is_empty()) {
                path.push(":");
                path.push(given);
            }
            command.env("PYTHONPATH", path);
        }
    }

    /// Removes what only the running job needed.
    pub(super) fn tidy(&self) {
        // What cannot be removed only takes room.
        let _ = fs::remove_dir_all(&self.scratch);
        if !self.rings.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.rings);
        }
    }

    /// Removes everything, after nothing was traced.
    pub(super) fn remove(&self) {
        self.tidy();
        let _ = fs::remove_file(self.out.join(TRACE));
        if self.is_new {
            let _ = fs::remove_dir(&self.out);
        }
    }
}

/// A job's own preloaded libraries, such as allocators, come first.
fn behind(given: Option<OsString>, library: &Path) -> OsString {
    let mut all = given.unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

/// For a folder's name: "20261115T170300".
pub(super) fn time() -> String {
    forebay_measure::utc_now().chars().filter(|c| c.is_ascii_digit() || *c == 'T').take(15).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jobs_own_preloaded_libraries_stay_before_ours() {
        let library = Path::new("/x/y.so");
        assert_eq!(behind(None, library), "/x/y.so");
        assert_eq!(behind(Some("/jemalloc.so".into()), library), "/jemalloc.so:/x/y.so");
        assert_eq!(time().len(), 15);
    }
}
