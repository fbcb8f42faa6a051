//! `forebay data pack --to files`: shards back into the files they were made from.
//!
//! TFRecord and tar shards keep every byte of the files, their names and their labels; tensor shards do not, and are
//! refused. Labels go into `list.txt`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use forebay_format::{Kind, image, list};
use forebay_record::Fault;
use forebay_storage::{Buffer, Local};
use forebay_units::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::home::{self, Home};
use crate::make::LIST;
use crate::rng::mix;
use crate::shard::{self, Content, Sample};
use crate::source::{Source, read_head};
use crate::{Control, Error, Result, write};

const MARKER: &str = ".forebay-unpack.json";

/// What a run of [`unpack`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unpacked {
    /// Files in the folder now.
    pub n_files: u64,
    /// Files that were there already.
    pub n_kept: u64,
    /// What the files take.
    pub bytes: Bytes,
    /// Records that could not be turned into files, and why.
    pub skipped: Vec<Fault>,
    /// Files beside the shards that are no data.
    pub left_out: Option<String>,
}

/// Writes the files that the shards at `input` were made from into `out`. A sample of more than `max_sample` bytes is bad,
/// and is not read.
///
/// # Errors
/// When `input` holds no TFRecord or tar shards, when `out` holds anything else or cannot be written to, when a record
/// is bad and `stop_at_bad` is set, or when the caller stops it. What is finished stays.
pub fn unpack(
    input: &Path,
    out: &Path,
    stop_at_bad: bool,
    max_sample: Bytes,
    control: &Control<'_>,
) -> Result<Unpacked> {
    let (shards, left_out) = shards_of(input)?;
    let home = Home::claim(out, MARKER, &identity(&shards))?;
    let run = Run { out, resumed: home.resumed, stop_at_bad, max_sample, control, found: Mutex::default() };
    control.for_each("unpack", shards.len() as u64, || (), |(), number| run.shard(&shards[number as usize]))?;
    let found = run.found.into_inner().expect("storing does not panic");
    write_list(out, &found.files)?;
    let mut done = Unpacked { left_out, ..found.done };
    done.skipped.sort_unstable();
    Ok(done)
}

/// The shards of a path, with their kinds, and what is no data there; images are refused.
fn shards_of(input: &Path) -> Result<(Vec<(PathBuf, Kind)>, Option<String>)> {
    let storage = Local::default();
    let kind = |path: PathBuf| match read_head(&storage, &path, &mut Buffer::default())? {
        Kind::Tensor => Err(Error::Lossy { path, found: "decoded and resized images" }),
        kind if kind.is_shard() => Ok((path, kind)),
        Kind::Image(_) => Err(Error::Lossy { path, found: "image files that were never packed" }),
        _ => Err(Error::Lossy { path, found: "files that are not shards" }),
    };
    let source = Source::open(&storage, input)?;
    let shards = source.items.into_iter().map(|item| kind(item.path)).collect::<Result<_>>()?;
    Ok((shards, source.left_out.note()))
}

fn identity(shards: &[(PathBuf, Kind)]) -> Map<String, Value> {
    let mut print = 0u64;
    for (path, _) in shards {
        let (size, time) = fs::metadata(path).map_or((0, 0), |of| (of.len(), of.mtime_nsec() ^ (of.mtime() << 30)));
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let words = name.iter().map(|&byte| u64::from(byte)).chain([size, time as u64]);
        words.for_each(|word| print = mix(print ^ word).wrapping_add(1));
    }
    let fields = [("n_shards", Value::from(shards.len())), ("inputs", format!("{print:016x}").into())];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// One run over all shards.
struct Run<'a> {
    out: &'a Path,
    resumed: bool,
    stop_at_bad: bool,
    max_sample: Bytes,
    control: &'a Control<'a>,
    found: Mutex<Found>,
}

#[derive(Default)]
struct Found {
    done: Unpacked,
    /// Label and checksum of every file, by name.
    files: HashMap<String, (Option<i64>, u32)>,
}

impl Run<'_> {
    fn shard(&self, (path, kind): &(PathBuf, Kind)) -> Result<u64> {
        let (mut bytes, mut number) = (0, 0);
        let mut outcome = Ok(());
        let walked = shard::walk(&Local::default(), path, *kind, self.max_sample.0, &mut |sample| {
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

    /// Writes one sample's file; its size.
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

    /// Claims a name and says whether it was free; the same file twice is one file, and whoever claimed it first
    /// writes it.
    fn claim(&self, name: &str, label: Option<i64>, bytes: &[u8]) -> Result<bool, String> {
        let entry = (label, crc32c::crc32c(bytes));
        match self.found.lock().expect("storing does not panic").files.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(entry);
                Ok(true)
            }
            Entry::Occupied(former) if *former.get() == entry => Ok(false),
            Entry::Occupied(_) => Err(format!("another record is called {name} too")),
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

/// Whether a file holds these bytes; one of another length is not read.
fn holds(path: &Path, bytes: &[u8]) -> bool {
    let same_len = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes.len() as u64);
    same_len && fs::read(path).is_ok_and(|there| there == bytes)
}

/// The name of a sample's file below the folder: the one it keeps, or one made from its label and place.
fn name_of(sample: &Sample<'_>, shard: &Path, number: u64, bytes: &[u8]) -> Result<String, String> {
    let Some(name) = &sample.name else {
        let kind = image::sniff(bytes).ok_or("an image of unknown format, without a file name")?;
        let folder = sample.label.map_or_else(|| "unlabelled".to_owned(), |label| label.to_string());
        let stem = shard.file_name().unwrap_or_default().to_string_lossy().replace('.', "-");
        return Ok(format!("{folder}/{stem}-{number:06}.{}", kind.extension()));
    };
    let inner = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    let visible = !name.split('/').any(|part| part.is_empty() || part.starts_with('.'));
    if !inner || !visible {
        return Err(format!("its file name \"{name}\" leads out of the folder or is hidden"));
    }
    if name == LIST || name.contains(['\0', '\n']) {
        return Err(format!("its file name {name:?} cannot stand in {LIST}"));
    }
    Ok(name.clone())
}

fn write_list(out: &Path, files: &HashMap<String, (Option<i64>, u32)>) -> Result<()> {
    let mut names: Vec<(&String, Option<i64>)> = files.iter().map(|(name, (label, _))| (name, *label)).collect();
    names.sort_unstable();
    let line = |(path, label): (&String, Option<i64>)| format!("{}\n", list::Entry { path, label });
    let text: String = names.into_iter().map(line).collect();
    home::commit(&out.join(LIST), text.as_bytes())
}
