//! A folder of one test, and the binary run in it.
//!
//! The binary's working folder is the test's, so that paths are short and outputs can be compared as a whole. The
//! folder lies in the target folder: the system's own temporary folder may be in memory, where no cache can be cold.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// Keeps the binary from looking at what other processes do.
pub(crate) const UNWATCHED: &str = "FOREBAY_UNWATCHED";

/// A folder that goes when the test ends.
pub(crate) struct Dir(tempfile::TempDir);

/// What a run of the binary gave, with folded lines made whole.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit status; `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Dir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    /// A folder with 24 images of about 4 KB in `set`. They are made once; each test has copies that it may change.
    pub(crate) fn with_set() -> Self {
        static MADE: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let dir = Self::new();
            dir.met("data make caltech101 set --count 24 --median-size 4KB");
            let paths = files_below(&dir.path("set"));
            paths.into_iter().map(|path| (dir.relative(&path), fs::read(&path).unwrap())).collect()
        });
        let dir = Self::new();
        for (path, bytes) in made {
            dir.write(path, bytes);
        }
        dir
    }

    fn relative(&self, path: &Path) -> PathBuf {
        path.strip_prefix(self.path("")).unwrap().to_owned()
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// The binary with the words of `line` as its arguments.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
        command.args(line.split_whitespace()).current_dir(self.0.path()).stdin(Stdio::null());
        // Whoever runs the tests may have said how wide a terminal is.
        command.env_remove("COLUMNS");
        // What outlives a run is the test's own, and the user's is not looked at.
        command.env("FOREBAY_HOME", self.path(".home"));
        // The tests run beside each other.
        command.env(UNWATCHED, "silent");
        default_signals(&mut command);
        command
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        self.command(line).output().unwrap().into()
    }

    /// Runs what must end with status 0 and without a word on stderr; its stdout.
    pub(crate) fn met(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{line}\n{}", ran.stdout);
        ran.stdout
    }

    /// Runs what must end with status 1.
    pub(crate) fn missed(&self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.code, Some(1), "{line}\n{}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs what must end with status 2 and without a word on stdout; its stderr.
    pub(crate) fn refused(&self, line: &str) -> String {
        let ran = self.run(line);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}\n{}", ran.stderr);
        assert!(!ran.stderr.contains("panicked"), "{line}\n{}", ran.stderr);
        ran.stderr
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    /// Changes a file's bytes.
    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.read(name);
        change(&mut bytes);
        self.write(name, bytes);
    }

    /// Every file below a folder that is not hidden, by its name there.
    pub(crate) fn tree(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let root = self.path(name);
        let named = |path: &PathBuf| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        let all = files_below(&root).into_iter().map(|path| (named(&path), path));
        let is_shown = |name: &str| name.split('/').all(|part| !part.starts_with('.'));
        all.filter(|(name, _)| is_shown(name)).map(|(name, path)| (name, fs::read(path).unwrap())).collect()
    }

    /// The images below a folder.
    pub(crate) fn images(&self, name: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = self.tree(name);
        files.retain(|name, _| name.ends_with(".jpg"));
        files
    }

    /// The names of the files below a folder that are not hidden.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        self.tree(name).into_keys().collect()
    }
}

/// Every file below a folder.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// Gives a program the default treatment of signals: a test started in the background of a script inherits ignored ones.
pub(crate) fn default_signals(command: &mut Command) {
    let reset = || {
        for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGXFSZ] {
            // SAFETY: a plain number and the default; `signal` may be called between fork and exec.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls alone.
    unsafe { command.pre_exec(reset) };
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (unfolded(&text(output.stdout)), unfolded(&text(output.stderr)));
        let ran = Self { code: output.status.code(), stdout, stderr };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }
}

/// A text with the lines that were folded to 80 columns made whole again.
///
/// A line continues the one before when its first word had no room there and it stands where a fold puts it: four
/// columns further in, or below the text behind the line's label. The sentences and notes of a record go on two columns
/// further in. [`width`](crate::width) tests the folds.
pub(crate) fn unfolded(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut above = "";
    for line in text.split('\n') {
        match lines.last_mut() {
            Some(whole) if continues(line, whole, above) => {
                let end = whole.strip_suffix(" \\").unwrap_or(whole).len();
                whole.truncate(end);
                whole.push(' ');
                whole.push_str(line.trim_start());
            }
            _ => lines.push(line.to_owned()),
        }
        above = line;
    }
    lines.join("\n")
}

/// Whether a line was broken off the one right above it, which itself is the end of a whole one.
fn continues(line: &str, whole: &str, above: &str) -> bool {
    const COLUMNS: usize = 80;
    let columns = |text: &str| text.chars().count();
    let indent = |line: &str| line.len() - line.trim_start_matches(' ').len();
    if above.ends_with(" \\") && whole.trim_start().starts_with("forebay ") {
        return true;
    }
    let said = whole.trim_start();
    let label = said.split_once("  ").map(|(label, rest)| columns(label) + 2 + indent(rest));
    let further = indent(line).saturating_sub(indent(whole));
    let is_of_record = indent(whole) == 2 || whole.starts_with("note: ");
    if line.is_empty() || !((is_of_record && further == 2) || further == 4 || label == Some(further)) {
        return false;
    }
    // A number stays with what it counts, and a word that is wider than a line is not broken.
    let words: Vec<&str> = line.split_whitespace().collect();
    let n_first = 1 + words.iter().take_while(|word| word.ends_with(|last: char| last.is_ascii_digit())).count();
    let first = words[..n_first.min(words.len())].join(" ");
    let is_full = columns(above) + 1 + columns(&first) > COLUMNS;
    is_full && (columns(above) <= COLUMNS || above.split_whitespace().count() == 1)
}

/// Words a space apart, wherever the lines of a terminal end.
pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a look at data found, without what the machine did meanwhile.
pub(crate) fn found(json: &str) -> serde_json::Value {
    let mut found: serde_json::Value = serde_json::from_str(json).unwrap();
    found.as_object_mut().unwrap().remove("series").expect("every look is observed");
    found
}
