//! Checks what was built in and what is installed: MPI, HDF5, CUDA, NVML.

use std::path::PathBuf;

use forebay_observe::Capability;
use forebay_train::CudaLibrary;
use forebay_units::PathText;

use super::Check;
use crate::cuda;

pub(super) fn checks(observed: &[Capability]) -> Vec<Check> {
    let libraries: Vec<CudaLibrary> = forebay_train::cuda_libraries(&cuda::folders()).collect();
    vec![mpi(cfg!(feature = "mpi"), mpi_launcher()), hdf5(), of_cuda(&libraries), nvml(observed)]
}

pub(crate) fn has_cuda_driver() -> bool {
    forebay_train::cuda_libraries(&[]).next().is_some_and(|driver| driver.remedy.is_none())
}

/// The program that starts ranks.
pub(crate) fn mpi_launcher() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    ["mpirun", "mpiexec", "srun"]
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

fn mpi(is_built_in: bool, launcher: Option<PathBuf>) -> Check {
    let name = "MPI";
    let costs = "no runs over several processes or hosts; --accelerators N works in one process";
    let found = launcher.as_ref().map_or_else(|| "no mpirun or srun".to_owned(), |path| path.escaped().into_owned());
    match (is_built_in, launcher) {
        (true, Some(_)) => Check::ok(name, format!("built in; {found}")),
        (true, None) => Check::limited(name, format!("built in; {found}"), costs, "install Open MPI, or Slurm's srun"),
        (false, _) => {
            let hint = "build with --features mpi, which needs an MPI library and libclang";
            Check::missing(name, format!("not built in; {found}"), costs, hint)
        }
    }
}

fn hdf5() -> Check {
    let name = "HDF5";
    match cfg!(feature = "hdf5") {
        true => Check::ok(name, "built in"),
        false => Check::missing(
            name,
            "not built in",
            "no workloads with HDF5 files; all other formats work",
            "build with --features hdf5, which needs cmake 3.26 or later",
        ),
    }
}

fn of_cuda(libraries: &[CudaLibrary]) -> Check {
    let name = "CUDA";
    let costs = "no train --device cuda; --device cpu and --accelerator emulated:224ms work";
    let absent = || libraries.iter().filter_map(|library| Some((library.name, library.remedy?)));
    let found = |names: Vec<&str>| format!("not found: {}", names.join(", "));
    match (libraries.first(), absent().next()) {
        (_, None) => Check::ok(name, "driver, NVRTC, cuBLAS and cuDNN found"),
        (Some(CudaLibrary { remedy: Some(remedy), name: driver }), _) => {
            Check::missing(name, found(vec![driver]), costs, *remedy)
        }
        (_, Some((_, remedy))) => {
            let names = absent().map(|(name, _)| name).collect();
            Check::limited(name, format!("driver found; {}", found(names)), costs, remedy)
        }
    }
}

fn nvml(observed: &[Capability]) -> Check {
    let name = "GPU counters";
    match observed.iter().find(|one| one.name == "gpu").and_then(|one| one.missing.as_deref()) {
        None => Check::ok(name, "NVML reports a GPU"),
        Some(why) => {
            let costs = "no GPU columns in watch and in records";
            Check::missing(name, why, costs, "NVML comes with NVIDIA's driver; check that nvidia-smi works")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn a_driver_without_the_other_libraries_is_half_of_cuda() {
        let library = |name, remedy| CudaLibrary { name, remedy };
        let none = of_cuda(&[library("the CUDA driver", Some("get it")), library("NVRTC", Some("get that"))]);
        assert_eq!((none.state, none.found.as_str()), (State::Missing, "not found: the CUDA driver"));
        let half =
            of_cuda(&[library("the CUDA driver", None), library("NVRTC", Some("a")), library("cuDNN", Some("b"))]);
        assert_eq!((half.state, half.found.as_str()), (State::Limited, "driver found; not found: NVRTC, cuDNN"));
        assert_eq!(half.hint.as_deref(), Some("a"));
        assert_eq!(of_cuda(&[library("the CUDA driver", None)]).state, State::Ok);
    }

    #[test]
    fn mpi_needs_to_be_built_in_and_to_have_a_launcher() {
        let state = |is_built_in, launcher: Option<&str>| mpi(is_built_in, launcher.map(PathBuf::from)).state;
        assert_eq!(state(true, Some("/usr/bin/mpirun")), State::Ok);
        assert_eq!(state(true, None), State::Limited);
        assert_eq!(state(false, Some("/usr/bin/mpirun")), State::Missing);
    }
}
