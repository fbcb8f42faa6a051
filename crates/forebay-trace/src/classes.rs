//! Classes of files by their paths, so that a program's own files never hide its data.

/// Name of the folder in which a trace has what the job loads: the library and the hook.
pub const LOADED: &str = ".forebay-loaded";

/// What a file is to a training job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FileClass {
    Data,
    Checkpoint,
    /// Modules, packages and shared libraries.
    Python,
    SharedMemory,
    System,
}

impl FileClass {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Checkpoint => "checkpoint",
            Self::Python => "python",
            Self::SharedMemory => "shared memory",
            Self::System => "system",
        }
    }

    pub(crate) fn of(path: &[u8]) -> Self {
        let starts = |begin: &[&str]| begin.iter().any(|begin| path.starts_with(begin.as_bytes()));
        let contains = |part: &str| path.windows(part.len()).any(|window| window == part.as_bytes());
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end.as_bytes()));
        if starts(&["/dev/shm/", "/memfd:"]) {
            return Self::SharedMemory;
        }
        if starts(&["/proc/", "/sys/", "/etc/", "/dev/", "/run/"]) {
            return Self::System;
        }
        let is_library = name.windows(4).any(|window| window == b".so.") || ends(&[".so"]);
        if ends(&[".py", ".pyc", ".pyd", ".pth", ".pyi"]) && !is_weights(path, name) || is_library {
            return Self::Python;
        }
        if contains("/site-packages")
            || contains("/dist-packages")
            || contains("/lib/python")
            || contains("/__pycache__")
            || contains(LOADED)
        {
            return Self::Python;
        }
        if starts(&["/usr/lib/", "/usr/share/", "/lib/", "/usr/bin/", "/bin/"]) {
            return Self::System;
        }
        if is_weights(path, name) { Self::Checkpoint } else { Self::Data }
    }
}

/// The names that savers of the field give; `.pth` is also the name of Python's path files, which lie in its package folders.
fn is_weights(path: &[u8], name: &[u8]) -> bool {
    const ENDS: [&str; 7] = [".safetensors", ".ckpt", ".pt", ".index", ".keras", ".h5.weights", ".weights.h5"];
    let contains = |of: &[u8], part: &str| of.windows(part.len()).any(|window| window == part.as_bytes());
    let is_package = contains(path, "/site-packages") || contains(path, "/dist-packages");
    ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
        || contains(name, ".data-0")
        || contains(name, "checkpoint")
        || contains(name, "ckpt")
        || (name.ends_with(b".pth") && !is_package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_program_are_told_from_its_data() {
        let class = |path: &str| FileClass::of(path.as_bytes()).name();
        assert_eq!(class("/data/train/n01440764/x.JPEG"), "data");
        assert_eq!(class("/data/model.pt"), "checkpoint");
        assert_eq!(class("/out/model.ckpt-10.data-00000-of-00001"), "checkpoint");
        assert_eq!(class("/out/weights.pth"), "checkpoint");
        assert_eq!(class("/venv/lib/python3.11/site-packages/x.pth"), "python");
        assert_eq!(class("/usr/lib/x86_64-linux-gnu/libm.so.6"), "python");
        assert_eq!(class("/code/train.py"), "python");
        assert_eq!(class("/out/.forebay-loaded/python"), "python", "the hook is not the job's data");
        assert_eq!(class("/dev/shm/torch_1"), "shared memory");
        assert_eq!(class("/etc/hosts"), "system");
        assert_eq!(class("records.tfrecord"), "data");
    }
}
