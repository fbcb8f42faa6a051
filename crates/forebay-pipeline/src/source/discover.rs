//! Finding out what a path holds.
//!
//! A single file is recognised by its content. In a folder, names come first and content is examined only if the name
//! says nothing: opening a million files would take longer than an epoch, and an empty or damaged image must stay a
//! sample of its folder and fail under its own name when it is read. Files that are not samples are counted by kind.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_format::example::KeyNames;
use forebay_format::{Error as FormatError, Kind, LeftOut, image, is_passed_over, split};
use forebay_storage::{Buffer, Storage};
use forebay_units::PathText;

use super::{Source, below, folder, shards};
use crate::error::Error;

pub(super) fn discover(storage: Arc<dyn Storage>, path: &Path, given: &KeyNames) -> Result<Source, Error> {
    let mut found = Found::default();
    let mut is_folder = false;
    // Only a file has a size; a folder is listed.
    let size = storage.size(path);
    if let Err(error) = size.as_ref().map(drop)
        && error.is_final()
    {
        // A listing would fail too, after the same time.
        size?;
    } else if size.is_ok() {
        match kind_of_file(storage.as_ref(), path)? {
            (Kind::Text | Kind::Empty, _) if given.is_empty() => return Source::list(storage, path),
            (Kind::Text | Kind::Empty, _) => return Err(no_features(path, "a list")),
            (Kind::Utf16, _) => return Err(refused(path, FormatError::Utf16)),
            (Kind::Packed(how), _) => return Err(refused(path, FormatError::Archive { how })),
            (Kind::ForeignImage(format), _) => {
                let what = format!("{}: {format} is not supported", path.escaped());
                return Err(Error::Source { what, source: None });
            }
            (Kind::Unknown, head) => return Err(not_known(path, head.as_slice())),
            (kind, _) => found.add(kind, path.to_owned(), path),
        }
    } else {
        is_folder = true;
        let listed = storage.list(path)?.into_iter().map(|entry| entry.path);
        let files: Vec<PathBuf> = listed.filter(|file| !is_passed_over(below(file, path))).collect();
        let unnamed: Vec<PathBuf> = files.iter().filter(|file| Kind::by_name(file).is_none()).cloned().collect();
        let mut judged = shards::on_each(storage.as_ref(), &unnamed, |file| {
            // A file that cannot be opened and whose name is not that of data is not a sample.
            kind_of_file(storage.as_ref(), file).map_or(Kind::Unknown, |(kind, _)| kind)
        })
        .into_iter();
        for file in files {
            let kind = Kind::by_name(&file).or_else(|| judged.next()).unwrap_or(Kind::Unknown);
            found.add(kind, file, path);
        }
    }
    let mut source = found.into_source(storage, path, given)?;
    if is_folder {
        let names = split::names(source.files().iter().map(|file| below(file, path)));
        source.notes.extend(split::note(&names, source.packing() == "files"));
    }
    Ok(source)
}

/// Several files, each recognised by its content: images, or shards of one kind.
pub(super) fn discover_all(storage: Arc<dyn Storage>, paths: &[PathBuf], given: &KeyNames) -> Result<Source, Error> {
    let mut found = Found::default();
    for path in paths {
        match kind_of_file(storage.as_ref(), path)? {
            (kind @ (Kind::Image(_) | Kind::TfRecord(_) | Kind::Tar(_) | Kind::Tensor), _) => {
                found.add(kind, path.clone(), path);
            }
            (_, head) => return Err(not_known(path, head.as_slice())),
        }
    }
    found.into_source(storage, &common_folder(paths), given)
}

/// The deepest folder that all files are below.
fn common_folder(paths: &[PathBuf]) -> PathBuf {
    let mut common = paths.first().and_then(|path| path.parent()).unwrap_or(Path::new("")).to_owned();
    while !paths.iter().all(|path| path.starts_with(&common)) && common.pop() {}
    common
}

fn refused(path: &Path, error: FormatError) -> Error {
    Error::Source { what: path.escaped().into_owned(), source: Some(Box::new(error)) }
}

/// The error if feature names were given for data without features.
fn no_features(path: &Path, found: &str) -> Error {
    let what = format!("{}: only TFRecord records have named features, found {found}", path.escaped());
    Error::Source { what, source: None }
}

/// The error for a single file of an unsupported kind.
fn not_known(path: &Path, head: &[u8]) -> Error {
    let what = format!("{}: expected images, a shard or a list, found", path.escaped());
    Error::Source { what: format!("{what} {}", image::describe(head)), source: None }
}

