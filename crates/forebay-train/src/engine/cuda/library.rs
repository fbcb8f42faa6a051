//! Checks that the CUDA libraries are available before using them.
//!
//! They are loaded when a device is first requested, so the same program runs without CUDA. `cudarc` panics if a
//! library is missing; hence this check. Libraries that the system does not find by name are loaded from folders that
//! the caller names, and are then found by name.

use std::path::{Path, PathBuf};

use forebay_units::PathText;
use libloading::os::unix::{Library as Loaded, RTLD_GLOBAL, RTLD_NOW};

use crate::error::{Error, Result};

/// A library, how to test whether it loads, and where to get it.
struct Library {
    name: &'static str,
    stem: &'static str,
    version: &'static str,
    /// Stems of libraries that it opens by name and that must therefore be loaded first.
    helpers: &'static [&'static str],
    is_present: unsafe fn() -> bool,
    remedy: &'static str,
}

const LIBRARIES: [Library; 4] = [
    Library {
        name: "the CUDA driver",
        stem: "cuda",
        version: "1",
        helpers: &[],
        is_present: cudarc::driver::sys::is_culib_present,
        remedy: "it comes with NVIDIA's display driver; check that `nvidia-smi` works",
    },
    Library {
        name: "NVRTC",
        stem: "nvrtc",
        version: "13",
        helpers: &["nvrtc-builtins"],
        is_present: cudarc::nvrtc::sys::is_culib_present,
        remedy: "it comes with the CUDA toolkit, or by `pip install nvidia-cuda-nvrtc`; put its folder, nvidia/cu13/lib in Python's \
                 site-packages, into LD_LIBRARY_PATH",
    },
    Library {
        name: "cuBLAS",
        stem: "cublas",
        version: "13",
        helpers: &["cublasLt"],
        is_present: cudarc::cublas::sys::is_culib_present,
        remedy: "it comes with the CUDA toolkit, or by `pip install nvidia-cublas`; put its folder, nvidia/cu13/lib in Python's \
                 site-packages, into LD_LIBRARY_PATH",
    },
    Library {
        name: "cuDNN",
        stem: "cudnn",
        version: "9",
        helpers: &[],
        is_present: cudarc::cudnn::sys::is_culib_present,
        remedy: "get it by `pip install nvidia-cudnn-cu13`, or take PyTorch's; put its folder, nvidia/cudnn/lib in Python's \
                 site-packages, into LD_LIBRARY_PATH",
    },
];

/// A library that computing on a GPU needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CudaLibrary {
    pub name: &'static str,
    /// Where to get it; `None` if it loads.
    pub remedy: Option<&'static str>,
}

/// Tries to load each library, the driver first; libraries that the system does not find are searched in these folders.
/// Each is tried when the iterator reaches it: the first takes milliseconds, all together about one second on a slow
/// disk.
pub fn cuda_libraries(folders: &[PathBuf]) -> impl Iterator<Item = CudaLibrary> {
    LIBRARIES.iter().map(|library| {
        let remedy = library.check(folders).is_err().then_some(library.remedy);
        CudaLibrary { name: library.name, remedy }
    })
}

/// Number of CUDA devices that this process sees; 0 without a driver.
pub fn cuda_devices(folders: &[PathBuf]) -> usize {
    let n = check(folders).ok().and_then(|()| cudarc::driver::CudaContext::device_count().ok());
    n.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

/// Checks that all libraries load; names the first that does not.
pub(super) fn check(folders: &[PathBuf]) -> Result<()> {
    LIBRARIES.iter().try_for_each(|library| library.check(folders))
}

impl Library {
    fn check(&self, folders: &[PathBuf]) -> Result<()> {
        if self.is_present() {
            return Ok(());
        }
        self.helpers.iter().chain([&self.stem]).filter_map(|stem| find(folders, stem)).for_each(|path| load(&path));
        if self.is_present() { Ok(()) } else { Err(self.missing(folders)) }
    }

    fn is_present(&self) -> bool {
        // SAFETY: it only tries to load the library; NVIDIA's have no initialisers that could be harmed by that.
        unsafe { (self.is_present)() }
    }

    fn missing(&self, folders: &[PathBuf]) -> Error {
        let Self { name, stem, version, remedy, .. } = self;
        let mut looked_for = format!("lib{stem}.so.{version} and lib{stem}.so in the system's library paths");
        for folder in folders {
            looked_for += &format!(" and {}", folder.escaped());
        }
        Error::MissingLibrary { name, looked_for, remedy }
    }
}

/// The file of a library in the first folder that has it.
fn find(folders: &[PathBuf], stem: &str) -> Option<PathBuf> {
    let wanted = format!("lib{stem}.so");
    let is_wanted = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(&wanted)).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let files = |folder: &PathBuf| std::fs::read_dir(folder).ok();
    let found = |folder| files(folder)?.filter_map(|entry| Some(entry.ok()?.path())).filter(is_wanted).min();
    folders.iter().find_map(found)
}

/// Loads a library permanently. A failure is reported by the check that follows.
fn load(path: &Path) {
    // SAFETY: as in `is_present`. It stays loaded, so nothing it gave out can dangle.
    if let Ok(library) = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_GLOBAL) } {
        std::mem::forget(library);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    /// A folder of files that are empty, gone when dropped.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[&str]) -> Self {
            let path = std::env::temp_dir().join(format!("forebay-library-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            files.iter().for_each(|file| std::fs::write(path.join(file), "").unwrap());
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_library_is_found_by_its_whole_name_in_the_first_folder_that_has_it() {
        let empty = Folder::new("empty", &["libcudnn.txt"]);
        let full = Folder::new("full", &["libcudnn_ops.so.9", "libcudnn.so.9", "libnvrtc-builtins.so.13.0"]);
        let folders = [PathBuf::from("/no/such/folder"), empty.0.clone(), full.0.clone()];
        assert_eq!(find(&folders, "cudnn"), Some(full.0.join("libcudnn.so.9")));
        assert_eq!(find(&folders, "nvrtc-builtins"), Some(full.0.join("libnvrtc-builtins.so.13.0")));
        assert_eq!(find(&folders, "nvrtc"), None);
        assert_eq!(find(&folders[..2], "cudnn"), None);
    }

    #[test]
    fn a_library_that_does_not_load_is_named_with_all_folders_looked_into() {
        let full = Folder::new("broken", &["libcudnn.so.9"]);
        let library = Library { is_present: never, ..LIBRARIES[3] };
        let error = library.check(std::slice::from_ref(&full.0)).unwrap_err().to_string();
        let start = format!(
            "cannot load cuDNN (looked for libcudnn.so.9 and libcudnn.so in the system's library paths and {}): get it by \
             `pip install nvidia-cudnn-cu13`",
            full.0.display()
        );
        assert!(error.starts_with(&start), "{error}");
    }

    unsafe fn never() -> bool {
        false
    }
}
