//! Resolves paths that may not exist yet.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};
use forebay_format::Kind;
use forebay_storage::is_url;
use forebay_units::PathText;

/// The kernel follows the same number of links.
const MOST_LINKS: usize = 40;
/// Bytes of a list that are searched: ten million lines.
const MOST_LISTED: u64 = 1 << 30;

/// The path without links and dots. A path that does not exist is resolved from its nearest existing ancestor.
pub(crate) fn place(path: &Path) -> PathBuf {
    if is_url(path) {
        return path.to_owned();
    }
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Ok(place) = path.canonicalize() {
            return place;
        }
        // A dangling link: writing through it creates the file it points to.
        let Ok(target) = fs::read_link(&path) else { break };
        path = parent(&path).join(target);
    }
    let absolute = std::path::absolute(&path).unwrap_or(path);
    let there = absolute.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, mut place)) = there else { return absolute };
    for part in absolute.strip_prefix(above).unwrap_or(Path::new("")).components() {
        match part {
            Component::ParentDir => drop(place.pop()),
            part => place.push(part),
        }
    }
    place
}

/// Refuses two folders that are the same or contain one another; each comes with its flag.
pub(crate) fn keep_apart((flag, a): (&str, &Path), (other, b): (&str, &Path)) -> Result<()> {
    let (at, other_at) = (place(a), place(b));
    if at.starts_with(&other_at) || other_at.starts_with(&at) {
        bail!("{flag} {} and {other} {} must not contain one another", a.escaped(), b.escaped());
    }
    Ok(())
}

/// The parent folder of a path.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    pub(super) fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), number: found.ino() }
    }

    pub(super) fn at(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|found| Self::of(&found))
    }
}

/// Whether two places are the same, or two names of one file.
pub(super) fn is_same(a: &Path, b: &Path) -> bool {
    a == b || Identity::at(a).is_some_and(|file| Identity::at(b) == Some(file))
}

#[derive(Debug)]
pub(super) struct Input {
    pub(super) given: PathBuf,
    place: PathBuf,
}

impl Input {
    pub(super) fn new(path: &Path) -> Self {
        Self { given: path.to_owned(), place: place(path) }
    }

    pub(super) fn contains(&self, place: &Path) -> bool {
        place.starts_with(&self.place) || self.is(place)
    }

    pub(super) fn is(&self, place: &Path) -> bool {
        is_same(&self.place, place)
    }

    pub(super) fn lies_in(&self, folder: &Path) -> bool {
        self.place.starts_with(folder)
    }

    /// Whether a file belongs to this input under another name: by a link in a folder, or in a list.
    pub(super) fn names(&self, file: Identity) -> bool {
        if self.place.is_dir() { is_below(&self.place, file) } else { is_listed(&self.place, file) }
    }
}

fn is_below(folder: &Path, file: Identity) -> bool {
    let (mut folders, mut seen) = (vec![folder.to_owned()], HashSet::new());
    while let Some(folder) = folders.pop() {
        if !Identity::at(&folder).is_some_and(|folder| seen.insert(folder)) {
            continue;
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            let may_be = kind.is_symlink() || entry.ino() == file.number;
            if may_be && Identity::at(&path) == Some(file) {
                return true;
            }
            if kind.is_dir() || (kind.is_symlink() && path.is_dir()) {
                folders.push(path);
            }
        }
    }
    false
}

fn is_listed(list: &Path, file: Identity) -> bool {
    let Some(text) = text_of(list) else { return false };
    let folder = parent(list);
    forebay_format::list::parse(&text).any(|entry| Identity::at(&folder.join(entry.path)) == Some(file))
}

/// The lines of a list. Other inputs, which may be large, are not read.
fn text_of(list: &Path) -> Option<Vec<u8>> {
    let mut file = fs::File::open(list).ok()?;
    let mut text = Vec::new();
    file.by_ref().take(Kind::HEAD_LEN as u64).read_to_end(&mut text).ok()?;
    if Kind::of(&text) != Kind::Text {
        return None;
    }
    file.take(MOST_LISTED).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_not_there_is_placed_below_what_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b")).unwrap();
        symlink("a/b", root.join("link")).unwrap();
        symlink("a/new", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (path, wanted) in [
            ("a/b/../x", "a/x"),
            ("link/x", "a/b/x"),
            ("link/../x", "a/x"),
            ("no/such/../x", "no/x"),
            ("dangling", "a/new"),
            ("loop", "loop"),
        ] {
            assert_eq!(place(&root.join(path)), root.join(wanted), "{path}");
        }
    }

    #[test]
    fn an_input_knows_its_files_by_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for folder in ["set", "apart"] {
            fs::create_dir(path(folder)).unwrap();
        }
        for file in ["set/a", "apart/b", "other"] {
            fs::write(path(file), file).unwrap();
        }
        fs::write(path("list.txt"), "apart/b 0\n").unwrap();
        symlink("../apart", path("set/link")).unwrap();
        symlink("../set", path("set/loop")).unwrap();
        fs::hard_link(path("set/a"), path("hard")).unwrap();
        let names = |input: &str, file: &str| Input::new(&path(input)).names(Identity::at(&path(file)).unwrap());
        for (input, file, wanted) in [
            ("set", "hard", true),
            ("set", "apart/b", true),
            ("set", "other", false),
            ("list.txt", "apart/b", true),
            ("list.txt", "other", false),
        ] {
            assert_eq!(names(input, file), wanted, "{input} {file}");
        }
        assert!(Input::new(&path("set/a")).contains(&path("hard")), "a hard link to the input itself");
        assert!(!Input::new(&path("set")).contains(&path("setter")));
    }
}