/// The kind of a file by its first bytes, and these bytes. An empty file has the kind of its name: a shard without
/// records or an empty image.
fn kind_of_file(storage: &dyn Storage, path: &Path) -> Result<(Kind, Buffer), Error> {
    let object = storage.open(path)?;
    let len = object.len()?.min(Kind::HEAD_LEN as u64) as usize;
    let mut buffer = Buffer::default();
    object.read_at(0, len, &mut buffer)?;
    let kind = match Kind::of(buffer.as_slice()) {
        Kind::Empty => Kind::by_name(path).unwrap_or(Kind::Empty),
        kind => kind,
    };
    Ok((kind, buffer))
}

#[derive(Default)]
struct Found {
    images: Vec<PathBuf>,
    tfrecord: Vec<PathBuf>,
    tar: Vec<PathBuf>,
    tensor: Vec<PathBuf>,
    /// The first archive of an unsupported kind.
    packed: Option<(PathBuf, &'static str)>,
    left_out: LeftOut,
}

impl Found {
    fn add(&mut self, kind: Kind, path: PathBuf, dir: &Path) {
        match kind {
            Kind::Image(_) => self.images.push(path),
            Kind::TfRecord(_) => self.tfrecord.push(path),
            Kind::Tar(_) => self.tar.push(path),
            Kind::Tensor => self.tensor.push(path),
            other => {
                self.left_out.add(other, &below(&path, dir).escaped());
                if let (Kind::Packed(how), None) = (other, &self.packed) {
                    self.packed = Some((path, how));
                }
            }
        }
    }

