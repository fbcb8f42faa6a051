//! The files of a replayed job: those of a copy of its data, or made ones of the same sizes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use forebay_measure::{Context, Event, Observer};
use forebay_units::random::Random;
use forebay_units::{Bytes, count};
use forebay_workload::replay::{Replay, ReplayFiles};

use super::super::run::Error;

/// A file with its size when the run began.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
}

/// The files that one entry of the workload reads, by name.
pub(super) fn find(data: &Path, wanted: &ReplayFiles) -> Result<Vec<Found>, Error> {
    let mut found = Vec::new();
    let folder = below(data, wanted);
    list(&folder, &wanted.ending, &mut found)?;
    found.sort();
    if (found.len() as u64) < wanted.files {
        return Err(Error::TooFewFiles {
            path: folder,
            found: found.len() as u64,
            wanted: count(wanted.files, &format!("{} file", kind(wanted))),
        });
    }
    found.truncate(wanted.files as usize);
    Ok(found)
}

/// Without a slash at its end, which joining nothing would leave.
fn below(data: &Path, files: &ReplayFiles) -> PathBuf {
    if files.folder.is_empty() { data.to_owned() } else { data.join(&files.folder) }
}

/// As people say it: ".jpg".
pub(super) fn kind(files: &ReplayFiles) -> &str {
    if files.ending.is_empty() { "nameless" } else { &files.ending }
}

fn list(folder: &Path, ending: &str, found: &mut Vec<Found>) -> Result<(), Error> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).context("listing", &folder)? {
            let entry = entry.context("listing", &folder)?;
            let path = entry.path();
            let kind = entry.file_type().context("asking for", &path)?;
            if kind.is_dir() {
                folders.push(path);
            } else if ends(&path, ending) {
                // Follows a link to a file.
                let about = fs::metadata(&path).context("asking for", &path)?;
                if about.is_file() {
                    found.push(Found { path, bytes: about.len() });
                }
            }
        }
    }
    Ok(())
}

/// The whole extension counts, so that ".gz" is not ".tar.gz" read as something else.
fn ends(path: &Path, ending: &str) -> bool {
    let extension = path.extension().map(|of| of.as_encoded_bytes()).unwrap_or_default();
    extension == ending.trim_start_matches('.').as_bytes()
}

/// What is known of made data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MadeReplay {
    /// Files that were written.
    pub n_written: u64,
    /// Files that were there already.
    pub n_kept: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// Makes the data of a replay: files of the traced sizes with bytes that no device compresses. Files that are there stay.
///
/// # Errors
/// If the folder has other files of the kind, or a file cannot be written.
pub fn make_replay(replay: &Replay, data: &Path, observer: Observer<'_>) -> Result<MadeReplay, Error> {
    let mut made = MadeReplay::default();
    let mut room = vec![0; 1 << 20];
    let mut seen: Vec<&ReplayFiles> = Vec::new();
    for files in replay.loader.iter().flat_map(|loader| &loader.files) {
        // Two loaders may read the same files.
        let is_same = |other: &&ReplayFiles| (&other.folder, &other.ending) == (&files.folder, &files.ending);
        let before = seen.iter().filter(|other| is_same(other)).map(|other| other.files).max().unwrap_or(0);
        seen.push(files);
        let mut number = 0;
        for (bytes, n) in &files.sizes {
            for _ in 0..*n {
                if observer.is_cancelled() {
                    return Ok(made);
                }
                if number >= before {
                    make_one(&name_of(data, files, number), *bytes, &mut room, &mut made, observer)?;
                }
                number += 1;
            }
        }
    }
    Ok(made)
}

/// Files of a folder follow each other, so their order by name is that of their numbers.
fn name_of(data: &Path, files: &ReplayFiles, number: u64) -> PathBuf {
    let mut folder = below(data, files);
    if files.folders > 1 {
        let each = files.files.div_ceil(files.folders);
        folder.push(format!("{:06}", number / each));
    }
    folder.join(format!("{number:010}{}", files.ending))
}

