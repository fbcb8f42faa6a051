//! The workloads that come with forebay.

/// A built-in workload.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its TOML.
    pub text: &'static str,
}

/// All of them, by name.
pub fn all() -> &'static [Builtin] {
    unimplemented!()
}

/// One of them; also by DLIO's other spellings.
pub fn find(name: &str) -> Option<&'static Builtin> {
    all().iter().find(|builtin| builtin.name == name)
}
