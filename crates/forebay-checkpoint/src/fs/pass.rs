//! The operations that a wrapping file system passes unchanged to its `inner` one.

/// The operations on names, in an `impl Fs`.
macro_rules! pass_on_names {
    () => {
        $crate::fs::pass::pass_on! {
            make_dir(path: &std::path::Path) -> ();
            remove_dir(path: &std::path::Path) -> ();
            list(dir: &std::path::Path) -> Vec<String>;
            kind(path: &std::path::Path) -> $crate::fs::Kind;
            rename(from: &std::path::Path, to: &std::path::Path) -> ();
            remove(path: &std::path::Path) -> ();
            sync_dir(dir: &std::path::Path) -> ();
            sync_all(dir: &std::path::Path) -> ();
            free_bytes(dir: &std::path::Path) -> u64;
            lock(path: &std::path::Path, holder: &str) -> Box<dyn $crate::fs::Guard>;
        }
    };
}

/// The operations that move no bytes, in an `impl File`.
macro_rules! pass_on_file {
    () => {
        $crate::fs::pass::pass_on! {
            allocate(len: u64) -> ();
            n_bytes() -> u64;
            sync() -> ();
        }
    };
}

macro_rules! pass_on {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $crate::Result<$result> {
            self.inner.$name($($argument),*)
        })*
    };
}

pub(super) use {pass_on, pass_on_file, pass_on_names};
