//! Finds CUDA's libraries installed by pip, in `nvidia/*/lib` of Python's packages, which the system's loader does not search.

use std::path::{Path, PathBuf};

/// The folders of the active Python, of the user and of the system, in this order.
pub(crate) fn folders() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME").map(|home| home.join(".local"));
    let system = ["/usr/local", "/usr"].map(PathBuf::from);
    let prefixes = [set("VIRTUAL_ENV"), set("CONDA_PREFIX"), home].into_iter().flatten().chain(system);
    prefixes.flat_map(|prefix| below(&prefix)).collect()
}

fn below(prefix: &Path) -> Vec<PathBuf> {
    let is_python = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"));
    let pythons = entries(&prefix.join("lib")).into_iter().filter(is_python);
    let packages = pythons.flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)));
    let parts = packages.flat_map(|packages| entries(&packages.join("nvidia")));
    parts.map(|part| part.join("lib")).filter(|lib| lib.is_dir()).collect()
}

/// The entries of a folder, by name; none if it does not exist.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_folders_of_a_pythons_packages_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let packages = dir.path().join("lib/python3.12/site-packages/nvidia");
        for name in ["cudnn/lib", "cublas/lib", "empty"] {
            std::fs::create_dir_all(packages.join(name)).unwrap();
        }
        std::fs::create_dir_all(dir.path().join("lib/perl5/site-packages/nvidia/x/lib")).unwrap();
        assert_eq!(below(dir.path()), [packages.join("cublas/lib"), packages.join("cudnn/lib")]);
        assert_eq!(below(Path::new("/no/such/prefix")), [] as [PathBuf; 0]);
    }
}
