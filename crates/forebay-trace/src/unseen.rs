//! Why a program cannot be seen: read from its file.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use forebay_units::PathText;

/// Why the dynamic loader would not load the interposer into a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blind {
    /// It has no dynamic loader.
    Static,
    /// It gains privileges, so the loader ignores libraries of the user.
    Privileged,
    /// It runs on another kind of processor than this library.
    Foreign,
}

impl Blind {
    /// Completes "NAME is".
    pub fn reason(self) -> &'static str {
        match self {
            Self::Static => "statically linked",
            Self::Privileged => "set-user-ID or set-group-ID",
            Self::Foreign => "not a 64-bit program of this machine",
        }
    }
}

/// Looks a command up as a shell does. `None` if there is no such program.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return name.is_file().then(|| name.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Why a program would not be seen; `None` if it would be. Of a script, its interpreter counts.
pub fn blind(program: &Path) -> Option<Blind> {
    let mut program = program.to_owned();
    for _ in 0..4 {
        let mut head = Vec::new();
        File::open(&program).ok()?.take(64 << 10).read_to_end(&mut head).ok()?;
        if let Some(line) = head.strip_prefix(b"#!") {
            let line = line.split(|byte| *byte == b'\n').next()?;
            let word = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty())?;
            program = PathBuf::from(String::from_utf8_lossy(word).into_owned());
            continue;
        }
        let mode = fs::metadata(&program).ok()?.mode();
        if mode & 0o6000 != 0 {
            return Some(Blind::Privileged);
        }
        return of_elf(&head);
    }
    None
}

/// A program with a dynamic loader has a segment of kind 3 that names it.
fn of_elf(head: &[u8]) -> Option<Blind> {
    let half = |at: usize| head.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
    let word = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let machine = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
    if head.get(4..6)? != [2, 1] || half(18)? != machine {
        return Some(Blind::Foreign);
    }
    let at = usize::try_from(u64::from_le_bytes(head.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, n) = (usize::from(half(54)?), usize::from(half(56)?));
    let has_loader = (0..n).any(|i| word(at.saturating_add(i * size)) == Some(3));
    (!has_loader).then_some(Blind::Static)
}

/// A sentence for a program that was started and left no ring.
pub fn why_not_seen(asked: &[u8]) -> String {
    let name = PathBuf::from(String::from_utf8_lossy(asked).into_owned());
    let reason = find_program(&name).and_then(|program| blind(&program)).map_or(
        "it ended at once, or it ran without the environment of the job (sudo, env -i, a container)".to_owned(),
        |blind| format!("it is {}", blind.reason()),
    );
    format!("{}: {reason}", name.escaped())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_loader_is_static_and_a_script_is_its_interpreter() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            fs::write(dir.path().join(name), bytes).unwrap();
            dir.path().join(name)
        };
        let own = std::env::current_exe().unwrap();
        assert_eq!(blind(&own), None);
        let mut elf = fs::read(&own).unwrap()[..64].to_vec();
        elf[56..58].copy_from_slice(&[0, 0]);
        assert_eq!(blind(&file("static", &elf)), Some(Blind::Static));
        elf[18] = 3;
        assert_eq!(blind(&file("foreign", &elf)), Some(Blind::Foreign));
        let script = format!("#! {} -x\n", dir.path().join("static").display());
        assert_eq!(blind(&file("script", script.as_bytes())), Some(Blind::Static));
        assert_eq!(blind(&file("text", b"hello")), None);
        assert_eq!(find_program(Path::new("sh")).and_then(|sh| blind(&sh)), None);
        assert!(find_program(Path::new("no-such-program-here")).is_none());
        assert!(why_not_seen(b"/no/such").starts_with("/no/such: it ended at once"));
    }
}