fn make_one(
    path: &Path,
    bytes: u64,
    room: &mut [u8],
    made: &mut MadeReplay,
    observer: Observer<'_>,
) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(about) if about.len() == bytes => {
            made.n_kept += 1;
            return Ok(());
        }
        Ok(about) => {
            let what = format!("has {}; the workload's file has {}", Bytes(about.len()), Bytes(bytes));
            return Err(Error::OtherFile { path: path.to_owned(), what });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("asking for", path).map_err(Error::from),
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).context("creating the folder", folder)?;
    // A name of its own until it is complete, so a run that was stopped leaves no short file.
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    let part = PathBuf::from(part);
    write(&part, bytes, room, made.n_written).context("writing", &part)?;
    fs::rename(&part, path).context("writing", path)?;
    made.n_written += 1;
    made.bytes += bytes;
    observer.tell(Event::Moved { images: 0, bytes });
    Ok(())
}

fn write(path: &Path, bytes: u64, room: &mut [u8], seed: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut random = Random::new(seed);
    let mut left = bytes;
    while left > 0 {
        let n = left.min(room.len() as u64) as usize;
        random.fill(&mut room[..n]);
        file.write_all(&room[..n])?;
        left -= n as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use forebay_workload::replay::ReplayLoader;

    use super::*;

    fn files(sizes: &[(u64, u64)], folders: u64) -> ReplayFiles {
        let files = sizes.iter().map(|(_, n)| n).sum();
        let bytes = sizes.iter().map(|(bytes, n)| bytes * n).sum();
        let (folder, ending) = ("train".to_owned(), ".bin".to_owned());
        ReplayFiles { folder, ending, files, folders, bytes, sizes: sizes.to_vec(), ..ReplayFiles::default() }
    }

    fn replay(files: Vec<ReplayFiles>) -> Replay {
        Replay { loader: vec![ReplayLoader { files, ..ReplayLoader::default() }], ..Replay::default() }
    }

    fn make(replay: &Replay, data: &Path) -> Result<MadeReplay, Error> {
        make_replay(replay, data, Observer::deaf(&AtomicBool::new(false)))
    }

    #[test]
    fn made_files_have_the_sizes_of_the_trace_and_are_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let wanted = files(&[(10, 3), (5_000_000, 2)], 2);
        let replay = replay(vec![wanted.clone(), wanted.clone()]);
        let made = make(&replay, dir.path()).unwrap();
        assert_eq!(made, MadeReplay { n_written: 5, n_kept: 0, bytes: 10_000_030 });
        let found = find(dir.path(), &wanted).unwrap();
        assert_eq!(found.iter().map(|file| file.bytes).collect::<Vec<_>>(), [10, 10, 10, 5_000_000, 5_000_000]);
        assert_eq!(found[3].path, dir.path().join("train/000001/0000000003.bin"));
        assert_eq!(make(&replay, dir.path()).unwrap(), MadeReplay { n_kept: 5, ..MadeReplay::default() });
        fs::write(&found[0].path, "longer than ten bytes").unwrap();
        assert!(make(&replay, dir.path()).unwrap_err().to_string().contains("has 21 B; the workload's file has 10 B"));
    }

    #[test]
    fn only_files_of_the_kind_count_and_too_few_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["train/b/2.bin", "train/a/1.bin", "train/x.txt", "other/3.bin", "train/nameless"] {
            fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
            fs::write(dir.path().join(name), "abc").unwrap();
        }
        let found = find(dir.path(), &files(&[(3, 2)], 1)).unwrap();
        let names: Vec<_> =
            found.iter().map(|file| file.path.strip_prefix(dir.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["train/a/1.bin", "train/b/2.bin"]);
        let said = find(dir.path(), &files(&[(3, 3)], 1)).unwrap_err().to_string();
        assert!(said.ends_with("train: found 2 of the 3 .bin files that the job read"), "{said}");
        let nameless = ReplayFiles { ending: String::new(), files: 1, ..files(&[(3, 1)], 1) };
        assert_eq!(find(dir.path(), &nameless).unwrap().len(), 1);
    }
}
