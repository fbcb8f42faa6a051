//! Whether the libraries are there, said before anything is asked of them.
//!
//! They are loaded when a device is first asked for, so the same program runs where there is no CUDA. `cudarc` panics on a library
//! that is missing; hence they are looked for here first.

use crate::error::{Error, Result};

/// A library, how to see whether it loads, and where a user gets it.
struct Library {
    name: &'static str,
    stem: &'static str,
    is_present: unsafe fn() -> bool,
    remedy: &'static str,
}

const LIBRARIES: [Library; 4] = [
    Library {
        name: "the CUDA driver",
        stem: "cuda",
        is_present: cudarc::driver::sys::is_culib_present,
        remedy: "it comes with NVIDIA's display driver; see whether `nvidia-smi` works",
    },
    Library {
        name: "NVRTC",
        stem: "nvrtc",
        is_present: cudarc::nvrtc::sys::is_culib_present,
        remedy: "it comes with the CUDA toolkit, or by `pip install nvidia-cuda-nvrtc`; put its folder into LD_LIBRARY_PATH",
    },
    Library {
        name: "cuBLAS",
        stem: "cublas",
        is_present: cudarc::cublas::sys::is_culib_present,
        remedy: "it comes with the CUDA toolkit, or by `pip install nvidia-cublas`; put its folder into LD_LIBRARY_PATH",
    },
    Library {
        name: "cuDNN",
        stem: "cudnn",
        is_present: cudarc::cudnn::sys::is_culib_present,
        remedy: "get it by `pip install nvidia-cudnn-cu13`, or take PyTorch's; put its folder, nvidia/cudnn/lib in Python's \
                 site-packages, into LD_LIBRARY_PATH",
    },
];

/// An error that names the first library that does not load.
pub(super) fn check() -> Result<()> {
    let missing = LIBRARIES.iter().find(|library| {
        // SAFETY: it only tries to load the library; NVIDIA's have no initialisers that could be harmed by that.
        !unsafe { (library.is_present)() }
    });
    missing.map_or(Ok(()), |library| {
        Err(Error::MissingLibrary { name: library.name, looked_for: file_names(library.stem), remedy: library.remedy })
    })
}

/// The names it was looked for under, without those that only Windows uses.
fn file_names(stem: &str) -> String {
    let names = cudarc::get_lib_name_candidates(stem);
    names.into_iter().filter(|name| !name.contains(&format!("{stem}64"))).collect::<Vec<_>>().join(", ")
}
