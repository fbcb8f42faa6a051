//! Files among the data that are no data: huge, endless, blocking, looping, unreadable, oddly named.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::readers;
use crate::hostile::arena::run_quietly;
use crate::hostile::case::Case;

/// More than any machine that runs this has.
const HUGE: u64 = 60 << 30;
/// What a command may take of memory while it passes over files of 60 GB.
const MEMORY: &str = "--as=4294967296";

type Intruder = (&'static str, fn(&Path) -> Result<()>);

const INTRUDERS: &[Intruder] = &[
    ("a huge archive", |dir| holes(dir.join("archive.zip"), b"PK\x03\x04")),
    ("a huge file without a name's end", |dir| holes(dir.join("blob"), b"\0\0\0\0")),
    ("a huge image", |dir| holes(dir.join("huge.jpg"), b"\xff\xd8\xff\xe0")),
    ("a huge text", |dir| holes(dir.join("huge.csv"), b"a,b\n1,2\n")),
    ("a huge record", |dir| Ok(fs::write(dir.join("lone.tfrecord"), [0x7f; 64])?)),
    ("a pipe", |dir| run_quietly(Command::new("mkfifo").arg(dir.join("pipe")))),
    ("a pipe with an image's name", |dir| run_quietly(Command::new("mkfifo").arg(dir.join("pipe.jpg")))),
    ("a socket", |dir| UnixListener::bind(short(&dir.join("s.jpg"))).map(drop).context("cannot make a socket")),
    ("an endless device", |dir| Ok(symlink("/dev/zero", dir.join("zero.jpg"))?)),
    ("an endless device without a name's end", |dir| Ok(symlink("/dev/zero", dir.join("zero"))?)),
    ("a link to nothing", |dir| Ok(symlink("nothing", dir.join("gone.jpg"))?)),
    ("a link to itself", |dir| Ok(symlink("loop.jpg", dir.join("loop.jpg"))?)),
    ("a folder that holds itself", |dir| Ok(symlink(".", dir.join("again"))?)),
    ("a folder with an image's name", |dir| Ok(fs::create_dir(dir.join("folder.jpg"))?)),
    ("an empty image", |dir| fs::write(dir.join("empty.jpg"), "").context("cannot make a file")),
    ("a text with an image's name", |dir| Ok(fs::write(dir.join("text.jpg"), "no image\n")?)),
    ("a name that is not UTF-8", |dir| copy(dir, b"\xff\xfe.jpg")),
    ("a name with a line's end", |dir| copy(dir, b"a\nb.jpg")),
    ("a name with a terminal's sequence", |dir| copy(dir, b"\x1b[31mred\x07.jpg")),
    ("a name of 255 bytes", |dir| copy(dir, &[[b'n'; 251].as_slice(), b".jpg"].concat())),
    ("a name that begins with a dash", |dir| copy(dir, b"--help.jpg")),
    ("a file without rights", |dir| {
        copy(dir, b"secret.jpg")?;
        run_quietly(Command::new("chmod").arg("000").arg(dir.join("secret.jpg")))
    }),
    ("a deep tree", |dir| Ok(fs::create_dir_all((0..400).fold(dir.to_owned(), |path, _| path.join("deep")))?)),
];

pub fn cases(is_short: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for subject in readers() {
        for (what, place) in INTRUDERS {
            let case = Case::new(subject, *what).under(&["prlimit", MEMORY]);
            cases.push(case.prepare(|folder| place(&class(folder)?)));
        }
        // Alone in its folder, a file is all that there is to judge.
        for (what, place) in INTRUDERS.iter().filter(|_| !is_short) {
            let case = Case::new(subject, format!("{what} alone")).under(&["prlimit", MEMORY]);
            cases.push(case.prepare(|folder| {
                fs::remove_dir_all(folder.join("photos"))?;
                fs::create_dir_all(folder.join("photos"))?;
                fs::copy(folder.join("bystander/notes.txt"), folder.join("photos/.sample"))?;
                place(&folder.join("photos"))
            }));
        }
    }
    cases
}

/// A folder of the dataset that holds images.
fn class(folder: &Path) -> Result<PathBuf> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(folder.join("photos"))?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.into_iter().next().ok_or_else(|| anyhow::anyhow!("photos has no folders"))
}

/// A file of 60 GB that takes a page of the disk.
fn holes(path: PathBuf, head: &[u8]) -> Result<()> {
    fs::write(&path, head)?;
    Ok(File::options().write(true).open(&path)?.set_len(HUGE)?)
}

/// A good image of the folder (or its note, where it has none) under another name.
fn copy(dir: &Path, name: &[u8]) -> Result<()> {
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    files.sort();
    if let Some(file) = files.first() {
        fs::copy(file, dir.join(OsStr::from_bytes(name)))?;
    }
    Ok(())
}

/// A socket's path has at most 107 bytes; from the working folder it may be shorter.
fn short(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).to_owned()
}
