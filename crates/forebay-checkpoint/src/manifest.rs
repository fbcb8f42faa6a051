//! The manifest: the files of a checkpoint, their lengths, and the crc32c of each chunk.
//!
//! It is human-readable text in the checkpoint's folder, so a copy of the folder is a valid checkpoint too. Its last
//! line is the crc32c of all previous lines, which makes a partial manifest detectable. On an object store, a line `in`
//! after `chunk` names the folder of the files.
//!
//! ```text
//! forebay checkpoint 1
//! step 120
//! metric 0.25
//! chunk 4194304
//! file 623000000 model.safetensors
//! 1a2b3c4d 5e6f7a8b …
//! crc32c 9c8d7e6f
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::Damage;
use crate::format::{self, Format};

/// The manifest's file name.
pub(crate) const MANIFEST: &str = "manifest.forebay";

const TITLE: &str = "forebay checkpoint 1";
const PER_LINE: usize = 8;

/// A file's content at the time it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSum {
    pub name: String,
    pub len: u64,
    /// The crc32c of each chunk, in order; the last chunk may be shorter.
    pub crcs: Vec<u32>,
}

/// A checkpoint's content at the time it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The training step after which it was saved.
    pub step: u64,
    /// The caller's quality metric, if any.
    pub metric: Option<f64>,
    /// Bytes per chunk; a multiple of 4096, as direct I/O requires.
    pub chunk_bytes: u64,
    pub files: Vec<FileSum>,
}

impl Manifest {
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.len).sum()
    }

    /// The format and stem of its files, derived from their names.
    pub fn format(&self) -> Option<(&'static dyn Format, &str)> {
        self.files.iter().find_map(|file| format::recognise(&file.name))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_in(None)
    }

    /// The same, of a checkpoint on an object store, whose files are in a folder beside the manifest.
    pub(crate) fn encode_in(&self, folder: Option<&str>) -> Vec<u8> {
        let mut text = format!("{TITLE}\nstep {}\n", self.step);
        let mut line = |args: std::fmt::Arguments<'_>| text.write_fmt(args).expect("a string takes all text");
        if let Some(metric) = self.metric {
            line(format_args!("metric {metric:?}\n"));
        }
        line(format_args!("chunk {}\n", self.chunk_bytes));
        if let Some(folder) = folder {
            line(format_args!("in {folder}\n"));
        }
        for file in &self.files {
            line(format_args!("file {} {}\n", file.len, file.name));
            for crcs in file.crcs.chunks(PER_LINE) {
                let words: Vec<String> = crcs.iter().map(|crc| format!("{crc:08x}")).collect();
                line(format_args!("{}\n", words.join(" ")));
            }
        }
        let crc = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("crc32c {crc:08x}\n"));
        text.into_bytes()
    }

    /// Checks that it names at least one file, and no file twice.
    fn check_names(&self) -> Result<(), Damage> {
        if self.files.is_empty() {
            return Err(Damage::Manifest { what: "no files are listed".to_owned() });
        }
        let mut seen = BTreeSet::new();
        match self.files.iter().find(|file| !seen.insert(&file.name)) {
            Some(twice) => Err(Damage::Manifest { what: format!("{} is listed twice", twice.name) }),
            None => Ok(()),
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Damage> {
        Self::decode_in(bytes).map(|(manifest, _)| manifest)
    }

    /// The same, with the folder that holds the files of a checkpoint on an object store. Where a checkpoint was copied from
    /// there to a disk, its files are beside the manifest as always.
    pub(crate) fn decode_in(bytes: &[u8]) -> Result<(Self, Option<String>), Damage> {
        if bytes.is_empty() {
            return Err(Damage::Manifest { what: "empty file".to_owned() });
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Damage::Manifest { what: "only zeros".to_owned() });
        }
        let text = str::from_utf8(bytes).map_err(|_| Damage::Foreign)?;
        if !text.starts_with(TITLE) {
            return Err(Damage::Foreign);
        }
        let whole = check_crc(text).ok_or_else(|| Damage::Manifest { what: "checksum mismatch".to_owned() })?;
        let mut lines = Lines { lines: whole.lines().skip(1).peekable() };
        let manifest = lines.manifest();
        let (manifest, folder) = manifest.ok_or_else(|| Damage::Manifest { what: "invalid line".to_owned() })?;
        manifest.check_names()?;
        Ok((manifest, folder))
    }
}

/// The lines before the last, if the last is their checksum.
fn check_crc(text: &str) -> Option<&str> {
    let start = text.strip_suffix('\n')?.rfind('\n')? + 1;
    let (before, last) = text.split_at(start);
    let expected = format!("crc32c {:08x}\n", crc32c::crc32c(before.as_bytes()));
    (last == expected).then_some(before)
}

