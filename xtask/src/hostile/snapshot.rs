//! What is in a folder, to be compared with what is there later.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Files longer than this are compared by their length: the longer ones are holes.
const MAX_HASHED: u64 = 64 << 20;

/// Every path below a folder and what it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<PathBuf, Entry>);

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    File { len: u64, hash: u64 },
    Link(PathBuf),
    Special,
}

impl Snapshot {
    pub fn of(folder: &Path) -> Self {
        let mut found = BTreeMap::new();
        walk(folder, Path::new(""), &mut found);
        Self(found)
    }

    /// Paths that are new, gone or changed in `later`.
    pub fn changes<'a>(&'a self, later: &'a Self) -> Vec<(&'a Path, &'static str)> {
        let gone = self.0.iter().filter_map(|(path, entry)| match later.0.get(path) {
            None => Some((path.as_path(), "is gone")),
            Some(now) if now != entry => Some((path.as_path(), "was changed")),
            Some(_) => None,
        });
        let new = later.0.keys().filter(|path| !self.0.contains_key(*path));
        gone.chain(new.map(|path| (path.as_path(), "was made"))).collect()
    }
}

fn walk(root: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Entry>) {
    let Ok(entries) = fs::read_dir(root.join(below)) else { return };
    for entry in entries.flatten() {
        let path = below.join(entry.file_name());
        let Ok(kind) = entry.file_type() else { continue };
        let what = match () {
            () if kind.is_symlink() => Entry::Link(fs::read_link(entry.path()).unwrap_or_default()),
            () if kind.is_dir() => Entry::Folder,
            () if kind.is_fifo() || kind.is_socket() || !kind.is_file() => Entry::Special,
            () => content(&entry.path()),
        };
        if what == Entry::Folder {
            walk(root, &path, found);
        }
        found.insert(path, what);
    }
}

fn content(path: &Path) -> Entry {
    let len = fs::metadata(path).map_or(0, |found| found.len());
    let bytes = if len <= MAX_HASHED { fs::read(path).unwrap_or_default() } else { Vec::new() };
    let mut hash = DefaultHasher::new();
    bytes.hash(&mut hash);
    Entry::File { len, hash: hash.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_changed_or_removed_is_seen() {
        let dir = std::env::temp_dir().join(format!("forebay-snapshot-{}", std::process::id()));
        fs::create_dir_all(dir.join("kept")).unwrap();
        for name in ["kept/same", "changed", "gone"] {
            fs::write(dir.join(name), "before").unwrap();
        }
        let before = Snapshot::of(&dir);
        fs::write(dir.join("changed"), "behind").unwrap();
        fs::remove_file(dir.join("gone")).unwrap();
        fs::write(dir.join("kept/new"), "").unwrap();
        let after = Snapshot::of(&dir);
        fs::remove_dir_all(&dir).unwrap();
        let expected = [("changed", "was changed"), ("gone", "is gone"), ("kept/new", "was made")];
        let expected: Vec<_> = expected.iter().map(|(path, what)| (Path::new(path), *what)).collect();
        assert_eq!(before.changes(&after), expected);
    }
}
