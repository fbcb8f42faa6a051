//! `forebay data pack --to files`: shards back into the files they were made from.
//!
//! TFRecord and tar shards keep every byte of the files, their names and their labels; tensor shards do not, and are
//! refused. Labels go into `list.txt`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use forebay_format::example::KeyNames;
use forebay_format::{Kind, MAX_SAMPLE_SIZE, image, list};
use forebay_record::Fault;
use forebay_storage::{Buffer, Local, Storage};
use forebay_units::random::mix;
use forebay_units::{Bytes, PathText};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::home::{self, Home, INPUTS};
use crate::make::LIST;
use crate::shard::{self, Content, Reading, Sample};
use crate::source::{Item, Source, read_head};
use crate::{Control, Error, Result, features, write};

const MARKER: &str = ".forebay-unpack.json";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unpacked {
    pub n_files: u64,
    /// Files of an earlier run with the same bytes, not written again.
    pub n_kept: u64,
    pub bytes: Bytes,
    /// Records that could not be turned into files, and why.
    pub skipped: Vec<Fault>,
    /// Notes for the user: splits unpacked together, unknown labels.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackOptions {
    /// Stop at the first bad record instead of leaving it out.
    pub stop_at_bad: bool,
    /// The features of TFRecord records that hold image and label, where they are known.
    pub keys: KeyNames,
    /// A larger sample is reported as bad and not read.
    pub max_sample: Bytes,
}

impl Default for UnpackOptions {
    fn default() -> Self {
        Self { stop_at_bad: false, keys: KeyNames::default(), max_sample: Bytes(MAX_SAMPLE_SIZE) }
    }
}

/// Writes the files that the shards at `input` were made from into `out`.
///
/// # Errors
/// When `input` contains no TFRecord or tar shards, when `out` contains other files or cannot be written to, when a
/// record is bad and the options say to stop, or when the caller stops it. Finished files stay.
pub fn unpack(input: &Path, out: &Path, options: &UnpackOptions, control: &Control<'_>) -> Result<Unpacked> {
    let storage = Local::default();
    let mut source = Source::open(&storage, input)?;
    let keys = features::decide(&storage, input, &source, &options.keys, options.max_sample)?;
    let shards = shards_of(&storage, std::mem::take(&mut source.items))?;
    let home = Home::claim(out, MARKER, &identity(&shards, &options.keys))?;
    let reading = Reading { storage: &storage, keys: &keys, limit: options.max_sample.0 };
    let stop_at_bad = options.stop_at_bad;
    let run = Run { out, resumed: home.resumed, stop_at_bad, reading, control, found: Mutex::default() };
    control.for_each("unpack", shards.len() as u64, || (), |(), number| run.shard(&shards[number as usize]))?;
    let found = std::mem::take(&mut *run.found.lock().expect("storing does not panic"));
    write_list(out, &found.files)?;
    let mut done = found.done;
    done.skipped.sort_unstable();
    done.notes = source.notes_with(&keys);
    Ok(done)
}

/// The shards and their kinds; other files are refused.
fn shards_of(storage: &dyn Storage, items: Vec<Item>) -> Result<Vec<(PathBuf, Kind)>> {
    let kind = |path: PathBuf| match read_head(storage, &path, &mut Buffer::default())? {
        Kind::Tensor => Err(Error::Lossy { path, found: "decoded and resized images" }),
        kind if kind.is_shard() => Ok((path, kind)),
        Kind::Image(_) => Err(Error::Lossy { path, found: "image files that were never packed" }),
        _ => Err(Error::Lossy { path, found: "files that are not shards" }),
    };
    items.into_iter().map(|item| kind(item.path)).collect()
}

fn identity(shards: &[(PathBuf, Kind)], keys: &KeyNames) -> Map<String, Value> {
    let mut print = 0u64;
    for (path, _) in shards {
        let (size, time) = fs::metadata(path).map_or((0, 0), |of| (of.len(), of.mtime_nsec() ^ (of.mtime() << 30)));
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let words = name.iter().map(|&byte| u64::from(byte)).chain([size, time as u64]);
        words.for_each(|word| print = mix(print ^ word).wrapping_add(1));
    }
    let fields = [("n_shards", Value::from(shards.len())), (INPUTS, format!("{print:016x}").into())];
    let named = [("image_key", &keys.image), ("label_key", &keys.label)];
    let named = named.into_iter().filter_map(|(key, name)| Some((key, Value::from(name.as_deref()?))));
    fields.into_iter().chain(named).map(|(key, value)| (key.to_owned(), value)).collect()
}

struct Run<'a> {
    out: &'a Path,
    resumed: bool,
    stop_at_bad: bool,
    reading: Reading<'a>,
    control: &'a Control<'a>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    done: Unpacked,
    /// Label and checksum of every file, by name.
    files: HashMap<PathBuf, (Option<i64>, u32)>,
}