struct Lines<'a> {
    lines: std::iter::Peekable<std::iter::Skip<std::str::Lines<'a>>>,
}

impl<'a> Lines<'a> {
    /// The rest of the next line, if it starts with the given word.
    fn after(&mut self, word: &str) -> Option<&'a str> {
        let rest = self.lines.peek()?.strip_prefix(word)?.strip_prefix(' ')?;
        self.lines.next();
        Some(rest)
    }

    fn manifest(&mut self) -> Option<(Manifest, Option<String>)> {
        let step = self.after("step")?.parse().ok()?;
        let metric = match self.after("metric") {
            Some(text) => Some(text.parse().ok()?),
            None => None,
        };
        let chunk_bytes: u64 = self.after("chunk")?.parse().ok()?;
        if chunk_bytes == 0 || !chunk_bytes.is_multiple_of(4096) {
            return None;
        }
        let folder = self.after("in").map(str::to_owned);
        if folder.as_deref().is_some_and(|folder| !is_name(folder)) {
            return None;
        }
        let mut files = Vec::new();
        while self.lines.peek().is_some() {
            files.push(self.file(chunk_bytes)?);
        }
        Some((Manifest { step, metric, chunk_bytes, files }, folder))
    }

    fn file(&mut self, chunk_bytes: u64) -> Option<FileSum> {
        let (len, name) = self.after("file")?.split_once(' ')?;
        let len: u64 = len.parse().ok()?;
        if !is_name(name) {
            return None;
        }
        let mut crcs = Vec::new();
        // The loop is bounded by the actual lines, not by the claimed length.
        while (crcs.len() as u64) < len.div_ceil(chunk_bytes) {
            for word in self.lines.next()?.split(' ') {
                crcs.push(u32::from_str_radix(word, 16).ok()?);
            }
        }
        (crcs.len() as u64 == len.div_ceil(chunk_bytes)).then(|| FileSum { name: name.to_owned(), len, crcs })
    }
}

/// Whether this is a valid file name inside a checkpoint.
pub(crate) fn is_name(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != '/';
    !name.is_empty() && name.len() <= 255 && !name.starts_with('.') && name != MANIFEST && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example() -> Manifest {
        let file = |name: &str, len: u64| FileSum {
            name: name.to_owned(),
            len,
            crcs: (0..len.div_ceil(4096) as u32).collect(),
        };
        let files = vec![file("a b.safetensors", 100_000), file("empty", 0), file("one", 1)];
        Manifest { step: 120, metric: Some(0.1), chunk_bytes: 4096, files }
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(Manifest::decode(&example().encode()), Ok(example()));
        let plain = Manifest { metric: None, ..example() };
        assert_eq!(Manifest::decode(&plain.encode()), Ok(plain));
    }

    #[test]
    fn no_file_or_one_twice_is_damage() {
        let none = Manifest { files: Vec::new(), ..example() };
        let mut twice = example();
        twice.files.push(twice.files[2].clone());
        for (manifest, said) in [(none, "no files are listed"), (twice, "one is listed twice")] {
            assert_eq!(Manifest::decode(&manifest.encode()), Err(Damage::Manifest { what: said.to_owned() }));
        }
    }

    #[test]
    fn a_manifest_cut_anywhere_or_with_any_bit_flipped_is_none() {
        let bytes = example().encode();
        for len in 0..bytes.len() {
            assert!(Manifest::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_folder_of_the_files_is_part_of_the_manifest() {
        let bytes = example().encode_in(Some("0123456789abcdef"));
        assert_eq!(Manifest::decode_in(&bytes), Ok((example(), Some("0123456789abcdef".to_owned()))));
        assert_eq!(Manifest::decode_in(&example().encode()), Ok((example(), None)));
        let outside = example().encode_in(Some("../x"));
        assert_eq!(Manifest::decode(&outside), Err(Damage::Manifest { what: "invalid line".to_owned() }));
    }

    #[test]
    fn what_we_did_not_write_is_foreign() {
        assert_eq!(Manifest::decode(b"hello"), Err(Damage::Foreign));
        assert_eq!(Manifest::decode(&[0; 64]), Err(Damage::Manifest { what: "only zeros".to_owned() }));
    }

    proptest! {
        #[test]
        fn no_text_with_a_right_checksum_makes_it_panic(body in "[a-z0-9 \n.]{0,120}") {
            let mut text = format!("{TITLE}\n{body}\n");
            let crc = crc32c::crc32c(text.as_bytes());
            text.push_str(&format!("crc32c {crc:08x}\n"));
            if let Ok(manifest) = Manifest::decode(text.as_bytes()) {
                prop_assert!(manifest.chunk_bytes > 0);
            }
        }
    }
}