    fn into_source(self, storage: Arc<dyn Storage>, path: &Path, given: &KeyNames) -> Result<Source, Error> {
        let Self { images, tfrecord, tar, tensor, packed, left_out } = self;
        let all =
            [(&images, "images"), (&tfrecord, "TFRecord shards"), (&tar, "tar shards"), (&tensor, "tensor shards")];
        let kinds: Vec<String> =
            all.iter().filter(|(n, _)| !n.is_empty()).map(|(n, of)| format!("{} {of}", n.len())).collect();
        let found = match kinds.as_slice() {
            [] => Err(match packed {
                Some((path, how)) if left_out.is_archives_alone() => refused(&path, FormatError::Archive { how }),
                _ => {
                    let why = left_out.note().unwrap_or_else(|| "no images or shards found".to_owned());
                    Error::Empty { what: format!("{}: {why}", path.escaped()) }
                }
            }),
            [_] if !tfrecord.is_empty() => shards::tfrecord(storage, &tfrecord, given),
            [other] if !given.is_empty() => Err(no_features(path, other)),
            [_] if !images.is_empty() => folder::of_files(storage, images, path),
            [_] if !tar.is_empty() => Source::tar(storage, &tar),
            [_] => Source::tensor(storage, &tensor),
            several => {
                let (path, found) = (path.escaped(), several.join(", "));
                let what = format!("{path} mixes several kinds of data ({found}); pass one of its folders");
                Err(Error::Source { what, source: None })
            }
        };
        found.map(|source| Source { left_out: Arc::new(left_out), ..source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_format::tfrecord;
    use forebay_storage::Memory;

    const JPEG: &[u8] = b"\xff\xd8\xff\xe0";

    fn discover_in(files: &[(&str, &[u8])], path: &str) -> Result<Source, Error> {
        let memory = Memory::default();
        files.iter().for_each(|(path, bytes)| memory.insert(*path, bytes.to_vec()));
        discover(Arc::new(memory), Path::new(path), &KeyNames::default())
    }

    fn refusal(files: &[(&str, &[u8])], path: &str) -> String {
        discover_in(files, path).err().unwrap().to_string()
    }

    fn shard() -> Vec<u8> {
        let mut shard = Vec::new();
        tfrecord::append(&mut shard, b"payload");
        shard
    }

    #[test]
    fn an_empty_or_damaged_image_stays_a_sample_of_its_folder() {
        let files: [(&str, &[u8]); 4] =
            [("d/a/1.jpg", JPEG), ("d/a/2.jpg", b""), ("d/a/3.png", b"this is text"), ("d/a/4.jpeg", &shard())];
        let source = discover_in(&files, "d").unwrap();
        assert_eq!((source.n_samples(), source.packing()), (4, "files"));
    }

    #[test]
    fn names_that_say_nothing_are_judged_by_their_content() {
        let files: [(&str, &[u8]); 4] =
            [("d/train-00000", &shard()), ("d/notes", b"text"), ("d/other", &[1, 2, 3]), ("d/nothing", b"")];
        let source = discover_in(&files, "d").unwrap();
        assert_eq!((source.n_samples(), source.packing()), (1, "tfrecord"));
    }

    #[test]
    fn what_is_no_sample_is_counted_by_kind() {
        let files: [(&str, &[u8]); 7] = [
            ("d/a/1.jpg", JPEG),
            ("d/a/2.WEBP", b"RIFF"),
            ("d/a/3.avif", b"never opened"),
            ("d/a/4", b"\xff\x0a\xfa"),
            ("d/archive.zip", b"PK\x03\x04"),
            ("d/LICENSE", b"text"),
            ("d/list.txt", b"text"),
        ];
        let source = discover_in(&files, "d").unwrap();
        assert_eq!((source.n_samples(), source.packing()), (2, "files"));
        let wanted = "3 files left out: 1 AVIF image (not supported), 1 JPEG XL image (not supported), \
                      1 other file (archive.zip)";
        assert_eq!(source.left_out().note().unwrap(), wanted);
        let wanted = "no samples in d: 2 files left out: 2 AVIF images (not supported)";
        assert_eq!(refusal(&[("d/1.avif", b""), ("d/2.avif", b"")], "d"), wanted);
    }

    #[test]
    fn hidden_files_and_notes_are_passed_over() {
        let files = [("d/.1.jpg", JPEG), ("d/.x/2.jpg", JPEG), ("d/x.tfrecord.index", JPEG), ("d/list.txt", JPEG)];
        assert_eq!(refusal(&files, "d"), "no samples in d: no images or shards found");
    }

    #[test]
    fn several_kinds_at_once_are_refused_and_counted() {
        let files: [(&str, &[u8]); 4] =
            [("d/1.jpg", JPEG), ("d/2.png", JPEG), ("d/x.tfrecord", &shard()), ("d/y.tar", b"")];
        let expected =
            "d mixes several kinds of data (2 images, 1 TFRecord shards, 1 tar shards); pass one of its folders";
        assert_eq!(refusal(&files, "d"), expected);
    }

    #[test]
    fn files_that_are_named_one_by_one_keep_their_order_and_classes() {
        let memory = Memory::default();
        for path in ["d/a/1.jpg", "d/b/2.jpg", "d/b/3.jpg"] {
            memory.insert(path, JPEG.to_vec());
        }
        memory.insert("d/x.tfrecord", shard());
        memory.insert("d/notes", b"text".to_vec());
        let of = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            discover_all(Arc::new(memory.clone()), &paths, &KeyNames::default())
        };
        let source = of(&["d/b/3.jpg", "d/a/1.jpg"]).unwrap();
        assert_eq!(
            (source.n_samples(), source.packing(), source.classes()),
            (2, "files", &["a".to_owned(), "b".to_owned()][..])
        );
        assert_eq!(of(&["d/x.tfrecord"]).unwrap().packing(), "tfrecord");
        assert!(of(&["d/a/1.jpg", "d/x.tfrecord"]).err().unwrap().to_string().contains("mixes several kinds"));
        assert!(of(&["d/notes"]).err().unwrap().to_string().starts_with("d/notes: expected images"));
        assert!(matches!(of(&["d/none.jpg"]).err(), Some(Error::Storage(_))));
    }

    #[test]
    fn a_file_is_judged_by_its_content_and_by_its_name_only_when_empty() {
        assert_eq!(discover_in(&[("mislabelled.jpg", &shard())], "mislabelled.jpg").unwrap().packing(), "tfrecord");
        assert_eq!(refusal(&[("x.tfrecord", b"")], "x.tfrecord"), "no samples in x.tfrecord");
        assert_eq!(refusal(&[("list", b"")], "list"), "no samples in the list list");
        let noise = refusal(&[("noise", &[0x81; 99])], "noise");
        let wanted = "noise: expected images, a shard or a list, found 99 bytes beginning with";
        assert!(noise.starts_with(wanted), "{noise}");
        let avif = refusal(&[("a.avif", b"\0\0\0\x10ftypavif\0\0\0\0")], "a.avif");
        assert_eq!(avif, "a.avif: AVIF is not supported");
    }
}