impl Run<'_> {
    fn shard(&self, (path, kind): &(PathBuf, Kind)) -> Result<u64> {
        let (mut bytes, mut number) = (0, 0);
        let mut outcome = Ok(());
        let walked = shard::walk(&self.reading, path, *kind, &mut |sample| {
            if outcome.is_ok() {
                outcome = self.take(path, number, sample).map(|size| bytes += size);
            }
            number += 1;
        });
        outcome?;
        walked.or_else(|fault| self.bad(fault))?;
        Ok(bytes)
    }

    fn bad(&self, fault: Fault) -> Result<()> {
        if self.stop_at_bad {
            return Err(Error::Bad(fault));
        }
        self.found.lock().expect("storing does not panic").done.skipped.push(fault);
        Ok(())
    }

    /// Returns the size of the file written.
    fn take(&self, shard: &Path, number: u64, sample: Result<Sample<'_>, Fault>) -> Result<u64> {
        if self.control.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let named = sample.and_then(|sample| {
            let Content::Encoded(bytes) = sample.content else { return Err(Fault::of_file(shard, "holds no files")) };
            let name = name_of(&sample, shard, number, bytes);
            let claimed = name.and_then(|name| Ok((self.claim(&name, sample.label, bytes)?, name)));
            let (first, name) = claimed.map_err(|reason| Fault::of_record(shard, sample.offset, reason))?;
            Ok(first.then_some((name, bytes)))
        });
        match named {
            Ok(Some((name, bytes))) => self.place(&self.out.join(name), bytes),
            Ok(None) => Ok(0),
            Err(fault) => self.bad(fault).map(|()| 0),
        }
    }

    /// Claims a name and returns whether it was free. The same file twice is one file, written by the first claimant.
    fn claim(&self, name: &Path, label: Option<i64>, bytes: &[u8]) -> Result<bool, String> {
        let entry = (label, crc32c::crc32c(bytes));
        match self.found.lock().expect("storing does not panic").files.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(entry);
                Ok(true)
            }
            Entry::Occupied(former) if *former.get() == entry => Ok(false),
            Entry::Occupied(_) => Err(format!("another record has the same file name {}", name.escaped())),
        }
    }

    fn place(&self, path: &Path, bytes: &[u8]) -> Result<u64> {
        let kept = self.resumed && holds(path, bytes);
        if !kept {
            write::folder(path.parent().unwrap_or(self.out))?;
            write::atomic(path, bytes)?;
        }
        let done = &mut self.found.lock().expect("storing does not panic").done;
        done.n_files += 1;
        done.n_kept += u64::from(kept);
        done.bytes += Bytes(bytes.len() as u64);
        Ok(bytes.len() as u64)
    }
}

/// Whether a file holds these bytes; a file of another length is not read.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_len = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64);
    same_len && fs::read(path).is_ok_and(|there| there == bytes)
}

/// The file name of a sample: the stored name, or one made from its label and place.
fn name_of(sample: &Sample<'_>, shard: &Path, number: u64, bytes: &[u8]) -> Result<PathBuf, String> {
    let Some(name) = &sample.name else {
        let kind = image::sniff(bytes).ok_or("image of unknown format without a file name")?;
        let folder = sample.label.map_or_else(|| "unlabelled".to_owned(), |label| label.to_string());
        let shard = shard.file_name().unwrap_or_default().as_bytes();
        let mut file: Vec<u8> = shard.iter().map(|byte| if *byte == b'.' { b'-' } else { *byte }).collect();
        file.extend_from_slice(format!("-{number:06}.{}", kind.extension()).as_bytes());
        return Ok(Path::new(&folder).join(OsStr::from_bytes(&file)));
    };
    // `tar cf x.tar .` writes `./a.jpg`; `.` is not part of the name.
    let mut inner = PathBuf::new();
    for part in name.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(part) if part.as_bytes().starts_with(b".") => {
                return Err(format!("file name \"{}\" is hidden", name.escaped()));
            }
            Component::Normal(part) => inner.push(part),
            _ => return Err(format!("file name \"{}\" leads out of the folder", name.escaped())),
        }
    }
    let bytes = inner.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Err("empty file name".to_owned());
    }
    if bytes == LIST.as_bytes() || bytes.contains(&0) || bytes.contains(&b'\n') {
        return Err(format!("file name \"{}\" cannot be written to {LIST}", inner.escaped()));
    }
    Ok(inner)
}

fn write_list(out: &Path, files: &HashMap<PathBuf, (Option<i64>, u32)>) -> Result<()> {
    let mut names: Vec<list::Entry<'_>> =
        files.iter().map(|(path, (label, _))| list::Entry { path, label: *label }).collect();
    names.sort_unstable_by_key(|entry| entry.path.as_os_str());
    let text: Vec<u8> = names.iter().flat_map(list::Entry::to_line).collect();
    home::commit(&out.join(LIST), &text)
}
